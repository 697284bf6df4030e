"""Explains each metric in one sentence, for readers who do not know its name."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["GLOSSARY", "GROUPS", "MAIN_METRICS", "Metric", "describe"]


class Metric(NamedTuple):
    """The description of a metric."""

    name: str
    """The key in ``evaluation.metrics``."""

    group: str
    """The part of the pipeline that the metric measures; one of `GROUPS`."""

    lower_is_better: bool | None
    """Direction of the scale; None where neither end is better."""

    sentence: str
    """The definition in one sentence; empty for a metric that is not ours."""


OVERALL: Final = "overall"
RETRIEVER: Final = "retriever"
GENERATOR: Final = "generator"
CONTRADICTIONS: Final = "contradictions"
FACTS: Final = "ground-truth facts"
OTHER: Final = "other"

GROUPS: Final = (OVERALL, RETRIEVER, GENERATOR, CONTRADICTIONS, FACTS, OTHER)
"""The groups in the order in which the page shows them."""

_METRICS: Final = (
    Metric(
        "precision",
        OVERALL,
        False,
        "Share of the response's claims that the ground truth entails.",
    ),
    Metric(
        "recall",
        OVERALL,
        False,
        "Share of the ground truth's claims that the response entails.",
    ),
    Metric("f1", OVERALL, False, "Harmonic mean of precision and recall, by the judge's grades."),
    Metric(
        "claim_recall",
        RETRIEVER,
        False,
        "Share of the ground truth's claims that at least one chunk entails.",
    ),
    Metric(
        "context_precision",
        RETRIEVER,
        False,
        "Share of the chunks that entail at least one claim of the ground truth.",
    ),
    Metric(
        "context_utilization",
        GENERATOR,
        False,
        "Of the ground truth's claims that were retrieved, the share that the response uses.",
    ),
    Metric(
        "noise_sensitivity_in_relevant",
        GENERATOR,
        True,
        "Share of the response's claims that are wrong and come from a relevant chunk.",
    ),
    Metric(
        "noise_sensitivity_in_irrelevant",
        GENERATOR,
        True,
        "Share of the response's claims that are wrong and come from irrelevant chunks only.",
    ),
    Metric(
        "hallucination",
        GENERATOR,
        True,
        "Share of the response's claims that are wrong and that no chunk supports.",
    ),
    Metric(
        "self_knowledge",
        GENERATOR,
        None,
        "Share of the response's claims that are right although no chunk supports them.",
    ),
    Metric(
        "faithfulness",
        GENERATOR,
        False,
        "Share of the response's claims that at least one chunk entails.",
    ),
    Metric(
        "groundedness",
        GENERATOR,
        False,
        "Share of the response's claims that all chunks, read together, entail. Faithfulness asks "
        "each chunk alone: the two differ where a claim's support is spread over several chunks, "
        "or where chunks contradict each other.",
    ),
    Metric(
        "contradicted_by_chunks",
        CONTRADICTIONS,
        True,
        "Share of the response's claims that a chunk contradicts and none supports.",
    ),
    Metric(
        "contradicted_by_ground_truth",
        CONTRADICTIONS,
        True,
        "Share of the response's claims that the ground truth contradicts.",
    ),
    Metric(
        "correctness",
        FACTS,
        False,
        "Of the ground truth's claims that the response speaks about, the share it gets right.",
    ),
    Metric(
        "completeness",
        FACTS,
        False,
        "Share of the ground truth's claims that the response states.",
    ),
    Metric(
        "alignment",
        FACTS,
        False,
        "Harmonic mean of correctness and completeness; 0 where completeness is 0.",
    ),
    Metric(
        "soft_alignment",
        FACTS,
        False,
        "As alignment, with the judge's probabilities in place of its labels.",
    ),
)

GLOSSARY: Final = {metric.name: metric for metric in _METRICS}
"""Name to metric, ordered by group."""

MAIN_METRICS: Final = (
    "faithfulness",
    "groundedness",
    "hallucination",
    "contradicted_by_chunks",
    "precision",
    "recall",
    "f1",
    "claim_recall",
    "context_precision",
)
"""The metrics that the page shows first; those that need no ground truth lead."""


def describe(name: str) -> Metric:
    """Return the metric with this name; a metric that is not ours has no sentence."""
    return GLOSSARY.get(name) or Metric(name, OTHER, None, "")
