"""Evaluates submissions: the rows that the authors publish, and what more can be said about them.

``results.json`` and its table are written byte for byte as the authors' script writes them: the
table by the same library, tabulate, which pandas calls for it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Final, cast

from pydantic import BaseModel, ConfigDict, JsonValue

from claimspan.errors import ConfigError, FileError
from claimspan.files.private import write_private
from claimspan.statistics import Estimate, holm, mean_estimate
from claimspan_bench.pandachat.submissions import (
    Dataset,
    Finding,
    Sources,
    Submission,
    find_dataset,
    find_submissions,
    findings_of,
    parse_json,
    read_dataset,
    read_submission,
)
from claimspan_bench.statistics import PairedComparison, compare_paired, share_estimate

__all__ = [
    "MissedQuestion",
    "PandaChat",
    "Published",
    "Row",
    "SystemComparison",
    "SystemFigures",
    "evaluate_submissions",
    "find_results",
    "markdown",
    "merged",
    "read_results",
    "write_results",
]

Row = Mapping[str, JsonValue]
"""One system's row; its columns are named and ordered as the authors'."""

_RESULTS: Final = "results.json"
_SCENARIO: Final = "eval_scenario"
_SYSTEM: Final = "system"
_TOP_K: Final = "evaluated-top-k"
_TIME: Final = "time_per_question (s)"
_COUNT: Final = "correct_retrieval_count"
_PERCENTAGE: Final = "correct_retrieval_per"

_IDENTITY: Final = (_SCENARIO, _SYSTEM, _TOP_K)
"""The columns that tell one row from another."""

_FIGURES: Final = (_TIME, _COUNT, _PERCENTAGE)
"""The columns that an evaluation finds out."""

_WANTED: Final = "results.json of PandaChat-RAG (a JSON list of rows)"

_AUTHORS_ORDER: Final = (
    *("bge-m3", "gte-multilingual-base"),
    *("multilingual-e5-base", "multilingual-e5-large", "multilingual-e5-small"),
    *("text-embedding-3-large", "text-embedding-3-small", "text-embedding-ada-002"),
    *("qdrant-openai-embedding-3-small", "local-storage-text-embedding-3-small"),
    "qdrant-docker-openai-embedding-3-small",
)
"""The order in which the authors evaluated systems. It shows in the table, where equal ones keep
it, and follows from no name."""


# --- what submissions give ---


class SystemFigures(BaseModel):
    """The figures of one system."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    """The system's name; with its file where several have the same name."""

    system: str
    """The name that the submission gives."""

    scenario: str
    file: str

    top_k: int
    """Number of sources that count."""

    time_per_question: int | float | None
    n: int

    correct: int
    """Questions whose document is among the first ``top_k`` sources."""

    accuracy: Estimate
    """Their share, with Wilson's interval."""

    hit_at: tuple[Estimate, ...]
    """The same share for the first 1, 2, ..., ``top_k`` sources."""

    mrr: Estimate
    """Mean of 1 / place of the document among the first ``top_k`` sources; 0 where it is not."""

    sources_per_question: float

    @property
    def row(self) -> Row:
        """The figures in the authors' form."""
        return {
            _SCENARIO: self.scenario,
            _SYSTEM: self.system,
            _TOP_K: self.top_k,
            _TIME: self.time_per_question,
            _COUNT: self.correct,
            # To the last bit: 100 * correct / n rounds otherwise for some counts.
            _PERCENTAGE: self.correct / self.n * 100,
        }


class SystemComparison(BaseModel):
    """Whether one of two systems retrieves better, over the questions that both have."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    before: str
    after: str

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

    document: str | None
    """The document that was to be retrieved."""

    systems: tuple[str, ...]


class Published(BaseModel):
    """One row of a given ``results.json``, beside what its submission gives."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str
    top_k: int

    equal: bool | None
    """Whether every column is equal; None where the submission is not here."""

    differs: tuple[str, ...] = ()


class PandaChat(BaseModel):
    """Everything that submissions give."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    top_k: int

    dataset: str | None
    """The file of questions; None where it is not at hand."""

    systems: tuple[SystemFigures, ...]

    comparisons: tuple[SystemComparison, ...]
    """Each pair of systems of one task, the least likely to be chance first."""

    missed: tuple[MissedQuestion, ...]
    """The questions that systems miss, those that most miss first."""

    findings: tuple[Finding, ...]

    published: tuple[Published, ...]
    """Each row of the given ``results.json``, beside what its submission gives."""

    unread: tuple[str, ...]
    """Submissions that could not be read, each with the reason."""

    @property
    def rows(self) -> list[Row]:
        """The rows in the authors' form."""
        return [figures.row for figures in self.systems]

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
    """
    if top_k < 1:
        raise ConfigError(f"top_k is {top_k}: give 1 or more")
    place = Path(place)
    if dataset is None:
        dataset = find_dataset(place if place.is_dir() else place.parent)
    # Submissions repeat question and document, so that the published figures need no dataset.
    questions = None if dataset is None else read_dataset(dataset)
    read: list[Submission] = []
    unread: list[str] = []
    for path in find_submissions(place):
        try:
            read.append(read_submission(path))
        except FileError as error:  # one that cannot be read stops no other
            unread.append(str(error))
    if not read:
        raise FileError("; ".join(unread))
    # The given rows come first: the authors may have evaluated more systems since. Others follow
    # as they come.
    names = dict.fromkeys((*(row[_SYSTEM] for row in published), *_AUTHORS_ORDER))
    order = {name: n for n, name in enumerate(names)}
    read.sort(key=lambda each: order.get(each.system, len(order)))
    # Each figure is looked up by name from here on, so two systems may not share one. The name is
    # what the authors' script tells rows apart by; nothing keeps two files from having one.
    counts = Counter(each.system for each in read)
    named = {
        each.system if counts[each.system] == 1 else f"{each.system} ({each.path})": each
        for each in read
    }
    systems = [_figures_of(submission, name, top_k) for name, submission in named.items()]
    return PandaChat(
        top_k=top_k,
        dataset=None if questions is None else str(questions.path),
        systems=tuple(systems),
        comparisons=tuple(_comparisons(named, top_k)),
        missed=tuple(_missed_questions(named, top_k)),
        findings=tuple(_findings(read, questions, top_k)),
        published=tuple(_compared([each.row for each in systems], published, top_k)),
        unread=tuple(unread),
    )


def _figures_of(submission: Submission, name: str, k: int) -> SystemFigures:
    rows = submission.rows
    ranks = [row.rank(k) for row in rows]
    hits = [sum(rank is not None and rank <= n for rank in ranks) for n in range(1, k + 1)]
    # None only of a submission without questions, which is refused.
    hit_at = tuple(each for n in hits if (each := share_estimate(n, len(rows))) is not None)
    # Questions of one document go together: one document answers up to seven.
    mrr = mean_estimate([1 / rank if rank else 0.0 for rank in ranks], _documents(rows))
    assert mrr is not None  # noqa: S101 - likewise
    return SystemFigures(
        name=name,
        system=submission.system,
        scenario=submission.scenario,
        file=str(submission.path),
        top_k=k,
        time_per_question=submission.time_per_question,
        n=len(rows),
        correct=hits[-1],
        accuracy=hit_at[-1],
        hit_at=hit_at,
        mrr=mrr,
        sources_per_question=sum(len(row.sources) for row in rows) / len(rows),
    )


def _documents(rows: Sequence[Sources]) -> list[str]:
    """The group of each question: its document, else the question itself."""
    return [row.document or row.query for row in rows]


def _comparisons(submissions: Mapping[str, Submission], k: int) -> list[SystemComparison]:
    """Each system with each other one of the same task, the least likely to be chance first."""
    found: list[SystemComparison] = []
    for before, after in combinations(submissions, 2):
        if submissions[before].scenario != submissions[after].scenario:
            continue
        # Reversed, so that the first of two rows of one question counts in both systems.
        left, right = (
            {row.query: row for row in reversed(submissions[name].rows)} for name in (before, after)
        )
        both = [query for query in left if query in right]
        hits = [float(left[query].rank(k) is not None) for query in both]
        others = [float(right[query].rank(k) is not None) for query in both]
        compared = compare_paired(hits, others, _documents([left[query] for query in both]))
        if compared is not None:
            pairs = list(zip(hits, others, strict=True))
            found.append(
                SystemComparison(
                    before=before,
                    after=after,
                    hits=compared,
                    only_before=pairs.count((1.0, 0.0)),
                    only_after=pairs.count((0.0, 1.0)),
                    p_adjusted=compared.p_value,
                )
            )
    # Of 55 pairs of 11 systems about three differ by chance at 0.05; Holm's adjustment allows for
    # that.
    adjusted = holm({n: pair.hits.p_value for n, pair in enumerate(found)})
    pairs_adjusted = [
        pair.model_copy(update={"p_adjusted": adjusted[n]}) for n, pair in enumerate(found)
    ]
    return sorted(pairs_adjusted, key=lambda pair: (pair.p_adjusted, pair.hits.p_value))


def _missed_questions(submissions: Mapping[str, Submission], k: int) -> list[MissedQuestion]:
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


def _findings(submissions: Sequence[Submission], dataset: Dataset | None, k: int) -> list[Finding]:
    found = [finding for each in submissions for finding in findings_of(each, dataset, k)]
    counts = Counter(submission.system for submission in submissions)
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


def _compared(rows: Sequence[Row], published: Sequence[Row], top_k: int) -> list[Published]:
    """Published rows of the same ``k`` beside those that were found out."""
    found = {_identity(row): row for row in rows}
    compared: list[Published] = []
    for row in published:
        if row[_TOP_K] == top_k:
            ours = found.get(_identity(row))
            # Exact, also for floats: the same division of the same counts gives the same bits.
            differs = [n for n in _FIGURES if ours is not None and row.get(n) != ours[n]]
            compared.append(
                Published(
                    system=str(row[_SYSTEM]),
                    top_k=top_k,
                    equal=None if ours is None else not differs,
                    differs=tuple(differs),
                )
            )
    return compared


# --- the authors' files ---


def _identity(row: Row) -> tuple[JsonValue, ...]:
    return tuple(row[name] for name in _IDENTITY)


def find_results(place: Path) -> Path | None:
    """Find the authors' rows beside submissions, or where the authors' repository has them."""
    folder = (place if place.is_dir() else place.parent).resolve()
    above = [folder, *folder.parents[:2]]
    places = [folder / _RESULTS, *(parent / "results" / _RESULTS for parent in above)]
    return next((path for path in places if path.is_file()), None)


def read_results(path: Path) -> list[Row]:
    """Read rows.

    Raises:
        FileError: The file cannot be read, or holds something else.
    """
    parsed = parse_json(path, wanted=_WANTED)
    rows = cast("Sequence[JsonValue]", parsed) if isinstance(parsed, list) else [None]
    found = [row for row in rows if isinstance(row, dict) and set(_IDENTITY) <= row.keys()]
    if len(found) < len(rows):
        raise FileError(f"{str(path)!r} holds no rows: give a {_WANTED}")
    return list(found)


def merged(rows: Sequence[Row], new: Sequence[Row]) -> list[Row]:
    """Return rows with new ones: each in the place of the same system's, else at the end.

    Args:
        rows: What is there.
        new: What was found out. The same system at the same ``k`` is never listed twice.
    """
    # An update keeps the place of a row that is there, so that the table keeps its order.
    return list({_identity(row): row for row in (*rows, *new)}.values())


def markdown(rows: Sequence[Row]) -> str:
    """Write rows of one task as the authors' table, the highest accuracy first."""
    from tabulate import tabulate

    def percentage(row: Row) -> float:
        value = row.get(_PERCENTAGE)
        return float(value) if isinstance(value, float | int) else 0.0

    ranked = sorted(rows, key=percentage, reverse=True)  # equal ones keep their order
    columns = [*_IDENTITY, *_FIGURES]
    cells = [[row.get(column) for column in columns] for row in ranked]
    # As pandas calls it; its numbers are rounded to six significant digits here, not in the rows.
    return tabulate(cells, headers=columns, tablefmt="pipe")


def write_results(folder: Path, rows: Sequence[Row]) -> list[Path]:
    """Write ``results.json``, and one table a task, into a folder.

    Rows of other systems that are in its ``results.json`` stay, as they do in the authors'.

    Args:
        folder: It is made where it is not there.
        rows: What was found out.

    Returns:
        The files.

    Raises:
        ConfigError: The folder cannot be written, or a task cannot be part of a file's name.
        FileError: Its ``results.json`` holds something else.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"cannot make the folder {str(folder)!r}: give another with -o"
        ) from error
    path = folder / _RESULTS
    everything = merged(read_results(path) if path.exists() else [], rows)
    tables: dict[Path, str] = {}
    for task in dict.fromkeys(str(row[_SCENARIO]) for row in everything):
        # All names are looked at before the first file is written.
        if not re.fullmatch(r"[\w.-]{1,100}", task):
            raise ConfigError(
                f"the task {task!r} can be part of no file's name: correct eval_scenario"
            )
        of_task = [row for row in everything if row[_SCENARIO] == task]
        tables[folder / f"results-{task}.md"] = markdown(of_task)
    write_private(path, json.dumps(everything, indent=2), what="the results")
    for place, table in tables.items():
        write_private(place, table, what="the table")
    return [path, *tables]
