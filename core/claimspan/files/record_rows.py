"""From a row of a file to a record, or to the reason why it is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)

from claimspan.files.raw_rows import RawRow, SkippedRow
from claimspan.files.recorded import Recorded
from claimspan.files.scalars import TextOrScalar, is_absent
from claimspan.records import Chunk, RagRecord

__all__ = ["OPTIONAL", "OTHER_NAMES", "InputRow", "record_row"]

OPTIONAL: Final = ("chunks", "ground_truth", "id", "metadata")
"""Fields that a record may lack."""

OTHER_NAMES: Final[Mapping[str, str]] = {
    **{"question": "query", "answer": "response", "retrieved_context": "chunks"},
    **{"contexts": "chunks", "gt_answer": "ground_truth", "reference": "ground_truth"},
    **{"user_input": "query", "retrieved_contexts": "chunks"},
    **{"input": "query", "actual_output": "response", "retrieval_context": "chunks"},
    "expected_output": "ground_truth",
    "query_id": "id",
}
"""RAGChecker's, RAGAS's and DeepEval's names, and others that are in use, to ours."""

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


class _Row(BaseModel):
    """A row as JSON: null is as good as absent."""

    model_config = ConfigDict(extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, row: object) -> object:
        if not isinstance(row, Mapping):
            return row
        fields = cast("Mapping[object, object]", row)
        # RAGChecker writes null for everything that is still to be found out.
        return {name: value for name, value in fields.items() if not is_absent(value)}


class _Passage(_Row):
    """A chunk as a file writes it; without an id it gets one made from its text."""

    text: str
    id: str | int | None = Field(default=None, validation_alias=AliasChoices("id", "doc_id"))
    score: float | None = None
    metadata: Mapping[str, JsonValue] = Field(default_factory=dict[str, JsonValue])


class _Record(_Row):
    """A record as a file writes it, with our names or RAGChecker's; other fields are ignored."""

    query: str = Field(validation_alias=AliasChoices("query", "question", "user_input", "input"))
    response: TextOrScalar = Field(
        validation_alias=AliasChoices("response", "answer", "actual_output")
    )
    chunks: list[_Passage | str] | None = Field(
        default=None,
        validation_alias=AliasChoices(
            *("chunks", "retrieved_context", "contexts", "retrieved_contexts"),
            "retrieval_context",
        ),
    )
    ground_truth: TextOrScalar | None = Field(
        default=None,
        validation_alias=AliasChoices("ground_truth", "gt_answer", "reference", "expected_output"),
    )
    id: str | int | None = Field(default=None, validation_alias=AliasChoices("id", "query_id"))
    metadata: Mapping[str, JsonValue] | None = None

    def missing(self) -> tuple[str, ...]:
        """The optional fields that are absent, or hold nothing."""
        fields = dict(self)
        return tuple(name for name in OPTIONAL if fields[name] in (None, "", [], {}))


def record_row(row: RawRow, index: int) -> InputRow | SkippedRow:
    """Return the record of a row, or the reason why it is none.

    Args:
        row: The row.
        index: Its place among all rows of the file.
    """
    try:
        valid = _Record.model_validate(row.value)
    except ValidationError as error:
        return row.skipped(_reason(error))
    try:
        recorded = Recorded.model_validate(_known(row.value))
    except ValidationError as error:
        return row.skipped(_reason(error, "claims and labels do not fit together"))
    # Chunks are known by their place in a row of labels, so one chunk more or less would shift the
    # labels to other chunks.
    if recorded.widths() - {len(valid.chunks or ())}:
        return row.skipped("not as many labels as chunks")
    return InputRow(index, row.place, row.n_lines, _record(valid), recorded, valid.missing())


def _known(value: object) -> Mapping[str, object]:
    """The fields of a row that hold something of its evaluation."""
    if not isinstance(value, Mapping):
        return {}
    fields = cast("Mapping[str, object]", value)
    return {name: fields[name] for name in Recorded.model_fields if fields.get(name) is not None}


def _reason(error: ValidationError, whole: str = "not an object") -> str:
    """What is wrong with a row; without its values, which may be private."""
    problems: dict[str, None] = {}
    for each in error.errors():
        given = str(each["loc"][0]) if each["loc"] else ""
        field = OTHER_NAMES.get(given, given)
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
        chunks=tuple(_chunks(valid.chunks or ())),
        metadata=valid.metadata or {},
    )


def _chunks(passages: Sequence[_Passage | str]) -> Iterator[Chunk]:
    for each in passages:
        passage = _Passage(text=each) if isinstance(each, str) else each
        # RAGChecker writes "doc_id": null where its retriever knows none.
        given = passage.id is not None
        yield Chunk(
            id=str(passage.id) if given else Chunk.content_id(passage.text),
            text=passage.text,
            score=passage.score,
            metadata=passage.metadata,
        )
