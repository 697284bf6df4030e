"""Looks for patterns near the digits of a text, so that prose without numbers costs little."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

__all__ = ["matches_near_digits"]

# A pattern that begins with one character is looked for faster than "\d+".
_DIGITS: Final = re.compile(r"\d\d*")
# Longer than what any pattern matches before or after a digit.
_REACH: Final = 40


def matches_near_digits(text: str, patterns: Sequence[re.Pattern[str]]) -> Iterator[re.Match[str]]:
    """Yields the matches of patterns that need a digit, pattern by pattern.

    Args:
        text: Any text.
        patterns: Patterns whose matches end within 40 characters of their digits.
    """
    windows: list[tuple[int, int]] = []
    for digits in _DIGITS.finditer(text):
        start, end = max(digits.start() - _REACH, 0), digits.end() + _REACH
        if windows and start <= windows[-1][1]:
            windows[-1] = windows[-1][0], end
        else:
            windows.append((start, end))
    for pattern in patterns:
        for start, end in windows:
            yield from pattern.finditer(text, start, end)
