"""Detects texts that are not English, which the bundled model cannot read."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["may_be_english"]

_WORD: Final = re.compile(r"[^\W\d_]+")
# A text of any length in English has one word in five of these; other languages share few.
_COMMON_WORDS: Final = frozenset(
    "the of and to in is was for that it with as on by are from at an be this which or were has "
    "have had not but its his her their they can who will what when how you does did do".split()
)
_MIN_COMMON_SHARE: Final = 0.08
_MAX_NON_ASCII_SHARE: Final = 1 / 4
# A shorter text may have no common word at all and be English.
_MIN_WORDS: Final = 20


def may_be_english(text: str) -> bool:
    """Tells whether a text may be English; a text of fewer than 20 ASCII words always may.

    Args:
        text: All texts of one call, joined: a table or code alone has no words of any language.
    """
    words = _WORD.findall(text.lower())
    if sum(not word.isascii() for word in words) > _MAX_NON_ASCII_SHARE * len(words):
        return False
    if len(words) < _MIN_WORDS:
        return True
    return sum(word in _COMMON_WORDS for word in words) >= _MIN_COMMON_SHARE * len(words)
