"""Records out of a file: JSON lines, a JSON list, or RAGChecker's results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from claimspan.errors import GroundTruthError
from claimspan.records import Chunk, RagRecord

__all__ = ["read_records"]


class _Passage(BaseModel):
    model_config = ConfigDict(extra="ignore")

    text: str
    id: str | int | None = Field(default=None, validation_alias=AliasChoices("id", "doc_id"))


class _Row(BaseModel):
    """A record in our own words or in RAGChecker's; other fields do not matter."""

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


_ROWS: Final = TypeAdapter(list[_Row])


def read_records(path: str | Path) -> list[RagRecord]:
    """Read records.

    Args:
        path: JSON lines with one record each, a JSON list of records, or RAGChecker's
            ``{"results": [...]}``. A record has ``query``, ``response``, ``chunks`` and, where it
            is known, ``ground_truth``; RAGChecker's names are understood.

    Raises:
        GroundTruthError: The file cannot be read as one; names the record.
    """
    path = Path(path)
    try:
        rows = _ROWS.validate_python(_rows(path.read_text(encoding="utf-8-sig")))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise GroundTruthError(f"cannot read {str(path)!r}: {reason}") from error
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors(include_input=False)[0]["loc"])
        raise GroundTruthError(
            f"{str(path)!r} record {where}: give query, response, chunks and ground_truth"
        ) from None
    except (ValueError, RecursionError):
        raise GroundTruthError(f"{str(path)!r} is neither JSON nor JSON lines in UTF-8") from None
    return [_record(row) for row in rows]


def _rows(text: str) -> object:
    try:
        whole: object = json.loads(text)
    except ValueError:
        # Not splitlines(), which also splits at what may stand inside of a JSON string.
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    if isinstance(whole, dict):
        return whole.get("results", [whole])  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] - validated next
    return whole


def _record(row: _Row) -> RagRecord:
    return RagRecord(
        id=None if row.id is None else str(row.id),
        query=row.query,
        response=row.response,
        ground_truth=row.ground_truth,
        chunks=tuple(_chunks(row.chunks)),
    )


def _chunks(passages: Sequence[_Passage | str]) -> list[Chunk]:
    read = [_Passage(text=each) if isinstance(each, str) else each for each in passages]
    return [
        Chunk(id=Chunk.content_id(each.text) if each.id is None else str(each.id), text=each.text)
        for each in read
    ]
