"""The scores of an evaluation as people read them: each with a label, and a reason if it is low."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from claimspan.evaluation.reasons import EXPECTED, MEANS, REASONS, Evidence, reason_for
from claimspan.evaluation.result import Evaluation
from claimspan.metrics.truths import Truths

__all__ = [
    "GOOD",
    "LOW",
    "LOW_AT_LEAST",
    "LOW_AT_MOST",
    "NEUTRAL",
    "Assessment",
    "assess",
    "label_of",
    "summary_of",
]

GOOD: Final = "good"
LOW: Final = "low"
NEUTRAL: Final = "neutral"

LOW_AT_MOST: Final = 0.75
"""A score is low from here down, where higher is better: a quarter of what it counts has failed.
One claim in four that nothing supports is what a reader notices; to find the worst answers, filter
by the score itself."""

LOW_AT_LEAST: Final = 0.25
"""A score is low in quality from here up, where lower is better: the same quarter."""

NEITHER: Final = frozenset({"self_knowledge"})
"""Metrics of which neither end is better: claims that are right, and that no chunk holds."""

MAIN: Final = (
    "faithfulness",
    "contradicted_by_chunks",
    "contradicted_by_ground_truth",
    "correctness",
    "recall",
    "precision",
    "claim_recall",
)
"""The metrics whose reason a summary gives first: what is wrong with the answer, and then what it
lacks. The others follow from these, or are about the chunks alone."""

DERIVED: Final = frozenset({*MEANS, EXPECTED, "completeness", "groundedness"})
"""Metrics that say again what others say; a summary does not name them beside these."""


OF_SEARCH: Final = "context_precision"
"""The one metric that is no reason to call a record low: where an answer needs one chunk of the
five that a retriever always returns, it is 0.2, however good the answer is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """One score of an evaluation."""

    name: str
    """The metric."""

    value: float
    """The score, 0 to 1."""

    label: str
    """``good`` or ``low``, by quality: a hallucination of 0.8 is low. ``neutral`` for
    ``self_knowledge``, of which neither end is better."""

    explanation: str
    """Why the score is low, in one line of plain words; empty where it is not low."""

    def __str__(self) -> str:
        """The score with its reason: ``faithfulness 0.71: 2 of 7 claims are in no chunk``."""
        return f"{self.named}: {self.explanation}" if self.explanation else self.named

    @property
    def named(self) -> str:
        """The score with its name: ``faithfulness 0.71``."""
        return f"{self.name} {self.value:.2f}"


def assess(
    evaluation: Evaluation, *, chunk_ids: Sequence[str] = (), quotes: bool = True
) -> tuple[Assessment, ...]:
    """Return every score of an evaluation with its label and its reason.

    Args:
        evaluation: The evaluation.
        chunk_ids: Ids of the chunks of its record, in their order; chunks are shown by their place
            without.
        quotes: Whether reasons quote claims, beside their counts.

    Returns:
        In the order of ``evaluation.metrics``.
    """
    truths = Truths(evaluation.matrices)  # one for all: it caches what metrics have in common
    evidence = Evidence(chunk_ids, quotes)
    found: list[Assessment] = []
    for name, value in evaluation.metrics.items():
        label = _label(name, value)
        reason = reason_for(name, evaluation, truths, evidence) if label == LOW else ""
        found.append(Assessment(name=name, value=value, label=label, explanation=reason))
    return tuple(found)


def label_of(assessments: Sequence[Assessment]) -> str:
    """Return what a whole record is: ``low`` where a score is low, else ``good``.

    A low ``context_precision`` alone leaves it ``good``: most records of most retrievers have one.
    """
    low = (each for each in assessments if each.label == LOW)
    return LOW if any(each.name != OF_SEARCH for each in low) else GOOD


def summary_of(assessments: Sequence[Assessment]) -> str:
    """Return the low scores in one line: the reason of the main one, and the others by name.

    Returns:
        Such as ``faithfulness 0.71: 2 of 7 claims are in no chunk: 'It is long.'; 'It is old.'
        (also low: recall 0.50)``; empty where no score is low.
    """
    low = [each for each in assessments if each.label == LOW]
    if not low:
        return ""
    first = min(low, key=lambda each: MAIN.index(each.name) if each.name in MAIN else len(MAIN))
    named = (each for each in low if each is not first and each.name not in DERIVED)
    others = ", ".join(each.named for each in named)
    return f"{first} (also low: {others})" if others else str(first)


def _label(metric: str, value: float) -> str:
    if metric in NEITHER:
        return NEUTRAL
    lower_is_better = metric in REASONS and REASONS[metric].failure
    is_low = value >= LOW_AT_LEAST if lower_is_better else value <= LOW_AT_MOST
    return LOW if is_low else GOOD
