"""Retrieval accuracy with its interval, and whether two systems differ by more than chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from pydantic import BaseModel, ConfigDict

from claimspan.statistics import (
    Estimate,
    PairedComparison,
    compare_paired,
    holm,
    mean_estimate,
    share_estimate,
)
from claimspan_bench.pandachat.submissions import Sources, Submission

__all__ = [
    "MissedQuestion",
    "SystemComparison",
    "SystemFigures",
    "compare_systems",
    "figures_of",
    "missed_questions",
]


class SystemFigures(BaseModel):
    """The figures of one system."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """The system's name; with its file where several have the same name."""

    system: str
    """The name that the submission gives."""

    scenario: str
    """The task."""

    file: str
    """The submission."""

    top_k: int
    """Number of sources that count."""

    time_per_question: int | float | None
    """Seconds, as the submission says."""

    n: int
    """Number of questions."""

    correct: int
    """Questions whose document is among the first ``top_k`` sources."""

    accuracy: Estimate
    """Their share, with Wilson's interval."""

    hit_at: tuple[Estimate, ...]
    """The same share for the first 1, 2, ..., ``top_k`` sources."""

    mrr: Estimate
    """Mean of 1 / place of the document among the first ``top_k`` sources; 0 where it is not."""

    sources_per_question: float
    """Mean number of sources that the submission holds."""

    @property
    def percentage(self) -> float:
        """The accuracy as the authors compute it, to the last bit."""
        # In this order: 100 * correct / n rounds otherwise for some counts.
        return self.correct / self.n * 100


class SystemComparison(BaseModel):
    """Whether one of two systems retrieves better, over the questions that both have."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    before: str
    """Name of the first system."""

    after: str
    """Name of the second system."""

    hits: PairedComparison
    """Accuracy of both, their difference with its interval, and the p-value."""

    only_before: int
    """Questions that the first system alone gets right."""

    only_after: int
    """Questions that the second system alone gets right."""

    p_adjusted: float
    """The p-value after Holm's adjustment for the number of pairs."""


class MissedQuestion(BaseModel):
    """A question that at least one system misses."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    query: str
    """What is asked."""

    document: str | None
    """The document that was to be retrieved."""

    systems: tuple[str, ...]
    """Names of the systems that miss it."""


def figures_of(submission: Submission, name: str, k: int) -> SystemFigures:
    """Compute the figures of a system.

    Args:
        submission: What it retrieved.
        name: What to call it.
        k: Number of sources that count.

    Raises:
        MissingExtraError: scipy is not installed.
    """
    rows = submission.rows
    ranks = [row.rank(k) for row in rows]
    hit_at = tuple(
        share_estimate(sum(rank is not None and rank <= place for rank in ranks), len(rows))
        for place in range(1, k + 1)
    )
    # Questions of one document go together: one document answers up to seven.
    mrr = mean_estimate([1 / rank if rank else 0.0 for rank in ranks], _documents(rows))
    return SystemFigures(
        name=name,
        system=submission.system,
        scenario=submission.scenario,
        file=str(submission.path),
        top_k=k,
        time_per_question=submission.time_per_question,
        n=len(rows),
        correct=sum(rank is not None for rank in ranks),
        accuracy=_there(hit_at[-1]),
        hit_at=tuple(map(_there, hit_at)),
        mrr=_there(mrr),
        sources_per_question=sum(len(row.sources) for row in rows) / len(rows),
    )


def compare_systems(submissions: Mapping[str, Submission], k: int) -> list[SystemComparison]:
    """Compare each system with each other one of the same task.

    Args:
        submissions: Name to submission.
        k: Number of sources that count.

    Returns:
        One comparison a pair, the least likely to be chance first.
    """
    found = [
        pair
        for before, after in combinations(submissions, 2)
        if submissions[before].scenario == submissions[after].scenario
        and (pair := _compared(before, after, submissions, k)) is not None
    ]
    # Of 55 pairs of 11 systems about three differ by chance at 0.05; Holm's adjustment allows for
    # that.
    adjusted = holm({str(n): pair.hits.p_value for n, pair in enumerate(found)})
    pairs = [
        pair.model_copy(update={"p_adjusted": adjusted[str(n)]}) for n, pair in enumerate(found)
    ]
    return sorted(pairs, key=lambda pair: (pair.p_adjusted, pair.hits.p_value))


def missed_questions(submissions: Mapping[str, Submission], k: int) -> list[MissedQuestion]:
    """Return the questions that systems miss, those that most miss first.

    Args:
        submissions: Name to submission.
        k: Number of sources that count.
    """
    missed: dict[tuple[str, str | None], list[str]] = {}
    for name, submission in submissions.items():
        for row in submission.rows:
            if row.rank(k) is None:
                missed.setdefault((row.query, row.document), []).append(name)
    found = [
        MissedQuestion(query=query, document=document, systems=tuple(dict.fromkeys(names)))
        for (query, document), names in missed.items()
    ]
    return sorted(found, key=lambda each: -len(each.systems))


def _compared(
    before: str, after: str, submissions: Mapping[str, Submission], k: int
) -> SystemComparison | None:
    # Reversed, so that the first of two rows of one question counts in both systems.
    left = {row.query: row for row in reversed(submissions[before].rows)}
    right = {row.query: row for row in reversed(submissions[after].rows)}
    both = [query for query in left if query in right]
    hits = [float(left[query].rank(k) is not None) for query in both]
    others = [float(right[query].rank(k) is not None) for query in both]
    compared = compare_paired(hits, others, _documents([left[query] for query in both]))
    if compared is None:
        return None
    pairs = list(zip(hits, others, strict=True))
    return SystemComparison(
        before=before,
        after=after,
        hits=compared,
        only_before=pairs.count((1.0, 0.0)),
        only_after=pairs.count((0.0, 1.0)),
        p_adjusted=compared.p_value,
    )


def _documents(rows: Sequence[Sources]) -> list[str]:
    """The group of each question: its document, else the question itself."""
    return [row.document or row.query for row in rows]


def _there(estimate: Estimate | None) -> Estimate:
    """The estimate of a submission, which has at least one question."""
    if estimate is None:
        raise AssertionError("a submission has questions")
    return estimate
