"""A judge that says what a script says, and the record that the script is about."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from claimspan import Chunk, Claim, Label, RagRecord, Verdict, VerdictMatrix
from claimspan.judges.protocol import Cell

__all__ = [
    "FACT",
    "QUESTION",
    "SCRIPT",
    "TWO_CLAIMS",
    "Script",
    "ScriptedJudge",
    "SparseScriptedJudge",
    "labels",
    "make_record",
]

QUESTION: Final = "What is it?"
TWO_CLAIMS: Final = "alpha. beta."
FACT: Final = "gamma."
Script = Mapping[tuple[str, str], Label | None]

SCRIPT: Final[Script] = {
    ("alpha", "chunk one"): Label.ENTAILED,
    ("beta", "chunk two"): Label.CONTRADICTED,
    ("alpha", FACT): Label.ENTAILED,
    ("gamma", TWO_CLAIMS): Label.ENTAILED,
    ("gamma", "chunk two"): None,
}


class ScriptedJudge:
    """A sentence is a claim; a verdict is what the script says of claim and reference."""

    name = "scripted"
    version = "3"

    def __init__(self, script: Script = SCRIPT) -> None:
        self.script = script
        self.extracted: list[tuple[str, str | None]] = []
        self.checked: list[tuple[tuple[str, ...], tuple[str, ...], str | None]] = []

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        self.extracted.append((text, question))
        return [Claim(text=part.strip()) for part in text.split(".") if part.strip()]

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        self.checked.append((tuple(c.text for c in claims), tuple(references), question))
        rows = [[self.verdict(claim.text, each) for each in references] for claim in claims]
        return VerdictMatrix.of(rows, len(references))

    def verdict(self, claim: str, reference: str) -> Verdict | None:
        label = self.script.get((claim, reference), Label.NEUTRAL)
        return None if label is None else Verdict(label=label)


def make_record(
    response: str = TWO_CLAIMS,
    *,
    chunks: Sequence[str] = ("chunk one", "chunk two"),
    ground_truth: str | None = FACT,
) -> RagRecord:
    return RagRecord(
        query=QUESTION,
        response=response,
        chunks=tuple(Chunk(id=str(i), text=text) for i, text in enumerate(chunks)),
        ground_truth=ground_truth,
    )


def labels(matrix: VerdictMatrix | None) -> list[list[Label | None]]:
    assert matrix is not None
    return matrix.labels


class SparseScriptedJudge(ScriptedJudge):
    """As the scripted judge, asked for all four matrices at once."""

    def __init__(self) -> None:
        super().__init__()
        self.cells: list[tuple[tuple[str, ...], tuple[str, ...], set[Cell]]] = []

    async def check_cells(
        self,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        *,
        question: str | None = None,
    ) -> VerdictMatrix:
        self.cells.append((tuple(c.text for c in claims), tuple(references), set(cells)))
        return await self.check(claims, references, question=question)
