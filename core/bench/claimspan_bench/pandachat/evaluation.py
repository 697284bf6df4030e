"""Evaluates submissions: the published rows, and what more can be said about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from claimspan.errors import ConfigError, FileError
from claimspan_bench.pandachat.dataset import Dataset, find_dataset, read_dataset
from claimspan_bench.pandachat.findings import Finding, findings_of
from claimspan_bench.pandachat.published import (
    Published,
    Row,
    compared,
    in_published_order,
    row_of,
)
from claimspan_bench.pandachat.scoring import (
    MissedQuestion,
    SystemComparison,
    SystemFigures,
    compare_systems,
    figures_of,
    missed_questions,
)
from claimspan_bench.pandachat.submissions import (
    Submission,
    find_submissions,
    read_submission,
)

__all__ = ["PandaChat", "evaluate_submissions"]


class PandaChat(BaseModel):
    """Everything that submissions give."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    top_k: int
    """Number of sources that count."""

    dataset: str | None
    """The file of questions; None where it is not at hand."""

    systems: tuple[SystemFigures, ...]
    """The figures of each system, in the order of the published rows."""

    comparisons: tuple[SystemComparison, ...]
    """Each pair of systems, the least likely to be chance first."""

    missed: tuple[MissedQuestion, ...]
    """The questions that systems miss, those that most miss first."""

    findings: tuple[Finding, ...]
    """What is odd in the submissions."""

    published: tuple[Published, ...]
    """Each row of the given ``results.json``, beside what its submission gives."""

    unread: tuple[str, ...]
    """Submissions that could not be read, each with the reason."""

    @property
    def rows(self) -> list[Row]:
        """The rows in the authors' form."""
        return [row_of(figures) for figures in self.systems]

    @property
    def missed_by_all(self) -> list[MissedQuestion]:
        """The questions that no system answers."""
        return [each for each in self.missed if len(each.systems) == len(self.systems)]


def evaluate_submissions(
    place: str | Path,
    *,
    top_k: int = 2,
    dataset: str | Path | None = None,
    published: Sequence[Row] = (),
) -> PandaChat:
    """Evaluate the submissions in a folder.

    Args:
        place: The folder, whose folders are searched as well, or one submission.
        top_k: Number of sources that count.
        dataset: The questions; None looks for them beside the submissions. Without them the
            figures are the same, but less can be found odd.
        published: Rows to compare with.

    Raises:
        ConfigError: ``top_k`` is below 1.
        FileError: There is no submission that can be read, or the dataset cannot be read.
        MissingExtraError: scipy is not installed.
    """
    if top_k < 1:
        raise ConfigError(f"top_k is {top_k}: give 1 or more")
    place = Path(place)
    questions = _questions(place, dataset)
    read, unread = _read_all(find_submissions(place))
    # Each figure is looked up by name from here on, so two systems may not share one.
    named = _named(read)
    figures = [figures_of(submission, name, top_k) for name, submission in named.items()]
    systems = in_published_order(figures, published)
    ordered = {each.name: named[each.name] for each in systems}
    rows = [row_of(each) for each in systems]
    return PandaChat(
        top_k=top_k,
        dataset=None if questions is None else str(questions.path),
        systems=tuple(systems),
        comparisons=tuple(compare_systems(ordered, top_k)),
        missed=tuple(missed_questions(ordered, top_k)),
        findings=tuple(_findings(ordered, questions, top_k)),
        published=tuple(compared(rows, published, top_k)),
        unread=tuple(unread),
    )


def _questions(place: Path, dataset: str | Path | None) -> Dataset | None:
    if dataset is None:
        dataset = find_dataset(place if place.is_dir() else place.parent)
    # Submissions repeat question and document, so that the published figures need no dataset.
    return None if dataset is None else read_dataset(dataset)


def _read_all(paths: Sequence[Path]) -> tuple[list[Submission], list[str]]:
    """Read what can be read; one that cannot stops no other.

    Raises:
        FileError: None can be read.
    """
    read: list[Submission] = []
    unread: list[str] = []
    for path in paths:
        try:
            read.append(read_submission(path))
        except FileError as error:
            unread.append(str(error))
    if not read:
        raise FileError("; ".join(unread))
    return read, unread


def _named(submissions: Sequence[Submission]) -> dict[str, Submission]:
    """Name to submission; two of the same name have their files beside it."""
    # The name is what the authors' script tells rows apart by; nothing keeps two files from having
    # one.
    counts = Counter(submission.system for submission in submissions)
    return {
        each.system if counts[each.system] == 1 else f"{each.system} ({each.path})": each
        for each in submissions
    }


def _findings(submissions: dict[str, Submission], dataset: Dataset | None, k: int) -> list[Finding]:
    found = [
        finding
        for submission in submissions.values()
        for finding in findings_of(submission, dataset, k)
    ]
    counts = Counter(submission.system for submission in submissions.values())
    return found + [
        Finding(
            system=name,
            kind="same_system",
            count=count,
            message=f"{count} submissions have this name: results.json has room for the last one",
        )
        for name, count in counts.items()
        if count > 1
    ]
