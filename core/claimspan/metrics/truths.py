"""Truth values of claims and chunks, of which metrics are shares.

Reasons in words count the same values, so that a reason never says another number than its score.

Every verdict may be undecided, so there are three values: True, False and None. The rules are
Kleene's strong logic: an OR is true as soon as one side is, false only when all sides are, else
undecided. A share leaves undecided values out of numerator and denominator.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

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
    "in_any",
    "is_label",
    "negation",
    "share",
]

Truth = bool | None
"""True, False, or None if undecided."""

NO_GROUND_TRUTH: Final = "no ground truth"
"""Why a metric has no value that compares with a ground truth, if there is none."""

NO_CONTEXT_VERDICTS: Final = "the judge does not read chunks together"
"""Why ``groundedness`` has no value if the judge is no ``ContextJudge``."""


class UndefinedMetricError(ClaimspanError):
    """A metric has no value; raised by formulas, and never by what ``claimspan.metrics`` offers."""

    def __init__(self, reason: str, *, not_given: bool = False) -> None:
        """Keep the reason, and whether it is that the labels were not given at all."""
        super().__init__(reason)
        self.not_given = not_given


def any_of(values: Iterable[Truth]) -> Truth:
    """OR of all values; False if there are none."""
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


def in_any(row: Sequence[Truth], chosen: Sequence[Truth]) -> Truth:
    """Whether any of the chosen chunks entails the claim of a row.

    Args:
        row: Whether each chunk entails the claim.
        chosen: Whether each chunk is chosen.
    """
    # ``any_of`` and ``both`` say the same; they are called for each cell of every record.
    undecided = False
    for entails, is_chosen in zip(row, chosen, strict=True):
        if entails and is_chosen:
            return True
        undecided = undecided or (entails is not False and is_chosen is not False)
    return None if undecided else False


def is_label(label: Label | None, wanted: Label) -> Truth:
    """Whether a label is the wanted one; None if it is undecided."""
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

    Every property raises ``UndefinedMetricError`` if its matrix was not given or is empty, or if
    nothing counts for it.
    """

    matrices: VerdictMatrices
    """The verdicts."""

    # Cached, since several of the formulas read each of them.

    @cached_property
    def ground_truth_labels(self) -> Sequence[Label | None]:
        """Label of each response claim by the ground truth, shape ``(n_response_claims,)``."""
        return [row[0] for row in _given(self.matrices.response_vs_ground_truth, "response").labels]

    @cached_property
    def response_labels(self) -> Sequence[Label | None]:
        """Label of each ground-truth claim by the response, shape ``(n_ground_truth_claims,)``."""
        return [
            row[0] for row in _given(self.matrices.ground_truth_vs_response, "ground truth").labels
        ]

    @cached_property
    def response_verdicts(self) -> Sequence[Verdict | None]:
        """As ``response_labels``, with the probabilities."""
        return [
            row[0] for row in _given(self.matrices.ground_truth_vs_response, "ground truth").rows
        ]

    @cached_property
    def ground_truth_verdicts(self) -> Sequence[Verdict | None]:
        """As ``ground_truth_labels``, with the probabilities."""
        return [row[0] for row in _given(self.matrices.response_vs_ground_truth, "response").rows]

    @cached_property
    def chunk_labels(self) -> Sequence[Sequence[Label | None]]:
        """Label of each response claim by each chunk, shape ``(n_response_claims, n_chunks)``.

        Context that the judge did not see counts as one more chunk, which decides nothing.
        """
        return _by_chunk(self.matrices.response_vs_chunks, "response", "chunks not checked")

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
        return _entailed(_given(matrix, "response", NO_CONTEXT_VERDICTS).merged)

    @cached_property
    def held(self) -> Sequence[Sequence[Truth]]:
        """As ``supported``, of the ground truth: shape ``(n_ground_truth_claims, n_chunks)``."""
        rows = _by_chunk(self.matrices.ground_truth_vs_chunks, "ground truth")
        return [_entailed(row) for row in rows]

    @cached_property
    def retrieved(self) -> Sequence[Truth]:
        """Whether any chunk entails each ground-truth claim, shape ``(n_ground_truth_claims,)``."""
        return [any_of(row) for row in self.held]

    @cached_property
    def relevant(self) -> Sequence[Truth]:
        """Whether each chunk entails any ground-truth claim, shape ``(n_chunks,)``."""
        return [any_of(column) for column in zip(*self.held, strict=True)]

    @cached_property
    def utilized(self) -> Sequence[Truth]:
        """Whether the response entails each ground-truth claim, of those that were retrieved."""
        pairs = list(zip(self.retrieved, self.recalled, strict=True))
        # If a claim may have been retrieved, "none was retrieved" would be too much to say.
        if not any(is_retrieved is not False for is_retrieved, _ in pairs):
            raise UndefinedMetricError("no ground truth claim was retrieved")
        return [is_recalled if is_retrieved else None for is_retrieved, is_recalled in pairs]

    @cached_property
    def wrong_in_relevant(self) -> Sequence[Truth]:
        """Whether each response claim is wrong, and a relevant chunk entails it."""
        return [both(wrong, in_relevant) for wrong, in_relevant, _ in self._origins]

    @cached_property
    def wrong_in_irrelevant(self) -> Sequence[Truth]:
        """Whether each response claim is wrong, and only irrelevant chunks entail it."""
        return [
            both(wrong, both(in_irrelevant, negation(in_relevant)))
            for wrong, in_relevant, in_irrelevant in self._origins
        ]

    @cached_property
    def hallucinated(self) -> Sequence[Truth]:
        """Whether each response claim is wrong, and no chunk entails it."""
        pairs = zip(self.faithful, self.correct, strict=True)
        return [both(negation(faithful), negation(correct)) for faithful, correct in pairs]

    @cached_property
    def known(self) -> Sequence[Truth]:
        """Whether each response claim is right, and no chunk entails it."""
        pairs = zip(self.faithful, self.correct, strict=True)
        return [both(negation(faithful), correct) for faithful, correct in pairs]

    @cached_property
    def contradicted(self) -> Sequence[Truth]:
        """Whether some chunk contradicts each response claim, and none entails it."""
        denied_by_any = [
            any_of(is_label(label, Label.CONTRADICTED) for label in row)
            for row in self.chunk_labels
        ]
        pairs = zip(denied_by_any, self.faithful, strict=True)
        return [both(is_denied, negation(faithful)) for is_denied, faithful in pairs]

    @cached_property
    def denied(self) -> Sequence[Truth]:
        """Whether the ground truth contradicts each response claim."""
        return [is_label(label, Label.CONTRADICTED) for label in self.ground_truth_labels]

    @cached_property
    def facts_denied(self) -> Sequence[Truth]:
        """Whether the response contradicts each ground-truth claim."""
        return [is_label(label, Label.CONTRADICTED) for label in self.response_labels]

    def of_denied(self, values: Sequence[Truth]) -> Sequence[Truth]:
        """Whether each response claim that counts is one that the ground truth contradicts."""
        return [
            both(value, is_denied) for value, is_denied in zip(values, self.denied, strict=True)
        ]

    @cached_property
    def correct_or_more(self) -> Sequence[Truth]:
        """Whether each response claim is right, or says more than a ground truth that is short.

        It says more if a chunk entails it, and the ground truth neither entails nor contradicts it.
        """
        return [
            any_of((is_correct, both(faithful, negation(is_denied))))
            for is_correct, faithful, is_denied in zip(
                self.correct, self.faithful, self.denied, strict=True
            )
        ]

    @cached_property
    def retrieved_or_told(self) -> Sequence[Truth]:
        """Whether a chunk entails each ground-truth claim, or the response tells it out of chunks.

        Chunks that entail every claim of a response entail, together, all that it entails.
        """
        supported = self.faithful
        is_supported = False if False in supported else None if None in supported else True
        return [
            any_of((is_retrieved, both(is_recalled, is_supported)))
            for is_retrieved, is_recalled in zip(self.retrieved, self.recalled, strict=True)
        ]

    @cached_property
    def taken_up(self) -> Sequence[Truth]:
        """Whether the response entails each ground-truth claim, of those that it takes up."""
        # An undecided claim stays: its response may have addressed it.
        if all(label is Label.NEUTRAL for label in self.response_labels):
            raise UndefinedMetricError("the response takes up no ground truth claim")
        return [
            None if label is Label.NEUTRAL else is_label(label, Label.ENTAILED)
            for label in self.response_labels
        ]

    @cached_property
    def _origins(self) -> list[tuple[Truth, Truth, Truth]]:
        """For each response claim: is it wrong, is it in a relevant chunk, in an irrelevant one."""
        wrong = [negation(is_correct) for is_correct in self.correct]
        rows, relevant = self.supported, self.relevant
        irrelevant = [negation(is_relevant) for is_relevant in relevant]
        return [
            (is_wrong, in_any(row, relevant), in_any(row, irrelevant))
            for is_wrong, row in zip(wrong, rows, strict=True)
        ]


def _given(
    matrix: VerdictMatrix | None, claims_of: str, reason: str = NO_GROUND_TRUTH
) -> VerdictMatrix:
    if matrix is None:
        raise UndefinedMetricError(reason, not_given=True)
    if not len(matrix):
        raise UndefinedMetricError(f"no {claims_of} claims")
    return matrix


def _by_chunk(
    matrix: VerdictMatrix | None, claims_of: str, reason: str = NO_GROUND_TRUTH
) -> Sequence[Sequence[Label | None]]:
    given = _given(matrix, claims_of, reason)
    if not given.n_references:
        raise UndefinedMetricError("no chunks")
    return given.all_labels


def _entailed(labels: Iterable[Label | None]) -> list[Truth]:
    return [is_label(label, Label.ENTAILED) for label in labels]
