"""The output of a judge: claims, labels, verdicts, and matrices of verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final, Literal, Self, overload

from pydantic import BaseModel, ConfigDict, Field, model_validator

from claimspan.errors import LabelError
from claimspan.text.encodable import EncodableText

__all__ = ["UNSURE", "Claim", "Label", "ScoreMode", "Verdict", "VerdictMatrices", "VerdictMatrix"]

ScoreMode = Literal["graded", "label", "mixed"]
"""Whether all verdicts have probabilities (``graded``), none has (``label``), or some have."""


UNSURE: Final = "the judge is not sure"
"""Reason of a verdict that a judge leaves undecided, as what it can read does not tell whether the
claim is entailed. It is no failure, as the other reasons in ``Evaluation.undecided`` are."""


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
        """Parse a label in any of the spellings in use, upper or lower case.

        Args:
            spelling: Claimspan's and Pinecone's (``entailed``, ``neutral``, ``contradicted``), or
                RAGChecker's (``Entailment``, ``Neutral``, ``Contradiction``).

        Raises:
            LabelError: It is another spelling. It is also a ``ValueError``.
        """
        try:
            return _SPELLINGS[spelling.strip().lower()]
        except KeyError:
            known = ", ".join(sorted(_SPELLINGS))
            raise LabelError(f"{spelling!r} is not a label; use one of: {known}") from None


# The nouns are RAGChecker's, the participles Pinecone's and our own.
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

    text: EncodableText = Field(min_length=1)
    """The claim, in the language of the text that it was extracted from."""

    sentence: EncodableText | None = None
    """The sentence that the claim was extracted from, as written; None if unknown."""


_NO_DISTRIBUTION: Final = "give all three probabilities, with a sum of 1, or none"


class Verdict(BaseModel):
    """A judge's decision on one claim against one reference."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: Label
    """The relation that the judge decided for."""

    entailed: float | None = Field(default=None, ge=0.0, le=1.0)
    """Probability that the reference entails the claim; None if the judge has only a label."""

    neutral: float | None = Field(default=None, ge=0.0, le=1.0)
    """Probability that the reference does neither; None if the judge has only a label."""

    contradicted: float | None = Field(default=None, ge=0.0, le=1.0)
    """Probability that the reference contradicts it; None if the judge has only a label."""

    @model_validator(mode="after")
    def _is_a_distribution(self) -> Self:
        entailed, neutral, contradicted = self.entailed, self.neutral, self.contradicted
        if entailed is None and neutral is None and contradicted is None:
            return self
        if entailed is None or neutral is None or contradicted is None:
            raise ValueError(_NO_DISTRIBUTION)
        # Rounded probabilities, such as three of 0.333333, miss 1 by a little.
        if not math.isclose(entailed + neutral + contradicted, 1.0, abs_tol=1e-6):
            raise ValueError(_NO_DISTRIBUTION)
        return self

    @property
    def confidence(self) -> float | None:
        """Probability of the label; None if the judge has only a label."""
        return {
            Label.ENTAILED: self.entailed,
            Label.NEUTRAL: self.neutral,
            Label.CONTRADICTED: self.contradicted,
        }[self.label]


class VerdictMatrix(BaseModel):
    """Verdicts of claims against references, shape ``(n_claims, n_references)``.

    A cell is None if the judge could not decide. The shape is known without claims or
    references too: a matrix of two claims and no references is ``[[], []]``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: tuple[tuple[Verdict | None, ...], ...]
    """One row per claim, one cell per reference."""

    n_references: int = Field(ge=0)
    """Number of references, which the rows do not tell if there is no claim."""

    has_unseen: bool = False
    """Whether something belongs to the references that the judge did not see, such as chunks beyond
    a bound: it may entail each claim that these do not."""

    @model_validator(mode="after")
    def _is_rectangular(self) -> Self:
        if any(len(row) != self.n_references for row in self.rows):
            raise ValueError(f"every row needs exactly {self.n_references} cells")
        return self

    @classmethod
    def of(cls, rows: Sequence[Sequence[Verdict | None]], n_references: int | None = None) -> Self:
        """Build a matrix from nested sequences.

        Args:
            rows: Cells of shape ``(n_claims, n_references)``.
            n_references: Number of references; needed only if ``rows`` is empty.

        Raises:
            pydantic.ValidationError: The rows differ in length.
        """
        if n_references is None:
            n_references = len(rows[0]) if rows else 0
        return cls(rows=tuple(tuple(row) for row in rows), n_references=n_references)

    def cut(self, claims: Sequence[int], references: Sequence[int]) -> VerdictMatrix:
        """The part of these claims and references, shape ``(len(claims), len(references))``."""
        rows = tuple(tuple([self.rows[i][j] for j in references]) for i in claims)
        # Its cells were checked when the matrix was made; that takes longer than the cut.
        return VerdictMatrix.model_construct(rows=rows, n_references=len(references))

    @property
    def shape(self) -> tuple[int, int]:
        """``(n_claims, n_references)``."""
        return len(self.rows), self.n_references

    @property
    def labels(self) -> list[list[Label | None]]:
        """The labels, shape ``(n_claims, n_references)``; None if undecided."""
        return [[cell.label if cell else None for cell in row] for row in self.rows]

    @property
    def all_labels(self) -> list[list[Label | None]]:
        """The labels, with an undecided one more for each claim if ``has_unseen``."""
        unseen: list[Label | None] = [None] if self.has_unseen else []
        return [[*row, *unseen] for row in self.labels]

    @property
    def score_mode(self) -> ScoreMode | None:
        """Whether the decided verdicts have probabilities; None if none is decided."""
        return _score_mode(self.verdicts())

    @property
    def merged(self) -> list[Label | None]:
        """One label per claim over all references, shape ``(n_claims,)``.

        Entailed if any reference entails the claim; else undecided if any cell is; else
        contradicted if any reference contradicts it; else neutral. What the judge did not see is
        one more undecided cell. Without any this is RAGChecker's order: entailment, contradiction,
        neutral.
        """
        return [_merge(row) for row in self.all_labels]

    @property
    def confidences(self) -> list[float | None]:
        """How sure the merged label of each claim is, 0 to 1, shape ``(n_claims,)``.

        That of the surest reference that entails or contradicts the claim. A neutral claim is as
        sure as the reference that is least surely neutral, since one that entails it would do. None
        if the claim is undecided, or a verdict behind it has no probabilities.
        """
        return [_confidence(row, label) for row, label in zip(self.rows, self.merged, strict=True)]

    @property
    def entailments(self) -> list[float | None]:
        """Highest probability that a reference entails each claim, shape ``(n_claims,)``.

        None if no verdict on the claim has probabilities.
        """
        return [
            max((cell.entailed for cell in row if cell and cell.entailed is not None), default=None)
            for row in self.rows
        ]

    @overload
    def __getitem__(self, index: int) -> tuple[Verdict | None, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[tuple[Verdict | None, ...], ...]: ...
    def __getitem__(
        self, index: int | slice
    ) -> tuple[Verdict | None, ...] | tuple[tuple[Verdict | None, ...], ...]:
        """The row of a claim, so that ``matrix[i][j]`` is claim i against reference j."""
        return self.rows[index]

    def __len__(self) -> int:
        return len(self.rows)

    def verdicts(self) -> Iterator[Verdict | None]:
        """All cells, row by row."""
        return (cell for row in self.rows for cell in row)


class VerdictMatrices(BaseModel):
    """The verdict matrices of one record; None if there was nothing to check against."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    response_vs_chunks: VerdictMatrix | None = None
    """Shape ``(n_response_claims, n_chunks)``."""

    response_vs_ground_truth: VerdictMatrix | None = None
    """Shape ``(n_response_claims, 1)``."""

    ground_truth_vs_response: VerdictMatrix | None = None
    """Shape ``(n_ground_truth_claims, 1)``."""

    ground_truth_vs_chunks: VerdictMatrix | None = None
    """Shape ``(n_ground_truth_claims, n_chunks)``."""

    response_vs_context: VerdictMatrix | None = None
    """All chunks read together, shape ``(n_response_claims, 1)``; None if the judge reads each
    chunk on its own."""

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        for name, pair in (
            ("response", self._of_response),
            ("ground truth", self._of_ground_truth),
        ):
            counts = [len(matrix) for matrix in pair]
            if len(set(counts)) > 1:
                raise ValueError(
                    f"{counts[0]} and {counts[1]} rows of {name} claims: give as many in both"
                )
        vs_chunks = _given(self.response_vs_chunks, self.ground_truth_vs_chunks)
        widths = {matrix.n_references for matrix in vs_chunks}
        if len(widths) > 1:
            raise ValueError(f"rows of {sorted(widths)} chunks: every row needs the same number")
        vs_text = _given(
            self.response_vs_ground_truth, self.ground_truth_vs_response, self.response_vs_context
        )
        if any(matrix.n_references != 1 for matrix in vs_text):
            raise ValueError("a claim has one verdict against one text: give one cell per row")
        return self

    @property
    def score_mode(self) -> ScoreMode | None:
        """Whether the decided verdicts have probabilities; None if none is decided."""
        matrices = (*self._of_response, *self._of_ground_truth)
        return _score_mode(cell for matrix in matrices for cell in matrix.verdicts())

    @property
    def undecided_claims(self) -> int:
        """Number of claims, of both texts, with at least one undecided verdict."""
        return _undecided_rows(self._of_response) + _undecided_rows(self._of_ground_truth)

    @property
    def conflicting_claims(self) -> int:
        """Number of response claims that one chunk entails and another contradicts."""
        labels = self.response_vs_chunks.labels if self.response_vs_chunks else []
        return sum(Label.ENTAILED in row and Label.CONTRADICTED in row for row in labels)

    @property
    def _of_response(self) -> Sequence[VerdictMatrix]:
        return _given(
            self.response_vs_ground_truth, self.response_vs_chunks, self.response_vs_context
        )

    @property
    def _of_ground_truth(self) -> Sequence[VerdictMatrix]:
        return _given(self.ground_truth_vs_response, self.ground_truth_vs_chunks)


def _given(*matrices: VerdictMatrix | None) -> Sequence[VerdictMatrix]:
    return [matrix for matrix in matrices if matrix is not None]


def _undecided_rows(matrices: Sequence[VerdictMatrix]) -> int:
    """Number of claims that are undecided in any of the matrices; each counts once."""
    return len(
        {
            i
            for matrix in matrices
            for i, (row, label) in enumerate(zip(matrix.rows, matrix.merged, strict=True))
            if label is None or None in row
        }
    )


def _score_mode(cells: Iterable[Verdict | None]) -> ScoreMode | None:
    modes = {cell.entailed is not None for cell in cells if cell is not None}
    if len(modes) == 2:
        return "mixed"
    return None if not modes else "graded" if modes.pop() else "label"


def _confidence(row: Sequence[Verdict | None], label: Label | None) -> float | None:
    same = [cell.confidence for cell in row if cell is not None and cell.label is label]
    known = [confidence for confidence in same if confidence is not None]
    if not same or len(known) < len(same):
        return None
    return min(known) if label is Label.NEUTRAL else max(known)


def _merge(labels: Sequence[Label | None]) -> Label | None:
    if Label.ENTAILED in labels:
        return Label.ENTAILED
    # Undecided wins over contradicted: the open cell may turn out to be entailed.
    if None in labels:
        return None
    return Label.CONTRADICTED if Label.CONTRADICTED in labels else Label.NEUTRAL
