"""Writes number words as digits, and the words beside numbers in English.

What reads values knows digits and English then: ``vingt-cinq jours`` is read as ``25 days``. Words
that stand beside no number stay as they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Final, NamedTuple

from claimspan.quantities.vocabulary import (
    AMBIGUOUS,
    ENGLISH_SCALES,
    HALVES,
    LANGUAGE_WORDS,
    MONTH_WORDS,
    NUMBER_WORDS,
    PART_WORDS,
    REWRITTEN_WORDS,
    SCALE_WORDS,
    UNIT_WORDS,
)
from claimspan.text.words import ORDINALS

__all__ = ["Rewritten", "with_digits", "words_of"]

_WORD: Final = re.compile(r"[^\W\d_]+")


def words_of(text: str) -> frozenset[str]:
    """Returns the words of a text in lower case."""
    return frozenset(_WORD.findall(text.casefold()))


# --- edits ----------------------------------------------------------------------------------------

_Edit = tuple[int, int, str]
"""Start and end of a piece of a text, and its replacement."""


class Rewritten(NamedTuple):
    """A text after its edits."""

    text: str
    """The new text."""

    starts: Sequence[int]
    """The start of each of its characters in the old text."""

    ends: Sequence[int]
    """The end of each of them there. Inside of a replacement are only its two ends."""


def _rewrite(text: str, edits: Iterable[_Edit]) -> Rewritten:
    """Applies edits to a text in order, but for those that overlap an earlier one."""
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    done = 0
    for start, end, replacement in (*sorted(edits), (len(text), len(text), "")):
        if start < done:
            continue
        same = start if len(replacement) != end - start else end
        parts += text[done:start], replacement
        starts += range(done, same)
        ends += range(done + 1, same + 1)
        if same != end:
            starts += [start] * len(replacement)
            ends += [end] * len(replacement)
        done = end
    return Rewritten("".join(parts), starts, ends)


# --- signs ----------------------------------------------------------------------------------------

_SYMBOLS: Final = re.compile(
    r"(?<=\d)(?:"
    r"\s?(?:[°º]\s?|deg(?:rees?|rés?)?\.?\s|Grad\s|stopinj\w?\s|degrés?\s)(?:"
    r"(?P<celsius>C\b|Celsius|Celzija)|(?P<fahrenheit>F\b|Fahrenheit\w?))"
    r"|\s?(?P<kmh>km/h|kph|km/uro|(?:km|kilomet(?:er|re|rov)s?)\s(?:per|an|pro|na)\s(?:hour|Stunde|uro)"
    r"|kilomètres?\s(?:à\sl['’]|par\s)heure)\b"
    r"|\s?(?P<mph>mi/h|miles?\s(?:per|an)\shour)\b"
    r"|\s(?P<percent>pour[\s-]cent)\b"
    r")",
    re.IGNORECASE,
)
# "1½" and "1 1/2" are one number. Other parts, such as tenths, are rarely written so.
_MIXED: Final = re.compile(
    r"(?<![\d/.,])(\d{1,3})(?:\s?([½¼¾⅓⅔⅛⅜⅝⅞])|\s([1-7])[/⁄]([2348]))(?![\d/]|[.,]\d)"
)
# "12 500" is one number, but a row of a table is several.
_SPACED: Final = re.compile(r"(?<![\d.,/:])(?<!\d\s)\d{1,3}(?:\s\d{3})+(?![\d/:]|[.,]\d{3}|\s\d)")
# The beginning of such a number or row, which few texts have.
_APART: Final = re.compile(r"\d\s\d{3}")
_HALF_UNIT: Final = re.compile(
    r"\bhalf\san?\s(?=hour|year|day|mile|kilo|decade|century|gram|lit|met|inch|gallon|pound|percent)"
    r"|\b(?P<hours>(?:eine\s)?halbe\sStunde|pol\sure|(?:une\s)?demi[\s-]heure)\b"
)
_HALF_WORDS: Final = frozenset({"half", "halbe", "pol", "demi"})


def _edits_of_signs(text: str, words: Set[str]) -> Iterator[_Edit]:
    if not _HALF_WORDS.isdisjoint(words):
        for match in _HALF_UNIT.finditer(text):
            yield (*match.span(), "0.5 hours" if match["hours"] else "0.5 ")
    if not _DIGIT.search(text):
        return
    for match in _SYMBOLS.finditer(text):
        yield (*match.span(), f" {match.lastgroup}")
    for match in _MIXED.finditer(text) if "/" in text or not text.isascii() else ():
        whole, sign, some, of = match.groups()
        part = unicodedata.numeric(sign) if sign else int(some) / int(of)
        if part < 1:
            yield (*match.span(), f"{int(whole) + part:.3f}".rstrip("0"))
    for match in _SPACED.finditer(text) if _APART.search(text) else ():
        yield (*match.span(), re.sub(r"\s", "\u202f", match.group()))


# --- words ----------------------------------------------------------------------------------------

_DIGIT: Final = re.compile(r"\d")
# What may stand between the words of one number: "twenty-five", "two hundred and fifty".
_JOINT: Final = re.compile(r"-|\s(?:(?:and|et|und|in)\s)?|-et-")
# "Twenty-first" is one place in a list; a "thirty-second delay" is one of thirty seconds.
_PLACE: Final = re.compile(
    r"-(first|third|fourth|fifth|sixth|seventh|eighth|ninth)\b", re.IGNORECASE
)
_ENDINGS: Final = {1: "st", 3: "rd"}
_HALF: Final = re.compile(r"\s(?:and\sa\shalf|et\sdemie?)\b")
_COUNTED: Final = ENGLISH_SCALES | {"dutzend", "ducat", "douzaine", "tausend", "hundert"}
_SCALES: Final = {**SCALE_WORDS, **dict(zip(ENGLISH_SCALES, ENGLISH_SCALES, strict=True))}
# "A million" is one, "half a million" the half of one; "a few thousand" is neither.
_ARTICLE: Final = re.compile(r"(?:\b(half)\s)?\b(?:a|an|eine?|un|une|en|ena)\s$", re.IGNORECASE)
_BESIDE: Final = re.compile(r"[\d.][\s-]?$")
_DAY_AFTER: Final = re.compile(r"\s\d")
_BEFORE_MONTH: Final = re.compile(
    r"(?:\d[.\s]*|\b(?:im|seit|bis|ab|anfang|mitte|ende|en|depuis|début|fin|mois de|v|od|do|konec|"
    r"začetek|meseca))\s$",
    re.IGNORECASE,
)
_BEFORE_WIDTH: Final = 12
_LANGUAGE_SAMPLE: Final = 5_000
# "Nine hundred ninety-nine million nine hundred ninety-nine thousand" has eleven; a text of nothing
# but number words is read in linear time.
_MAX_NUMBER_WORDS: Final = 16
# "Soixante-dix" and "quatre-vingt-treize" go on to nineteen.
_LONG_TENS: Final = frozenset({60, 80})
_HUNDRED: Final = 100

_Hit = tuple[re.Match[str], str]
"""A word that may be rewritten, and the word in lower case."""


def with_digits(text: str, words: Set[str] | None = None) -> Rewritten | None:
    """Writes the number words of a text in digits, and units, months and parts in English.

    Args:
        text: A text in English, German, Slovenian or French.
        words: The result of ``words_of`` for it; None to look.

    Returns:
        The text after that; None if nothing in it changes.
    """
    words = words_of(text) if words is None else words
    edits = [*_edits_of_signs(text, words)]
    if not REWRITTEN_WORDS.isdisjoint(words):
        edits += _Words(text).edits()
    return _rewrite(text, edits) if edits else None


class _Words:
    """The edits of the words of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._language: str | None = None

    def edits(self) -> Iterator[_Edit]:
        """Yields the edits in order."""
        hits = [
            (match, folded)
            for match in _WORD.finditer(self._text)
            if (folded := match.group().casefold()) in REWRITTEN_WORDS
        ]
        place = number_end = 0
        while place < len(hits):
            match, word = hits[place]
            is_beside = (
                0 < number_end >= match.start() - 1
                or _BESIDE.search(self._text[max(match.start() - 2, 0) : match.start()]) is not None
            )
            used = 1
            # The thousand of "5 thousand" is no number of its own.
            if word in NUMBER_WORDS and not (word in _SCALES and is_beside):
                edit, used = self._number(hits[place : place + _MAX_NUMBER_WORDS])
            else:
                edit = self._other(match, word, is_beside=is_beside)
            place += used
            if edit:
                yield edit
                number_end = edit[1]

    def _number(self, hits: Sequence[_Hit]) -> tuple[_Edit | None, int]:
        """The edit of a number word with those that go on with it, and how many they are."""
        match, word = hits[0]
        if AMBIGUOUS.get(word) not in (None, self._language_of_text()):
            return None, 1
        if word in _COUNTED and (article := self._article(match)):
            start, factor = article
            return (start, match.end(), f"{NUMBER_WORDS[word] * factor:g}"), 1
        value, used = _joined_value([NUMBER_WORDS[each] for _, each in self._run(hits)])
        start, end = match.start(), hits[used - 1][0].end()
        if value % 100 >= 20 and (place := _PLACE.match(self._text, end)):
            value += ORDINALS[place[1].casefold()]
            return (start, place.end(), f"{value}{_ENDINGS.get(value % 10, 'th')}"), used
        if half := _HALF.match(self._text, end):
            return (start, half.end(), f"{value}.5"), used
        return (start, end, str(value)), used

    def _run(self, hits: Sequence[_Hit]) -> Sequence[_Hit]:
        count = 1
        while (
            count < len(hits)
            and NUMBER_WORDS.get(hits[count][1], 1000) < 1000
            and _JOINT.fullmatch(self._text, hits[count - 1][0].end(), hits[count][0].start())
        ):
            count += 1
        return hits[:count]

    def _before(self, match: re.Match[str]) -> str:
        return self._text[max(match.start() - _BEFORE_WIDTH, 0) : match.start()]

    def _article(self, match: re.Match[str]) -> tuple[int, float] | None:
        """Where ``a`` or ``half a`` begins before a scale word, and the factor that it means."""
        article = _ARTICLE.search(before := self._before(match))
        if article is None:
            return None
        start = match.start() - len(before) + article.start()
        return start, 0.5 if article[1] else 1.0

    def _other(self, match: re.Match[str], word: str, *, is_beside: bool) -> _Edit | None:
        """The edit of a scale word, a unit, a month or a part."""
        start, end = match.span()
        if word in HALVES:
            return start, end, HALVES[word]
        if scale := _SCALES.get(word):
            if not is_beside:
                article = self._article(match)
                return (article[0], end, f"{article[1]:g} {scale}") if article else None
            return None if word == scale else (start, end, scale)
        before = self._before(match)
        if word in MONTH_WORDS and (
            _BEFORE_MONTH.search(before) or _DAY_AFTER.match(self._text, end)
        ):
            return start, end, MONTH_WORDS[word]
        if word in UNIT_WORDS and is_beside and not before.endswith(". "):
            is_read = word != "an" or self._language_of_text() == "fr"
            return (start, end, UNIT_WORDS[word]) if is_read else None
        return (start, end, PART_WORDS[word]) if word in PART_WORDS else None

    def _language_of_text(self) -> str:
        if self._language is None:
            words = words_of(self._text[:_LANGUAGE_SAMPLE])
            counts = {name: len(words & known) for name, known in LANGUAGE_WORDS.items()}
            best = max(counts, key=counts.__getitem__)
            self._language = best if counts[best] else "en"
        return self._language


def _joined_value(values: Sequence[int]) -> tuple[int, int]:
    """Reads number words that stand one after the other as one number: ``two hundred fifty``.

    Args:
        values: The values of the words, at least one.

    Returns:
        The number, and how many of the words belong to it.
    """
    total, last = values[0], values[0]
    for count, value in enumerate(values[1:], 1):
        if value in (_HUNDRED, 12) and total < 10:  # "two hundred", "two dozen"
            total *= value
        elif value == 20 and total % _HUNDRED == 4:  # "quatre-vingt"
            total += 76
            value = 80
        elif not _follows(last, value):
            return total, count
        else:
            total += value
            value = total % _HUNDRED if value >= 10 else value
        last = value
    return total, len(values)


def _follows(last: int, value: int) -> bool:
    """Tells whether a word goes on with the number that another word began."""
    if last and last % _HUNDRED == 0:
        return 0 < value < _HUNDRED
    is_ten = 20 <= last < _HUNDRED and last % 10 == 0
    if last == 10 and 7 <= value <= 9:  # "dix-sept"
        return True
    return is_ten and 0 < value < (20 if last in _LONG_TENS else 10)
