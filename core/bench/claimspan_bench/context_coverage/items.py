"""The data set of the benchmark: a question, a text, and chunks that hold it or do not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final, Self, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    model_validator,
)

from claimspan.errors import FileError
from claimspan.files.jsonl import parse_json_lines, read_text
from claimspan.records import Chunk
from claimspan.text.encodable import EncodableText
from claimspan.verdicts import Claim

__all__ = ["CoverageItem", "read_items"]

_WANTED: Final = "JSON-lines file of benchmark items"


def _as_chunk(value: object) -> object:
    """A chunk as a person writes it: the text alone, or an object that may lack its id."""
    if isinstance(value, str):
        value = {"text": value}
    if not isinstance(value, dict):
        return value
    given = cast("dict[str, JsonValue]", value)
    text = given.get("text")
    if "id" in given or not isinstance(text, str):
        return given
    return {"id": Chunk.content_id(text), **given}


def _as_claim(value: object) -> object:
    return {"text": value} if isinstance(value, str) else value


_Chunk = Annotated[Chunk, BeforeValidator(_as_chunk)]
_Fact = Annotated[Claim, BeforeValidator(_as_claim)]


class CoverageItem(BaseModel):
    """One question with the text that answers it, and the chunks to combine."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: EncodableText
    """Identifies the item in its file."""

    question: EncodableText
    """What the text answers; items of one question are resampled together."""

    text: EncodableText = Field(min_length=1)
    """An essay, or an answer known to be right; its facts are what the chunks should hold."""

    golden: tuple[_Chunk, ...] = Field(min_length=1)
    """Chunks that hold facts of the text; each is a text, or an object like ``Chunk``."""

    noisy: tuple[_Chunk, ...] = ()
    """Chunks that hold none."""

    facts: tuple[_Fact, ...] | None = None
    """The facts of the text, where a person has written them; None has a judge extract them."""

    gold: tuple[tuple[str, ...], ...] | None = None
    """For each fact or piece of evidence, the ids of the chunks that hold it; None where nobody
    has labelled that. It need not have one entry for each of ``facts``."""

    retrieved: tuple[str, ...] | None = None
    """Ids of chunks, the best first, as a retriever ranks them; None goes by their scores."""

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """All chunks, the golden ones first: the order of every matrix and every index."""
        return self.golden + self.noisy

    @property
    def places(self) -> Mapping[str, int]:
        """Id of a chunk to its index in ``chunks``."""
        return {chunk.id: index for index, chunk in enumerate(self.chunks)}

    @model_validator(mode="after")
    def _ids_are_known(self) -> Self:
        known = self.places
        if len(known) < len(self.chunks):
            raise ValueError("two chunks have one id, or one text and no id: give each its own")
        if len(known) < 2:
            raise ValueError("one chunk makes no combination: give two or more")
        named = [*(self.retrieved or ()), *(each for ids in self.gold or () for each in ids)]
        if any(each not in known for each in named):
            raise ValueError("retrieved or gold names an id that no chunk has")
        if len(set(self.retrieved or ())) < len(self.retrieved or ()):
            raise ValueError("retrieved names a chunk twice")
        return self


def read_items(path: str | Path) -> list[CoverageItem]:
    """Read a data set: one JSON object a line.

    An item has ``question``, ``text``, ``golden`` and ``noisy``; it may have ``id``, ``facts``,
    ``gold`` and ``retrieved``. See ``CoverageItem``.

    Raises:
        FileError: The file cannot be read, a line is no such item, or two have one id; names the
            line.
    """
    path = Path(path)
    items: dict[str, CoverageItem] = {}
    for number, row in _rows(path):
        item = _item(row, number, path)
        if item.id in items:
            raise FileError(f"{str(path)!r} line {number} has the id of another line: give another")
        items[item.id] = item
    if not items:
        raise FileError(f"{str(path)!r} contains no items: write one JSON object a line")
    return list(items.values())


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    text = read_text(path, wanted=_WANTED)
    yield from parse_json_lines(text, path, wanted="one JSON object")


def _item(row: Mapping[str, object], number: int, path: Path) -> CoverageItem:
    # The line number, so that a file without ids can still be resumed.
    given = {"id": str(number), **row}
    if isinstance(given["id"], int):
        given["id"] = str(given["id"])
    try:
        # By way of JSON, in which a list is a tuple.
        return CoverageItem.model_validate_json(json.dumps(given))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        # Without the cause: a validation error quotes the input, which may be private.
        raise FileError(
            f"{str(path)!r} line {number}: {field or 'the item'} cannot be used ({first['msg']}); "
            "an item has question and text (texts), golden and noisy (lists of chunks)"
        ) from None
