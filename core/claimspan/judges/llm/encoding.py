"""Texts as data: encoded in one pass, behind ids that nobody could know before the call."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from typing import Final

__all__ = ["call_id", "claim_ids", "encode", "reference_ids"]

_random: Final = secrets.SystemRandom()

# Some servers read these in a message as the start of another role. Within JSON the escape
# means the same character; elsewhere in the object none of them can stand.
_ROLE_TOKEN: Final = re.compile(r"<(?=[|｜/!a-zA-Z<])|\[(?=/?[A-Z_]{3,}\])")


def encode(material: Mapping[str, str | Mapping[str, str] | None]) -> str:
    """The material as one JSON object, in order, without what is None.

    Text goes in as it is, but for lone surrogates, which cannot be sent, and the openings of
    role tokens, which are escaped.
    """
    given = {key: value for key, value in material.items() if value is not None}
    text = json.dumps(given, ensure_ascii=False, separators=(",", ":"))
    sendable = text.encode("utf-8", "replace").decode("utf-8")
    return _ROLE_TOKEN.sub(lambda match: f"\\u{ord(match.group()):04x}", sendable)


def call_id() -> str:
    """What a reply has to repeat: nine digits, so that a text cannot hold them by chance."""
    return str(_random.randrange(10**8, 10**9))


def claim_ids(count: int) -> list[str]:
    """Ids of three digits (one token), or more where there are many, in no order."""
    return _ids(count, start=100)


def reference_ids(count: int) -> list[str]:
    """Ids of two digits, or more where there are many, in no order."""
    return _ids(count, start=10)


def _ids(count: int, start: int) -> list[str]:
    while start * 9 < count * 2:
        start *= 10
    return [str(number) for number in _random.sample(range(start, start * 10), count)]
