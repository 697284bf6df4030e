"""Chunks as people have them: texts, mappings, documents of a framework, and lists in a cell.

No framework is imported: a document is known by the names of its keys or attributes.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Protocol, cast, runtime_checkable

from pydantic import JsonValue, TypeAdapter, ValidationError

from claimspan.files.names import CHUNK_NAMES, is_absent
from claimspan.records import Chunk
from claimspan.text.shapes import is_list, is_mapping

__all__ = ["chunks_of", "items_of", "json_entries", "plain_metadata", "seems_context", "value_in"]

_JSON: Final = TypeAdapter[JsonValue](JsonValue)

# A text as Python prints it, of which the end may be missing: so the pattern matches at every mark,
# and never looks at a character twice.
_TEXT: Final = re.compile(
    r"""'(?:[^'\\]+|\\[\\'nrtxuU]|(\\.?))*(?:'|(\Z))"""
    r"""|"(?:[^"\\]+|\\[\\"nrtxuU]|(\\.?))*(?:"|(\Z))""",
    re.DOTALL,
)
_BY_BLANKS: Final = re.compile(r"\[\s*\0(?:\s+\0)+\s*\]")
_SIDE_BY_SIDE: Final = re.compile(r"\0\s*\0")
_LIST_BEGIN: Final = re.compile(r"\[\s*[\"'{\]]")

_MAX_FRAME: Final = 1_000_000
"""Characters of a printed list beside its texts: Python's parser needs memory for each of them."""


@runtime_checkable
class _Array(Protocol):
    def tolist(self) -> object: ...


def chunks_of(value: object) -> tuple[Chunk, ...]:
    """Return chunks in the order of a list; one text, or one document, is a list of one.

    The members are chunks, texts, documents, mappings with a text, or pairs of one of these and its
    score. A text may itself be such a list, in JSON or as Python prints it.

    Raises:
        ValueError: It is something else; the message quotes nothing of it.
    """
    if isinstance(value, str) and not value.strip():
        return ()
    items = _list_in(value) if isinstance(value, str) else items_of(value)
    return tuple(map(_chunk, [value] if items is None else items))


def _list_in(text: str) -> Sequence[object] | None:
    """The list that a text is; None if it is none, such as a passage that begins with ``[1]``.

    Raises:
        ValueError: It begins as a list of texts or objects, and is none.
    """
    text = text.strip()
    if not text.startswith("["):
        return None
    value = value_in(text)
    if is_list(value):
        return value
    if _LIST_BEGIN.match(text):
        raise ValueError("a list that is cut off, or of another form")
    return None


def value_in(text: str) -> object:
    """What a text is in JSON, as Python prints it, or as numpy prints a list of texts.

    None if it is neither, or could be two different lists.
    """
    with suppress(ValueError, RecursionError):
        value: object = json.loads(text)
        return value
    text = text.strip()
    if not text.startswith(("[", "{")) or "\0" in text:
        return None
    texts: list[str] = []

    def taken(found: re.Match[str]) -> str:
        # A wrong escape or a missing end leaves its mark in the frame, which is then refused.
        texts.append(found[0])
        return "\0" if found.lastindex is None else "'"

    frame = _TEXT.sub(taken, text)
    if "'" in frame or len(frame) > _MAX_FRAME:
        return None
    try:
        # To Python, texts with a blank between them are one text: numpy alone writes two so.
        if _BY_BLANKS.fullmatch(frame):
            return [ast.literal_eval(each) for each in texts]
        return None if _SIDE_BY_SIDE.search(frame) else ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def items_of(value: object) -> Sequence[object] | None:
    """Return the members of a list, a tuple, or an array of numpy; None of something else."""
    value = value.tolist() if isinstance(value, _Array) else value
    return value if is_list(value) else None


def _chunk(value: object, score: object = None, depth: int = 3) -> Chunk:
    """A chunk, in at most a pair of a result and its score, the result, and the document in it."""
    if isinstance(value, Chunk):
        return value
    pair = items_of(value) or ()
    if len(pair) == 2 and isinstance(pair[1], int | float) and depth > 1:
        return _chunk(pair[0], pair[1], depth - 1)
    text = value if isinstance(value, str) else _part(value, "text")
    score = _part(value, "score") if score is None else score
    if text is None and depth > 1:
        # Beside its score, as LlamaIndex's nodes and results of vector stores have it.
        around = (_get(value, name) for name in ("document", "node"))
        held = [each for each in around if each is not None]
        if held:
            return _chunk(held[0], score, depth - 1)
    if not isinstance(text, str):
        raise ValueError("a chunk without a text")
    id_ = _part(value, "id")
    try:
        number = None if score is None else float(cast("float", score))
    except TypeError:
        raise ValueError("a score that is no number") from None
    return Chunk(
        id=Chunk.content_id(text) if id_ is None else str(id_),
        text=text,
        score=number,
        metadata=json_entries(_part(value, "metadata")),
    )


def _part(value: object, part: str) -> object:
    found = (_get(value, name) for name in CHUNK_NAMES[part])
    return next((each for each in found if not is_absent(each)), None)


def _get(value: object, name: str) -> object:
    if is_mapping(value):
        return value.get(name)
    held: object = None if isinstance(value, str) else getattr(value, name, None)
    return None if callable(held) else held


def json_entries(metadata: object) -> dict[str, JsonValue]:
    """The entries of a mapping that JSON can hold, without its dates and arrays; None has none.

    Raises:
        ValueError: It is no mapping.
    """
    if metadata is None:
        return {}
    if not is_mapping(metadata):
        raise ValueError("metadata that is no mapping")
    kept: dict[str, JsonValue] = {}
    for name, value in metadata.items():
        try:
            kept[str(name)] = _JSON.validate_python(value)
        except ValidationError:
            continue
    return kept


def plain_metadata(metadata: object) -> dict[str, JsonValue]:
    """The entries of a mapping that are texts, numbers or truth values; anything else has none."""
    entries = metadata.items() if is_mapping(metadata) else ()
    return {str(key): value for key, value in entries if isinstance(value, str | int | float)}


def seems_context(value: object) -> bool:
    """Whether a value that was not read may be the context: a passage, or a list of some."""
    try:
        items = _list_in(value) if isinstance(value, str) else items_of(value)
    except ValueError:
        return True
    for each in [value] if items is None else items[:5]:
        text = each if isinstance(each, str) else _part(each, "text")
        head = text[:1_000].strip() if isinstance(text, str) else ""
        # A sentence or more, rather than a name, a title or an id.
        words = len(head.split())
        if words >= 12 or (words >= 4 and head.endswith((".", "!", "?"))) or "。" in head:
            return True
    return False
