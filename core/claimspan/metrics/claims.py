"""Metrics of the response: how good it is overall, and what the generator made of its chunks.

Sources: RAGChecker (arXiv 2408.08067, section 3.3 and appendix, with the exclusive noise rule of
its package, version 0.1.9), and Pinecone's evaluation API. Each function takes the truth values of
one record and returns a value between 0 and 1, or raises ``UndefinedMetricError``.
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
    share,
)
from claimspan.verdicts import Label

__all__ = [
    "alignment",
    "completeness",
    "context_utilization",
    "contradicted_by_chunks",
    "contradicted_by_ground_truth",
    "correctness",
    "f1",
    "faithfulness",
    "hallucination",
    "noise_sensitivity_in_irrelevant",
    "noise_sensitivity_in_relevant",
    "precision",
    "recall",
    "self_knowledge",
]


def precision(truths: Truths) -> float:
    """Share of the response claims that the ground truth entails (RAGChecker)."""
    return share(truths.correct)


def recall(truths: Truths) -> float:
    """Share of the ground-truth claims that the response entails (RAGChecker)."""
    return share(truths.recalled)


def f1(truths: Truths) -> float:
    """Harmonic mean of precision and recall; 0 where either is 0 (RAGChecker)."""
    return _harmonic_mean(precision(truths), recall(truths))


def context_utilization(truths: Truths) -> float:
    """Share of the retrieved ground-truth claims that the response entails (RAGChecker)."""
    pairs = zip(truths.retrieved, truths.recalled, strict=True)
    recalled = [is_recalled for is_retrieved, is_recalled in pairs if is_retrieved]
    # Where a claim may have been retrieved, "none was retrieved" would be too much to say.
    if not recalled and None not in truths.retrieved:
        raise UndefinedMetricError("no ground truth claim was retrieved")
    return share(recalled)


def noise_sensitivity_in_relevant(truths: Truths) -> float:
    """Share of the response claims that are wrong and stand in a relevant chunk (RAGChecker)."""
    return share(both(wrong, in_relevant) for wrong, in_relevant, _ in _origins(truths))


def noise_sensitivity_in_irrelevant(truths: Truths) -> float:
    """Share of the response claims that are wrong and stand in irrelevant chunks only.

    The paper lacks "only", by which a claim in both kinds of chunk would count twice; ragchecker
    0.1.9 has it.
    """
    return share(
        both(wrong, both(in_irrelevant, negation(in_relevant)))
        for wrong, in_relevant, in_irrelevant in _origins(truths)
    )


def hallucination(truths: Truths) -> float:
    """Share of the response claims that are wrong and stand in no chunk (RAGChecker)."""
    pairs = zip(truths.faithful, truths.correct, strict=True)
    return share(both(negation(faithful), negation(correct)) for faithful, correct in pairs)


def self_knowledge(truths: Truths) -> float:
    """Share of the response claims that are right and stand in no chunk (RAGChecker)."""
    pairs = zip(truths.faithful, truths.correct, strict=True)
    return share(both(negation(faithful), correct) for faithful, correct in pairs)


def faithfulness(truths: Truths) -> float:
    """Share of the response claims that any single chunk entails (RAGChecker)."""
    return share(truths.faithful)


def contradicted_by_chunks(truths: Truths) -> float:
    """Share of the response claims that some chunk contradicts and none entails."""
    contradicted = [
        any_of(is_label(label, Label.CONTRADICTED) for label in row) for row in truths.chunk_labels
    ]
    pairs = zip(contradicted, truths.faithful, strict=True)
    return share(both(is_denied, negation(faithful)) for is_denied, faithful in pairs)


def contradicted_by_ground_truth(truths: Truths) -> float:
    """Share of the response claims that the ground truth contradicts."""
    return share(is_label(label, Label.CONTRADICTED) for label in truths.ground_truth_labels)


def correctness(truths: Truths) -> float:
    """Entailed / (entailed + contradicted) ground-truth claims, by the response (Pinecone)."""
    # An undecided claim stays: its response may have addressed it.
    addressed = [label for label in truths.response_labels if label is not Label.NEUTRAL]
    if not addressed:
        raise UndefinedMetricError("the response takes up no ground truth claim")
    return share(is_label(label, Label.ENTAILED) for label in addressed)


def completeness(truths: Truths) -> float:
    """Share of the ground-truth claims that the response entails (Pinecone); equals ``recall``."""
    return recall(truths)


def alignment(truths: Truths) -> float:
    """Harmonic mean of correctness and completeness; 0 where either is 0 (Pinecone)."""
    return _harmonic_mean(correctness(truths), completeness(truths))


def _harmonic_mean(left: float, right: float) -> float:
    return 2 * left * right / (left + right) if left > 0 and right > 0 else 0.0


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
    return any_of(both(entails, is_chosen) for entails, is_chosen in zip(row, chosen, strict=True))
