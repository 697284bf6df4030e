"""The two calls that everything else is built on."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol, runtime_checkable

from claimspan.verdicts import Claim, VerdictMatrix

__all__ = ["Cell", "Judge", "SparseJudge"]

Cell = tuple[int, int]
"""Index of a claim, index of a reference."""


@runtime_checkable
class Judge(Protocol):
    """Takes texts apart into claims, and checks claims against references.

    A judge that fails raises ``JudgeError``; it never makes up a verdict. Judges run on the event
    loop of a worker, many records at a time: they await their input and output, and do not block.
    A judge may also have a ``version`` (string): it changes whenever the judge may give other
    verdicts on the same input, and stands beside the scores.
    """

    @property
    def name(self) -> str:
        """Short and stable, as it appears on the trace: ``lexical``, ``openai``."""
        ...

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        """The claims that ``text`` makes, in order; an empty list where it makes none.

        Args:
            text: A response or a ground truth.
            question: The question that it answers, where known.
        """
        ...

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        """A verdict for every claim against every reference.

        Args:
            claims: What to check.
            references: Texts to check against, each on its own.
            question: The question behind both, where known.

        Returns:
            A matrix of shape ``(len(claims), len(references))``; a cell that could not be
            decided is None.
        """
        ...


@runtime_checkable
class SparseJudge(Judge, Protocol):
    """A judge that can be asked for some cells of a matrix at once.

    An evaluation needs four matrices of the same claims and texts. A judge that has this call
    gets them in one, as one matrix of all claims against all texts with the cells that matter.
    """

    async def check_cells(
        self,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        *,
        question: str | None = None,
    ) -> VerdictMatrix:
        """A verdict for each of ``cells``.

        Args:
            claims: What to check.
            references: Texts to check against, each on its own.
            cells: Which claim against which reference.
            question: The question behind both, where known.

        Returns:
            A matrix of shape ``(len(claims), len(references))``; a cell that was not asked for,
            or could not be decided, is None.
        """
        ...
