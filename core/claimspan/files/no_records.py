"""Says what a file without records is instead, as far as the names of its fields tell."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final, cast

from claimspan.errors import ConfigError
from claimspan.files.account import Account
from claimspan.files.names import accepted_names
from claimspan.files.raw_rows import NOT_JSON
from claimspan.files.record_files import RecordFile

__all__ = ["no_records"]

_WRITE: Final = (
    "write one JSON record with query and response a line, a JSON list, or a table (CSV with a "
    f"header, Parquet, Arrow). Other names that are read: {accepted_names()}; --map "
    "FIELD=COLUMN reads any"
)

_OTHERS: Final[tuple[tuple[frozenset[str], str], ...]] = (
    (frozenset({"inputs", "outputs"}), "LangSmith"),
    (frozenset({"attributes.input.value"}), "Phoenix"),
    (frozenset({"attributes", "span_kind"}), "Phoenix"),
    (frozenset({"input", "output"}), "Langfuse and TruLens"),
)
"""Fields of a row to the tools that write them. Only names that stand here are ever shown: the
header of a table without one is content."""

_COLUMNS: Final = ("query", "response")
_BY_COLUMNS: Final = ("is a list", "is an object")
"""What these fields are in a table that was written column by column."""


def no_records(file: RecordFile, account: Account) -> ConfigError:
    """Return the error for a file that holds no record.

    Args:
        file: The file.
        account: What was skipped, and why.
    """
    name = repr(str(file.path))
    if _holds_traces(file.path):
        return ConfigError(
            f"{name} is a trace file, whose records were evaluated while they were written: see "
            "`claimspan report` and `claimspan stats`"
        )
    fields = _first_fields(file)
    if {"record", "evaluation", "metrics"} <= fields:
        return ConfigError(
            f"{name} is a file of results, whose records are evaluated: see `claimspan report`, "
            "`claimspan compare` and `claimspan gate`"
        )
    absent = [c for c in file.columns.given.values() if c and c not in fields]
    if absent and fields:
        return ConfigError(f"the first row of {name} has no column {absent[0]!r}: check --map")
    held, remedy = _instead(file, account, fields)
    return ConfigError(f"{name} contains no records{account.told}{held}: {remedy}")


def _instead(file: RecordFile, account: Account, fields: Collection[str]) -> tuple[str, str]:
    """What the file holds in their place, and what to do about it."""
    for known, tool in _OTHERS:
        if known <= set(fields):
            told = f", but rows with {' and '.join(sorted(known))}, as in exports of {tool}"
            return told, f"{_WRITE}; docs/migration.md says which field is which"
    reasons = " ".join(account.skips)
    if all(any(f"{name} {kind}" in reasons for kind in _BY_COLUMNS) for name in _COLUMNS):
        rows = "write it by rows, such as with to_json(path, orient='records', lines=True)"
        return ", and is a table by columns", rows
    if NOT_JSON in reasons and file.path.suffix.lower() == ".json" and file.unit == "line":
        return ", and is not JSON as a whole, as if it were cut off", _WRITE
    return "", _WRITE


def _first_fields(file: RecordFile) -> frozenset[str]:
    """The names of the fields of the first row that can be read."""
    for row in file.readable_rows():
        value = row.value
        if isinstance(value, Mapping):
            return frozenset(map(str, cast("Mapping[object, object]", value)))
    return frozenset()


def _holds_traces(path: Path) -> bool:
    """Whether a file has spans as OTLP JSON in its first line; a pipe can be read no more."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return b'"resourceSpans"' in file.readline(1 << 16)
