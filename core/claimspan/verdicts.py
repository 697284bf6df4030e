"""The values that judges return: claims, labels, verdicts, and matrices of verdicts.

They are the contract between judges, metrics and whoever writes scores: frozen, checked when they
are made, and free of any judge's own types.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final, Literal, Self, overload

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = ["Claim", "Label", "ScoreMode", "Verdict", "VerdictMatrix"]

ScoreMode = Literal["graded", "label", "mixed"]
"""``graded``: all verdicts have probabilities; ``label``: none has; ``mixed``: some have."""


class Label(StrEnum):
    """The relation of a reference to a claim."""

    ENTAILED = "entailed"
    """The reference states or implies the claim."""

    NEUTRAL = "neutral"
    """The reference neither entails nor contradicts the claim."""

    CONTRADICTED = "contradicted"
    """The reference denies the claim."""

    @classmethod
    def parse(cls, spelling: str) -> Label:
        """Reads a label in any of the spellings in use.

        Args:
            spelling: Claimspan's own spelling (``entailed``), RAGChecker's (``Entailment``) or
                Pinecone's (``entailed``, ``contradicted``, ``neutral``), in upper or lower case.

        Returns:
            The label.

        Raises:
            ValueError: The spelling is none of them; the message lists those that are known.
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
    """One statement of a text, small enough to be true or false on its own."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str = Field(min_length=1)
    """The claim, in the language of the text it was extracted from."""

    sentence: str | None = None
    """The sentence it was extracted from, as written in the text; None where unknown."""


class Verdict(BaseModel):
    """A judge's decision about one claim and one reference.

    The three probabilities are all given, and sum to 1, or are all None.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: Label
    """The most probable relation."""

    entailed: float | None = Field(default=None, ge=0.0, le=1.0)
    """Probability that the reference entails the claim; None where the judge has only a label."""

    neutral: float | None = Field(default=None, ge=0.0, le=1.0)
    """Probability that the reference does neither; None where the judge has only a label."""

    contradicted: float | None = Field(default=None, ge=0.0, le=1.0)
    """Probability that the reference contradicts it; None where the judge has only a label."""

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

    A cell is None where the judge could not decide. The shape is known without claims or references
    as well: a matrix of two claims and no references is ``[[], []]``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: tuple[tuple[Verdict | None, ...], ...]
    """One row for each claim, with one cell for each reference."""

    n_references: int = Field(ge=0)
    """Number of references; stored because a matrix without claims has no row to count."""

    @model_validator(mode="after")
    def _is_rectangular(self) -> Self:
        if any(len(row) != self.n_references for row in self.rows):
            raise ValueError(f"every row needs exactly {self.n_references} cells")
        return self

    @classmethod
    def of(cls, rows: Sequence[Sequence[Verdict | None]], n_references: int | None = None) -> Self:
        """Builds a matrix from nested sequences.

        Args:
            rows: One sequence of cells for each claim.
            n_references: Number of references; needed only where ``rows`` is empty.

        Returns:
            The matrix; pydantic's validation error is raised where a row has another length.
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
        """The labels alone, shape ``(n_claims, n_references)``; None where a cell is undecided."""
        return [[cell.label if cell else None for cell in row] for row in self.rows]

    @property
    def score_mode(self) -> ScoreMode | None:
        """Whether the decided verdicts have probabilities; None where no cell is decided."""
        modes = {cell.entailed is not None for cell in self.verdicts() if cell is not None}
        if len(modes) == 2:
            return "mixed"
        return None if not modes else "graded" if modes.pop() else "label"

    @property
    def merged(self) -> list[Label | None]:
        """One label for each claim over all references, shape ``(n_claims,)``.

        The first rule that applies: entailed by any reference; undecided (None) for any reference;
        contradicted by any reference; neutral. Without the undecided this is RAGChecker's order.
        """
        return [_merge([cell.label if cell else None for cell in row]) for row in self.rows]

    @overload
    def __getitem__(self, index: int) -> tuple[Verdict | None, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[tuple[Verdict | None, ...], ...]: ...
    def __getitem__(
        self, index: int | slice
    ) -> tuple[Verdict | None, ...] | tuple[tuple[Verdict | None, ...], ...]:
        """Returns the row of a claim; ``matrix[i][j]`` is the verdict on claim i by reference j."""
        return self.rows[index]

    def __len__(self) -> int:
        """Number of claims."""
        return len(self.rows)

    def verdicts(self) -> Iterator[Verdict | None]:
        """Yields every cell, row by row; None where it is undecided."""
        return (cell for row in self.rows for cell in row)


def _merge(labels: Sequence[Label | None]) -> Label | None:
    if Label.ENTAILED in labels:
        return Label.ENTAILED
    if None in labels:
        return None
    return Label.CONTRADICTED if Label.CONTRADICTED in labels else Label.NEUTRAL
