"""The summary of a run, made of one row after the other, so that no row has to be kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from claimspan.evaluation.judgement import judgement_of
from claimspan.evaluation.result import Evaluation
from claimspan.metrics.catalogue import in_order
from claimspan.results.recorded_judge import RECORDED
from claimspan.results.rows import ResultRow

__all__ = ["MAX_FAILED", "Mean", "Summary"]

MAX_FAILED: Final = 1_000
"""Failed records that are listed; the others are counted."""


@dataclass(slots=True)
class Mean:
    """The mean of a metric, over the records where it is defined."""

    total: float = 0.0
    """Sum of the values."""

    n: int = 0
    """Number of the values."""

    def add(self, value: float) -> None:
        """Count one more value."""
        self.total += value
        self.n += 1

    @property
    def mean(self) -> float:
        """The mean; there is at least one value."""
        return self.total / self.n


@dataclass(slots=True)
class Summary:
    """Counts, means and cost of the records that were evaluated."""

    evaluated: int = 0
    """Records with an evaluation."""

    failed: int = 0
    """Records without one."""

    errors: dict[int, str] = field(default_factory=dict[int, str])
    """Place to reason, of the first records that failed."""

    reasons: dict[str, int] = field(default_factory=dict[str, int])
    """Reason to the number of records that failed for it."""

    labels: Counter[str] = field(default_factory=Counter[str])
    """``low``, ``good`` or ``unknown`` to the number of evaluated records."""

    low: Counter[str] = field(default_factory=Counter[str])
    """Metric to the number of records of which it is the most telling low score."""

    means: dict[str, Mean] = field(default_factory=dict[str, Mean])
    """Metric to its mean, as they come."""

    undefined: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    """Metric that some record was to have and has not, to its reasons with their records."""

    judges: dict[str, int] = field(default_factory=dict[str, int])
    """Judge with its version, to the number of records that it has evaluated."""

    cost_usd: float = 0.0
    """US dollars that the judge has reported."""

    def add(self, row: ResultRow) -> None:
        """Count a row."""
        # A record that failed has cost something all the same, so this comes before its error is
        # looked at.
        self.cost_usd += row.evaluation.usage.cost_usd
        if row.error is not None:
            self._add_failure(row.index, row.error)
            return
        self.evaluated += 1
        if judge := _judge_of(row.evaluation):
            self.judges[judge] = self.judges.get(judge, 0) + 1
        judged = judgement_of(row.evaluation, quotes=False)
        self.labels[judged.label] += 1
        self.low.update(each.name for each in judged.low[:1])
        for name, why in row.evaluation.undefined.items():
            reasons = self.undefined.setdefault(name, Counter())
            # A function or a judge may say something else of each record.
            reasons[why if len(reasons) < MAX_FAILED or why in reasons else "others"] += 1
        for name, value in row.metrics.items():
            self.means.setdefault(name, Mean()).add(value)

    @property
    def metrics(self) -> list[str]:
        """The metrics that a record has or was to have, in the order of all scores."""
        return in_order((*self.means, *sorted(self.undefined)))

    @property
    def records(self) -> int:
        """All records, evaluated or failed."""
        return self.evaluated + self.failed

    def _add_failure(self, index: int, error: str) -> None:
        self.failed += 1
        if len(self.errors) < MAX_FAILED:
            self.errors[index] = error
        # A judge may name something else in each message.
        reason = error if len(self.reasons) < MAX_FAILED or error in self.reasons else "others"
        self.reasons[reason] = self.reasons.get(reason, 0) + 1


def _judge_of(evaluation: Evaluation) -> str:
    """The judge with its version; empty where every label was recorded, by whomever."""
    # What a file held beside the judge's labels makes it no other judge.
    name = evaluation.judge_name.removesuffix(RECORDED).rstrip("+")
    return f"{name} {evaluation.judge_version}".strip()
