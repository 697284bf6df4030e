"""What an evaluation says where its judge fails: our own remedy, and nothing that others wrote."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from claimspan import evaluate
from claimspan.errors import ConfigError, JudgeError, MissingExtraError
from claimspan.verdicts import Claim, VerdictMatrix

from scripted import ScriptedJudge, make_record


class Failing(ScriptedJudge):
    """Raises in every check."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        raise self._error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MissingExtraError("onnxruntime", "local"), r"pip install 'claimspan\[local\]'"),
        (ConfigError("'local.onnx' is not the published file: install it again"), "install it"),
    ],
)
def test_what_we_say_of_a_remedy_reaches_whoever_reads_the_error(
    error: Exception, said: str
) -> None:
    with pytest.raises(JudgeError, match=said):
        evaluate(make_record(), judge=Failing(error))


def test_what_others_say_may_quote_the_record_and_is_not_passed_on() -> None:
    with pytest.raises(JudgeError, match="raised ValueError") as caught:
        evaluate(make_record(), judge=Failing(ValueError("bad chunk: secret text")))

    assert "secret" not in str(caught.value)
