"""A script of verdicts, judges that answer from it, and the record that it is about."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from claimspan import Chunk, Claim, Label, RagRecord, Verdict, VerdictMatrix, testing
from claimspan.judges.protocol import Cell
from claimspan.testing import Script

__all__ = [
    "FACT",
    "PRIVATE",
    "QUESTION",
    "SCRIPT",
    "TWO_CLAIMS",
    "RaisingJudge",
    "ScriptedJudge",
    "SparseScriptedJudge",
    "UnreadingJudge",
    "labels",
    "make_record",
]

QUESTION: Final = "What is it?"
TWO_CLAIMS: Final = "alpha. beta."
FACT: Final = "gamma."

PRIVATE: Final = "the key is sk-12345"
"""What an exception may hold, and nobody may read."""

SCRIPT: Final[Mapping[tuple[str, str], Label | None]] = {
    ("alpha", "chunk one"): Label.ENTAILED,
    ("beta", "chunk two"): Label.CONTRADICTED,
    ("alpha", FACT): Label.ENTAILED,
    ("gamma", TWO_CLAIMS): Label.ENTAILED,
    ("gamma", "chunk two"): None,
}


class ScriptedJudge(testing.ScriptedJudge):
    """The judge that users get, with the script of these tests unless they give another."""

    def __init__(self, script: Script = SCRIPT) -> None:
        super().__init__(script)


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
    """A scripted judge that is asked for all four matrices at once."""

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


class RaisingJudge(ScriptedJudge):
    """Raises on a check of anything that holds ``boom``."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.failure = error

    def verdict(self, claim: str, reference: str) -> Verdict | None:
        if "boom" in claim:
            raise self.failure
        return super().verdict(claim, reference)


class UnreadingJudge(ScriptedJudge):
    """Raises on every extraction."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.failure = error

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        raise self.failure
