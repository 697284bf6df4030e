"""What a caller gives to an evaluation, checked before a judge is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, cast

from claimspan.errors import ConfigError
from claimspan.files.names import Columns, accepted_names
from claimspan.files.raw_rows import RawRow
from claimspan.files.record_files import Account
from claimspan.files.record_rows import InputRow, record_row
from claimspan.metrics.compute import Undefined, check_undefined
from claimspan.records import RagRecord

__all__ = ["Given", "GivenColumns", "GivenRecords", "check_options", "records_of"]


class Table(Protocol):
    """A DataFrame of pandas, a Dataset of Hugging Face, or a Table of pyarrow."""

    @property
    def shape(self) -> tuple[int, int]:
        """Its rows and its columns."""
        ...


Given = RagRecord | Mapping[str, object]
"""A record, or a mapping with the fields of one by any of the names in use."""

GivenRecords = Sequence[RagRecord] | Iterable[Given] | Table
"""Records, or a table of them."""

GivenColumns = Mapping[str, str | None]
"""Field of a record to the column that holds it; an empty name for none."""


class _Frame(Protocol):
    def to_dict(self, orient: str) -> list[object]: ...


class _ArrowTable(Protocol):
    def to_pylist(self) -> list[object]: ...


def check_options(undefined: Undefined, max_claims: int) -> None:
    """Refuse options of ``aevaluate`` that cannot work.

    Raises:
        ConfigError: One of them cannot.
    """
    check_undefined(undefined)
    if max_claims < 1:
        raise ConfigError(f"max_claims is {max_claims!r}: give 1 or more")


def records_of(given: GivenRecords, columns: GivenColumns | None = None) -> list[RagRecord]:
    """Return records of whatever a caller has them in.

    Args:
        given: The records, mappings, or a table.
        columns: As in ``aevaluate``.

    Raises:
        ConfigError: One of them is no record, or the context of all of them would be lost; the
            message has no text of them.
    """
    values = _rows(given)
    if columns is None and all(isinstance(each, RagRecord) for each in values):
        return cast("list[RagRecord]", values)
    by, account = Columns(columns), Account()
    records: list[RagRecord] = []
    for place, value in enumerate(values, start=1):
        if isinstance(value, RagRecord):
            records.append(value)
            continue
        if not isinstance(value, Mapping):
            raise ConfigError(f"a record is of type {type(value).__name__}: {_GIVE}")
        row = record_row(RawRow(place, 0, cast("object", value), ""), place - 1, by)
        account.add(row)
        if isinstance(row, InputRow):
            records.append(row.record)
    if account.skips:
        reason, skips = next(iter(account.skips.items()))
        raise ConfigError(
            f"record {skips.places[0]} of {len(values)}: {reason} ({account.skipped} of "
            f"{account.rows} are no records): give query and response by these or other names that "
            f"are read: {accepted_names()}; columns={{'question': 'COLUMN'}} reads any"
        )
    account.check_columns(by)
    return records


_GIVE = "give RagRecord(query=..., chunks=..., response=...), or a dict with these fields"


def _rows(given: object) -> list[object]:
    kind = type(given).__name__
    if isinstance(given, RagRecord | Mapping | str | bytes | Path):
        raise ConfigError(
            f"records are of type {kind}: give a list of records or dicts, a "
            "table of pandas, pyarrow or Hugging Face, or to evaluate() one record; "
            "claimspan.files.read_records reads a file"
        )
    if hasattr(given, "to_pylist"):
        return cast("_ArrowTable", given).to_pylist()
    # By rows: iterating over a frame gives the names of its columns.
    if hasattr(given, "to_dict") and hasattr(given, "iterrows"):
        return cast("_Frame", given).to_dict("records")
    if not isinstance(given, Iterable):
        raise ConfigError(f"records are of type {kind}: give a list of them")
    return list(cast("Iterable[object]", given))
