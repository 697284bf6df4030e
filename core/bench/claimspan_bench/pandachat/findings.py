"""What is odd in a submission: reported beside its figures, which it leaves as they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from claimspan_bench.pandachat.dataset import Dataset
from claimspan_bench.pandachat.submissions import Sources, Submission

__all__ = ["Finding", "FindingKind", "findings_of"]

_EXAMPLES: Final = 5
"""Queries or ids that a finding names, so that a person can look them up."""

FindingKind = Literal[
    "fewer_sources",
    "no_sources",
    "repeated_sources",
    "unreadable",
    "unknown_documents",
    "missing_questions",
    "doubled_questions",
    "unknown_questions",
    "other_documents",
    "other_order",
    "no_time",
    "same_system",
]


class Finding(BaseModel):
    """One thing that is odd, with how often it is so."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str
    """Name of the system."""

    kind: FindingKind
    """What is odd, for programs."""

    count: int
    """How many questions, or documents, it concerns."""

    message: str
    """What is odd, in words."""

    examples: tuple[str, ...] = ()
    """The first questions or documents that it concerns."""


def findings_of(submission: Submission, dataset: Dataset | None, k: int) -> list[Finding]:
    """Find what is odd in a submission.

    Args:
        submission: What a system retrieved.
        dataset: The questions; None where they are not at hand, and the submission is looked at
            by itself.
        k: Number of sources that count.
    """
    found = [*_in_rows(submission, k), *_in_questions(submission)]
    return found if dataset is None else [*found, *_beside(submission, dataset)]


def _in_rows(submission: Submission, k: int) -> Iterator[Finding]:
    """What the rows say by themselves."""
    n = len(submission.rows)
    checks: list[tuple[FindingKind, str, Callable[[Sources], bool]]] = [
        (
            "unreadable",
            f"of {n} questions have no list of sources or no document: counted as missed",
            lambda row: not row.readable,
        ),
        (
            "no_sources",
            f"of {n} questions have no source at all",
            lambda row: row.readable and not row.sources,
        ),
        (
            "fewer_sources",
            f"of {n} questions have fewer than {k} sources: accuracy at {k} is that at fewer there",
            lambda row: 0 < len(row.sources) < k,
        ),
        (
            "repeated_sources",
            f"of {n} questions have one document twice among the first {k} sources",
            lambda row: len(set(row.sources[:k])) < len(row.sources[:k]),
        ),
    ]
    # One table and not one function a check, so that every check counts against the same rows.
    for kind, says, holds in checks:
        yield from _finding(
            submission, kind, [row.query for row in submission.rows if holds(row)], says
        )
    if submission.time_per_question is None:
        yield Finding(
            system=submission.system, kind="no_time", count=n, message="no time per question"
        )


def _in_questions(submission: Submission) -> Iterator[Finding]:
    counts = Counter(row.query for row in submission.rows)
    doubled = [query for query, count in counts.items() if count > 1]
    yield from _finding(
        submission, "doubled_questions", doubled, f"of {len(counts)} questions count more than once"
    )


def _beside(submission: Submission, dataset: Dataset) -> Iterator[Finding]:
    """What a look at the dataset shows."""
    asked = dataset.by_query
    # Of a doubled question the last row; that it is doubled is a finding of its own.
    queries = {row.query: row for row in submission.rows}
    missing = [query for query in asked if query not in queries]
    says = f"of {len(asked)} questions are missing: accuracy is that of the others"
    yield from _finding(submission, "missing_questions", missing, says)
    unknown = [query for query in queries if query not in asked]
    says = f"of {len(queries)} questions are not in the dataset, and count all the same"
    yield from _finding(submission, "unknown_questions", unknown, says)
    other = [q for q, row in queries.items() if q in asked and row.document != asked[q].document]
    says = f"of {len(queries)} questions have another document as right than in the dataset"
    yield from _finding(submission, "other_documents", other, says)
    yield from _unknown_documents(submission, dataset)
    yield from _other_order(submission, list(asked))


def _unknown_documents(submission: Submission, dataset: Dataset) -> Iterator[Finding]:
    known = {question.document for question in dataset.questions}
    named = dict.fromkeys(source for row in submission.rows for source in row.sources)
    unknown = [source for source in named if source not in known]
    says = f"of {len(named)} different sources are no document of the dataset"
    yield from _finding(submission, "unknown_documents", unknown, says)


def _other_order(submission: Submission, asked: Sequence[str]) -> Iterator[Finding]:
    place = {query: n for n, query in enumerate(asked)}
    places = [place[row.query] for row in submission.rows if row.query in place]
    after = [asked[here] for before, here in pairwise(places) if here < before]
    says = f"of {len(places)} questions stand behind one that they precede in the dataset"
    yield from _finding(submission, "other_order", after, says)


def _finding(
    submission: Submission, kind: FindingKind, concerned: Sequence[str], says: str
) -> Iterator[Finding]:
    if concerned:
        yield Finding(
            system=submission.system,
            kind=kind,
            count=len(concerned),
            message=f"{len(concerned)} {says}",
            examples=tuple(concerned[:_EXAMPLES]),
        )
