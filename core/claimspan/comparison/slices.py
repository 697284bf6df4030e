"""Parts of the records that have one value of a metadata key."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pydantic import JsonValue

from claimspan.comparison.systems import System
from claimspan.errors import ConfigError
from claimspan.results.scores import ScoredRow

__all__ = ["MAX_SLICES", "NO_VALUE", "slices_of"]

MAX_SLICES: Final = 50
"""Values that a key may have: more would be an id, and each slice a handful of records."""

NO_VALUE: Final = "(none)"
"""The slice of the records that lack the key."""


def slices_of(systems: Sequence[System], key: str) -> dict[str, list[System]]:
    """Return for each value of a metadata key the systems with the records that have it.

    A system without such records is left out of the slice.

    Raises:
        ConfigError: No record has the key, or it has more than ``MAX_SLICES`` values.
    """
    values = sorted({_value(row, key) for system in systems for row in system.rows})
    if values == [NO_VALUE]:
        raise ConfigError(f"no record has {key!r} in its metadata: give a key that records have")
    if len(values) > MAX_SLICES:
        raise ConfigError(f"{key!r} has {len(values)} values: give a key with at most {MAX_SLICES}")
    return {value: _with(systems, key, value) for value in values}


def _with(systems: Sequence[System], key: str, value: str) -> list[System]:
    parts = [
        replace(system, rows=tuple(row for row in system.rows if _value(row, key) == value))
        for system in systems
    ]
    return [part for part in parts if part.rows]


def _value(row: ScoredRow, key: str) -> str:
    return _text(row.metadata[key]) if key in row.metadata else NO_VALUE


def _text(value: JsonValue) -> str:
    # As it stands in the file: ``repr`` would write True and None.
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
