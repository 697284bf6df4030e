"""Texts that UTF-8 can encode, so that they can be stored and sent."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import BeforeValidator

__all__ = ["EncodableText", "encodable", "encodable_json"]


def encodable(text: str) -> str:
    r"""Replace each half of a surrogate pair by U+FFFD, and both halves of one by their character.

    ``json.loads`` makes such halves from ``"\ud800"``, and neither UTF-8 nor a JSON encoder takes
    them.
    """
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def encodable_json(written: str | bytes) -> str | bytes:
    """Make a JSON value out of one that has a half of a surrogate pair in a text.

    Args:
        written: JSON, which a strict parser may refuse.

    Returns:
        The same value with such halves replaced; any other value as it is.
    """
    try:
        return encodable(json.dumps(json.loads(written), ensure_ascii=False))
    except (ValueError, RecursionError):
        return written


def _encodable_value(value: object) -> object:
    return encodable(value) if isinstance(value, str) else value


# Before pydantic looks at it: to check a length, it refuses a text with such a half.
EncodableText = Annotated[str, BeforeValidator(_encodable_value)]
"""The type of a pydantic field that holds any text and can always be written as JSON."""
