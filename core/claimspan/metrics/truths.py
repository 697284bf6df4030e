"""Truth values of claims and chunks, of which metrics are shares.

Reasons in words count the same values, so that a reason never says another number than its score.

Every verdict may be undecided, so there are three values: True, False and None. The rules are
Kleene's strong logic: an OR is true as soon as one side is, false only when all sides are, else
undecided. A share leaves undecided values out of numerator and denominator, and there is none if
more than half of them are undecided.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, TypeVar

from claimspan.errors import ClaimspanError
from claimspan.verdicts import Label, Verdict, VerdictMatrices, VerdictMatrix

__all__ = [
    "LEAST_DECIDED",
    "NO_CONTEXT_VERDICTS",
    "NO_GROUND_TRUTH",
    "Truth",
    "Truths",
    "UndefinedMetricError",
    "any_of",
    "both",
    "decided_of",
    "in_any",
    "is_label",
    "negation",
    "share",
]

Truth = bool | None
"""True, False, or None if undecided."""

_T = TypeVar("_T")

LEAST_DECIDED: Final = 0.5
"""The share of its values that has to be decided for a score. What a judge can decide of an answer
is no fair sample of it: words refuse a wrong number and leave paraphrase open, so that one refusal
among nine claims would make a faithfulness of 0."""

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
    return any_of(both(*pair) for pair in zip(row, chosen, strict=True))


def is_label(label: Label | None, wanted: Label) -> Truth:
    """Whether a label is the wanted one; None if it is undecided."""
    return None if label is None else label is wanted


def share(values: Sequence[Truth], *, least: float = LEAST_DECIDED) -> float:
    """Share of true values among the decided ones.

    Args:
        values: The values, undecided ones too.
        least: The share of them that has to be decided.

    Raises:
        UndefinedMetricError: No value is decided, or fewer than that share.
    """
    decided = decided_of(values, least=least)
    return sum(decided) / len(decided)


def decided_of(values: Sequence[_T | None], *, least: float = LEAST_DECIDED) -> list[_T]:
    """Returns what is decided, which a score is made of; arguments as of ``share``.

    Raises:
        UndefinedMetricError: Nothing is decided, or less than that share.
    """
    # Neither 0 nor 1 would be true of an undecided verdict, so it does not count at all.
    decided = [value for value in values if value is not None]
    if not decided:
        raise UndefinedMetricError("every verdict is undecided")
    if len(decided) < least * len(values):
        n = len(values) - len(decided)
        # Left out also if a metric without a value is to be 0: most of its labels are not there.
        raise UndefinedMetricError(
            f"{n} of {len(values)} verdicts are undecided: a score needs half of them",
            not_given=True,
        )
    return decided


@dataclass(frozen=True)
class Truths:
    """What the verdict matrices of one record say about its claims and chunks.

    A fact is a claim of the ground truth. The shapes are ``(n_response_claims,)``, ``(n_facts,)``
    and ``(n_chunks,)``, unless said otherwise. Every property raises ``UndefinedMetricError`` if
    its matrix was not given or is empty, or if nothing counts for it.
    """

    matrices: VerdictMatrices
    """The verdicts."""

    # Cached, since several of the formulas read each of them.

    @cached_property
    def ground_truth_verdicts(self) -> Sequence[Verdict | None]:
        """Verdict of the ground truth on each response claim, shape ``(n_response_claims,)``."""
        return [row[0] for row in _given(self.matrices.response_vs_ground_truth, "response").rows]

    @cached_property
    def response_verdicts(self) -> Sequence[Verdict | None]:
        """Verdict of the response on each fact, a claim of the ground truth: ``(n_facts,)``."""
        given = _given(self.matrices.ground_truth_vs_response, "ground truth")
        return [row[0] for row in given.rows]

    @cached_property
    def chunk_labels(self) -> Sequence[Sequence[Label | None]]:
        """Label of each response claim by each chunk, shape ``(n_response_claims, n_chunks)``.

        Context that the judge did not see counts as one more chunk, which decides nothing.
        """
        return _by_chunk(self.matrices.response_vs_chunks, "response", "chunks not checked")

    @cached_property
    def correct(self) -> Sequence[Truth]:
        """Whether the ground truth entails each response claim."""
        return _are(_labels(self.ground_truth_verdicts), Label.ENTAILED)

    @cached_property
    def denied(self) -> Sequence[Truth]:
        """Whether the ground truth contradicts each response claim."""
        return _are(_labels(self.ground_truth_verdicts), Label.CONTRADICTED)

    @cached_property
    def recalled(self) -> Sequence[Truth]:
        """Whether the response entails each fact."""
        return _are(_labels(self.response_verdicts), Label.ENTAILED)

    @cached_property
    def facts_denied(self) -> Sequence[Truth]:
        """Whether the response contradicts each fact."""
        return _are(_labels(self.response_verdicts), Label.CONTRADICTED)

    @cached_property
    def taken_up(self) -> Sequence[Truth]:
        """Whether the response entails each fact, of those that it takes up."""
        labels = _labels(self.response_verdicts)
        # An undecided claim stays: its response may have addressed it.
        if all(label is Label.NEUTRAL for label in labels):
            raise UndefinedMetricError("the response takes up no ground truth claim")
        taken_up = [None if label is Label.NEUTRAL else label for label in labels]
        return _are(taken_up, Label.ENTAILED)

    @cached_property
    def supported(self) -> Sequence[Sequence[Truth]]:
        """Whether each chunk entails each response claim, ``(n_response_claims, n_chunks)``."""
        return [_are(row, Label.ENTAILED) for row in self.chunk_labels]

    @cached_property
    def faithful(self) -> Sequence[Truth]:
        """Whether any chunk entails each response claim."""
        return [any_of(row) for row in self.supported]

    @cached_property
    def grounded(self) -> Sequence[Truth]:
        """Whether all chunks together entail each response claim."""
        matrix, by_chunk = self.matrices.response_vs_context, self.matrices.response_vs_chunks
        if matrix is None and by_chunk is not None and not by_chunk.n_references:
            raise UndefinedMetricError("no chunks", not_given=True)
        return _are(_given(matrix, "response", NO_CONTEXT_VERDICTS).merged, Label.ENTAILED)

    @cached_property
    def contradicted(self) -> Sequence[Truth]:
        """Whether some chunk contradicts each response claim, and none entails it."""
        denied_by_any = [any_of(_are(row, Label.CONTRADICTED)) for row in self.chunk_labels]
        return _each_both(denied_by_any, _not(self.faithful))

    @cached_property
    def held(self) -> Sequence[Sequence[Truth]]:
        """Whether each chunk entails each fact, shape ``(n_facts, n_chunks)``."""
        rows = _by_chunk(self.matrices.ground_truth_vs_chunks, "ground truth")
        return [_are(row, Label.ENTAILED) for row in rows]

    @cached_property
    def retrieved(self) -> Sequence[Truth]:
        """Whether any chunk entails each fact."""
        return [any_of(row) for row in self.held]

    @cached_property
    def relevant(self) -> Sequence[Truth]:
        """Whether each chunk entails any fact, shape ``(n_chunks,)``."""
        return [any_of(column) for column in zip(*self.held, strict=True)]

    @cached_property
    def utilized(self) -> Sequence[Truth]:
        """Whether the response entails each fact, of those that were retrieved."""
        pairs = list(zip(self.retrieved, self.recalled, strict=True))
        # If a claim may have been retrieved, "none was retrieved" would be too much to say.
        if not any(is_retrieved is not False for is_retrieved, _ in pairs):
            raise UndefinedMetricError("no ground truth claim was retrieved")
        return [is_recalled if is_retrieved else None for is_retrieved, is_recalled in pairs]

    @cached_property
    def hallucinated(self) -> Sequence[Truth]:
        """Whether each response claim is wrong, and no chunk entails it."""
        return _each_both(_not(self.faithful), _not(self.correct))

    @cached_property
    def known(self) -> Sequence[Truth]:
        """Whether each response claim is right, and no chunk entails it."""
        return _each_both(_not(self.faithful), self.correct)

    @cached_property
    def wrong_in_relevant(self) -> Sequence[Truth]:
        """Whether each response claim is wrong, and a relevant chunk entails it."""
        return _each_both(_not(self.correct), self._in_relevant)

    @cached_property
    def wrong_in_irrelevant(self) -> Sequence[Truth]:
        """Whether each response claim is wrong, and only irrelevant chunks entail it."""
        wrong, in_relevant = _not(self.correct), self._in_relevant
        irrelevant = _not(self.relevant)
        in_irrelevant = [in_any(row, irrelevant) for row in self.supported]
        return _each_both(wrong, _each_both(in_irrelevant, _not(in_relevant)))

    @cached_property
    def _in_relevant(self) -> Sequence[Truth]:
        return [in_any(row, self.relevant) for row in self.supported]

    def of_denied(self, values: Sequence[Truth]) -> Sequence[Truth]:
        """Whether each response claim that counts is one that the ground truth contradicts."""
        return _each_both(values, self.denied)

    @cached_property
    def correct_or_more(self) -> Sequence[Truth]:
        """Whether each response claim is right, or says more than a ground truth that is short.

        It says more if a chunk entails it, and the ground truth neither entails nor contradicts it.
        """
        more = _each_both(self.faithful, _not(self.denied))
        return [any_of(pair) for pair in zip(self.correct, more, strict=True)]

    @cached_property
    def retrieved_or_told(self) -> Sequence[Truth]:
        """Whether a chunk entails each fact, or the response tells it out of chunks.

        Chunks that entail every claim of a response entail, together, all that it entails.
        """
        supported = self.faithful
        is_supported = False if False in supported else None if None in supported else True
        told = [both(is_recalled, is_supported) for is_recalled in self.recalled]
        return [any_of(pair) for pair in zip(self.retrieved, told, strict=True)]


def _labels(verdicts: Iterable[Verdict | None]) -> list[Label | None]:
    return [None if verdict is None else verdict.label for verdict in verdicts]


def _are(labels: Iterable[Label | None], wanted: Label) -> list[Truth]:
    return [is_label(label, wanted) for label in labels]


def _not(values: Iterable[Truth]) -> list[Truth]:
    return [negation(value) for value in values]


def _each_both(left: Sequence[Truth], right: Sequence[Truth]) -> list[Truth]:
    return [both(*pair) for pair in zip(left, right, strict=True)]


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
