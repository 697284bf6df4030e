"""Reads ground truths from a file: JSON lines or CSV, with the field names that are in use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from claimspan.errors import GroundTruthError
from claimspan.files.chunks import items_of
from claimspan.files.csv_rows import csv_rows
from claimspan.files.jsonl import parse_json_lines, read_text, unreadable
from claimspan.files.names import NAMES, field_of, pick
from claimspan.files.raw_rows import RawRow, SkippedRow
from claimspan.files.scalars import scalar_text

__all__ = [
    "ID_KEYS",
    "ID_KEYS_OF_QUERIES",
    "QUERY_KEYS",
    "TEXT_KEYS",
    "GroundTruthEntry",
    "first_of",
    "read_ground_truths",
    "read_rows",
]

ID_KEYS_OF_QUERIES: Final = ("ground_truth_id", "query_id", "question_id")
"""Fields of a file, and keys of a run's metadata, that can hold the id of a query only."""

ID_KEYS: Final = (*ID_KEYS_OF_QUERIES, "id")
"""Fields of a file, and keys of a run's metadata, that hold an id; the first one present wins."""

QUERY_KEYS: Final = NAMES["query"]
"""Fields of a file that hold a query."""

TEXT_KEYS: Final = (*NAMES["ground_truth"], "answer")
"""Fields of a file that hold a ground truth; one of ground truths has no other answers."""

WAITING_KEY: Final = TEXT_KEYS[0]
"""The field that is empty in a line which waits to be filled in."""

_WANTED: Final = "JSON-lines or CSV file of questions and ground truths"


@dataclass(frozen=True, slots=True)
class GroundTruthEntry:
    """One ground truth, with the id or the query that finds it."""

    text: str
    """The response known to be right."""

    id: str | None = None
    """The id of the query; None where the file gives none."""

    query: str | None = None
    """The query; None where the file gives none."""

    place: str = ""
    """File and line that it stands in; empty where it comes from no file."""


def read_ground_truths(path: Path) -> list[GroundTruthEntry]:
    """Read ground truths.

    Args:
        path: A CSV file where its name ends in ``.csv``, else JSON lines. A line with a query
            and an empty ``ground_truth`` is left out: it waits to be filled in.

    Raises:
        GroundTruthError: The file cannot be read, or a line lacks a field; names the line.
    """
    rows = ((row, f"{str(path)!r} line {number}") for number, row in read_rows(path))
    return [_entry(row, place) for row, place in rows if not _waits(row, place)]


def read_rows(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Read the rows of a JSON-lines or CSV file.

    Args:
        path: A CSV file where its name ends in ``.csv``, else JSON lines.

    Returns:
        Number of the line, from 1, and the fields of each row.

    Raises:
        GroundTruthError: The file cannot be read; names the line.
    """
    if path.suffix.lower() == ".csv":
        return _csv_rows(path)
    text = read_text(path, wanted=_WANTED, error=GroundTruthError)
    return parse_json_lines(text, path, error=GroundTruthError)


def _csv_rows(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    try:
        with path.open("rb") as file:
            # The empty cell of a ground truth that waits to be filled in has to be there.
            for row in csv_rows(file, keep_empty=True):
                if isinstance(row, SkippedRow):
                    raise GroundTruthError(f"{str(path)!r} line {row.place}: {row.reason}")
                if isinstance(row, RawRow):
                    yield row.place, cast("Mapping[str, object]", row.value)
    except OSError as cause:
        raise unreadable(path, cause, wanted=_WANTED, error=GroundTruthError) from None


def _waits(row: Mapping[str, object], place: str) -> bool:
    """Whether a line is still to be filled in, as ``claimspan curate`` writes it."""
    is_empty = WAITING_KEY in row and first_of(row, TEXT_KEYS, place) is None
    return is_empty and first_of(row, QUERY_KEYS, place) is not None


def _entry(row: Mapping[str, object], place: str) -> GroundTruthEntry:
    text, query, id_ = (first_of(row, keys, place) for keys in (TEXT_KEYS, QUERY_KEYS, ID_KEYS))
    if text is None or (query is None and id_ is None):
        raise GroundTruthError(
            f"{place} needs a ground truth ({', '.join(TEXT_KEYS)}) "
            f"and a query ({', '.join(QUERY_KEYS)}) or an id ({', '.join(ID_KEYS)})"
        )
    return GroundTruthEntry(text=text, id=id_, query=query, place=place)


def first_of(row: Mapping[str, object], keys: tuple[str, ...], place: str) -> str | None:
    """Return the first of the fields that is not empty, as a text: ids are often numbers.

    Raises:
        GroundTruthError: It is no text, number or boolean; names the place.
    """
    key = pick(row, keys)
    if key is None:
        return None
    # RAGAS has a list of ground truths, nearly always of one; an answer is no list.
    items = items_of(row[key]) if field_of(key) == WAITING_KEY else None
    text = scalar_text(items[0] if items is not None and len(items) == 1 else row[key])
    if not isinstance(text, str):
        raise GroundTruthError(f"{place}: {key} is of type {type(row[key]).__name__}; write a text")
    return text
