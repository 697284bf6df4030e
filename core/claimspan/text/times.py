"""Finds dates, in words and in numbers, and times of day.

Patterns are looked for near the digits of a text only, so that prose without numbers costs little.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

from claimspan.text.value_signs import (
    COLON,
    DECADE,
    DIGIT,
    DOTTED,
    HALF_DAY,
    HOUR,
    MONTH,
    MONTHS,
    NOON,
    PAST,
    QUARTER,
    UHR,
    signs_of,
)

__all__ = [
    "MONTHS",
    "ClockTime",
    "Date",
    "clock_times",
    "dates",
]


# A pattern that begins with one character is looked for faster than "\d+".
_DIGITS: Final = re.compile(r"\d\d*")
# Longer than what any pattern matches before or after a digit.
_REACH: Final = 40


def _matches_near_digits(text: str, patterns: Sequence[re.Pattern[str]]) -> Iterator[re.Match[str]]:
    """Yields the matches of patterns that need a digit, pattern by pattern."""
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


# --- dates ----------------------------------------------------------------------------------------

_MONTH_NUMBERS: Final = {
    name: number for number, name in enumerate(dict.fromkeys(MONTHS.values()), 1)
}
# With a capital, since "may" and "march" are verbs; the others may be typed without.
_NAMES: Final = "|".join(
    sorted(
        {spelling.capitalize() for spelling in MONTHS}
        | {each for each in MONTHS if len(each) > 5 or each in ("june", "july", "april")},
        key=len,
        reverse=True,
    )
)
_MONTH: Final = rf"(?:{_NAMES})(?![^\W\d_])\.?"
_YEAR: Final = r"(?:1[0-9]|20|21)\d\d(?![\d%]|[.,]\d)"
_DAY: Final = r"(?:[12]\d|3[01]|0?[1-9])"
_QUARTERS: Final = {"first": 1, "second": 2, "third": 3, "fourth": 4}
_PATTERNS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?<![\d.])(?P<year>(?:1[0-9]|20|21)\d\d)(?P<sep>[-/.])(?P<month>0?[1-9]|1[0-2])(?P=sep)"
        rf"(?P<day>{_DAY})(?!\d)",
        rf"(?<![\d.,/])(?P<day>{_DAY})\.\s?(?P<month>0?[1-9]|1[0-2])\.\s?(?P<year>{_YEAR})",
        rf"(?<![\d.,/])(?P<first>{_DAY})(?P<sep>[-/])(?P<second>{_DAY})(?P=sep)(?P<year>{_YEAR})",
        rf"(?<![\d.,/])(?P<first>{_DAY})/(?P<second>{_DAY})/(?P<short>\d\d)(?![\d/%]|[.,]\d)",
        rf"(?<![\d.,/:])(?P<day>{_DAY})(?:st|nd|rd|th|er)?\.?\s(?:of\s|de\s)?(?P<name>{_MONTH})"
        rf"(?:\s?,?\s(?P<year>{_YEAR}))?",
        rf"\b(?P<name>{_MONTH})\s(?:the\s)?(?P<day>{_DAY})(?:st|nd|rd|th)?(?![\d%]|[.,:/]\d)"
        rf"(?:\s?,?\s(?P<year>{_YEAR}))?",
        rf"\b(?P<name>{_MONTH}),?\s(?:of\s)?(?P<year>{_YEAR})",
        r"\b(?:Q(?P<quarter>[1-4])|(?P<place>[Ff]irst|[Ss]econd|[Tt]hird|[Ff]ourth|[1-4](?:st|nd|rd|"
        rf"th|\.))[\s-](?:fiscal\s)?[Qq]uarter)(?:,?\s(?:of\s)?(?:fiscal\s)?(?:FY\s?)?(?P<year>{_YEAR}))?",
        r"(?<!\d)(?P<decade>(?:1[0-9]|20)\d)0['’]?s\b",
        rf"\b(?:[Ii]n|of|[Ss]ince|by|until|till|[Dd]uring|[Ff]rom|[Bb]etween|and|through|before|after|to|early|late|mid|next|last|every|im|"
        rf"seit|v|en|depuis)[\s-](?P<name>{_MONTH})",
        rf"^\W*(?P<name>{_MONTH})\W*$",
        # Names of people are "April" and "May" more often than "June" is.
        r"\b(?P<name>(?:January|February|June|July|August|September|October|November|December))\b",
    )
)
# How many of them need a digit.
_NUMBERED: Final = 7
# One of these signs has a text in which the pattern at that place matches.
_SIGNS: Final = (*[DOTTED] * 4, *[MONTH] * 3, QUARTER, DECADE, *[MONTH] * 3)
_EVERY_SIGN: Final = DOTTED | MONTH | QUARTER | DECADE


class Date(NamedTuple):
    """A date as far as it is written; None for what is left open."""

    year: int | None = None
    """The year."""

    quarter: int | None = None
    """The quarter, 1 to 4."""

    month: int | None = None
    """The month, 1 to 12."""

    day: int | None = None
    """The day of the month."""

    decade: int | None = None
    """The year without its last digit, where only the decade is written: 199 for the 1990s."""

    is_open_order: bool = False
    """Whether day and month may also be the other way round: ``5/6/2023``."""

    start: int = 0
    """Where it begins in the text."""

    end: int = 0
    """Where it ends in the text."""


def dates(text: str, signs: int | None = None) -> Iterator[Date]:
    """Yields the dates of a text, by kind of notation; a year alone is a number, not a date.

    Args:
        text: A text whose months are in English; see ``value_words.with_digits``.
        signs: What ``signs_of`` gives for it; None to look.
    """
    signs = signs_of(text) if signs is None else signs
    if not signs & _EVERY_SIGN:
        return
    taken: set[int] = set()
    numbered = _matches_near_digits(text, _possible(signs, 0, _NUMBERED))
    worded = (
        match
        for pattern in _possible(signs, _NUMBERED, len(_PATTERNS))
        for match in pattern.finditer(text)
    )
    for match in chain(numbered, worded):
        date = _date(match)
        if date and taken.isdisjoint((date.start, date.end - 1)):
            taken.update(range(date.start, date.end))
            yield date


def _possible(signs: int, start: int, end: int) -> list[re.Pattern[str]]:
    """The patterns at some places that may match in a text with these signs."""
    return [
        pattern
        for pattern, sign in zip(_PATTERNS[start:end], _SIGNS[start:end], strict=True)
        if signs & sign
    ]


def _date(match: re.Match[str]) -> Date | None:
    part = match.groupdict()
    year = int(part["year"]) if part.get("year") else None
    # "In June" is the month alone: the word before it is no part of the date.
    start = match.start("name") if not part.get("day") and part.get("name") else match.start()
    end = match.end()
    if part.get("first"):
        full = _full_year(int(part["short"])) if year is None else year
        return _slashed(match, full)._replace(start=start, end=end)
    if part.get("decade"):
        return Date(decade=int(match["decade"]), start=start, end=end)
    if part.get("quarter") or part.get("place"):
        return Date(year=year, quarter=_quarter(match), start=start, end=end)
    month = int(part["month"]) if part.get("month") else _month(match["name"])
    day = int(part["day"]) if part.get("day") else None
    return Date(year=year, month=month, day=day, start=start, end=end)


def _full_year(short: int) -> int:
    """The year of its last two digits: 1969 to 2068, as POSIX says of ``%y``."""
    return short + (1900 if short >= 69 else 2000)


def _slashed(match: re.Match[str], year: int) -> Date:
    """``12/6/2023`` is read as day and month where it can be only one of them, else as either."""
    first, second = int(match["first"]), int(match["second"])
    if second > 12:
        return Date(year=year, month=first, day=second)
    return Date(year=year, month=second, day=first, is_open_order=first <= 12 and first != second)


def _month(name: str) -> int:
    return _MONTH_NUMBERS[MONTHS[name.rstrip(".").casefold()]]


def _quarter(match: re.Match[str]) -> int:
    if match["quarter"]:
        return int(match["quarter"])
    place = match["place"].casefold()
    return _QUARTERS.get(place) or int(place[0])


# --- times of day ---------------------------------------------------------------------------------

_HOUR: Final = r"(?P<hour>[01]?\d|2[0-4])"
_MINUTE: Final = r"(?P<minute>[0-5]\d)"
_HALF: Final = r"(?P<half>[ap])\.?\s?m\b\.?"
_AT: Final = r"\b(?:at|à|ob|um|vers|ab|bis|until|jusqu['’]à|de|do|od)\s"
_CLOCK_PATTERNS: Final = tuple(
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
_CLOCK_SIGNS: Final = (HALF_DAY, HALF_DAY, UHR, COLON, HOUR, HOUR, UHR, UHR, PAST, PAST, NOON)
_NUMBERED_SIGNS: Final = HALF_DAY | UHR | COLON | HOUR | PAST
_BESIDE: Final = {"half past": 30, "quarter past": 15, "quarter to": -15}
_HALF_DAY: Final = 12 * 60
_MINUTES_A_DAY: Final = 24 * 60


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
        """Tells whether both may be one time."""
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
    possible = [
        each for each, sign in zip(_CLOCK_PATTERNS, _CLOCK_SIGNS, strict=True) if signs & sign
    ]
    worded = possible.pop().finditer(text) if signs & NOON else ()
    for match in chain(_matches_near_digits(text, possible), worded):
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
    return ClockTime((hour * 60 + minute) % _MINUTES_A_DAY, is_open, start, match.end())
