"""Metrics of the response: how good it is overall, and what the generator made of its chunks.

Sources: RAGChecker (arXiv 2408.08067, section 3.3 and appendix, with the exclusive noise rule of
its package, version 0.1.9), and Pinecone's evaluation API. Each function takes the truth values of
one record and returns a value between 0 and 1, or raises ``UndefinedMetricError``.

``soft_alignment`` is ours: the same formula as ``alignment``, with the judge's probabilities; so is
``f1`` of a judge that has some.
"""

from __future__ import annotations

from claimspan.metrics import counted
from claimspan.metrics.expected import expected_of, expected_share
from claimspan.metrics.truths import Truths, UndefinedMetricError, share

__all__ = [
    "alignment",
    "completeness",
    "context_utilization",
    "contradicted_by_chunks",
    "contradicted_by_ground_truth",
    "correctness",
    "f1",
    "faithfulness",
    "groundedness",
    "hallucination",
    "noise_sensitivity_in_irrelevant",
    "noise_sensitivity_in_relevant",
    "precision",
    "recall",
    "self_knowledge",
    "soft_alignment",
]


def precision(truths: Truths) -> float:
    """Share of the response claims that the ground truth entails (RAGChecker)."""
    return share(truths.correct)


def recall(truths: Truths) -> float:
    """Share of the ground-truth claims that the response entails (RAGChecker)."""
    return share(truths.recalled)


def f1(truths: Truths) -> float:
    """Harmonic mean of the expected ``precision`` and ``recall``, by the judge's probabilities.

    Of verdicts that are sure it is that of ``precision`` and ``recall``, as RAGChecker has it; 0 if
    either is 0. A judge that grades or is unsure moves it in steps where a label would
    jump. That goes better with people: see "The prompts of the strong judge" in
    ``docs/benchmarks.md``.
    """
    return _harmonic_mean(
        expected_share(truths.ground_truth_verdicts), expected_share(truths.response_verdicts)
    )


def context_utilization(truths: Truths) -> float:
    """Share of the retrieved ground-truth claims that the response entails (RAGChecker)."""
    return share(counted.utilized(truths))


def noise_sensitivity_in_relevant(truths: Truths) -> float:
    """Share of the response claims that are wrong and stand in a relevant chunk (RAGChecker)."""
    return share(counted.wrong_in_relevant(truths))


def noise_sensitivity_in_irrelevant(truths: Truths) -> float:
    """Share of the response claims that are wrong and stand in irrelevant chunks only.

    The paper lacks "only", by which a claim in both kinds of chunk would count twice; ragchecker
    0.1.9 has it.
    """
    return share(counted.wrong_in_irrelevant(truths))


def hallucination(truths: Truths) -> float:
    """Share of the response claims that are wrong and stand in no chunk (RAGChecker)."""
    return share(counted.hallucinated(truths))


def self_knowledge(truths: Truths) -> float:
    """Share of the response claims that are right and stand in no chunk (RAGChecker)."""
    return share(counted.known(truths))


def faithfulness(truths: Truths) -> float:
    """Share of the response claims that any single chunk entails (RAGChecker)."""
    return share(truths.faithful)


def groundedness(truths: Truths) -> float:
    """Share of the response claims that all chunks, read together, entail (a joint verdict)."""
    return share(truths.grounded)


def contradicted_by_chunks(truths: Truths) -> float:
    """Share of the response claims that some chunk contradicts and none entails."""
    return share(counted.contradicted(truths))


def contradicted_by_ground_truth(truths: Truths) -> float:
    """Share of the response claims that the ground truth contradicts."""
    return share(counted.denied(truths))


def correctness(truths: Truths) -> float:
    """Entailed / (entailed + contradicted) ground-truth claims, by the response (Pinecone)."""
    return share(counted.taken_up(truths))


def completeness(truths: Truths) -> float:
    """Share of the ground-truth claims that the response entails (Pinecone); equals ``recall``."""
    return recall(truths)


def alignment(truths: Truths) -> float:
    """Harmonic mean of correctness and completeness; 0 where completeness is 0 (Pinecone).

    A response that takes up no claim has no ``correctness``, but the mean with a completeness of 0
    is 0 whatever the other is. With counts it is 2E / (2E + 2C + N), of which that is the limit.
    """
    if completeness(truths) == 0.0:
        return 0.0
    return _harmonic_mean(correctness(truths), completeness(truths))


def soft_alignment(truths: Truths) -> float:
    """As ``alignment``, with the sums of the judge's probabilities in place of counts.

    E, C and N are the sums of p(entailed), p(contradicted) and p(neutral) over the ground-truth
    claims: 2E / (2E + 2C + N). With probabilities of 0 and 1 it is ``alignment``. A judge that is
    unsure of each of ten facts moves it a little each time, where a label would jump.
    """
    try:
        return expected_of(truths).alignment
    except UndefinedMetricError as error:
        # A judge without probabilities was not asked for it, so ``undefined="zero"`` leaves it out.
        raise UndefinedMetricError(str(error), not_given=True) from None


def _harmonic_mean(left: float, right: float) -> float:
    return 2 * left * right / (left + right) if left > 0 and right > 0 else 0.0
