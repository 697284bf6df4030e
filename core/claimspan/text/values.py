"""Reads the values of a text: amounts, dates and times of day, each place of the text once.

Every judge compares what this module reads, for a claim that is a bare value and for one that has
values among its words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from claimspan.text.amounts import Amount, AmountKind, amounts_in_digits
from claimspan.text.times import ClockTime, Date, clock_times, dates
from claimspan.text.units import PERCENT
from claimspan.text.value_signs import DIGIT, HALF, PART, PARTS, PLACE, PLACES, SLASH, signs_of
from claimspan.text.value_words import Rewritten, with_digits
from claimspan.text.words import stem

__all__ = [
    "Share",
    "Values",
    "read_values",
]


# --- shares ---------------------------------------------------------------------------------------

_NAMES: Final = "|".join(PARTS)
_IN: Final = r"(?:in|out of|in every|von|od|sur)"
_PATTERNS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<![\d/.,:])(?P<some>\d{1,3})\s?/\s?(?P<all>\d{1,3})(?![\d/]|[.,]\d)",
        rf"(?<![\d.,:])(?P<some>\d{{1,3}})\s{_IN}\s(?:every\s)?(?P<all>\d{{1,3}})(?![\d%]|[.,:/]\d|st|th)",
        rf"(?<![\d.,:])(?P<some>\d{{1,2}})[\s-](?P<part>{_NAMES})s?(?:-part)?\b(?!\s\d)",
        # "A third" is a share where it is one of something; "a third visit" is the next one.
        rf"\b(?:an?|ein|un|une)\s(?P<part>{_NAMES})(?=\s(?:of|der|des|de|d['’])|-part|\W*$|[.,;)])(?:-part)?"
        r"(?!\sof\s(?:a\s|an\s)?(?:hour|mile|inch|\d{4}))",
        rf"\b(?P<part>{_NAMES})-part\b|\bun\s(?P<quart>quart)\b",
        r"(?<!first )(?<!second )(?<!other )(?<!latter )(?<!1st )(?<!2nd )(?<![\w-])"
        r"(?:(?:the|die|la)\s)?(?P<half>half)\b"
        r"(?!-|\s(?:an?|past|time|hour|year|brother|sister|\d)\b)",
    )
)
# A text in which the pattern at that place matches has all of these signs.
_SIGNS: Final = (DIGIT | SLASH, DIGIT, DIGIT | PART, PART, PART, HALF)
_NEEDED: Final = SLASH | PART | HALF
# Nearly no number stands before one of these words, and looking for both is fast.
_NUMBER_IN: Final = re.compile(r"\d\s(?:in|out|von|od|sur)\s", re.IGNORECASE)


class Share(NamedTuple):
    """A share of a whole."""

    some: int
    """How many parts are meant."""

    of: int
    """How many parts the whole has."""

    start: int
    """Where it begins in the text."""

    end: int
    """Where it ends in the text."""


def _shares(text: str, signs: int | None = None) -> Iterator[Share]:
    """Yields the shares of a text, by kind of notation."""
    signs = signs_of(text) if signs is None else signs
    has_number_in = bool(signs & DIGIT and _NUMBER_IN.search(text))
    if not has_number_in and not signs & _NEEDED:
        return
    taken: set[int] = set()
    for pattern, needed in zip(_PATTERNS, _SIGNS, strict=True):
        if signs & needed != needed or (needed == DIGIT and not has_number_in):
            continue
        for match in pattern.finditer(text):
            share = _share(match)
            if 0 < share.some < share.of and taken.isdisjoint((share.start, share.end - 1)):
                taken.update(range(share.start, share.end))
                yield share


def _share(match: re.Match[str]) -> Share:
    part = match.groupdict()
    some = int(part.get("some") or 1)
    name = "quarter" if part.get("quart") else (part.get("part") or "half").casefold()
    whole = int(part["all"]) if part.get("all") else PARTS[name]
    return Share(some, whole, match.start(), match.end())


# --- all values -----------------------------------------------------------------------------------

# Two thousand take 80 ms, in which an event loop stands still.
_MAX_AMOUNTS: Final = 2_000
_RANGE: Final = re.compile(r"\s?(?:-|–|—)\s?|\s(?:to|bis|do|à|through)\s", re.IGNORECASE)
_DASHES: Final = frozenset("-–—")
_BETWEEN: Final = re.compile(r"\b(?:between|zwischen|med|entre)\s\W?$", re.IGNORECASE)
_AND: Final = re.compile(r"\s(?:and|und|in|et)\s\W?", re.IGNORECASE)
# "Rose from 5 to 7" is a change, and has two values.
_CHANGE: Final = re.compile(
    r"\b(?:ros|rais|grew|grow|increas|improv|expand|went|go|chang|mov|up|climb|jump)\w*\s"
    r"(?:\w+\s){0,3}from\s\W?$",
    re.IGNORECASE,
)
_BEFORE: Final = 40
_PARTS: Final = re.compile(r",?\s(?:(?:and|und|in|et)\s)?")
_PLACE: Final = re.compile(rf"\b({'|'.join(PLACES)})\b(?:[\s-]([^\W\d_]{{3,}}))?", re.IGNORECASE)
# A share is exact, however many digits it takes in hundredths.
_SHARE_STEP: Final = Decimal("1e-9")

_Placed = TypeVar("_Placed", Amount, Date, ClockTime)


class Values(NamedTuple):
    """What a text gives in numbers."""

    amounts: Sequence[Amount] = ()
    """Amounts that are no part of a date or a time, and shares as percentages."""

    dates: Sequence[Date] = ()
    """Dates with at least a month, a quarter or a decade; a year alone is an amount."""

    times: Sequence[ClockTime] = ()
    """Times of day."""

    def __bool__(self) -> bool:
        """Whether there is any value."""
        return bool(self.amounts or self.dates or self.times)


def read_values(text: str) -> Values:
    """Reads the values of a text.

    Args:
        text: Any text; words are read in English, German, Slovenian and French.

    Returns:
        Its values, with their places in the text; of a dump of numbers the first two thousand.
    """
    signs = signs_of(text)
    if not signs:
        return Values()
    written = with_digits(text, signs)
    readable = written.text
    signs = signs if readable is text else signs_of(readable)
    found_dates = tuple(dates(readable, signs))
    times = tuple(_outside(clock_times(readable, signs), found_dates))
    parts = tuple(_outside(map(_percentage, _shares(readable, signs)), found_dates))
    numbers = islice(amounts_in_digits(readable, signs), _MAX_AMOUNTS)
    plain = _outside(numbers, (*found_dates, *times, *parts))
    joined = _with_ranges(readable, _with_durations(readable, list(plain)))
    places = _outside(_places(readable) if signs & PLACE else (), (*found_dates, *parts, *joined))
    every = sorted((*joined, *parts, *places), key=lambda each: each.start)
    if readable is text:
        return Values(tuple(every), found_dates, times)
    return Values(
        tuple(_in_original(every, written)),
        tuple(_in_original(found_dates, written)),
        tuple(_in_original(times, written)),
    )


def _in_original(found: Iterable[_Placed], written: Rewritten) -> Iterator[_Placed]:
    for each in found:
        yield each._replace(start=written.start(each.start), end=written.end(each.end))


def _outside(
    found: Iterable[_Placed], taken: Sequence[Amount | Date | ClockTime]
) -> Iterator[_Placed]:
    """Yields what stands in none of the places that are taken."""
    if not taken:
        yield from found
        return
    places = {place for each in taken for place in range(each.start, each.end)}
    for each in found:
        if places.isdisjoint(range(each.start, each.end)):
            yield each


def _percentage(share: Share) -> Amount:
    """A share as the percentage that it is."""
    value = Decimal(100 * share.some) / share.of
    return _amount(value, _SHARE_STEP, PERCENT, "value", share.start, share.end)


def _places(text: str) -> Iterator[Amount]:
    """Places in a list that are words: ``first`` as ``1st``."""
    for match in _PLACE.finditer(text):
        value = Decimal(PLACES[match[1].casefold()])
        place = _amount(value, Decimal(1), "", "ordinal", match.start(1), match.end(1))
        yield place._replace(noun=stem(match[2] or ""))


def _amount(
    value: Decimal, step: Decimal, unit: str, kind: AmountKind, start: int, end: int
) -> Amount:
    one = Decimal(1)
    return Amount(value, step, None, unit, one, kind, "", False, start, end)


def _with_durations(text: str, found: Sequence[Amount]) -> list[Amount]:
    """Joins the parts of a duration: ``1 hour 30 minutes`` is 90 minutes."""
    joined: list[Amount] = []
    for each in found:
        before = joined[-1] if joined else None
        if before and _goes_on(text, before, each):
            hours = before.value * before.factor / each.factor
            each = each._replace(value=hours + each.value, start=before.start)
            joined.pop()
        joined.append(each)
    return joined


def _goes_on(text: str, before: Amount, after: Amount) -> bool:
    return (
        before.unit == after.unit == "time"
        and before.factor > after.factor
        and _PARTS.fullmatch(text, before.end, after.start) is not None
    )


def _with_ranges(text: str, found: Sequence[Amount]) -> list[Amount]:
    """Joins the ends of ranges: ``5 to 7 days``, ``between 5 and 7``."""
    joined: list[Amount] = []
    for each in found:
        before = joined[-1] if joined else None
        if before and _is_range(text, before, each):
            joined[-1] = each._replace(
                value=before.value,
                until=each.value,
                start=before.start,
                unit=each.unit or before.unit,
                bound="",
            )
        else:
            joined.append(each)
    return joined


def _is_range(text: str, low: Amount, high: Amount) -> bool:
    if low.kind != "value" or high.kind != "value" or low.until is not None:
        return False
    # "$5-7" names its currency once, before both ends; "$5 to 7 people" is no range.
    is_priced = low.is_money and not high.unit and text[low.end : high.start].strip() in _DASHES
    if not is_priced and (low.unit not in ("", high.unit) or low.factor not in (1, high.factor)):
        return False
    if low.value >= high.value and low.scale == high.scale:
        return False
    lead = text[max(low.start - _BEFORE, 0) : low.start]
    if _BETWEEN.search(lead):
        return _AND.fullmatch(text, low.end, high.start) is not None
    return _RANGE.fullmatch(text, low.end, high.start) is not None and _CHANGE.search(lead) is None
