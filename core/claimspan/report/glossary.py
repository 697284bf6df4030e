"""What each metric means, for people who see its name for the first time."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["GLOSSARY", "GROUPS", "MAIN_METRICS", "Metric", "describe"]


class Metric(NamedTuple):
    """A metric in words."""

    name: str
    """As in ``evaluation.metrics``."""

    group: str
    """The part of the pipeline that it speaks about; one of `GROUPS`."""

    lower_is_better: bool | None
    """None where neither end of the scale is the good one."""

    sentence: str
    """One sentence; empty for a metric that is not ours."""


OVERALL: Final = "overall"
RETRIEVER: Final = "retriever"
GENERATOR: Final = "generator"
CONTRADICTIONS: Final = "contradictions"
FACTS: Final = "ground-truth facts"
OTHER: Final = "other"

GROUPS: Final = (OVERALL, RETRIEVER, GENERATOR, CONTRADICTIONS, FACTS, OTHER)
"""In the order in which a reader wants them."""

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
    Metric("f1", OVERALL, False, "Harmonic mean of precision and recall."),
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
    Metric("alignment", FACTS, False, "Harmonic mean of correctness and completeness."),
)

GLOSSARY: Final = {metric.name: metric for metric in _METRICS}
"""Name to metric, group by group."""

MAIN_METRICS: Final = (
    "faithfulness",
    "hallucination",
    "contradicted_by_chunks",
    "precision",
    "recall",
    "f1",
    "claim_recall",
    "context_precision",
)
"""The ones to look at first: first those that need no ground truth."""


def describe(name: str) -> Metric:
    """The metric of that name; one without a sentence where we do not know it."""
    return GLOSSARY.get(name) or Metric(name, OTHER, None, "")
