"""Encoding of texts as data for a prompt, with ids that are random in each call.

A text can forge no id, no delimiter and no role, because it cannot know the ids, and JSON escapes
the rest.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

__all__ = ["call_id", "claim_ids", "encode", "reference_ids"]

_random: Final = secrets.SystemRandom()

# Some servers read these sequences in a message as the start of another role. They occur in JSON
# strings alone, where an escape means the same character.
_ROLE_TOKEN: Final = re.compile(r"<(?=[|｜/!a-zA-Z<])|\[(?=/?[A-Z_]{3,}\])")


def encode(texts: Mapping[str, JsonValue]) -> str:
    """Encodes texts as one JSON object, in their order, without values that are None.

    Lone surrogates, which cannot be sent, become question marks. The first characters of role
    tokens are escaped.

    Args:
        texts: Texts, lists of texts, or mappings of ids to texts, by the name of their field.
    """
    given = {key: value for key, value in texts.items() if value is not None}
    text = json.dumps(given, ensure_ascii=False, separators=(",", ":"))
    sendable = text.encode("utf-8", "replace").decode("utf-8")
    return _ROLE_TOKEN.sub(lambda match: f"\\u{ord(match.group()):04x}", sendable)


def call_id() -> str:
    """A random id that the reply has to repeat: nine digits, which no text holds by chance."""
    return str(_random.randrange(10**8, 10**9))


def claim_ids(count: int) -> list[str]:
    """Random ids of claims, of three digits (one token), or of more where there are many."""
    return _ids(count, start=100)


def reference_ids(count: int) -> list[str]:
    """Random ids of references, of two digits, or of more where there are many."""
    return _ids(count, start=10)


def _ids(count: int, start: int) -> list[str]:
    while start * 9 < count * 2:
        start *= 10
    return [str(number) for number in _random.sample(range(start, start * 10), count)]
