"""What a judge writes about a criterion leaves as texts do, which it may quote. Rows P1, P2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest

from claimspan import Criterion, RagRecord
from claimspan.judges.protocol import Grade
from claimspan.testing import ScriptedJudge
from claimspan_tracing.testing import InMemoryMonitor

CANARY: Final = "qxcanary"


class QuotingJudge(ScriptedJudge):
    """A judge whose grades quote what it has read."""

    async def grade(self, criteria: Sequence[Criterion], record: RagRecord) -> Sequence[Grade]:
        why = f"It says {record.response}"
        return [Grade(None if each.name == "open" else 0.0, why) for each in criteria]


def without_canary(text: str) -> str:
    return text.replace(CANARY, "[removed]")


@pytest.mark.parametrize("way", ["withheld", "redacted"])
def test_no_reason_of_a_grade_shows_what_may_not_be_shown(way: str) -> None:
    metrics = [Criterion("kind", "The answer is kind."), Criterion("open", "It is open.")]
    judge = QuotingJudge()
    monitor = (
        InMemoryMonitor(judge=judge, metrics=metrics, capture_content=False)
        if way == "withheld"
        else InMemoryMonitor(
            judge=judge, metrics=metrics, redact=without_canary, redact_for=["export"]
        )
    )
    with monitor:
        with monitor.record("Where?") as record:
            record.retrieved(["a chunk"])
            record.answered(f"Here, {CANARY}.")
        found = monitor.only_record()
        written = "".join(span.to_json() for span in monitor.spans())

    assert found.scores == {"kind": 0.0}
    assert CANARY not in written
    assert CANARY not in found.outcome.to_json()


def test_the_reason_of_a_grade_is_on_the_span_if_texts_are() -> None:
    metrics = [Criterion("kind", "The answer is kind.")]
    with InMemoryMonitor(judge=QuotingJudge(), metrics=metrics) as monitor:
        with monitor.record("Where?") as record:
            record.retrieved(["a chunk"])
            record.answered(f"Here, {CANARY}.")
        monitor.only_record()
        written = "".join(span.to_json() for span in monitor.spans())

    assert f"It says Here, {CANARY}." in written
