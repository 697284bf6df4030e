"""Reads records from a file: JSON lines, a JSON list, or RAGChecker's results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, JsonValue, ValidationError

from claimspan.errors import FileError
from claimspan.files.jsonl import parse_json_lines, read_text
from claimspan.records import Chunk, RagRecord

__all__ = ["read_records"]

_WANTED: Final = "JSON or JSON-lines file of records"


class _Passage(BaseModel):
    """A chunk as a file writes it; without an id it gets one made from its text."""

    model_config = ConfigDict(extra="ignore")

    text: str
    id: str | int | None = Field(default=None, validation_alias=AliasChoices("id", "doc_id"))
    score: float | None = None
    metadata: Mapping[str, JsonValue] = Field(default_factory=dict[str, JsonValue])


class _Row(BaseModel):
    """A record as a file writes it, with our names or RAGChecker's; other fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    query: str = Field(validation_alias=AliasChoices("query", "question"))
    response: str = Field(validation_alias=AliasChoices("response", "answer"))
    chunks: list[_Passage | str] = Field(
        default=[], validation_alias=AliasChoices("chunks", "retrieved_context", "contexts")
    )
    ground_truth: str | None = Field(
        default=None, validation_alias=AliasChoices("ground_truth", "gt_answer", "reference")
    )
    id: str | int | None = Field(default=None, validation_alias=AliasChoices("id", "query_id"))
    metadata: Mapping[str, JsonValue] = Field(default_factory=dict[str, JsonValue])


def read_records(path: str | Path) -> list[RagRecord]:
    """Read records.

    Args:
        path: JSON lines with one record each, a JSON list of records, or RAGChecker's
            ``{"results": [...]}``. A record has ``query``, ``response``, ``chunks`` and, where it
            is known, ``ground_truth``; RAGChecker's names are understood.

    Raises:
        FileError: The file cannot be read, or holds something else; names the line or the record.
    """
    path = Path(path)
    text = read_text(path, wanted=_WANTED)
    return [_record(row, place) for place, row in _rows(text, path)]


def _rows(text: str, path: Path) -> Iterator[tuple[str, object]]:
    """Each row of the file, and its place for an error message."""
    # A file of several lines is no JSON as a whole, and fails at its second line.
    try:
        whole: object = json.loads(text)
    except (ValueError, RecursionError):
        lines = parse_json_lines(text, path, wanted="one JSON record")
        yield from ((f"{str(path)!r} line {number}", row) for number, row in lines)
        return
    if isinstance(whole, dict):
        whole = whole.get("results", [whole])  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] - checked next
    if not isinstance(whole, list):
        raise FileError(
            f"{str(path)!r} is not a list of records: write one JSON record a line, or a list"
        )
    yield from ((f"{str(path)!r} record {number}", row) for number, row in enumerate(whole, 1))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - validated by the caller


def _record(row: object, place: str) -> RagRecord:
    try:
        valid = _Row.model_validate(row)
    except ValidationError as error:
        field = ".".join(str(part) for part in error.errors(include_input=False)[0]["loc"])
        # Without the cause: a validation error quotes the input, which may be private.
        raise FileError(
            f"{place}: {field or 'the record'} cannot be used; write an object with query and "
            "response (texts), chunks (a list) and, where it is known, ground_truth (a text)"
        ) from None
    return RagRecord(
        id=None if valid.id is None else str(valid.id),
        query=valid.query,
        response=valid.response,
        ground_truth=valid.ground_truth,
        chunks=tuple(_chunks(valid.chunks)),
        metadata=valid.metadata,
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
