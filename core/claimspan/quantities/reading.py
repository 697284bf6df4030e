"""Reads the values of a text: amounts, dates and times of day, each place of the text once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from decimal import Decimal
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from claimspan.quantities.amounts import Amount, AmountKind, amounts
from claimspan.quantities.dates import ClockTime, Date, clock_times, dates
from claimspan.quantities.vocabulary import MONTHS, PARTS, REWRITTEN_WORDS
from claimspan.quantities.words import with_digits, words_of
from claimspan.text.units import PERCENT
from claimspan.text.words import ORDINALS, stem

__all__ = ["Values", "read_values"]


# --- shares ---------------------------------------------------------------------------------------

_NAMES: Final = "|".join(PARTS)
_SHARE: Final = re.compile(
    r"(?<![\d/.,:])(?P<some>\d{1,3})(?:"
    r"\s?/\s?(?P<all>\d{1,3})(?![\d/]|[.,]\d)"
    r"|\s(?:in|out of|in every|von|od|sur)\s(?:every\s)?(?P<in>\d{1,3})(?![\d%]|[.,:/]\d|st|th)"
    rf"|[\s-](?P<part>{_NAMES})s?(?:-part)?\b)",
    re.IGNORECASE,
)
# "A third" is a share if it is one of something; "a third visit" is the next one.
_ONE_PART: Final = re.compile(
    rf"\b(?:an?|ein|un|une)\s(?P<part>{_NAMES})(?=\s(?:of|der|des|de|d['’])|-part|\W*$|[.,;)])(?:-part)?"
    r"(?!\sof\s(?:a\s|an\s)?(?:hour|mile|inch|\d{4}))"
    rf"|\b(?P<alone>{_NAMES})-part\b|\bun\s(?P<quart>quart)\b",
    re.IGNORECASE,
)
_HALF: Final = re.compile(
    r"(?<!first )(?<!second )(?<!other )(?<!latter )(?<!1st )(?<!2nd )(?<![\w-])"
    r"(?:(?:the|die|la)\s)?half\b(?!-|\s(?:an?|past|time|hour|year|brother|sister|\d)\b)",
    re.IGNORECASE,
)
_PART_WORDS: Final = frozenset((*PARTS, *(f"{part}s" for part in PARTS), "quart"))
# A share is exact, however many digits it takes in hundredths.
_SHARE_STEP: Final = Decimal("1e-9")


def _shares(text: str, words: Set[str]) -> Iterator[Amount]:
    """Yields the shares of a text as the percentages that they are, by kind of notation."""
    for match in _SHARE.finditer(text):
        part = (match["part"] or "").casefold()
        whole = PARTS[part] if part else int(match["all"] or match["in"])
        if 0 < int(match["some"]) < whole:
            yield _share(match, int(match["some"]), whole)
    if _PART_WORDS.isdisjoint(words):
        return
    for match in _ONE_PART.finditer(text):
        part = "quarter" if match["quart"] else (match["part"] or match["alone"]).casefold()
        yield _share(match, 1, PARTS[part])
    for match in _HALF.finditer(text) if "half" in words else ():
        yield _share(match, 1, 2)


def _share(match: re.Match[str], some: int, whole: int) -> Amount:
    value = Decimal(100 * some) / whole
    return _amount(value, _SHARE_STEP, PERCENT, "value", *match.span())


def _amount(
    value: Decimal, step: Decimal, unit: str, kind: AmountKind, start: int, end: int
) -> Amount:
    return Amount(value, step, None, unit, Decimal(1), kind, "", start, end)


# --- all values -----------------------------------------------------------------------------------

# Two thousand take 80 ms, in which an event loop stands still.
_MAX_OF_A_KIND: Final = 2_000
_RANGE: Final = re.compile(r"\s?(?:-|–|—)\s?|\s(?:to|bis|do|à|through)\s", re.IGNORECASE)
_DASHES: Final = frozenset("-–—")
_BETWEEN: Final = re.compile(r"\b(?:between|zwischen|med|entre)\s\W?$", re.IGNORECASE)
_AND: Final = re.compile(r"\s(?:and|und|in|et)\s\W?", re.IGNORECASE)
_BEFORE: Final = 12
_PARTS: Final = re.compile(r",?\s(?:(?:and|und|in|et)\s)?")
_PLACE: Final = re.compile(rf"\b({'|'.join(ORDINALS)})\b(?:[\s-]([^\W\d_]{{3,}}))?", re.IGNORECASE)
# What is a value without a digit, beside numbers, months and parts in words.
_ALONE: Final = frozenset(
    "noon midday midi mittag mittags midnight opoldne opolnoči minuit mitternacht mitternachts "
    "demi halbe pol".split()
)
_TELLING: Final = REWRITTEN_WORDS | _PART_WORDS | _ALONE | MONTHS.keys() | ORDINALS.keys()
_DIGIT: Final = re.compile(r"\d")

_Placed = TypeVar("_Placed", Amount, Date, ClockTime)


class Values(NamedTuple):
    """The numbers of a text."""

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

    Returns:
        Its values, with their places in the text; of a dump of numbers the first two thousand of
        each kind.
    """
    words = words_of(text)
    has_digits = _DIGIT.search(text) is not None
    if not has_digits and _TELLING.isdisjoint(words):
        return Values()
    written = with_digits(text, words)
    readable = text
    if written is not None:
        readable = written.text
        words = words_of(readable)
    taken = bytearray(len(readable))
    found_dates = _free(dates(readable, words), taken)
    times = _free(clock_times(readable, words), taken)
    parts = _free(_shares(readable, words), taken)
    numbers = _with_durations(readable, _free(amounts(readable), taken))
    joined = _with_ranges(readable, numbers)
    for each in joined:  # with what stands between the ends of a range
        _take(each, taken)
    places = _free(_places(readable, words), taken)
    every = sorted((*joined, *parts, *places), key=lambda each: each.start)
    if written is None:
        return Values(every, found_dates, times)
    starts, ends = written.starts, written.ends

    def original(found: Sequence[_Placed]) -> Sequence[_Placed]:
        return [each._replace(start=starts[each.start], end=ends[each.end - 1]) for each in found]

    return Values(original(every), original(found_dates), original(times))


def _take(value: Amount | Date | ClockTime, taken: bytearray) -> None:
    taken[value.start : value.end] = b"\1" * (value.end - value.start)


def _free(found: Iterable[_Placed], taken: bytearray) -> Sequence[_Placed]:
    """Returns the values outside of the taken places, and takes their places."""
    free: list[_Placed] = []
    for each in islice(found, _MAX_OF_A_KIND):
        if taken.find(1, each.start, each.end) < 0:
            _take(each, taken)
            free.append(each)
    return free


def _places(text: str, words: Set[str]) -> Iterator[Amount]:
    """Places in a list that are words: ``first`` as ``1st``."""
    for match in _PLACE.finditer(text) if not ORDINALS.keys().isdisjoint(words) else ():
        value = Decimal(ORDINALS[match[1].casefold()])
        place = _amount(value, Decimal(1), "", "ordinal", *match.span(1))
        yield place._replace(noun=stem(match[2] or ""))


def _with_durations(text: str, found: Sequence[Amount]) -> list[Amount]:
    """Joins the parts of a duration: ``1 hour 30 minutes`` is 90 minutes."""
    joined: list[Amount] = []
    for each in found:
        before = joined[-1] if joined else None
        if (
            before
            and before.unit == each.unit == "time"
            and before.factor > each.factor
            and _PARTS.fullmatch(text, before.end, each.start)
        ):
            hours = before.value * before.factor / each.factor
            joined[-1] = each._replace(value=hours + each.value, start=before.start)
        else:
            joined.append(each)
    return joined


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
    return _RANGE.fullmatch(text, low.end, high.start) is not None
