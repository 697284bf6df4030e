"""What a judge says: claims, labels, and the matrix of verdicts of claims against references."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final, Literal, Self, overload

from pydantic import BaseModel, ConfigDict, Field, model_validator

from claimspan.text.encodable import EncodableText

__all__ = ["Claim", "Label", "ScoreMode", "Verdict", "VerdictMatrix"]

ScoreMode = Literal["graded", "label", "mixed"]
"""Whether verdicts have probabilities, have only labels, or some this and some that."""


class Label(StrEnum):
    """The relation of a reference to a claim."""

    ENTAILED = "entailed"
    """The reference says the claim, or implies it."""

    NEUTRAL = "neutral"
    """The reference neither supports nor denies the claim."""

    CONTRADICTED = "contradicted"
    """The reference denies the claim."""

    @classmethod
    def parse(cls, spelling: str) -> Label:
        """Read a label in any of the spellings in use.

        Takes claimspan's own (``entailed``), RAGChecker's (``Entailment``) and Pinecone's
        (``entailed``, ``contradicted``, ``neutral``), in any case.

        Raises:
            ValueError: The spelling is none of them.
        """
        try:
            return _SPELLINGS[spelling.strip().lower()]
        except KeyError:
            known = ", ".join(sorted(_SPELLINGS))
            raise ValueError(f"{spelling!r} is not a label; use one of: {known}") from None


_SPELLINGS: Final = {
    "entailed": Label.ENTAILED,
    "entailment": Label.ENTAILED,
    "neutral": Label.NEUTRAL,
    "contradicted": Label.CONTRADICTED,
    "contradiction": Label.CONTRADICTED,
}


class Claim(BaseModel):
    """One thing that a text says, small enough to be true or false on its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: EncodableText = Field(min_length=1)
    """The claim, in the language of the text that it came from."""

    sentence: EncodableText | None = None
    """The sentence of the text that the claim came from, as written there; None where unknown."""


class Verdict(BaseModel):
    """What a judge decided about one claim and one reference."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: Label
    """The most probable relation."""

    entailed: float | None = Field(default=None, ge=0.0, le=1.0)
    """Probability that the reference entails the claim; None where the judge has only a label."""

    neutral: float | None = Field(default=None, ge=0.0, le=1.0)
    """Probability that it does neither; None where the judge has only a label."""

    contradicted: float | None = Field(default=None, ge=0.0, le=1.0)
    """Probability that it contradicts the claim; None where the judge has only a label."""

    @model_validator(mode="after")
    def _is_a_distribution(self) -> Self:
        given = [p for p in (self.entailed, self.neutral, self.contradicted) if p is not None]
        if not given:
            return self
        if len(given) != 3 or not math.isclose(sum(given), 1.0, abs_tol=1e-6):
            raise ValueError("the three probabilities come together and sum to 1")
        return self


class VerdictMatrix(BaseModel):
    """Verdicts of claims against references, shape ``(n_claims, n_references)``.

    A cell is None where the judge could not decide. With no claims or no references the shape is
    still known: a matrix of two claims and no references is ``[[], []]``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: tuple[tuple[Verdict | None, ...], ...]
    """One row a claim, one cell a reference."""

    n_references: int = Field(ge=0)
    """Number of references, also where there is no claim to show it."""

    @model_validator(mode="after")
    def _is_rectangular(self) -> Self:
        if any(len(row) != self.n_references for row in self.rows):
            raise ValueError(f"every row needs exactly {self.n_references} cells")
        return self

    @classmethod
    def of(cls, rows: Sequence[Sequence[Verdict | None]], n_references: int | None = None) -> Self:
        """Build a matrix from nested sequences.

        Args:
            rows: One sequence of cells for each claim.
            n_references: Number of references; needed only where ``rows`` is empty.
        """
        if n_references is None:
            n_references = len(rows[0]) if rows else 0
        return cls(rows=tuple(tuple(row) for row in rows), n_references=n_references)

    @property
    def shape(self) -> tuple[int, int]:
        """``(n_claims, n_references)``."""
        return len(self.rows), self.n_references

    @property
    def labels(self) -> list[list[Label | None]]:
        """The labels alone, shape ``(n_claims, n_references)``, None where undecided."""
        return [[cell.label if cell else None for cell in row] for row in self.rows]

    @property
    def score_mode(self) -> ScoreMode | None:
        """What the decided verdicts have; None where none is decided."""
        modes = {cell.entailed is not None for cell in self.verdicts() if cell is not None}
        if len(modes) == 2:
            return "mixed"
        return None if not modes else "graded" if modes.pop() else "label"

    @property
    def merged(self) -> list[Label | None]:
        """One label a claim over all references, shape ``(n_claims,)``.

        Entailed by any reference wins, then an undecided one makes the claim undecided, then
        contradicted by any, else neutral (RAGChecker's order: entailment, contradiction, neutral).
        """
        return [_merge([cell.label if cell else None for cell in row]) for row in self.rows]

    @overload
    def __getitem__(self, index: int) -> tuple[Verdict | None, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[tuple[Verdict | None, ...], ...]: ...
    def __getitem__(
        self, index: int | slice
    ) -> tuple[Verdict | None, ...] | tuple[tuple[Verdict | None, ...], ...]:
        """The row of one claim; ``matrix[i][j]`` is the verdict on claim i by reference j."""
        return self.rows[index]

    def __len__(self) -> int:
        """Number of claims."""
        return len(self.rows)

    def verdicts(self) -> Iterator[Verdict | None]:
        """Every cell, row by row."""
        return (cell for row in self.rows for cell in row)


def _merge(labels: Sequence[Label | None]) -> Label | None:
    if Label.ENTAILED in labels:
        return Label.ENTAILED
    if None in labels:
        return None
    return Label.CONTRADICTED if Label.CONTRADICTED in labels else Label.NEUTRAL
