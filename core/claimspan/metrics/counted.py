"""What each share counts: one truth value for each claim or chunk, None where it does not count.

The formulas are shares of these values, and reasons in words count them. So a reason never says
another number than its score.
"""

from __future__ import annotations

from collections.abc import Sequence

from claimspan.metrics.truths import (
    Truth,
    Truths,
    UndefinedMetricError,
    any_of,
    both,
    is_label,
    negation,
)
from claimspan.verdicts import Label

__all__ = [
    "contradicted",
    "correct_or_more",
    "denied",
    "facts_denied",
    "hallucinated",
    "known",
    "of_denied",
    "retrieved_or_told",
    "taken_up",
    "utilized",
    "wrong_in_irrelevant",
    "wrong_in_relevant",
]


def utilized(truths: Truths) -> list[Truth]:
    """Whether the response entails each ground-truth claim, of those that were retrieved.

    Raises:
        UndefinedMetricError: None was retrieved.
    """
    pairs = list(zip(truths.retrieved, truths.recalled, strict=True))
    # Where a claim may have been retrieved, "none was retrieved" would be too much to say.
    if not any(is_retrieved is not False for is_retrieved, _ in pairs):
        raise UndefinedMetricError("no ground truth claim was retrieved")
    return [is_recalled if is_retrieved else None for is_retrieved, is_recalled in pairs]


def wrong_in_relevant(truths: Truths) -> list[Truth]:
    """Whether each response claim is wrong, and a relevant chunk entails it."""
    return [both(wrong, in_relevant) for wrong, in_relevant, _ in _origins(truths)]


def wrong_in_irrelevant(truths: Truths) -> list[Truth]:
    """Whether each response claim is wrong, and only irrelevant chunks entail it."""
    return [
        both(wrong, both(in_irrelevant, negation(in_relevant)))
        for wrong, in_relevant, in_irrelevant in _origins(truths)
    ]


def hallucinated(truths: Truths) -> list[Truth]:
    """Whether each response claim is wrong, and no chunk entails it."""
    pairs = zip(truths.faithful, truths.correct, strict=True)
    return [both(negation(faithful), negation(correct)) for faithful, correct in pairs]


def known(truths: Truths) -> list[Truth]:
    """Whether each response claim is right, and no chunk entails it."""
    pairs = zip(truths.faithful, truths.correct, strict=True)
    return [both(negation(faithful), correct) for faithful, correct in pairs]


def contradicted(truths: Truths) -> list[Truth]:
    """Whether some chunk contradicts each response claim, and none entails it."""
    denied_by_any = [
        any_of(is_label(label, Label.CONTRADICTED) for label in row) for row in truths.chunk_labels
    ]
    pairs = zip(denied_by_any, truths.faithful, strict=True)
    return [both(is_denied, negation(faithful)) for is_denied, faithful in pairs]


def denied(truths: Truths) -> list[Truth]:
    """Whether the ground truth contradicts each response claim."""
    return [is_label(label, Label.CONTRADICTED) for label in truths.ground_truth_labels]


def facts_denied(truths: Truths) -> list[Truth]:
    """Whether the response contradicts each ground-truth claim."""
    return [is_label(label, Label.CONTRADICTED) for label in truths.response_labels]


def of_denied(truths: Truths, values: Sequence[Truth]) -> list[Truth]:
    """Whether each response claim that counts is one that the ground truth contradicts."""
    return [both(value, is_denied) for value, is_denied in zip(values, denied(truths), strict=True)]


def correct_or_more(truths: Truths) -> list[Truth]:
    """Whether each response claim is right, or says more than a ground truth that is short.

    It says more if a chunk entails it, and the ground truth neither entails nor contradicts it.
    """
    return [
        any_of((is_correct, both(faithful, negation(is_denied))))
        for is_correct, faithful, is_denied in zip(
            truths.correct, truths.faithful, denied(truths), strict=True
        )
    ]


def retrieved_or_told(truths: Truths) -> list[Truth]:
    """Whether a chunk entails each ground-truth claim, or the response tells it out of chunks.

    Chunks that entail every claim of a response entail, together, whatever the response does.
    """
    supported = truths.faithful
    is_supported = False if False in supported else None if None in supported else True
    return [
        any_of((is_retrieved, both(is_recalled, is_supported)))
        for is_retrieved, is_recalled in zip(truths.retrieved, truths.recalled, strict=True)
    ]


def taken_up(truths: Truths) -> list[Truth]:
    """Whether the response entails each ground-truth claim, of those that it takes up.

    Raises:
        UndefinedMetricError: It takes up none.
    """
    # An undecided claim stays: its response may have addressed it.
    if all(label is Label.NEUTRAL for label in truths.response_labels):
        raise UndefinedMetricError("the response takes up no ground truth claim")
    return [
        None if label is Label.NEUTRAL else is_label(label, Label.ENTAILED)
        for label in truths.response_labels
    ]


def _origins(truths: Truths) -> list[tuple[Truth, Truth, Truth]]:
    """For each response claim: is it wrong, is it in a relevant chunk, in an irrelevant one."""
    wrong = [negation(is_correct) for is_correct in truths.correct]
    rows, relevant = truths.supported, truths.relevant
    irrelevant = [negation(is_relevant) for is_relevant in relevant]
    return [
        (is_wrong, _is_in_any(row, relevant), _is_in_any(row, irrelevant))
        for is_wrong, row in zip(wrong, rows, strict=True)
    ]


def _is_in_any(row: Sequence[Truth], chosen: Sequence[Truth]) -> Truth:
    """Whether any of the chosen chunks entails the claim of a row."""
    # ``any_of`` and ``both`` say the same; they are called for each cell of every record.
    undecided = False
    for entails, is_chosen in zip(row, chosen, strict=True):
        if entails and is_chosen:
            return True
        undecided = undecided or (entails is not False and is_chosen is not False)
    return None if undecided else False
