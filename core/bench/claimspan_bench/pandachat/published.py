"""The authors' own form of results: `results.json`, and a table in Markdown for each task.

Both are written byte for byte as the authors' script writes them: the table by the same library,
tabulate, which pandas calls for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from pydantic import BaseModel, ConfigDict, JsonValue

from claimspan.errors import ConfigError, FileError, MissingExtraError
from claimspan.files.private import write_private
from claimspan_bench.pandachat.dataset import parse_json
from claimspan_bench.pandachat.scoring import SystemFigures

__all__ = [
    "RESULTS",
    "Published",
    "Row",
    "compared",
    "find_results",
    "in_published_order",
    "markdown",
    "merged",
    "read_results",
    "row_of",
    "write_results",
]

RESULTS: Final = "results.json"
"""Name of the file with the rows of all systems."""

Row = Mapping[str, JsonValue]
"""One system's row; its columns are named and ordered as the authors'."""

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


class Published(BaseModel):
    """One row of a given ``results.json``, beside what its submission gives."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str
    """Name of the system."""

    top_k: int
    """Number of sources that count."""

    equal: bool | None
    """Whether every column is equal; None where the submission is not here."""

    differs: tuple[str, ...] = ()
    """Names of the columns that differ."""


def row_of(figures: SystemFigures) -> Row:
    """Return a system's figures as a row."""
    return {
        _SCENARIO: figures.scenario,
        _SYSTEM: figures.system,
        _TOP_K: figures.top_k,
        _TIME: figures.time_per_question,
        _COUNT: figures.correct,
        _PERCENTAGE: figures.percentage,
    }


def find_results(place: Path) -> Path | None:
    """Find the authors' rows beside submissions, or where the authors' repository has them."""
    folder = (place if place.is_dir() else place.parent).resolve()
    above = [folder, *folder.parents[:2]]
    places = [folder / RESULTS, *(parent / "results" / RESULTS for parent in above)]
    return next((path for path in places if path.is_file()), None)


def read_results(path: Path) -> list[Row]:
    """Read rows.

    Raises:
        FileError: The file cannot be read, or holds something else.
    """
    parsed = parse_json(path, wanted=_WANTED)
    rows = cast("Sequence[JsonValue]", parsed) if isinstance(parsed, list) else None
    if rows is None or not all(map(_is_row, rows)):
        raise FileError(f"{str(path)!r} holds no rows: give a {_WANTED}")
    return [cast(Row, row) for row in rows]


def in_published_order(
    figures: Iterable[SystemFigures], rows: Sequence[Row]
) -> list[SystemFigures]:
    """Sort systems as given rows are, else as the authors' are; others follow as they come."""
    # The given rows come first: the authors may have evaluated more systems since.
    names = dict.fromkeys((*(row[_SYSTEM] for row in rows), *_AUTHORS_ORDER))
    place = {name: n for n, name in enumerate(names)}
    return sorted(figures, key=lambda each: place.get(each.system, len(place)))


def merged(rows: Sequence[Row], new: Sequence[Row]) -> list[Row]:
    """Return rows with new ones: each in the place of the same system's, else at the end.

    Args:
        rows: What is there.
        new: What was found out. The same system at the same ``k`` is never listed twice.
    """
    found = {_identity(row): row for row in rows}
    # An update keeps the place of a row that is there, so that the table keeps its order.
    found.update({_identity(row): row for row in new})
    return list(found.values())


def compared(rows: Sequence[Row], published: Sequence[Row], top_k: int) -> list[Published]:
    """Compare rows with published ones of the same ``k``, exactly.

    Args:
        rows: What was found out.
        published: What is published.
        top_k: Number of sources that count.
    """
    found = {_identity(row): row for row in rows}
    return [
        _compared(row, found.get(_identity(row)), top_k)
        for row in published
        if row[_TOP_K] == top_k
    ]


def markdown(rows: Sequence[Row]) -> str:
    """Write rows of one task as the authors' table, the highest accuracy first.

    Raises:
        MissingExtraError: tabulate is not installed.
    """
    try:
        from tabulate import tabulate
    except ImportError as error:
        raise MissingExtraError("tabulate", "bench") from error
    ranked = sorted(rows, key=_percentage, reverse=True)  # equal ones keep their order
    columns = [*_IDENTITY, *_FIGURES]
    cells = [[row.get(column) for column in columns] for row in ranked]
    # As pandas calls it; its numbers are rounded to six significant digits here, not in the rows.
    return tabulate(cells, headers=columns, tablefmt="pipe")


def write_results(folder: Path, rows: Sequence[Row]) -> list[Path]:
    """Write `results.json`, and one table a task, into a folder.

    Rows of other systems that are in its `results.json` stay, as they do in the authors'.

    Args:
        folder: It is made where it is not there.
        rows: What was found out.

    Returns:
        The files.

    Raises:
        ConfigError: The folder cannot be written, or a task cannot be part of a file's name.
        FileError: Its `results.json` holds something else.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"cannot make the folder {str(folder)!r}: give another with -o"
        ) from error
    path = folder / RESULTS
    everything = merged(read_results(path) if path.exists() else [], rows)
    # All names are looked at before the first file is written.
    tables = {folder / _table_name(task): _table(task, everything) for task in _tasks(everything)}
    write_private(path, json.dumps(everything, indent=2), what="the results")
    for place, table in tables.items():
        write_private(place, table, what="the table")
    return [path, *tables]


def _is_row(value: JsonValue) -> bool:
    return isinstance(value, dict) and set(_IDENTITY) <= value.keys()


def _table_name(task: str) -> str:
    if not re.fullmatch(r"[\w.-]{1,100}", task):
        raise ConfigError(f"the task {task!r} can be part of no file's name: correct eval_scenario")
    return f"results-{task}.md"


def _table(task: str, rows: Sequence[Row]) -> str:
    return markdown([row for row in rows if row[_SCENARIO] == task])


def _tasks(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(str(row[_SCENARIO]) for row in rows))


def _compared(published: Row, found: Row | None, top_k: int) -> Published:
    system = str(published[_SYSTEM])
    if found is None:
        return Published(system=system, top_k=top_k, equal=None)
    # Exact, also for floats: the same division of the same counts gives the same bits.
    differs = tuple(name for name in _FIGURES if published.get(name) != found[name])
    return Published(system=system, top_k=top_k, equal=not differs, differs=differs)


def _identity(row: Row) -> tuple[JsonValue, ...]:
    return tuple(row[name] for name in _IDENTITY)


def _percentage(row: Row) -> float:
    value = row.get(_PERCENTAGE)
    return float(value) if isinstance(value, float | int) else 0.0
