"""Truth values of claims and chunks, which the formulas of the metrics are written in.

Every verdict may be undecided, so there are three values: True, False and None. The rules are
Kleene's strong logic: an OR is true as soon as one side is, false only when all sides are, else
undecided. A share leaves what is undecided out of numerator and denominator.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeVar

from claimspan.errors import ClaimspanError
from claimspan.verdicts import Label, Verdict, VerdictMatrices, VerdictMatrix

__all__ = [
    "NO_CONTEXT_VERDICTS",
    "NO_GROUND_TRUTH",
    "Truth",
    "Truths",
    "UndefinedMetricError",
    "any_of",
    "both",
    "is_label",
    "negation",
    "share",
]

Truth = bool | None
"""True, False, or None where undecided."""

NO_GROUND_TRUTH: Final = "no ground truth"
"""Why a metric has no value that compares with a ground truth, where there is none."""

NO_CONTEXT_VERDICTS: Final = "the judge does not read chunks together"
"""Why ``groundedness`` has no value where the judge is no ``ContextJudge``."""

_T = TypeVar("_T")


class UndefinedMetricError(ClaimspanError):
    """A metric has no value; raised by formulas, and never by what ``claimspan.metrics`` offers."""

    def __init__(self, reason: str, *, not_given: bool = False) -> None:
        """Keep the reason, and whether it is that the labels were not given at all."""
        super().__init__(reason)
        self.not_given = not_given


def any_of(values: Iterable[Truth]) -> Truth:
    """OR of all values; False where there are none."""
    undecided = False
    for value in values:
        if value:
            return True
        undecided = undecided or value is None
    return None if undecided else False


def negation(value: Truth) -> Truth:
    """NOT of a value."""
    return None if value is None else not value


def both(left: Truth, right: Truth) -> Truth:
    """AND of two values."""
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def is_label(label: Label | None, wanted: Label) -> Truth:
    """Whether a label is the wanted one; None where it is undecided."""
    return None if label is None else label is wanted


def share(values: Iterable[Truth]) -> float:
    """Share of true values among the decided ones.

    Raises:
        UndefinedMetricError: No value is decided.
    """
    # Neither 0 nor 1 would be true of an undecided verdict, so it does not count at all.
    decided = [value for value in values if value is not None]
    if not decided:
        raise UndefinedMetricError("every verdict is undecided")
    return sum(decided) / len(decided)


@dataclass(frozen=True)
class Truths:
    """What the verdict matrices of one record say about its claims and chunks.

    Every property raises ``UndefinedMetricError`` where its matrix was not given, or is empty.
    """

    matrices: VerdictMatrices
    """The verdicts."""

    # Cached, since several of the formulas read each of them.

    @cached_property
    def ground_truth_labels(self) -> Sequence[Label | None]:
        """Label of each response claim by the ground truth, shape ``(n_response_claims,)``."""
        return _column(self.matrices.response_vs_ground_truth, "response")

    @cached_property
    def response_labels(self) -> Sequence[Label | None]:
        """Label of each ground-truth claim by the response, shape ``(n_ground_truth_claims,)``."""
        return _column(self.matrices.ground_truth_vs_response, "ground truth")

    @cached_property
    def response_verdicts(self) -> Sequence[Verdict | None]:
        """As ``response_labels``, with the probabilities."""
        return _verdicts(self.matrices.ground_truth_vs_response, "ground truth")

    @cached_property
    def ground_truth_verdicts(self) -> Sequence[Verdict | None]:
        """As ``ground_truth_labels``, with the probabilities."""
        return _verdicts(self.matrices.response_vs_ground_truth, "response")

    @cached_property
    def chunk_labels(self) -> Sequence[Sequence[Label | None]]:
        """Label of each response claim by each chunk, shape ``(n_response_claims, n_chunks)``."""
        return _table(self.matrices.response_vs_chunks, "response", "chunks not checked")

    @cached_property
    def correct(self) -> Sequence[Truth]:
        """Whether the ground truth entails each response claim, shape ``(n_response_claims,)``."""
        return _entailed(self.ground_truth_labels)

    @cached_property
    def recalled(self) -> Sequence[Truth]:
        """Whether the response entails each claim of the ground truth."""
        return _entailed(self.response_labels)

    @cached_property
    def supported(self) -> Sequence[Sequence[Truth]]:
        """Whether each chunk entails each response claim, ``(n_response_claims, n_chunks)``."""
        return [_entailed(row) for row in self.chunk_labels]

    @cached_property
    def faithful(self) -> Sequence[Truth]:
        """Whether any chunk entails each response claim, shape ``(n_response_claims,)``."""
        return [any_of(row) for row in self.supported]

    @cached_property
    def grounded(self) -> Sequence[Truth]:
        """Whether all chunks together entail each response claim, ``(n_response_claims,)``."""
        matrix, by_chunk = self.matrices.response_vs_context, self.matrices.response_vs_chunks
        if matrix is None and by_chunk is not None and not by_chunk.n_references:
            raise UndefinedMetricError("no chunks", not_given=True)
        return _entailed(row[0] for row in _rows(matrix, "response", NO_CONTEXT_VERDICTS))

    @cached_property
    def held(self) -> Sequence[Sequence[Truth]]:
        """As ``supported``, of the ground truth: shape ``(n_ground_truth_claims, n_chunks)``."""
        rows = _table(self.matrices.ground_truth_vs_chunks, "ground truth", NO_GROUND_TRUTH)
        return [_entailed(row) for row in rows]

    @cached_property
    def retrieved(self) -> Sequence[Truth]:
        """Whether any chunk entails each ground-truth claim, shape ``(n_ground_truth_claims,)``."""
        return [any_of(row) for row in self.held]

    @cached_property
    def relevant(self) -> Sequence[Truth]:
        """Whether each chunk entails any ground-truth claim, shape ``(n_chunks,)``."""
        return [any_of(column) for column in zip(*self.held, strict=True)]


def _column(matrix: VerdictMatrix | None, claims_of: str) -> Sequence[Label | None]:
    return [row[0] for row in _rows(matrix, claims_of, NO_GROUND_TRUTH)]


def _verdicts(matrix: VerdictMatrix | None, claims_of: str) -> Sequence[Verdict | None]:
    _column(matrix, claims_of)  # raises if there is nothing
    return [] if matrix is None else [row[0] for row in matrix.rows]


def _table(
    matrix: VerdictMatrix | None, claims_of: str, reason: str
) -> Sequence[Sequence[Label | None]]:
    rows = _rows(matrix, claims_of, reason)
    if not rows[0]:
        raise UndefinedMetricError("no chunks")
    return rows


def _rows(
    matrix: VerdictMatrix | None, claims_of: str, reason: str
) -> Sequence[Sequence[Label | None]]:
    """The labels of a matrix with at least one claim."""
    if matrix is None:
        raise UndefinedMetricError(reason, not_given=True)
    if not len(matrix):
        raise UndefinedMetricError(f"no {claims_of} claims")
    return matrix.labels


def _entailed(labels: Iterable[Label | None]) -> list[Truth]:
    return [is_label(label, Label.ENTAILED) for label in labels]
