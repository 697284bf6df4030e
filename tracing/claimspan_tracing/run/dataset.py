"""The questions that a pipeline is run over, with the answers that are known to be right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pydantic import JsonValue, TypeAdapter, ValidationError

from claimspan.errors import FileError
from claimspan.files.ground_truth import ID_KEYS, QUERY_KEYS, TEXT_KEYS, first_of, read_rows

__all__ = ["DatasetItem", "read_dataset"]

_METADATA: Final = TypeAdapter(dict[str, JsonValue])


@dataclass(frozen=True, slots=True)
class DatasetItem:
    """One question of a dataset."""

    query: str
    """What the pipeline is asked."""

    ground_truth: str | None = None
    """The response known to be right; None where there is none."""

    id: str | None = None
    """The dataset's own id; None where it gives none."""

    metadata: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """What the dataset keeps with the question, for slices."""


def read_dataset(path: str | Path) -> list[DatasetItem]:
    """Read the questions of a dataset.

    Args:
        path: JSON lines, or CSV where the name ends so, with ``query`` and, where they are known,
            ``ground_truth`` (or ``answer``), ``id`` and ``metadata`` (an object), by any of the
            names of ``claimspan.files.names``.

    Raises:
        FileError: The file cannot be read, holds no question, or an id twice; names the line.
    """
    path = Path(path)
    items = [_item(row, f"{str(path)!r} line {number}") for number, row in read_rows(path)]
    if not items:
        raise FileError(f"{str(path)!r} holds no questions: write one JSON object a line")
    _refuse_doubles(items, path)
    return items


def _item(row: Mapping[str, object], place: str) -> DatasetItem:
    query, truth, id_ = (first_of(row, keys, place) for keys in (QUERY_KEYS, TEXT_KEYS, ID_KEYS))
    if query is None or not query.strip():
        raise FileError(f"{place} has no question: give one of {', '.join(QUERY_KEYS)}")
    try:
        metadata = _METADATA.validate_python(row.get("metadata") or {})
    except ValidationError:
        raise FileError(f"{place}: metadata is no object: write one, or leave it out") from None
    return DatasetItem(query, truth, id_, metadata)


def _refuse_doubles(items: Sequence[DatasetItem], path: Path) -> None:
    # Two questions of one id could not be told apart in a file of results.
    counts = Counter(item.id for item in items if item.id is not None)
    doubles = [id_ for id_, count in counts.items() if count > 1]
    if doubles:
        raise FileError(
            f"{str(path)!r} has the id {doubles[0]!r} more than once: give each question its own"
        )
