"""What is known to be true, found by id, by the exact question, or by the normalised question."""

from __future__ import annotations

import csv
import json
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

from claimspan.errors import ConfigError, GroundTruthError

__all__ = ["GroundTruth", "Lookup", "normalise"]

Lookup = Callable[[str, Mapping[str, object]], str | None]
"""From a query and a run's metadata to the ground truth, or None where there is none."""


ID_KEYS: Final = ("ground_truth_id", "query_id", "question_id", "id")
"""Where an id is looked for: in the fields of a file, and in the metadata of a run."""

QUERY_KEYS: Final = ("query", "question", "input")
SPEAKING: Final = frozenset("#%&@*/\\_")
"""Punctuation that is part of a name or a quantity."""

ANSWER_KEYS: Final = ("ground_truth", "gt_answer", "ground_truth_answer", "reference", "answer")


@dataclass(frozen=True, slots=True)
class _Entry:
    id: str | None
    query: str | None
    answer: str


class GroundTruth:
    """Answers known to be right.

    Looked up in this order: by the id in the run's metadata (``ground_truth_id``, ``query_id``,
    ``question_id`` or ``id``), by the exact query, by the normalised query (case, punctuation,
    white space and Unicode form do not count). A callable is asked as it is.
    """

    def __init__(self, source: str | Path | Mapping[str, str] | Lookup) -> None:
        """Read or wrap the source.

        Args:
            source: Path of a JSON-lines or CSV file with a ground truth (``ground_truth``,
                ``gt_answer``, ``reference`` or ``answer``) and a query (``query``, ``question``,
                ``input``) or an id in each record; a mapping from query or id to ground truth; or
                ``callable(query, metadata) -> str | None``.

        Raises:
            GroundTruthError: The file cannot be read; names the line.
            ConfigError: The source is none of these.
        """
        self._lookup: Lookup | None = None
        self._by_id: dict[str, str] = {}
        self._by_query: dict[str, str] = {}
        self._by_normalised: dict[str, str] = {}
        if isinstance(source, str | Path):
            self._index(_read(Path(source)))
        elif callable(source):
            self._lookup = source
        elif isinstance(source, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
            self._index(_entries(source))
        else:
            raise ConfigError(
                f"ground_truth is a {type(source).__name__}: give a path, a mapping from query to "
                "ground truth, a callable(query, metadata), or a GroundTruth"
            )

    @classmethod
    def of(cls, source: str | Path | Mapping[str, str] | Lookup | GroundTruth) -> GroundTruth:
        """The source itself if it is a ``GroundTruth``, else one made from it."""
        return source if isinstance(source, GroundTruth) else cls(source)

    def __len__(self) -> int:
        """Number of ground truths known beforehand; 0 for a callable."""
        return max(len(self._by_id), len(self._by_query))

    def __bool__(self) -> bool:
        """True, also for a callable, whose number of ground truths nobody knows."""
        return True

    def find(self, query: str, metadata: Mapping[str, object] | None = None) -> str | None:
        """The ground truth of a query, or None where there is none.

        Args:
            query: What the user asked.
            metadata: The run's metadata, which may hold an id.

        Raises:
            Exception: Whatever a callable source raises.
        """
        metadata = metadata or {}
        if self._lookup is not None:
            return self._lookup(query, metadata)
        for key in ID_KEYS:
            found = self._by_id.get(str(metadata[key])) if key in metadata else None
            if found is not None:
                return found
        return self._by_query.get(query) or self._by_normalised.get(normalise(query))

    def _index(self, entries: Iterator[_Entry]) -> None:
        for entry in entries:
            if entry.id is not None:
                self._by_id.setdefault(entry.id, entry.answer)
            if entry.query is not None:
                self._by_query.setdefault(entry.query, entry.answer)
                self._by_normalised.setdefault(normalise(entry.query), entry.answer)
        self._by_normalised.pop("", None)


def normalise(query: str) -> str:
    """A query without what does not change it: case, punctuation, white space, Unicode form.

    Marks and symbols stay, since they tell words apart ("C++", Devanagari vowels), and so do the
    signs of ``SPEAKING`` ("C#", "50 %").
    """
    text = unicodedata.normalize("NFKC", query).casefold()
    return " ".join("".join(c if _speaks(c) else " " for c in text).split())


def _speaks(character: str) -> bool:
    return character in SPEAKING or unicodedata.category(character)[0] in "LMNS"


def _entries(mapping: Mapping[str, str]) -> Iterator[_Entry]:
    """A key of a mapping may be a query or an id: both ways of asking find it."""
    return (_Entry(id=key, query=key, answer=answer) for key, answer in mapping.items())


def _read(path: Path) -> Iterator[_Entry]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(
                _csv_rows(file) if path.suffix.lower() == ".csv" else _json_rows(file, path)
            )
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise GroundTruthError(
            f"cannot read ground truths from {str(path)!r} ({type(error).__name__}): "
            "give an existing JSON-lines or CSV file in UTF-8"
        ) from error
    return (_entry(row, path, line) for line, row in rows)


def _csv_rows(file: TextIO) -> Iterator[tuple[int, Mapping[str, object]]]:
    reader = csv.DictReader(file)
    return ((reader.line_num, dict(row)) for row in reader)


def _json_rows(file: TextIO, path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        try:
            row: object = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise GroundTruthError(
                f"{str(path)!r} line {number} is not JSON: write one JSON object a line"
            ) from error
        if not isinstance(row, dict):
            raise GroundTruthError(
                f"{str(path)!r} line {number} is not a JSON object: write one object a line"
            )
        yield number, row


def _entry(row: Mapping[str, object], path: Path, line: int) -> _Entry:
    try:
        answer, query, id_ = (_first(row, keys) for keys in (ANSWER_KEYS, QUERY_KEYS, ID_KEYS))
    except TypeError as error:
        raise GroundTruthError(f"{str(path)!r} line {line}: {error}") from error
    if answer is None or (query is None and id_ is None):
        raise GroundTruthError(
            f"{str(path)!r} line {line} needs a ground truth ({', '.join(ANSWER_KEYS)}) "
            f"and a query ({', '.join(QUERY_KEYS)}) or an id ({', '.join(ID_KEYS)})"
        )
    return _Entry(id=id_, query=query, answer=answer)


def _first(row: Mapping[str, object], keys: tuple[str, ...]) -> str | None:
    for key in keys:
        value = row.get(key)
        if value in (None, ""):
            continue
        if not isinstance(value, str | int | float):
            raise TypeError(f"{key} is a {type(value).__name__}; write a text")
        return str(value)
    return None
