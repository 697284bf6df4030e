"""Cleaning and cutting of texts and metadata, so that every exporter and JSON can encode them.

Texts are cut before they are cleaned, and values are walked within one budget a record: what an
application passes may be of any size, and all threads wait while one call of the interpreter works
through it.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections import deque
from collections.abc import Callable, Iterable, KeysView, Sequence, ValuesView
from functools import partial
from itertools import islice
from json.encoder import encode_basestring
from typing import Final, TypeGuard, TypeVar

import pydantic_core
from pydantic import BaseModel, JsonValue

from claimspan.text.shapes import is_mapping
from claimspan.text.structured import MAX_JOINED, join_bounded

__all__ = [
    "MAX_CHARACTER_BYTES",
    "MAX_JOINED",
    "MAX_KEY_BYTES",
    "MAX_TEXT_BYTES",
    "Walk",
    "bounded",
    "byte_length",
    "clean",
    "cut",
    "cut_middle",
    "cut_sized",
    "encode_json",
    "join_bounded",
    "json_list",
    "json_string",
    "to_json",
]

ELLIPSIS: Final = " … "
"""Stands for the part cut out of the middle of a text."""

REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"

# What no text has a use for, and what does harm somewhere. Lone surrogates: the OTLP encoder loses
# an attribute or a whole batch. NUL: PostgreSQL refuses it. ESC and the other C0 and C1 controls:
# a terminal obeys them. Bidirectional overrides and isolates: a page or a terminal shows another
# text than the one that was judged. Marks that languages need stay: joiners, LRM, RLM, ALM.
_CONTROLS: Final = "\0-\x08\x0e-\x1f\x7f"
# Vertical tab and form feed are the page breaks of extracted PDF files: a line break for all who
# read the text.
_ASCII: Final = {
    **{code: REPLACEMENT for code in range(0x80) if re.match(f"[{_CONTROLS}]", chr(code))},
    **dict.fromkeys((0x0B, 0x0C), "\n"),
}
_UNSAFE: Final = re.compile(f"[{_CONTROLS}\x80-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

MAX_DEPTH: Final = 6
"""Levels of nesting kept of metadata."""

MAX_ITEMS: Final = 64
"""Items kept of one mapping or list in metadata."""

MAX_WALKED: Final = 10_000
"""Items looked at in all metadata of one record, also if one object is met many times: about
10 ms. A hundred chunks with 20 fields each, from two retrievers, have 4,000."""

MAX_WALKED_BYTES: Final = 1024 * 1024
"""Bytes of text kept of all metadata of one record."""

MAX_LISTINGS: Final = 8
"""Times that a mapping is listed anew, because another thread changed it meanwhile."""

MAX_TEXT_BYTES: Final = 64 * 1024
"""Bytes kept of one text: a chunk, a query, a response, a prompt, a completion, or a value in
metadata. It is what a judge reads."""

MAX_CHARACTER_BYTES: Final = 4
"""Bytes that a character takes in UTF-8, also after it was cleaned, at most."""

MAX_KEY_BYTES: Final = 1024
"""Bytes kept of a key in metadata."""

MAX_INTEGER_BITS: Final = 1024
"""Longer integers become texts: Python refuses to print those beyond 4,300 digits."""

_T = TypeVar("_T")


# --- texts ----------------------------------------------------------------------------------------


def clean(value: object) -> str:
    r"""Return any value as a text that every exporter can encode, and every terminal can show.

    None is the empty text, bytes are read as UTF-8, anything else by ``str``. Control characters
    but ``\t``, ``\n`` and ``\r``, lone surrogates, and bidirectional overrides and isolates become
    U+FFFD, one for one; vertical tabs and form feeds become ``\n``. A value that cannot be read is
    the empty text.
    """
    return _safe(_text(value, None))


def bounded(value: object, max_bytes: int) -> str:
    """Return ``cut(clean(value), max_bytes)``, but cut before it is cleaned.

    Args:
        value: Of any size; apart from its own ``__str__``, the time does not depend on it.
        max_bytes: Length of the result in UTF-8, at most.
    """
    if type(value) is str:
        # Short, ASCII and of one line, as keys, ids and most values are.
        if len(value) <= max_bytes and value.isascii() and value.isprintable():
            return value
        if len(value) * MAX_CHARACTER_BYTES <= max_bytes:
            return _safe(value)
    # No character becomes shorter when it is cleaned, and each takes a byte at least, so that
    # nothing behind these characters can be part of the result.
    return cut(_safe(_text(value, max_bytes)), max_bytes)


def _text(value: object, limit: int | None) -> str:
    """The value as a text, or the first characters of it; ``limit`` of them are enough."""
    if value is None:
        return ""
    if isinstance(value, bytes | bytearray):
        # Each byte becomes a byte at least; four more, so that no character is torn in two.
        start = value if limit is None else value[: limit + 4]
        return start.decode("utf-8", "replace")
    if not isinstance(value, str):
        value = _str(value)
    # A slice of ``str`` itself takes subclasses, such as LangChain's TextAccessor, back to a plain
    # string.
    return str.__getitem__(value, slice(limit))


def _str(value: object) -> str:
    try:
        return str(value)
    except BaseException:  # noqa: BLE001 - a broken __str__ of the user's is not worth the trace
        return ""


def _safe(text: str) -> str:
    # Translating is fast for ASCII alone: 0.06 ms for 64 KiB, against 5 ms for other texts.
    if text.isascii():
        safe = text.translate(_ASCII)
        return text if safe == text else safe  # itself, by which it is known when it is met again
    # Most texts are printable but for their ends of lines, which is known in half of the time.
    if text.replace("\n", " ").isprintable():
        return text
    return _UNSAFE.sub(REPLACEMENT, text).replace("\v", "\n").replace("\f", "\n")


def cut(text: str, max_bytes: int) -> str:
    """Return the longest start of ``text`` that takes at most ``max_bytes`` in UTF-8."""
    if text.isascii():  # which Python knows without looking
        return text[: max(0, max_bytes)]
    if len(text) * MAX_CHARACTER_BYTES <= max_bytes:
        return text
    # Each character takes a byte at least.
    encoded = text[: max(0, max_bytes) + 1].encode("utf-8")
    if len(encoded) <= max_bytes:
        return text
    return encoded[: max(0, max_bytes)].decode("utf-8", "ignore")


def cut_middle(text: str, max_bytes: int) -> str:
    """Return ``text`` in at most ``max_bytes``: if it is longer, its start and its end."""
    half = (max_bytes - byte_length(ELLIPSIS)) // 2
    # Each character takes a byte at least: a long text is not encoded to find out that it is long.
    if half <= 0 or (len(text) <= max_bytes and byte_length(text) <= max_bytes):
        return cut(text, max_bytes)
    end = text[-half:].encode("utf-8")[-half:]
    return cut(text, half) + ELLIPSIS + end.decode("utf-8", "ignore")


def cut_sized(text: str, max_bytes: int) -> tuple[str, int]:
    """Return ``cut(text, max_bytes)``, and how many bytes that takes."""
    if not text.isascii() and len(text) <= max_bytes:
        size = len(text.encode("utf-8"))
        if size <= max_bytes:
            return text, size
    start = cut(text, max_bytes)
    return start, byte_length(start)


def byte_length(text: str) -> int:
    """Return how many bytes a text takes in UTF-8; only texts beyond ASCII are encoded for it."""
    return len(text) if text.isascii() else len(text.encode("utf-8"))


# --- JSON -----------------------------------------------------------------------------------------


@dataclasses.dataclass(slots=True)
class Walk:
    """What may still be walked of the values of one record."""

    items: int = MAX_WALKED
    """Items that may still be looked at."""

    size: int = MAX_WALKED_BYTES
    """Bytes of text that may still be kept."""

    margin: int = 0
    """Bytes kept of each text beyond its bound, for the one that cuts it there."""

    def text(self, value: object, max_bytes: int) -> str:
        """Return a value as a text; the empty text if there is no room for it."""
        # As in ``bounded``, but without a call, as there are many.
        if (
            type(value) is str
            and len(value) <= max_bytes
            and value.isascii()
            and value.isprintable()
        ):
            text = value
            self.size -= len(value)
        else:
            text = bounded(value, max_bytes + self.margin)
            self.size -= byte_length(text)
        # Whole or not at all: a redactor does not recognise half of an address.
        return text if self.size >= 0 else ""


def to_json(value: object, walk: Walk | None = None) -> JsonValue:
    """Return any value as JSON; does not raise.

    A value without a JSON form becomes its text; dataclasses and pydantic models become objects of
    the fields that their text would show. A value nested too deeply becomes None, and mappings and
    lists are cut to ``MAX_ITEMS``.

    Args:
        value: May refer to itself, or to one part many times.
        walk: The budget of the record that the value belongs to; what comes after its end is left
            out. None for one of the value's own.
    """
    return _json(value, MAX_DEPTH, Walk() if walk is None else walk)


def _json(value: object, depth: int, walk: Walk) -> JsonValue:
    walk.items -= 1
    if value.__class__ is dict and is_mapping(value):
        # Ahead of all others: there are as many of them as chunks.
        return _object(_first(value.items, walk), depth - 1, walk) if depth else None
    if isinstance(value, str):
        return walk.text(value, MAX_TEXT_BYTES)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return _integer(int.__int__(value), walk)
    if isinstance(value, float):
        number = float.__float__(value)
        return number if math.isfinite(number) else str(number)
    pairs = _pairs(value)
    if pairs is not None:
        return _object(_first(pairs, walk), depth - 1, walk) if depth else None
    if _has_items(value):
        items = partial(iter, value)
        return [_json(item, depth - 1, walk) for item in _first(items, walk)] if depth else None
    return walk.text(value, MAX_TEXT_BYTES)


def _object(pairs: _Pairs, depth: int, walk: Walk) -> JsonValue:
    fields: dict[str, JsonValue] = {}
    for key, value in pairs:
        name = walk.text(key, MAX_KEY_BYTES)
        # Most fields of a chunk's metadata are texts: without a call for each.
        if type(value) is str:
            walk.items -= 1
            fields[name] = walk.text(value, MAX_TEXT_BYTES)
        else:
            fields[name] = _json(value, depth, walk)
    return fields


def _integer(number: int, walk: Walk) -> JsonValue:
    fits = number.bit_length() <= MAX_INTEGER_BITS
    return number if fits else walk.text(number, MAX_TEXT_BYTES)


def _has_items(value: object) -> TypeGuard[Iterable[object]]:
    # The text of a set of ten million takes seconds, within one call of the interpreter.
    return isinstance(value, list | tuple | set | frozenset | deque | range | KeysView | ValuesView)


_Pairs = Iterable[tuple[object, object]]


def _pairs(value: object) -> Callable[[], _Pairs] | None:
    """What lists the items of a mapping, or the fields of an object whose text is made of them.

    That text would be made in one go, and a part that is shared would be in it many times. A field
    that its class keeps out of the text stays out here.
    """
    if is_mapping(value):
        return value.items
    if isinstance(value, BaseModel):
        if type(value).__repr__ is not BaseModel.__repr__:
            return None
        shown = [name for name, field in type(value).model_fields.items() if field.repr]
    elif dataclasses.is_dataclass(value) and _has_generated_text(type(value)):
        shown = [field.name for field in dataclasses.fields(value) if field.repr]
    else:
        return None
    return lambda: ((name, getattr(value, name, None)) for name in shown)


def _has_generated_text(kind: type) -> bool:
    # The generated method wraps another one; a method of the user's may hide what the fields hold.
    texts = [base.__dict__.get("__str__") for base in kind.__mro__[:-1]]
    return not any(texts) and hasattr(kind.__repr__, "__wrapped__")


def _first(items: Callable[[], Iterable[_T]], walk: Walk) -> list[_T]:
    """The first items, as many as there is room for; none if they cannot be listed."""
    for _ in range(MAX_LISTINGS):
        # In one go: another thread may change the mapping at the same time, which the garbage
        # collector lets run.
        try:
            return list(islice(items(), max(0, min(MAX_ITEMS, walk.items))))
        except RuntimeError:
            continue
        except BaseException:  # noqa: BLE001 - a broken container of the user's is not worth the record
            break
    return []


def encode_json(value: JsonValue) -> str:
    """Return a value that is JSON already as JSON text without white space."""
    # Pydantic's encoder takes a fifth of the time of the standard library's, for the same text.
    return pydantic_core.to_json(value).decode()


def json_string(text: str) -> str:
    """Return a text as JSON, with its quotes; faster than ``encode_json`` by half."""
    return encode_basestring(text)


def json_list(items: Sequence[object], max_bytes: int) -> str:
    """Return a JSON array of at most ``max_bytes``; the items that do not fit are left out."""
    texts: list[str] = []
    room = max_bytes - 2  # the brackets
    for item in items:
        text = encode_json(to_json(item))
        room -= byte_length(text) + 1  # its comma
        if room < 0:
            break
        texts.append(text)
    return f"[{','.join(texts)}]"
