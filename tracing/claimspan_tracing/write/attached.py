"""Session, user, tags and metadata of a query, in OpenInference's names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from pydantic import JsonValue

from claimspan_tracing import semconv
from claimspan_tracing.text import byte_length, cut, encode_json
from claimspan_tracing.write.limits import Attributes

__all__ = ["attached_attributes"]

OWN_ATTRIBUTES: Final = frozenset({semconv.SESSION_ID, semconv.USER_ID, semconv.TAGS})
"""Keys of the metadata that are attributes by themselves."""

MAX_ID_BYTES: Final = 256
"""Bytes of the id of a session or a user, and of a tag."""

MAX_TAGS: Final = 16
"""Tags of one query; 4 KiB in all."""

MAX_ATTACHED_BYTES: Final = 2 * 1024
"""Bytes of the metadata; Tempo cuts longer attributes by default."""


def attached_attributes(metadata: Mapping[str, JsonValue]) -> Attributes:
    """Return what the metadata of a record says about its session, its user and the rest.

    Args:
        metadata: Of the record. It is empty where texts are not captured, since an id of a user is
            often an address.
    """
    tags = metadata.get(semconv.TAGS)
    found: Attributes = {
        semconv.SESSION_ID: _id(metadata, semconv.SESSION_KEYS),
        semconv.USER_ID: _id(metadata, semconv.USER_KEYS),
        semconv.TAGS: _tags(tags) if isinstance(tags, list) else [],
    }
    rest = {key: value for key, value in metadata.items() if key not in OWN_ATTRIBUTES}
    if rest:
        found[semconv.METADATA] = _json_object(rest, MAX_ATTACHED_BYTES)
    return {name: value for name, value in found.items() if value}


def _id(metadata: Mapping[str, JsonValue], keys: Iterable[str]) -> str:
    """The first value that can be an id."""
    values = (metadata.get(key) for key in keys)
    usable = (v for v in values if isinstance(v, str | int) and not isinstance(v, bool))
    return next((cut(text, MAX_ID_BYTES) for value in usable if (text := str(value))), "")


def _tags(tags: Iterable[JsonValue]) -> list[str]:
    texts = [cut(tag, MAX_ID_BYTES) for tag in tags if isinstance(tag, str) and tag]
    return texts[:MAX_TAGS]


def _json_object(values: Mapping[str, JsonValue], max_bytes: int) -> str:
    """The values as JSON; those that do not fit are left out."""
    kept: dict[str, JsonValue] = {}
    room = max_bytes - len("{}")
    for key, value in values.items():
        # The braces of one entry stand for its comma.
        size = byte_length(encode_json({key: value}))
        if size <= room:
            room -= size
            kept[key] = value
    return encode_json(kept) if kept else ""
