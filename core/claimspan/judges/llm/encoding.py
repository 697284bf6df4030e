"""Encoding of texts as data for a prompt, with ids that no text can know.

A text can forge no id, no delimiter and no role, because it cannot know the ids, and JSON escapes
the rest.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import secrets
from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

__all__ = ["Ids", "encode"]

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


class Ids:
    """The ids of one call: random, or made of a seed and the content of the call."""

    def __init__(self, seed: int | None = None, *content: str) -> None:
        """Begin to draw ids.

        Args:
            seed: Makes the ids of equal contents equal; they cannot be guessed without it. None
                draws them at random.
            *content: The texts of the call.
        """
        self._random: random.Random = secrets.SystemRandom()
        if seed is not None:
            written = json.dumps([seed, *content]).encode()
            self._random = random.Random(hashlib.sha256(written).digest())  # noqa: S311 - as random as its seed

    def call(self) -> str:
        """The id that the reply has to repeat: nine digits, which no text holds by chance."""
        return str(self._random.randrange(10**8, 10**9))

    def claims(self, count: int) -> list[str]:
        """Ids of claims, of three digits (one token), or of more if there are many."""
        return self._draw(count, start=100)

    def references(self, count: int) -> list[str]:
        """Ids of references, of two digits, or of more if there are many."""
        return self._draw(count, start=10)

    def _draw(self, count: int, start: int) -> list[str]:
        while start * 9 < count * 2:
            start *= 10
        return [str(number) for number in self._random.sample(range(start, start * 10), count)]
