"""The user's own essays or documents, from which a data set is made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from claimspan.errors import FileError
from claimspan.files.jsonl import parse_json_lines, read_text
from claimspan.text.encodable import EncodableText

__all__ = ["Document", "read_documents"]

_WANTED: Final = "text file, Markdown file or JSON-lines file of documents"
_PROSE: Final = (".txt", ".md", ".markdown")
_LINES: Final = (".jsonl", ".ndjson")

# The first line, where it is a heading of Markdown: "# The harbour".
_HEADING: Final = re.compile(r"\s*#{1,6}[ \t]+(?P<title>[^\n]*[^\s#])[ \t#\r]*(?:\n|$)")


class Document(BaseModel):
    """One essay or document."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)

    id: EncodableText = Field(min_length=1)
    """Identifies the document among all that are given."""

    text: EncodableText = Field(min_length=1)
    """The whole text."""

    title: EncodableText | None = None
    """Its title, which serves as the question where there is none."""

    question: EncodableText | None = None
    """What the document answers, where the user has written that."""


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
    for path in paths:
        for document in _documents_of(Path(path)):
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


def _documents_of(path: Path) -> Iterator[Document]:
    if not path.is_dir():
        yield from _read(path, path.name)
        return
    for file in sorted(path.rglob("*")):
        if file.is_file() and file.suffix.lower() in (*_PROSE, *_LINES):
            yield from _read(file, file.relative_to(path).as_posix())


def _read(path: Path, name: str) -> Iterator[Document]:
    """The documents of one file; one without text is none."""
    text = read_text(path, wanted=_WANTED)
    if path.suffix.lower() in _LINES:
        for number, row in parse_json_lines(text, path, wanted="one document"):
            yield _document(row, f"{name}:{number}", f"{str(path)!r} line {number}")
        return
    heading = _HEADING.match(text)
    body = text[heading.end() :] if heading else text
    title = heading["title"] if heading else re.sub(r"[-_]+", " ", path.stem)
    if body.strip():
        yield Document(id=name, text=body, title=title.strip())


def _document(row: object, default_id: str, place: str) -> Document:
    try:
        given = {"id": default_id, **row} if isinstance(row, dict) else {}  # pyright: ignore[reportUnknownVariableType] - validated next
        return Document.model_validate(given)
    except ValidationError as error:
        field = ".".join(str(part) for part in error.errors(include_input=False)[0]["loc"])
        # Without the cause: a validation error quotes the input, which may be private.
        raise FileError(
            f"{place}: {field} cannot be used; write an object with text and, where they are "
            "known, id, title and question (texts)"
        ) from None
