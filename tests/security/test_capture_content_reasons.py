"""What a judge says about its failure, where no text may be written. Row P1 of the matrix."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from claimspan import Claim, VerdictMatrix
from claimspan.cost.usage import add_undecided
from claimspan.errors import JudgeError
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing.testing import InMemoryMonitor

from lc_pipelines import rag_chain

CANARY = "qxcanary"


class Quoting:
    """A judge of the user's, which quotes what it has read."""

    name = "quoting"

    def __init__(self, *, raises: bool) -> None:
        self._raises = raises

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        if self._raises:
            raise JudgeError(f"no claims in: {text}")
        return [Claim(text=text)]

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        add_undecided(f"cannot decide: {claims[0].text}", len(references))
        return VerdictMatrix.of([[None] * len(references)] * len(claims))


@pytest.mark.parametrize("raises", [True, False])
def test_the_reason_of_a_failure_quotes_nothing_where_content_is_not_captured(
    raises: bool,
) -> None:
    with InMemoryMonitor(judge=Quoting(raises=raises), capture_content=False) as monitor:
        config = {"callbacks": [ClaimspanCallbackHandler(monitor)]}
        rag_chain().invoke(CANARY, config)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - a config may be any mapping
        record = monitor.only_record()
        spans = "".join(span.to_json() for span in monitor.spans())

    assert record.status == "judge_error"
    assert record.outcome.reason.startswith("the judge ")
    assert CANARY not in spans + record.outcome.to_json()
