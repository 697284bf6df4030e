"""Tells at little cost which notations of values a text may have, so that others are not tried.

A notation needs a digit, or one of a few words: what stands between two blanks tells by itself
whether it has one. A sign promises no value, but a text without the sign of a notation has no value
in it.
"""

from __future__ import annotations

import re
from functools import reduce
from typing import Final

from claimspan.text.memo import Memo
from claimspan.text.number_words import NUMBER_WORDS, SCALE_WORDS
from claimspan.text.value_vocabulary import (
    ENGLISH_SCALES,
    HALVES,
    MONTH_WORDS,
    MONTHS,
    PART_WORDS,
    PARTS,
    PLACES,
    UNIT_WORDS,
)

__all__ = [
    "COLON",
    "DECADE",
    "DIGIT",
    "DOTTED",
    "HALF",
    "HALF_DAY",
    "HOUR",
    "MONTH",
    "NOON",
    "PART",
    "PAST",
    "PLACE",
    "QUARTER",
    "REWRITTEN_WORDS",
    "SLASH",
    "SYMBOL",
    "UHR",
    "WORD",
    "ascii_letters",
    "signs_of",
    "signs_of_piece",
]

DIGIT: Final = 1 << 0
"""A digit of any script."""

WORD: Final = 1 << 1
"""One of ``REWRITTEN_WORDS``."""

SYMBOL: Final = 1 << 2
"""What may be a degree, a speed or ``pour cent``."""

HALF: Final = 1 << 3
"""``half`` and its like in other languages."""

MONTH: Final = 1 << 4
"""The English name of a month."""

QUARTER: Final = 1 << 5
"""``quarter`` or ``Q``."""

DECADE: Final = 1 << 6
"""A zero that an ``s`` may follow."""

DOTTED: Final = 1 << 7
"""A digit and a sign by which the parts of a date are joined."""

COLON: Final = 1 << 8
"""A colon between digits."""

NOON: Final = 1 << 9
"""A word for a time of day that needs no number."""

SLASH: Final = 1 << 10
"""A slash, by which a share may be written."""

PART: Final = 1 << 11
"""A part of a whole: ``third``, ``quarts``."""

PLACE: Final = 1 << 12
"""A place in a list: ``first``."""

HALF_DAY: Final = 1 << 13
"""``am`` or ``pm``, or an ``m`` that may be the end of them."""

HOUR: Final = 1 << 14
"""``h`` or ``hours``."""

UHR: Final = 1 << 15
"""``Uhr``, ``ob`` or ``ura``: the hour in German and Slovenian."""

PAST: Final = 1 << 16
"""``past``, ``quarter`` or ``o'clock``."""

_EVERY: Final = (1 << 17) - 1

_RUN: Final = re.compile(r"[^\W\d_]+")
_DIGITS: Final = re.compile(r"\d")
_DECADE: Final = re.compile(r"0['’]?s")
_DOTTED: Final = re.compile(r"\d[-/.](?:\d|\s|$)")
_COLON: Final = re.compile(r"\d:\d")
# Marks around a word that are no sign themselves.
_MARKS: Final = "\"'()[]{}<>.,;:!?*_"
# Where case does not count, a pattern takes them for an i, an s or a k; folding does not.
_UNUSUAL: Final = re.compile("[İıſ\u212a]")


REWRITTEN_WORDS: Final = frozenset(
    NUMBER_WORDS.keys()
    | SCALE_WORDS.keys()
    | ENGLISH_SCALES
    | UNIT_WORDS.keys()
    | MONTH_WORDS.keys()
    | PART_WORDS.keys()
    | HALVES.keys()
)
"""The words in lower case that ``value_words`` may write in digits or in English."""


def _by_word() -> dict[str, int]:
    groups = (
        (REWRITTEN_WORDS, WORD),
        ("deg degree degrees degré degrés grad km kph pour mi mile miles".split(), SYMBOL),
        ("kilometer kilometre kilometers kilometres kilometrov".split(), SYMBOL),
        ("kilomètre kilomètres".split(), SYMBOL),
        ("half halbe pol demi".split(), HALF),
        (MONTHS, MONTH),
        (("q",), QUARTER),
        ("am pm m".split(), HALF_DAY),
        ("h hours".split(), HOUR),
        ("uhr ob ura ure uri uro".split(), UHR),
        ("clock oclock past quarter".split(), PAST),
        ("noon midday opoldne midi mittag mittags midnight opolnoči minuit".split(), NOON),
        (("mitternacht", "mitternachts"), NOON),
        ((*PARTS, *(f"{part}s" for part in PARTS), "quart"), PART),
        (PLACES, PLACE),
    )
    signs: dict[str, int] = {}
    for words, sign in groups:
        for word in words:
            signs[word] = signs.get(word, 0) | sign
    return signs


_BY_WORD: Final = _by_word()
_KNOWN: Final = frozenset(_BY_WORD)
_BEGINNINGS: Final = {"quarter": QUARTER, "stopinj": SYMBOL}
"""Signs of words that begin so: ``first quarterly``."""

_LETTERS: Final = "".join(chr(c).lower() if chr(c).isalpha() else " " for c in range(0x80))
"""Of each character of ASCII, what the words of a text are looked for in."""


def signs_of(text: str) -> int:
    """Returns the signs of a text, as the bits of this module; 0 where it has no value at all.

    Args:
        text: Any text.
    """
    if not text.isascii():
        return reduce(int.__or__, set(map(signs_of_piece, text.split())), 0)
    words = ascii_letters(text)
    signs = SLASH if "/" in text else 0
    for word in _KNOWN.intersection(words.split()):
        signs |= _BY_WORD[word]
    if any(map(words.__contains__, _BEGINNINGS)):
        signs = reduce(int.__or__, map(_sign_of_word, words.split()), signs)
    return signs | _signs_of_digits(text) if _DIGITS.search(text) else signs


def ascii_letters(text: str) -> str:
    """Returns a text with its letters in lower case, and a blank for whatever is none.

    Args:
        text: A text in ASCII; the result is as long.
    """
    return text.translate(_LETTERS)


def _worked_out(piece: str) -> int:
    word = piece.strip(_MARKS)
    if word.isascii() and word.isalpha():  # as most pieces are
        return _sign_of_word(word.lower())
    if not piece.isascii() and _UNUSUAL.search(piece):
        return _EVERY
    signs = 0
    for run in _RUN.findall(piece):
        signs |= _sign_of_word(run.casefold())
    if "/" in piece:
        signs |= SLASH
    if "°" in piece or "º" in piece:
        signs |= SYMBOL
    return signs | _signs_of_digits(piece) if _DIGITS.search(piece) else signs


def _sign_of_word(word: str) -> int:
    signs = _BY_WORD.get(word, 0)
    for beginning, sign in _BEGINNINGS.items():
        if word.startswith(beginning):
            signs |= sign
    return signs


def _signs_of_digits(text: str) -> int:
    signs = DIGIT
    if _DECADE.search(text):
        signs |= DECADE
    if _DOTTED.search(text):
        signs |= DOTTED
    if _COLON.search(text):
        signs |= COLON
    return signs


# A piece takes 200 bytes.
_SIGNS: Final = Memo(_worked_out, 1_000)
signs_of_piece: Final = _SIGNS.__getitem__
"""Returns the signs of what stands between two blanks."""
