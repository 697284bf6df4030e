"""The file of ground truths to fill in: what people have written stays, and nothing is doubled."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from claimspan.files.ground_truth import QUERY_KEYS, TEXT_KEYS, first_of, read_rows
from claimspan.files.private import write_private
from claimspan.text.shapes import is_list
from claimspan_tracing.curate.picking import Pick

__all__ = ["GoldenFile"]

LINE_CHARACTERS: Final = 200
"""Characters of the first line of a chunk: to recognise it, not to read it."""

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of what spreadsheets take for a formula."""

Row = Mapping[str, object]


class GoldenFile:
    """A JSON-lines or CSV file, one query a line, with an empty ``ground_truth`` to fill in."""

    def __init__(self, path: Path) -> None:
        """Read what is there.

        Args:
            path: A CSV file where its name ends in ``.csv``, else JSON lines; it need not exist.

        Raises:
            GroundTruthError: It cannot be read; names the line.
        """
        self._path = path
        self._rows: list[Row] = [row for _, row in read_rows(path)] if path.exists() else []

    @property
    def queries(self) -> list[str]:
        """The queries that are in the file."""
        found = [first_of(row, QUERY_KEYS, str(self._path)) for row in self._rows]
        return [query for query in found if query is not None]

    @property
    def unfilled(self) -> int:
        """Number of lines that wait for a ground truth."""
        return sum(first_of(row, TEXT_KEYS, str(self._path)) is None for row in self._rows)

    def __len__(self) -> int:
        """Number of lines."""
        return len(self._rows)

    def add(self, picks: Iterable[Pick]) -> None:
        """Write the file anew, with the picks after what is there.

        Raises:
            ConfigError: It cannot be written; what was there is unchanged.
        """
        is_csv = self._path.suffix.lower() == ".csv"
        rows = map(_row, picks)
        # New rows alone: what people have written, formulas included, is theirs.
        self._rows += map(_harmless, rows) if is_csv else rows
        text = _as_csv(self._rows) if is_csv else _as_json_lines(self._rows)
        write_private(self._path, text, what="the ground truths")


def _row(pick: Pick) -> Row:
    candidate = pick.candidate
    return {
        "id": candidate.id,
        "query": candidate.query,
        "ground_truth": "",
        "response": candidate.response,
        "chunks": [_first_line(text) for text in candidate.chunks],
        "picked_for": pick.reason,
        "weight": pick.weight,
        "sample_weight": candidate.sample_weight,
        "trace_id": candidate.trace_id,
    }


def _harmless(row: Row) -> Row:
    """A row without formulas: a spreadsheet would run those that stand in a query or an answer."""
    return {name: _quoted(_cell(value)) for name, value in row.items()}


def _quoted(value: object) -> object:
    # The apostrophe is what spreadsheets themselves mark a text by; matching ignores it.
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _first_line(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= LINE_CHARACTERS else f"{line[: LINE_CHARACTERS - 1]}…"


def _as_json_lines(rows: Sequence[Row]) -> str:
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def _as_csv(rows: Sequence[Row]) -> str:
    # The columns of the file as it is, then ours.
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    return "\n".join(map(str, value)) if is_list(value) else value
