"""From a row of a file to a record, or to the reason why it is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Final, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError

from claimspan.files.chunks import chunks_of, items_of, json_entries, seems_context, value_in
from claimspan.files.names import Columns, field_of
from claimspan.files.raw_rows import RawRow, SkippedRow
from claimspan.files.recorded import Recorded
from claimspan.files.scalars import TextOrScalar, is_absent
from claimspan.records import Chunk, RagRecord

__all__ = ["OPTIONAL", "InputRow", "record_row"]

OPTIONAL: Final = ("chunks", "ground_truth", "id", "metadata")
"""Fields that a record may lack."""

_WRONG: Final[Mapping[str, str]] = {
    "chunks": "is not a list of texts or of objects with a text",
    "id": "is neither a text nor a whole number",
    "metadata": "is not an object",
    "answer2response": "is not a list of labels",
    "response2answer": "is not a list of labels",
    "retrieved2response": "is not a table of labels",
    "retrieved2answer": "is not a table of labels",
}
"""Field to what is wrong where it is there."""

_TEXTS: Final = frozenset({"query", "response", "ground_truth"})
"""Fields that hold one text."""

_LISTS_OF_TRUTHS: Final = frozenset({"ground_truths"})
"""Columns of which a cell may be a list as a text; in others it is the text that is meant."""


@dataclass(frozen=True, slots=True)
class InputRow:
    """A record of a file."""

    index: int
    """Its place among all rows of the file, from 0; rows that cannot be used have one too."""

    place: int
    """Number of its first line, or of the record in a JSON list; from 1."""

    n_lines: int
    """Lines that it takes; 0 in a JSON list."""

    record: RagRecord
    """The record."""

    recorded: Recorded
    """What the file holds of its evaluation."""

    missing: tuple[str, ...]
    """Which of ``OPTIONAL`` it lacks."""

    unread: Mapping[str, bool]
    """Columns that were not read, to whether they seem to be the context that it lacks."""


def _one_text(value: object) -> object:
    """The text of a list of one, which RAGAS and others have for a ground truth."""
    items = items_of(value)
    return items[0] if items is not None and len(items) == 1 else value


class _Record(BaseModel):
    """A record as a row has it, by our names; what is null or NaN is absent."""

    model_config = ConfigDict(extra="forbid")

    query: str
    response: TextOrScalar
    chunks: Annotated[tuple[Chunk, ...], BeforeValidator(chunks_of)] = ()
    ground_truth: Annotated[TextOrScalar | None, BeforeValidator(_one_text)] = None
    id: str | int | None = None
    metadata: Annotated[Mapping[str, JsonValue], BeforeValidator(json_entries)] = Field(
        default_factory=dict[str, JsonValue]
    )

    def missing(self) -> tuple[str, ...]:
        """The optional fields that are absent, or hold nothing."""
        fields = dict(self)
        return tuple(name for name in OPTIONAL if fields[name] in (None, "", (), {}))


def record_row(row: RawRow, index: int, columns: Columns) -> InputRow | SkippedRow:
    """Return the record of a row, or the reason why it is none.

    Args:
        row: The row.
        index: Its place among all rows of the file.
        columns: Which column is which field.
    """
    value = row.value
    if not isinstance(value, Mapping):
        return row.skipped("not an object")
    given = {str(name): each for name, each in cast("Mapping[object, object]", value).items()}
    read = columns.read(given)
    try:
        valid = _Record.model_validate(dict(_fields(given, read)))
    except ValidationError as error:
        return row.skipped(_reason(error))
    try:
        recorded = Recorded.model_validate(dict(_known(given)))
    except ValidationError as error:
        return row.skipped(_reason(error, "claims and labels do not fit together"))
    # Chunks are known by their place in a row of labels, so one chunk more or less would shift the
    # labels to other chunks.
    if recorded.widths() - {len(valid.chunks)}:
        return row.skipped("not as many labels as chunks")
    unread = {
        name: not valid.chunks and field_of(name) in (None, "chunks") and seems_context(value)
        for name, value in given.items()
        if name not in read.values() and name not in Recorded.model_fields and not _is_empty(value)
    }
    missing = valid.missing()
    return InputRow(index, row.place, row.n_lines, _record(valid), recorded, missing, unread)


def _fields(row: Mapping[str, object], read: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    """The fields of a record with their values; a cell of a table may hold an object as a text."""
    for field, column in read.items():
        value = row[column]
        if isinstance(value, str) and (field == "metadata" or column in _LISTS_OF_TRUTHS):
            value = value_in(value) or value
        yield field, value


def _known(row: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """The fields of a row that hold something of its evaluation."""
    for name in Recorded.model_fields:
        value = row.get(name)
        if not is_absent(value):
            yield name, value_in(value) if isinstance(value, str) else value


def _is_empty(value: object) -> bool:
    return is_absent(value) or (isinstance(value, str | list | dict) and not value)


def _reason(error: ValidationError, whole: str = "not an object") -> str:
    """What is wrong with a row; without its values, which may be private."""
    problems: dict[str, None] = {}
    for each in error.errors():
        field = str(each["loc"][0]) if each["loc"] else ""
        # Within a field something else may be missing, such as the text of a chunk.
        is_missing = each["type"] == "missing" and len(each["loc"]) == 1
        problem = "is missing" if is_missing else _wrong(field, each["input"])
        # A dict rather than a set: the same problem counts once, and reasons keep one order, by
        # which they are grouped in the account.
        problems[f"{field} {problem}" if field else whole] = None
    return ", ".join(problems)


def _wrong(field: str, value: object) -> str:
    """What is wrong with a field that is there; of its value only the kind."""
    if field not in _TEXTS:
        return _WRONG.get(field, "cannot be used")
    # Files with several right answers have a list here, which no single text stands for.
    match value:
        case list():
            return "is a list, not a text"
        case dict():
            return "is an object, not a text"
        case _:
            return "is not a text"


def _record(valid: _Record) -> RagRecord:
    return RagRecord(
        # Files have numbers for ids as often as texts, and the id of a file of results is a text.
        id=None if valid.id is None else str(valid.id),
        query=valid.query,
        response=valid.response,
        ground_truth=valid.ground_truth,
        chunks=valid.chunks,
        metadata=valid.metadata,
    )
