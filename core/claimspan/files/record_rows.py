"""From a row of a file to a record and its recorded evaluation, or to the reason for skipping it.

An evaluation stands in a row in the form of RAGChecker's results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)

from claimspan.files.chunks import chunks_of, items_of, json_entries, seems_context, value_in
from claimspan.files.names import Columns, TextOrScalar, field_of, is_absent
from claimspan.files.raw_rows import RawRow, SkippedRow
from claimspan.records import Chunk, RagRecord
from claimspan.text.shapes import is_mapping
from claimspan.verdicts import Claim, Label

__all__ = ["InputRow", "Recorded", "RecordedClaim", "record_row"]

_OPTIONAL: Final = ("chunks", "ground_truth", "id", "metadata")

_WRONG: Final[Mapping[str, str]] = {
    "chunks": "is not a list of texts or of objects with a text",
    "id": "is neither a text nor a whole number",
    "metadata": "is not an object",
    **dict.fromkeys(("answer2response", "response2answer"), "is not a list of labels"),
    **dict.fromkeys(("retrieved2response", "retrieved2answer"), "is not a table of labels"),
}
"""Field to the fault of its presence."""

_TEXTS: Final = frozenset({"query", "response", "ground_truth"})

_LISTS_OF_TRUTHS: Final = frozenset({"ground_truths"})
"""Columns of which a cell may be a list as a text; in others it is the text that is meant."""

RecordedClaim = str | tuple[str, ...]
"""A claim as a text, or as subject, predicate and object."""


def _label(value: object) -> object:
    return Label.parse(value) if isinstance(value, str) else value


_Label = Annotated[Label | None, BeforeValidator(_label)]
_Column = tuple[_Label, ...] | None
_Table = tuple[tuple[_Label, ...], ...] | None
_Claims = tuple[RecordedClaim, ...] | None

_SIDES: Final = (
    ("response_claims", "answer2response", "retrieved2response"),
    ("gt_answer_claims", "response2answer", "retrieved2answer"),
)
"""Fields with one entry for each claim of the response, and of the ground truth."""


class Recorded(BaseModel):
    """Claims, labels and metrics of one record; None if they are still to be found out."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    response_claims: _Claims = None
    gt_answer_claims: _Claims = None
    answer2response: _Column = None
    """Label of each response claim by the ground truth."""

    response2answer: _Column = None
    """Label of each ground-truth claim by the response."""

    retrieved2response: _Table = None
    """Label of each response claim by each chunk."""

    retrieved2answer: _Table = None
    """Label of each ground-truth claim by each chunk."""

    metrics: Mapping[str, float] = Field(default_factory=dict[str, float])
    """Metric to value, between 0 and 1."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        # A label belongs to the claim at its place. With one missing it is not known which, and
        # all behind it would be wrong.
        if any(len(self._sizes(side)) > 1 for side in _SIDES):
            raise ValueError("give as many labels as claims")
        claims = (*(self.response_claims or ()), *(self.gt_answer_claims or ()))
        if not all(map(_claim_text, claims)):
            raise ValueError("give claims with a text")
        return self

    def _sizes(self, side: Sequence[str]) -> set[int]:
        return {len(each) for name in side if (each := getattr(self, name)) is not None}

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known yet."""
        # A file may name every field and have null in each, which is as empty.
        return not self.model_fields_set or self == Recorded()

    def widths(self) -> set[int]:
        """Numbers of chunks that the rows of both tables have."""
        tables = (self.retrieved2response, self.retrieved2answer)
        return {len(row) for table in tables for row in table or ()}

    def over(self, other: Recorded) -> Recorded:
        """Return this with missing parts taken from another one, if that has the same claims."""
        # An empty list is kept: it says that a text has no claims, and not that they are unknown.
        mine = {name: value for name, value in self if value is not None and name != "metrics"}
        theirs = dict(other)
        for side in _SIDES:
            # A file may have claims of a blank text, of which a judge finds none. Labels of other
            # claims would be given to these.
            if (known := self._sizes(side)) and other._sizes(side) - known:
                theirs.update(dict.fromkeys(side))
        both = {**theirs, **mine, "metrics": {**other.metrics, **self.metrics}}
        return Recorded.model_validate(both)

    def response(self) -> list[Claim] | None:
        """The claims of the response."""
        return _claims(self.response_claims)

    def ground_truth(self) -> list[Claim] | None:
        """The claims of the ground truth."""
        return _claims(self.gt_answer_claims)


def _claim_text(claim: RecordedClaim) -> str:
    """The text of a claim: subject, predicate and object with spaces between them."""
    return claim.strip() if isinstance(claim, str) else " ".join(" ".join(claim).split())


def _claims(claims: Sequence[RecordedClaim] | None) -> list[Claim] | None:
    return None if claims is None else [Claim(text=_claim_text(each)) for each in claims]


@dataclass(frozen=True, slots=True)
class InputRow:
    """A record of a file."""

    index: int
    """Its place among all rows of the file, from 0; rows that cannot be used have one too."""

    place: int
    n_lines: int
    record: RagRecord
    recorded: Recorded
    missing: tuple[str, ...]
    """Which of ``_OPTIONAL`` it lacks."""

    unread: Mapping[str, bool]
    """Columns that were not read, to whether they seem to be the context that it lacks."""


def _one_text(value: object) -> object:
    """The text of a list of one, which RAGAS and others have for a ground truth."""
    items = items_of(value)
    return items[0] if items is not None and len(items) == 1 else value


class _Record(BaseModel):
    """A record as a row has it, by our names; null and NaN are absent."""

    model_config = ConfigDict(extra="forbid")

    query: str
    response: TextOrScalar
    chunks: Annotated[tuple[Chunk, ...], BeforeValidator(chunks_of)] = ()
    ground_truth: Annotated[TextOrScalar | None, BeforeValidator(_one_text)] = None
    id: str | int | None = None
    metadata: Annotated[Mapping[str, JsonValue], BeforeValidator(json_entries)] = Field(
        default_factory=dict[str, JsonValue]
    )
    context_cut: str | None = None


def record_row(row: RawRow, index: int, columns: Columns) -> InputRow | SkippedRow:
    """A row as the record that it holds, or as one that cannot be used and why."""
    if not is_mapping(row.value):
        return row.skipped("not an object")
    given = {str(name): each for name, each in row.value.items()}
    read = columns.read(given)
    try:
        fields = dict(_Record.model_validate(dict(_fields(given, read))))
    except ValidationError as error:
        return row.skipped(_reason(error))
    try:
        recorded = Recorded.model_validate(dict(_known(given)))
    except ValidationError as error:
        return row.skipped(_reason(error, "claims and labels do not fit together"))
    # Files have numbers for ids as often as texts, and the id of a file of results is a text.
    fields["id"] = None if fields["id"] is None else str(fields["id"])
    record = RagRecord.model_validate(fields)
    # Chunks are known by their place in a row of labels, so one chunk more or less would shift the
    # labels to other chunks.
    if recorded.widths() - {len(record.chunks)}:
        return row.skipped("not as many labels as chunks")
    unread = {
        name: not record.chunks and field_of(name) in (None, "chunks") and seems_context(each)
        for name, each in given.items()
        if name not in read.values() and name not in Recorded.model_fields
        if not is_absent(each) and not _is_empty(each)
    }
    missing = tuple(name for name in _OPTIONAL if fields[name] in (None, "", (), {}))
    return InputRow(index, row.place, row.n_lines, record, recorded, missing, unread)


def _is_empty(value: object) -> bool:
    return isinstance(value, str | list | dict) and not value


def _fields(row: Mapping[str, object], read: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    """The fields of a record with their values; a cell of a table may hold an object as a text."""
    for field, column in read.items():
        value = row[column]
        if isinstance(value, str) and (field == "metadata" or column in _LISTS_OF_TRUTHS):
            value = value_in(value) or value
        yield field, value


def _known(row: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for name in Recorded.model_fields:
        value = row.get(name)
        if not is_absent(value):
            yield name, value_in(value) if isinstance(value, str) else value


def _reason(error: ValidationError, whole: str = "not an object") -> str:
    """The fault of a row; without its values, which may be private."""
    problems: dict[str, None] = {}
    for each in error.errors():
        field = str(each["loc"][0]) if each["loc"] else ""
        problem = _WRONG.get(field, "cannot be used")
        # Within a field something else may be missing, such as the text of a chunk.
        if each["type"] == "missing" and len(each["loc"]) == 1:
            problem = "is missing"
        elif field in _TEXTS:
            # Files with several right answers have a list here, which no single text stands for.
            kinds = ((list, "is a list, not a text"), (dict, "is an object, not a text"))
            wrong = (told for kind, told in kinds if isinstance(each["input"], kind))
            problem = next(wrong, "is not a text")
        # A dict rather than a set: the same problem counts once, and reasons keep one order, by
        # which they are grouped in the account.
        problems[f"{field} {problem}" if field else whole] = None
    return ", ".join(problems)
