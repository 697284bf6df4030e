"""Finds times of day: ``3 p.m.``, ``15:00``, ``15 Uhr``, ``15h30``, ``half past three``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Final, NamedTuple

from claimspan.text.digit_windows import matches_near_digits
from claimspan.text.value_signs import (
    COLON,
    DIGIT,
    HALF_DAY,
    HOUR,
    NOON,
    PAST,
    UHR,
    signs_of,
)

__all__ = ["ClockTime", "clock_times"]

_HOUR: Final = r"(?P<hour>[01]?\d|2[0-4])"
_MINUTE: Final = r"(?P<minute>[0-5]\d)"
_HALF: Final = r"(?P<half>[ap])\.?\s?m\b\.?"
_AT: Final = r"\b(?:at|à|ob|um|vers|ab|bis|until|jusqu['’]à|de|do|od)\s"
_PATTERNS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?<![\d.,:]){_HOUR}(?:[:.]{_MINUTE})?\s?{_HALF}",
        # "9-5 pm" and "10 to 12 am" say the half of the day once, for both.
        rf"(?<![\d.,:]){_HOUR}(?:[:.]{_MINUTE})?(?=\s?(?:-|–|to|until|and)\s?\d\d?(?:[:.]\d\d)?\s?"
        r"(?P<later>[ap])\.?\s?m\b)",
        rf"(?<![\d.,:]){_HOUR}(?:[:.]{_MINUTE})?\s?Uhr\b(?:\s(?P<after>[0-5]\d)\b)?",
        rf"(?<![\d.,:/]){_HOUR}:{_MINUTE}(?::\d\d)?(?![\d:])(?:\s?(?:hours|h|hrs)\b)?",
        # "2 h 30 min" is how long something takes.
        rf"(?<![\d.,:]){_HOUR}\s?h(?:\s(?!\d\d\s?min))?{_MINUTE}(?!\d)",
        rf"{_AT}{_HOUR}\s?(?:h|hours)\b(?!\s?(?:per|a)\b)",
        rf"\bob\s{_HOUR}[.:]{_MINUTE}\b",
        rf"(?<![\d.,:]){_HOUR}\.\s?ur[aeio]\b",
        r"(?<![\d.,:])(?P<twelve>1[0-2]|[1-9])\s?o['’]?\s?clock\b",
        r"\b(?P<beside>half past|quarter past|quarter to)\s(?P<twelve>1[0-2]|[1-9])\b",
        r"\b(?P<noon>noon|midday|opoldne|midi|mittags?)\b|\b(?P<midnight>midnight|opolnoči|minuit|"
        r"mitternachts?)\b",
    )
)
# A text in which the pattern at that place matches has this sign.
_SIGNS: Final = (HALF_DAY, HALF_DAY, UHR, COLON, HOUR, HOUR, UHR, UHR, PAST, PAST, NOON)
_NUMBERED_SIGNS: Final = HALF_DAY | UHR | COLON | HOUR | PAST
_BESIDE: Final = {"half past": 30, "quarter past": 15, "quarter to": -15}
_HALF_DAY: Final = 12 * 60
_DAY: Final = 24 * 60


class ClockTime(NamedTuple):
    """A time of day."""

    minutes: int
    """Minutes since midnight."""

    is_open_half: bool
    """Whether it may also be twelve hours later: ``3 o'clock``, ``3:30``."""

    start: int
    """Where it begins in the text."""

    end: int
    """Where it ends in the text."""

    def agrees(self, other: ClockTime) -> bool:
        """Tells whether both may be one time.

        Args:
            other: Another time.
        """
        if self.is_open_half or other.is_open_half:
            return self.minutes % _HALF_DAY == other.minutes % _HALF_DAY
        return self.minutes == other.minutes


def clock_times(text: str, signs: int | None = None) -> Iterator[ClockTime]:
    """Yields the times of day of a text, by kind of notation.

    Args:
        text: A text whose numbers are digits; see ``value_words.with_digits``.
        signs: What ``signs_of`` gives for it; None to look.
    """
    signs = signs_of(text) if signs is None else signs
    has_numbered = signs & _NUMBERED_SIGNS and signs & DIGIT
    if not has_numbered and not signs & NOON:
        return
    taken: set[int] = set()
    possible = [each for each, sign in zip(_PATTERNS, _SIGNS, strict=True) if signs & sign]
    worded = possible.pop().finditer(text) if signs & NOON else ()
    for match in chain(matches_near_digits(text, possible), worded):
        time = _time(match)
        if taken.isdisjoint((time.start, time.end - 1)):
            taken.update(range(time.start, time.end))
            yield time


def _time(match: re.Match[str]) -> ClockTime:
    part = match.groupdict()
    if part.get("noon") or part.get("midnight"):
        return ClockTime(_HALF_DAY if part.get("noon") else 0, False, match.start(), match.end())
    if part.get("twelve"):
        minutes = int(part["twelve"]) * 60 + _BESIDE.get((part.get("beside") or "").casefold(), 0)
        return ClockTime(minutes, True, match.start(), match.end())
    hour, minute = int(match["hour"]), int(part.get("minute") or part.get("after") or 0)
    half = part.get("half")
    if half and hour <= 12:
        hour = hour % 12 + (12 if half.casefold() == "p" else 0)
    # "03:30" and "15:30" are of 24 hours, "3:30" may be in the afternoon.
    has_colon = match.group()[-3:-2] == ":"
    is_open = not half and 0 < hour < 12 and has_colon and not match["hour"].startswith("0")
    is_open = is_open or bool(part.get("later"))
    start = match.start("hour") if match.group()[:1].isalpha() else match.start()
    return ClockTime((hour * 60 + minute) % _DAY, is_open, start, match.end())
