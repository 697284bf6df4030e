"""JSON files that are one value as a whole: lists of records, and RAGChecker's two formats.

Such a file is held in memory, since its records can be told apart only when all of it is parsed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from claimspan.errors import FileError

__all__ = ["Document", "document_of", "is_document"]

_COLUMNS: Final = (
    "response_claims",
    "gt_answer_claims",
    "answer2response",
    "response2answer",
    "retrieved2response",
    "retrieved2answer",
)
"""What RAGChecker's format of 2024-06 keeps beside the records, one entry for each."""


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON file that was read as a whole."""

    rows: list[object]
    """What is to be a record each."""

    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    """The means that RAGChecker has written beside them, in per cent."""

    others: frozenset[str] = frozenset()
    """Names of what else the file holds, which belongs to no record."""


def is_document(value: object) -> bool:
    """Whether one JSON value holds several records, rather than being one."""
    return isinstance(value, list) or (
        isinstance(value, dict) and ("results" in value or "input_data" in value)
    )


def document_of(text: bytes, path: Path) -> Document | None:
    """Parse a file as one JSON value.

    Args:
        text: What the file holds, in UTF-8 with or without a byte order mark.
        path: The file, for messages.

    Returns:
        Its records; None where it is not JSON as a whole.

    Raises:
        FileError: It is JSON, and holds something else than records.
    """
    try:
        # Not the bounded parser: a user's own results may well be larger than a line of a trace.
        value: object = json.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    metrics: object = None
    others = frozenset[str]()
    if isinstance(value, dict) and is_document(value):  # pyright: ignore[reportUnknownArgumentType] - any JSON value
        others = frozenset(map(str, value)) - {"results", "input_data", "metrics", *_COLUMNS}  # pyright: ignore[reportUnknownArgumentType] - any JSON value
    if isinstance(value, dict):
        metrics = value.get("metrics")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] - any JSON value
        value = _rows(value, path)  # pyright: ignore[reportUnknownArgumentType] - any JSON value
    if not isinstance(value, list):
        raise FileError(
            f"{str(path)!r} is not a list of records: write one JSON record a line, or a list"
        )
    return Document(value, dict(_means(metrics)), others)  # pyright: ignore[reportUnknownArgumentType] - any JSON value


def _rows(value: Mapping[str, object], path: Path) -> object:
    if "results" in value:
        return value["results"]
    return _legacy_rows(value, path) if "input_data" in value else [value]


def _legacy_rows(value: Mapping[str, object], path: Path) -> object:
    """The rows of RAGChecker's format of 2024-06, whose columns stand side by side."""
    records = value["input_data"]
    if not isinstance(records, list):
        return records
    rows: list[object] = list(records)  # pyright: ignore[reportUnknownArgumentType] - any JSON value
    for name in _COLUMNS:
        column = value.get(name)
        if column is None:
            continue
        # A column that is too short would give labels to the wrong records from the gap on.
        if not isinstance(column, list) or len(column) != len(rows):  # pyright: ignore[reportUnknownArgumentType] - any JSON value
            raise FileError(
                f"{str(path)!r}: {name} has to be a list with one entry for each of the "
                f"{len(rows)} records of input_data"
            )
        # The old format has one list for each kind of label, in the order of the records.
        rows = [_with(row, name, item) for row, item in zip(rows, column, strict=True)]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - any JSON value
    return rows


def _with(row: object, name: str, item: object) -> object:
    return {**row, name: item} if isinstance(row, dict) else row  # pyright: ignore[reportUnknownVariableType] - any JSON value


def _means(metrics: object) -> Iterator[tuple[str, float]]:
    """The means of all groups; groups are called ``overall_metrics``, and ``overall`` before."""
    if not isinstance(metrics, dict):
        return
    for group in metrics.values():  # pyright: ignore[reportUnknownVariableType] - any JSON value
        if isinstance(group, dict):
            for name, mean in group.items():  # pyright: ignore[reportUnknownVariableType] - any JSON value
                if isinstance(mean, int | float):
                    yield str(name), float(mean)  # pyright: ignore[reportUnknownArgumentType] - any JSON value
