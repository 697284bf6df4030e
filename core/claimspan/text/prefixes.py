"""Prefixes that may deny a word: ``unsafe`` is the opposite of ``safe``."""

from __future__ import annotations

from typing import Final

__all__ = ["DENYING_PREFIXES", "MIN_PREFIXED", "denied_bases"]

DENYING_PREFIXES: Final = ("un", "in", "im", "ir", "il", "dis", "non", "mis")
"""``Unsafe`` is the opposite of ``safe``."""

MIN_PREFIXED: Final = 5
"""Letters of a word that a prefix may deny; shorter ones mostly begin with these by chance."""

_SHORTEST: Final = MIN_PREFIXED + min(map(len, DENYING_PREFIXES))


def denied_bases(word: str) -> tuple[str, ...]:
    """Returns what is left of a word in lower case without a prefix that may deny."""
    if len(word) < _SHORTEST or not word.startswith(DENYING_PREFIXES):
        return ()
    found = (word.removeprefix(each) for each in DENYING_PREFIXES if word.startswith(each))
    return tuple(base for base in found if len(base) >= MIN_PREFIXED)
