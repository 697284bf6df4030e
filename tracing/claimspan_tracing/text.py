"""Cleaning and cutting of texts and metadata, so that every exporter and JSON can encode them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from claimspan_tracing.shapes import is_list, is_mapping

__all__ = ["clean", "cut", "encode_json", "json_list", "json_text", "to_json"]

REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
_UNENCODABLE: Final = {code: REPLACEMENT for code in (0, *range(0xD800, 0xE000))}

MAX_DEPTH: Final = 6
"""Levels of nesting kept of metadata."""

MAX_ITEMS: Final = 64
"""Items kept of one mapping or list in metadata."""

# Made once: ``json.dumps`` with options makes an encoder for each call.
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def clean(value: object) -> str:
    """Return any value as a text that every exporter can encode.

    None is the empty text, bytes are read as UTF-8, anything else by ``str``. Lone surrogates and
    NUL become U+FFFD: the OTLP encoder loses an attribute or a whole batch over a surrogate, and
    PostgreSQL refuses NUL. A value that cannot be read is the empty text.
    """
    if type(value) is str and value.isascii() and "\0" not in value:
        return value  # nearly all texts
    if value is None:
        return ""
    if isinstance(value, bytes | bytearray):
        value = value.decode("utf-8", "replace")
    if not isinstance(value, str):
        value = _str(value)
    # str.__str__ takes subclasses, such as LangChain's TextAccessor, back to a plain string.
    text = str.__str__(value)
    return text if text.isascii() and "\0" not in text else text.translate(_UNENCODABLE)


def _str(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a broken __str__ of the user's is not worth the trace
        return ""


def cut(text: str, max_bytes: int) -> str:
    """Return the longest start of ``text`` that takes at most ``max_bytes`` in UTF-8."""
    if len(text) * 4 <= max_bytes:
        return text
    encoded = text.encode("utf-8")
    if len(encoded) <= max_bytes:
        return text
    return encoded[:max_bytes].decode("utf-8", "ignore")


def to_json(value: object, depth: int = MAX_DEPTH) -> JsonValue:
    """Return any value as JSON.

    What has no JSON form becomes its text. What is nested too deeply becomes None, and mappings and
    lists are cut to ``MAX_ITEMS``.
    """
    if type(value) is str:
        return clean(value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth == 0:
        return None
    if is_mapping(value):
        items = list(value.items())[:MAX_ITEMS]
        return {clean(key): to_json(item, depth - 1) for key, item in items}
    if is_list(value):
        return [to_json(item, depth - 1) for item in value[:MAX_ITEMS]]
    return clean(value)


def json_text(value: object) -> str:
    """Return any value as JSON text without white space."""
    return encode_json(to_json(value))


def encode_json(value: JsonValue) -> str:
    """Return a value that is JSON already as JSON text without white space."""
    return _ENCODER.encode(value)


def json_list(items: Sequence[object], max_bytes: int) -> str:
    """Return a JSON array of at most ``max_bytes``; the items that do not fit are left out."""
    texts: list[str] = []
    room = max_bytes - 2  # the brackets
    for item in items:
        text = json_text(item)
        room -= len(text.encode("utf-8")) + 1  # its comma
        if room < 0:
            break
        texts.append(text)
    return f"[{','.join(texts)}]"
