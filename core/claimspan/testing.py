"""A judge with scripted verdicts, to test a pipeline's wiring without a model.

A test of a pipeline wants to know that a query is captured, evaluated and scored. It does not want
a model's opinion, which costs time and money and may be another one tomorrow::

    from claimspan import Chunk, RagRecord, evaluate
    from claimspan.testing import ScriptedJudge

    def test_an_invented_sentence_lowers_faithfulness():
        record = RagRecord(
            query="Where is the tower?",
            chunks=[Chunk(id="a", text="The tower is in Paris. It opened in 1889.")],
            response="The tower is in Paris. It is made of glass.",
        )

        evaluation = evaluate(record, judge=ScriptedJudge())

        assert evaluation.metrics["faithfulness"] == 0.5

Without a script a reference entails the claims that it contains, word for word. With one, it says
what the script says::

    ScriptedJudge({("It is made of glass", "It is made of iron."): "contradicted"})
    ScriptedJudge(lambda claim, reference: None if "glass" in claim else "entailed")
    ScriptedJudge(error=JudgeError("the endpoint is down"))   # every call fails
    ScriptedJudge(delay_seconds=60)                           # every call is slow
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from claimspan.verdicts import Claim, Label, Verdict, VerdictMatrix

__all__ = ["Check", "Extraction", "Script", "ScriptedJudge", "entailed_if_contained"]

_Answer = Verdict | Label | str | None

Script = Mapping[tuple[str, str], _Answer] | Callable[[str, str], _Answer]
"""From the texts of a claim and a reference to a verdict, a label, or None if undecided."""


_SENTENCE_END: Final = re.compile(r"[.!?]+(?:\s+|$)")


class Extraction(NamedTuple):
    """One call of ``extract_claims``."""

    text: str
    question: str | None


class Check(NamedTuple):
    """One call of ``check``."""

    claims: tuple[str, ...]
    references: tuple[str, ...]
    question: str | None


def entailed_if_contained(claim: str, reference: str) -> Label:
    """The script of a judge without one: a reference entails the claims that it contains.

    Args:
        claim: The text of a claim.
        reference: The text to check it against.

    Returns:
        Entailed if the reference contains the claim; contradicted if it contains ``not: `` and the
        claim; else neutral.
    """
    if f"not: {claim}" in reference:
        return Label.CONTRADICTED
    return Label.ENTAILED if claim in reference else Label.NEUTRAL


class ScriptedJudge:
    """A judge that answers from a script: the same every time, at no cost.

    The claims of a text are its sentences, without the sign at their end. Every call is recorded
    in ``extractions`` or ``checks``, for the assertions of a test.
    """

    name = "scripted"
    version = "1"

    def __init__(
        self,
        script: Script = entailed_if_contained,
        *,
        error: BaseException | None = None,
        delay_seconds: float = 0.0,
    ) -> None:
        """Make a judge.

        Args:
            script: A mapping from ``(claim, reference)`` to a label, or a callable with these two
                arguments. A pair that a mapping lacks is neutral; None is undecided; a label may
                be in any spelling that ``Label.parse`` takes.
            error: Raised by every call, after the delay.
            delay_seconds: How long every call takes; the event loop goes on meanwhile.
        """
        self._script = script
        self.error = error
        self.delay_seconds = delay_seconds
        self.extractions: list[Extraction] = []
        self.checks: list[Check] = []

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        """The sentences of a text, without the sign at their end.

        Raises:
            BaseException: The judge's ``error``, if it has one.
        """
        self.extractions.append(Extraction(text, question))
        await self._delay_and_fail()
        # Without the sign, so that a claim is found in the middle of a reference's sentence too.
        return [Claim(text=part.strip()) for part in _SENTENCE_END.split(text) if part.strip()]

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        """The verdicts of the script, shape ``(len(claims), len(references))``.

        Raises:
            BaseException: The judge's ``error``, if it has one.
            LabelError: The script has a label of an unknown spelling.
        """
        self.checks.append(Check(tuple(c.text for c in claims), tuple(references), question))
        await self._delay_and_fail()
        rows = [[self.verdict(claim.text, text) for text in references] for claim in claims]
        return VerdictMatrix.of(rows, len(references))

    def verdict(self, claim: str, reference: str) -> Verdict | None:
        """The script's verdict on one claim by one reference; None if undecided."""
        script = self._script
        answer = (
            script(claim, reference)
            if callable(script)
            else script.get((claim, reference), Label.NEUTRAL)
        )
        if answer is None or isinstance(answer, Verdict):
            return answer
        return Verdict(label=Label.parse(answer))

    async def _delay_and_fail(self) -> None:
        if self.delay_seconds:
            await asyncio.sleep(self.delay_seconds)
        if self.error is not None:
            raise self.error
