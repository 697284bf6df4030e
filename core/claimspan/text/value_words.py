"""Writes number words as digits, and the words beside numbers in English.

What reads values knows digits and English then: ``vingt-cinq jours`` is read as ``25 days``. Words
that stand beside no number stay as they are.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from claimspan.text.value_signs import (
    AMBIGUOUS,
    DIGIT,
    ENGLISH_SCALES,
    HALF,
    HALVES,
    LANGUAGE_WORDS,
    MONTH_WORDS,
    NUMBER_WORDS,
    PART_WORDS,
    PLACES,
    REWRITTEN_WORDS,
    SCALE_WORDS,
    SYMBOL,
    UNIT_WORDS,
    WORD,
    ascii_letters,
    joined_value,
    signs_of,
    signs_of_piece,
)

__all__ = ["Edit", "Rewritten", "with_digits"]


# --- rewriting ------------------------------------------------------------------------------------


class Edit(NamedTuple):
    """One piece of a text and what stands there instead."""

    start: int
    """Where the piece begins."""

    end: int
    """Where it ends."""

    replacement: str
    """What replaces it."""


class Rewritten(NamedTuple):
    """A text after its edits."""

    text: str
    """The new text."""

    places: Sequence[int]
    """Where unchanged pieces and replacements begin in the new text, ascending."""

    origins: Sequence[tuple[int, int]]
    """For each of them, where it began and ended in the old text."""

    def start(self, place: int) -> int:
        """Returns where the character at a place of the new text began in the old one.

        Args:
            place: An index into the new text.
        """
        return self._origin(place, place)

    def end(self, place: int) -> int:
        """Returns where the character before a place of the new text ended in the old one.

        Args:
            place: An index into the new text that follows at least one character.
        """
        return self._origin(place - 1, place)

    def _origin(self, inside: int, place: int) -> int:
        part = bisect_right(self.places, inside) - 1
        start, end = self.origins[part]
        is_end = place > inside
        # Inside of a replacement there are no places of the old text but its two ends.
        shift = place - self.places[part]
        length = (
            self.places[part + 1] if part + 1 < len(self.places) else len(self.text)
        ) - self.places[part]
        if length == end - start:
            return start + shift
        return end if is_end else start


def _rewrite(text: str, edits: Iterable[Edit]) -> Rewritten:
    """Applies edits to a text.

    Returns:
        The new text, which knows where its characters come from.
    """
    parts: list[str] = []
    places: list[int] = []
    origins: list[tuple[int, int]] = []
    done = length = 0

    def add(part: str, start: int, end: int) -> None:
        nonlocal length
        if part:
            places.append(length)
            origins.append((start, end))
            parts.append(part)
            length += len(part)

    for edit in edits:
        add(text[done : edit.start], done, edit.start)
        add(edit.replacement, edit.start, edit.end)
        done = edit.end
    add(text[done:], done, len(text))
    return Rewritten("".join(parts), places or [0], origins or [(0, 0)])


# --- values in words ------------------------------------------------------------------------------

_WORD: Final = re.compile(r"[^\W\d_]+")
# What may stand between the words of one number: "twenty-five", "two hundred and fifty".
_JOINT: Final = re.compile(r"-|\s(?:(?:and|et|und|in)\s)?|-et-")
# "Twenty-first" is one place in a list; a "thirty-second delay" is one of thirty seconds.
_PLACE: Final = re.compile(
    r"-(first|third|fourth|fifth|sixth|seventh|eighth|ninth)\b", re.IGNORECASE
)
_ENDINGS: Final = {1: "st", 3: "rd"}
_HALF: Final = re.compile(r"\s(?:and\sa\shalf|et\sdemie?)\b")
_COUNTED: Final = ENGLISH_SCALES | {"dutzend", "ducat", "douzaine", "tausend", "hundert"}
# "A million" is one, "half a million" the half of one; "a few thousand" is neither.
_ARTICLE: Final = re.compile(r"(?:\b(half)\s)?\b(?:a|an|eine?|un|une|en|ena)\s$", re.IGNORECASE)
_ARTICLE_WIDTH: Final = 10
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
# Of more pieces than these, looking for each takes longer than looking at every word.
_FEW: Final = 12
_BESIDE: Final = re.compile(r"[\d.][\s-]?$")
_DAY_AFTER: Final = re.compile(r"\s\d")
_BEFORE_MONTH: Final = re.compile(
    r"(?:\d[.\s]*|\b(?:im|seit|bis|ab|anfang|mitte|ende|en|depuis|début|fin|mois de|v|od|do|konec|"
    r"začetek|meseca))\s$",
    re.IGNORECASE,
)
_BEFORE_WIDTH: Final = 12
_LANGUAGE_SAMPLE: Final = 5_000


def with_digits(text: str, signs: int | None = None) -> Rewritten:
    """Returns a text with its number words in digits, and units, months and parts in English.

    Args:
        text: A text in English, German, Slovenian or French.
        signs: What ``signs_of`` gives for it; None to look.
    """
    signs = signs_of(text) if signs is None else signs
    edits = sorted((*_symbol_edits(text, signs), *(_Words(text).edits() if signs & WORD else ())))
    return _rewrite(text, _apart(edits)) if edits else Rewritten(text, [0], [(0, len(text))])


def _apart(edits: Sequence[Edit]) -> Iterator[Edit]:
    """Drops edits that overlap an earlier one."""
    end = 0
    for edit in edits:
        if edit.start >= end:
            yield edit
            end = edit.end


def _symbol_edits(text: str, signs: int) -> Iterator[Edit]:
    has_symbols, has_spaced = signs & SYMBOL and signs & DIGIT, signs & DIGIT
    for match in _SYMBOLS.finditer(text) if has_symbols else ():
        yield Edit(match.start(), match.end(), f" {match.lastgroup}")
    for match in _MIXED.finditer(text) if signs & DIGIT and _may_be_mixed(text) else ():
        whole, sign, some, of = match.groups()
        part = unicodedata.numeric(sign) if sign else int(some) / int(of)
        if part < 1:
            yield Edit(match.start(), match.end(), f"{int(whole) + part:.3f}".rstrip("0"))
    for match in _HALF_UNIT.finditer(text) if signs & HALF else ():
        yield Edit(match.start(), match.end(), "0.5 hours" if match["hours"] else "0.5 ")
    for match in _SPACED.finditer(text) if has_spaced and _APART.search(text) else ():
        yield Edit(match.start(), match.end(), re.sub(r"\s", "\u202f", match.group()))


def _may_be_mixed(text: str) -> bool:
    return "/" in text or not text.isascii()


def _words_near(text: str) -> Iterator[re.Match[str]]:
    """Yields the words of a text in order, mostly only those that stand by one to be rewritten."""
    if text.isascii():
        for place in _places_of_words(text):
            yield from _WORD.finditer(text, *place)
        return
    pieces = {piece for piece in text.split() if signs_of_piece(piece) & WORD}
    if len(pieces) > _FEW:  # each is looked for in the whole text
        yield from _WORD.finditer(text)
        return
    for start, end in sorted(place for piece in pieces for place in _places(text, piece)):
        yield from _WORD.finditer(text, start, end)


def _places_of_words(text: str) -> list[tuple[int, int]]:
    """Returns where the words of a text in ASCII stand that may be rewritten, in order."""
    letters = f" {ascii_letters(text)} "
    known = REWRITTEN_WORDS.intersection(letters.split())
    if len(known) > _FEW:
        return [(0, len(text))]
    places: list[tuple[int, int]] = []
    for word in known:
        start = -1
        while (start := letters.find(f" {word} ", start + 1)) >= 0:
            places.append((start, start + len(word)))
    return sorted(places)


def _places(text: str, piece: str) -> Iterator[tuple[int, int]]:
    """Yields where a piece stands between two blanks."""
    end = 0
    while (start := text.find(piece, end)) >= 0:
        end = start + len(piece)
        if not text[start - 1 : start].strip() and not text[end : end + 1].strip():
            yield start, end


# "Nine hundred ninety-nine million nine hundred ninety-nine thousand" has eleven; a text of nothing
# but number words is read in linear time.
_MAX_NUMBER_WORDS: Final = 16


class _Words:
    """The edits of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._language: str | None = None

    def edits(self) -> Iterator[Edit]:
        """Yields the edits in order."""
        hits = [
            (match, folded)
            for match in _words_near(self._text)
            if (folded := match.group().casefold()) in REWRITTEN_WORDS
        ]
        place = number_end = 0
        while place < len(hits):
            match, word = hits[place]
            if word in NUMBER_WORDS and not self._is_beside(match, number_end, word):
                edit, used = self._number(hits[place : place + _MAX_NUMBER_WORDS])
                place += max(used, 1)
            else:
                edit, place = self._other(match, word, number_end), place + 1
            if edit:
                yield edit
                number_end = edit.end

    def _is_beside(self, match: re.Match[str], number_end: int, word: str) -> bool:
        """Tells whether a scale word follows its number: the thousand of ``5 thousand``."""
        return (word in ENGLISH_SCALES or word in SCALE_WORDS) and self._follows(match, number_end)

    def _follows(self, match: re.Match[str], number_end: int) -> bool:
        """Tells whether a word stands directly behind a number."""
        start = match.start()
        if number_end and start - number_end <= 1:
            return True
        return bool(_BESIDE.search(self._text[max(start - 2, 0) : start]))

    def _number(self, hits: Sequence[tuple[re.Match[str], str]]) -> tuple[Edit | None, int]:
        """The edit of a number word with those that go on with it, and how many they are."""
        match, word = hits[0]
        if not self._is_number(word):
            return None, 1
        if article := self._article(match):
            start, factor = article
            value = NUMBER_WORDS[word] * factor
            return Edit(start, match.end(), f"{value:g}"), 1
        run = self._run(hits)
        value, used = joined_value([NUMBER_WORDS[each] for _, each in run])
        end = run[used - 1][0].end()
        if value % 100 >= 20 and (place := _PLACE.match(self._text, end)):
            value += PLACES[place[1].casefold()]
            return Edit(
                match.start(), place.end(), f"{value}{_ENDINGS.get(value % 10, 'th')}"
            ), used
        if half := _HALF.match(self._text, end):
            return Edit(match.start(), half.end(), f"{value}.5"), used
        return Edit(match.start(), end, str(value)), used

    def _run(
        self, hits: Sequence[tuple[re.Match[str], str]]
    ) -> Sequence[tuple[re.Match[str], str]]:
        count = 1
        while (
            count < len(hits)
            and hits[count][1] in NUMBER_WORDS
            and NUMBER_WORDS[hits[count][1]] < 1000
            and _JOINT.fullmatch(self._text, hits[count - 1][0].end(), hits[count][0].start())
        ):
            count += 1
        return hits[:count]

    def _article(self, match: re.Match[str]) -> tuple[int, float] | None:
        """Where ``a`` or ``half a`` begins before a scale word, and the factor that it means."""
        if match.group().casefold() not in _COUNTED:
            return None
        start = max(match.start() - _ARTICLE_WIDTH, 0)
        article = _ARTICLE.search(self._text[start : match.start()])
        return (start + article.start(), 0.5 if article[1] else 1.0) if article else None

    def _other(self, match: re.Match[str], word: str, number_end: int) -> Edit | None:
        """The edit of a scale word, a unit, a month or a part."""
        if word in HALVES:
            return Edit(match.start(), match.end(), HALVES[word])
        if word in ENGLISH_SCALES or word in SCALE_WORDS:
            return self._scale(match, word, number_end)
        before = self._text[max(match.start() - _BEFORE_WIDTH, 0) : match.start()]
        if word in MONTH_WORDS and (
            _BEFORE_MONTH.search(before) or _DAY_AFTER.match(self._text, match.end())
        ):
            return Edit(match.start(), match.end(), MONTH_WORDS[word])
        if word in UNIT_WORDS and self._follows(match, number_end) and not before.endswith(". "):
            is_read = word != "an" or self._language_of_text() == "fr"
            return Edit(match.start(), match.end(), UNIT_WORDS[word]) if is_read else None
        part = PART_WORDS.get(word)
        return Edit(match.start(), match.end(), part) if part else None

    def _scale(self, match: re.Match[str], word: str, number_end: int) -> Edit | None:
        english = SCALE_WORDS.get(word, word)
        if self._follows(match, number_end):
            return None if word == english else Edit(match.start(), match.end(), english)
        start = max(match.start() - _ARTICLE_WIDTH, 0)
        if article := _ARTICLE.search(self._text[start : match.start()]):
            number = "0.5" if article[1] else "1"
            return Edit(start + article.start(), match.end(), f"{number} {english}")
        return None

    def _is_number(self, word: str) -> bool:
        language = AMBIGUOUS.get(word)
        return language is None or language == self._language_of_text()

    def _language_of_text(self) -> str:
        if self._language is None:
            words = {
                match.group().casefold()
                for match in _WORD.finditer(self._text, 0, _LANGUAGE_SAMPLE)
            }
            counts = {name: len(words & known) for name, known in LANGUAGE_WORDS.items()}
            best = max(counts, key=counts.__getitem__)
            self._language = best if counts[best] else "en"
        return self._language
