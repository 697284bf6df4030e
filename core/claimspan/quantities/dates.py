"""Finds dates, in words and in numbers, and times of day."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from typing import Final, NamedTuple

from claimspan.quantities.vocabulary import MONTHS

__all__ = ["ClockTime", "Date", "clock_times", "dates"]


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
_YEAR: Final = r"(?P<year>(?:1[0-9]|20|21)\d\d)(?![\d%]|[.,]\d)"
_DAY: Final = r"(?P<day>[12]\d|3[01]|0?[1-9])"
_NUMBERS: Final = re.compile(
    r"(?<![\d.])(\d{1,4})([-/.])\s?(\d{1,2})\2\s?(\d{4}|\d{1,2})(?![\d%]|[.,]\d)"
)
_MONTH: Final = re.compile(rf"\b(?P<name>{_NAMES})(?![^\W\d_])\.?")
_BEFORE_MONTH: Final = re.compile(rf"(?<![\d.,/:]){_DAY}(?:st|nd|rd|th|er)?\.?\s(?:of\s|de\s)?$")
_YEAR_AFTER: Final = re.compile(rf"\s?,?\s{_YEAR}")
_DAY_AFTER: Final = re.compile(
    rf"\s(?:the\s)?{_DAY}(?:st|nd|rd|th)?(?![\d%]|[.,:/]\d)(?:\s?,?\s{_YEAR})?"
)
_YEAR_ALONE: Final = re.compile(rf",?\s(?:of\s)?{_YEAR}")
_IN: Final = re.compile(
    r"\b(?:[Ii]n|of|[Ss]ince|by|until|till|[Dd]uring|[Ff]rom|[Bb]etween|and|through|before|after|to|"
    r"early|late|mid|next|last|every|im|seit|v|en|depuis)[\s-]$"
)
# Names of people are "April" and "May" more often than "June" is.
_ONLY_MONTHS: Final = frozenset(
    "January February June July August September October November December".split()
)
_LOOK_BACK: Final = 12
_QUARTER: Final = re.compile(
    r"\b(?:Q(?P<number>[1-4])|(?P<place>[Ff]irst|[Ss]econd|[Tt]hird|[Ff]ourth|[1-4](?:st|nd|rd|th|\.))"
    rf"[\s-](?:fiscal\s)?[Qq]uarter)(?:,?\s(?:of\s)?(?:fiscal\s)?(?:FY\s?)?{_YEAR})?"
)
_QUARTERS: Final = {"first": 1, "second": 2, "third": 3, "fourth": 4}
_DECADE: Final = re.compile(r"(?<!\d)((?:1[0-9]|20)\d)0['’]?s\b")


class Date(NamedTuple):
    """A date as far as it is written; None for each open part."""

    year: int | None = None
    """The year."""

    quarter: int | None = None
    """The quarter, 1 to 4."""

    month: int | None = None
    """The month, 1 to 12."""

    day: int | None = None
    """The day of the month."""

    decade: int | None = None
    """The year without its last digit, if only the decade is written: 199 for the 1990s."""

    is_open_order: bool = False
    """Whether day and month may also be the other way round: ``5/6/2023``."""

    start: int = 0
    """Where it begins in the text."""

    end: int = 0
    """Where it ends in the text."""


def dates(text: str, words: Set[str]) -> Iterator[Date]:
    """Yields the dates of a text, by kind of notation; a year alone is a number, not a date.

    Args:
        text: A text whose months are in English; see ``words.with_digits``.
        words: Its words in lower case.
    """
    for match in _NUMBERS.finditer(text):
        if date := _in_numbers(match):
            yield date._replace(start=match.start(), end=match.end())
    if not MONTHS.keys().isdisjoint(words):
        yield from _with_months(text)
    for match in _QUARTER.finditer(text) if "uarter" in text or "q" in words else ():
        place = (match["place"] or "").casefold()
        quarter = int(match["number"] or _QUARTERS.get(place) or place[0])
        yield Date(year=_year(match), quarter=quarter, start=match.start(), end=match.end())
    for match in _DECADE.finditer(text) if "s" in words else ():
        yield Date(decade=int(match[1]), start=match.start(), end=match.end())


def _year(match: re.Match[str]) -> int | None:
    return int(match["year"]) if match["year"] else None


def _in_numbers(match: re.Match[str]) -> Date | None:
    """Reads three numbers: ``2023-05-06``, ``6.5.2023`` and ``5/6/23``."""
    first, sign, second, last = match.groups()
    one, two, three = int(first), int(second), int(last)
    if len(first) == 4:
        date = Date(year=one, month=two, day=three)
    elif match.string[match.start() - 1 : match.start()] in (",", "/"):
        return None  # a part of something longer
    elif sign == ".":
        date = Date(year=three, month=two, day=one)
    elif len(last) == 4 or (len(last) == 2 and sign == "/"):
        # Two digits are of 1969 to 2068, as POSIX says of "%y".
        year = three if len(last) == 4 else three + (1900 if three >= 69 else 2000)
        # It is read as day and month if it can be only one of them, else as either.
        is_open = max(one, two) <= 12 and one != two
        day, month = (two, one) if two > 12 else (one, two)
        date = Date(year=year, month=month, day=day, is_open_order=is_open)
    else:
        return None
    is_one = (
        1000 <= (date.year or 0) < 2200
        and 1 <= (date.month or 0) <= 12
        and 1 <= (date.day or 0) <= 31
    )
    return date if is_one else None


def _with_months(text: str) -> Iterator[Date]:
    """Yields the dates with a month in words, and the numbers before or behind it."""
    done = 0
    for match in _MONTH.finditer(text):
        start, end = match.start(), match.end()
        before = text[max(start - _LOOK_BACK, done) : start]
        name = match["name"]
        date = Date(month=_MONTH_NUMBERS[MONTHS[name.casefold()]])
        if found := _BEFORE_MONTH.search(before):
            start += found.start() - len(before)
            after = _YEAR_AFTER.match(text, end)
            date = date._replace(day=int(found["day"]), year=_year(after) if after else None)
        elif after := _DAY_AFTER.match(text, end):
            date = date._replace(day=int(after["day"]), year=_year(after))
        elif after := _YEAR_ALONE.match(text, end):
            date = date._replace(year=_year(after))
        elif not (
            name in _ONLY_MONTHS
            or _IN.search(before)
            or (len(text) <= 3 * len(name) and text.strip(" .,;:!?\"'()*") == name)
        ):
            continue
        done = after.end() if after else end
        yield date._replace(start=start, end=done)


# --- times of day ---------------------------------------------------------------------------------

_CLOCK: Final = re.compile(
    r"(?<![\d.,:/])(?P<hour>[01]?\d|2[0-4])(?:(?P<sign>[:.])(?P<minute>[0-5]\d)(?::\d\d)?)?(?!:?\d)(?:"
    r"\s?(?P<half>[ap])\.?\s?m\b\.?"
    # "9-5 pm" and "10 to 12 am" say the half of the day once, for both.
    r"|(?P<later>(?=\s?(?:-|–|to|until|and)\s?\d\d?(?:[:.]\d\d)?\s?[ap]\.?\s?m\b))"
    r"|\s?(?P<clock>o['’]?\s?clock)\b"
    r"|(?:\s?Uhr|\.\s?ur[aeio])\b(?:\s(?P<after>[0-5]\d)\b)?"
    # "2 h 30 min" is how long something takes.
    r"|\s?h(?:\s(?!\d\d\s?min))?(?P<behind>[0-5]\d)(?!\d)"
    r"|\s?(?P<hours>h|hours|hrs)\b(?!\s?(?:per|a)\b)"
    r"|(?P<plain>))",
    re.IGNORECASE,
)
_AT: Final = re.compile(
    r"\b(?:(?P<ob>ob)|at|à|um|vers|ab|bis|until|jusqu['’]à|de|do|od)\s$", re.IGNORECASE
)
_NOON: Final = re.compile(
    r"\b(?:(?P<noon>noon|midday|opoldne|midi|mittags?)|midnight|opolnoči|minuit|mitternachts?)\b",
    re.IGNORECASE,
)
_CLOCK_WORDS: Final = frozenset("a p am pm h hours hrs uhr ob ura ure uri uro clock oclock".split())
_NOON_WORDS: Final = frozenset(
    "noon midday opoldne midi mittag mittags midnight opolnoči minuit mitternacht "
    "mitternachts".split()
)
_COLON: Final = re.compile(r"\d:\d")
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


def clock_times(text: str, words: Set[str]) -> Iterator[ClockTime]:
    """Yields the times of day of a text, by kind of notation.

    Args:
        text: A text whose numbers are digits; see ``words.with_digits``.
        words: Its words in lower case.
    """
    if not _CLOCK_WORDS.isdisjoint(words) or _COLON.search(text):
        for match in _CLOCK.finditer(text):
            if time := _time(match):
                yield time
    for match in _NOON.finditer(text) if not _NOON_WORDS.isdisjoint(words) else ():
        yield ClockTime(_HALF_DAY if match["noon"] else 0, False, match.start(), match.end())


def _time(match: re.Match[str]) -> ClockTime | None:
    hour = int(match["hour"])
    has_colon = match["sign"] == ":"
    if match["plain"] is not None or match["hours"]:
        at = _AT.search(match.string[max(match.start() - _LOOK_BACK, 0) : match.start()])
        is_said = at is not None and (match["hours"] or (at["ob"] and match["sign"]))
        if not (has_colon or (is_said and (match["plain"] is not None or not match["sign"]))):
            return None
    if match["clock"]:
        return ClockTime(hour * 60, True, *match.span()) if 1 <= hour <= 12 else None
    minute = int(match["minute"] or match["after"] or match["behind"] or 0)
    half = match["half"]
    if half and hour <= 12:
        hour = hour % 12 + (12 if half.casefold() == "p" else 0)
    # "03:30" and "15:30" are of 24 hours, "3:30" may be in the afternoon.
    is_open = has_colon and not half and 0 < hour < 12 and match["hour"][0] != "0"
    is_open = is_open or match["later"] is not None
    return ClockTime((hour * 60 + minute) % _MINUTES_A_DAY, is_open, *match.span())
