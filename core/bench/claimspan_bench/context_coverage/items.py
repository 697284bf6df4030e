"""The files of the benchmark: its data set, and the documents that one is made from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Self, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    model_validator,
)

from claimspan.errors import FileError
from claimspan.files.jsonl import parse_json_lines, read_text
from claimspan.records import Chunk
from claimspan.text.encodable import EncodableText
from claimspan.verdicts import Claim
from claimspan_bench.shown import validated

__all__ = ["CoverageItem", "Document", "read_documents", "read_items"]


# --- the data set: a question, a text, and chunks that hold it or do not ---


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

    question: EncodableText
    """What the text answers; items of one question are resampled together."""

    text: EncodableText = Field(min_length=1)
    """An essay, or an answer known to be right; its facts are what the chunks should hold."""

    golden: tuple[_Chunk, ...] = Field(min_length=1)
    """Chunks that hold facts of the text; each is a text, or an object like ``Chunk``."""

    noisy: tuple[_Chunk, ...] = ()

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
    wanted = "an item has question and text (texts), golden and noisy (lists of chunks)"
    text = read_text(path, wanted="JSON-lines file of benchmark items")
    items: dict[str, CoverageItem] = {}
    for number, row in parse_json_lines(text, path, wanted="one JSON object"):
        place = f"{str(path)!r} line {number}"
        # The line number, so that a file without ids can still be resumed.
        id_ = row.get("id", number)
        given = {**row, "id": str(id_) if isinstance(id_, int) else id_}
        item = validated(CoverageItem, given, place, wanted, reasons=True)
        if item.id in items:
            raise FileError(f"{place} has the id of another line: give another")
        items[item.id] = item
    if not items:
        raise FileError(f"{str(path)!r} contains no items: write one JSON object a line")
    return list(items.values())


# --- documents ---
_PROSE: Final = (".txt", ".md", ".markdown")
_LINES: Final = (".jsonl", ".ndjson")

# The first line, where it is a heading of Markdown: "# The harbour".
_HEADING: Final = re.compile(r"\s*#{1,6}[ \t]+(?P<title>[^\n]*[^\s#])[ \t#\r]*(?:\n|$)")


class Document(BaseModel):
    """One essay or document."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)

    id: EncodableText = Field(min_length=1)
    text: EncodableText = Field(min_length=1)

    title: EncodableText | None = None
    """Its title, which serves as the question where there is none."""

    question: EncodableText | None = None


def read_documents(paths: Sequence[str | Path]) -> list[Document]:
    """Read documents.

    Args:
        paths: Text and Markdown files, one document each, whose title is the heading in the first
            line or else the name of the file; JSON-lines files with ``text`` and, where they are
            known, ``id``, ``title`` and ``question``; or directories of such files.

    Raises:
        FileError: A file cannot be read or holds something else, two documents have one id, or
            there is no document.
    """
    documents: dict[str, Document] = {}
    for path in map(Path, paths):
        files = {path.name: path}
        if path.is_dir():
            found = sorted(each for each in path.rglob("*") if each.is_file())
            files = {
                each.relative_to(path).as_posix(): each
                for each in found
                if each.suffix.lower() in (*_PROSE, *_LINES)
            }
        for document in (each for name, file in files.items() for each in _read(file, name)):
            # The id is what tells golden chunks from those of other documents.
            if document.id in documents:
                raise FileError(
                    f"{str(path)!r} has a document with the id of another one: give each an id, or "
                    "a file name, of its own"
                )
            documents[document.id] = document
    if not documents:
        kinds = ", ".join((*_PROSE, *_LINES))
        raise FileError(f"there are no documents in what was given: give files with text ({kinds})")
    return list(documents.values())


def _read(path: Path, name: str) -> Iterator[Document]:
    """The documents of one file; one without text is none."""
    text = read_text(path, wanted="text file, Markdown file or JSON-lines file of documents")
    if path.suffix.lower() in _LINES:
        for number, row in parse_json_lines(text, path, wanted="one document"):
            given = {"id": f"{name}:{number}", **row}
            wanted = (
                "write an object with text and, where they are known, id, title and question "
                "(texts)"
            )
            yield validated(Document, given, f"{str(path)!r} line {number}", wanted)
        return
    heading = _HEADING.match(text)
    body = text[heading.end() :] if heading else text
    title = heading["title"] if heading else re.sub(r"[-_]+", " ", path.stem)
    if body.strip():
        yield Document(id=name, text=body, title=title.strip())
