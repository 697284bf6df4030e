"""Reads the words around a number that make it a bound, a range or a rough figure."""

from __future__ import annotations

import re
from typing import Final, Literal

__all__ = [
    "BOUND_WORDS",
    "HEDGE_WORDS",
    "LEADING_WORDS",
    "Bound",
    "below_zero",
    "bound_of",
    "counts_thousands",
    "is_dash",
    "is_hedged",
    "may_be_marked",
]

Bound = Literal["", "<", "<=", ">", ">="]
"""On which side of a number the value is, and whether the number itself may be it."""

HEDGE_WORDS: Final = frozenset(
    "about approximately approx around roughly nearly almost some circa c ca etwa ungefähr rund "
    "knapp približno okoli okrog skoraj environ presque autour près".split()
)
"""Words in lower case by which a number is a rough figure."""
_HEDGES: Final = re.compile(
    rf"(?:~|≈|\b(?:{'|'.join(sorted(HEDGE_WORDS, key=len, reverse=True))})\.?(?:\sde)?)\s*$",
    re.IGNORECASE,
)
_BEFORE: Final[tuple[tuple[Bound, str], ...]] = (
    (">=", r"(?:no|not) (?:less|fewer) than|nicht weniger als|pas moins de|ne manj kot"),
    ("<=", r"(?:no|not) more than|nicht mehr als|pas plus de|ne več kot"),
    (
        ">",
        r">|over|above|more than|greater than|exceed(?:s|ed|ing)?|beyond|über|mehr als|več kot|nad|"
        r"plus de|au-delà de",
    ),
    (
        ">=",
        r"≥|>=|at least|(?:a )?minimum(?: of)?|from at least|mindestens|wenigstens|vsaj|najmanj|"
        r"au moins",
    ),
    (
        "<",
        r"<|under|below|less than|fewer than|weniger als|unter|manj kot|pod|moins de",
    ),
    (
        "<=",
        r"≤|<=|up to|at most|(?:a )?maximum(?: of)?|within|bis zu|höchstens|maximal|do|največ|"
        r"jusqu['’]à|au plus|au maximum",
    ),
)
_AFTER: Final[tuple[tuple[Bound, str], ...]] = (
    (
        ">=",
        r"\s?\+|\sor (?:more|older|over|above)|\sand (?:over|above)|\soder mehr"
        r"|\sali več|\sou plus",
    ),
    ("<=", r"\sor (?:less|fewer|under)|\soder weniger|\sali manj|\sou moins"),
)
_BEFORE_PATTERNS: Final[tuple[tuple[Bound, re.Pattern[str]], ...]] = tuple(
    (bound, re.compile(rf"(?<!\w)(?:{words})\s*$", re.IGNORECASE)) for bound, words in _BEFORE
)
_AFTER_PATTERNS: Final[tuple[tuple[Bound, re.Pattern[str]], ...]] = tuple(
    (bound, re.compile(rf"(?:{words})(?!\w)", re.IGNORECASE)) for bound, words in _AFTER
)
BOUND_WORDS: Final = frozenset(
    word.casefold()
    for _, pattern in (*_BEFORE, *_AFTER)
    for word in re.findall(r"[^\W\d_]+", re.sub(r"\\s", " ", pattern))
)
"""Words in lower case that bounds are made of."""
LEADING_WORDS: Final = HEDGE_WORDS | BOUND_WORDS | {"de"}
"""Words in lower case, one of which is the last before a bound or a rough figure."""


_BELOW_ZERO: Final = re.compile(
    r"\s(?:below|unter|pod|sous)\s(?:0|zero|null|ničlo|zéro)\b", re.IGNORECASE
)
_SPACED: Final = re.compile(r"[-–]\s")
_THOUSANDS: Final = re.compile(r"(?!401)\d{1,3}[kK]\s(?:people|[a-z]{3,}s)\b")
# Blanks before the sign of a list item.
_INDENT: Final = 8

# The words that one of the patterns ends with, and what stands before two that are common.
_LAST_WORDS: Final = HEDGE_WORDS | set(
    "than als de kot over above exceed exceeds exceeded exceeding beyond nad least minimum of "
    "mindestens wenigstens vsaj najmanj moins under below unter pod to most maximum within zu "
    "maximal do plus".split()
)
_BEFORE_LAST: Final = {"of": ("minimum", "maximum"), "to": ("up",)}
# What else than a word a bound or a rough figure may end with.
_LAST_SIGNS: Final = frozenset("~≈<>≥≤=.")
_AFTER_SIGNS: Final = frozenset("+oOaA")


def below_zero(text: str, end: int) -> int:
    """Returns where the words end that make a temperature negative: ``5 °C below zero``.

    Args:
        text: The text, with its number words in digits.
        end: Where the temperature ends; returned where no such words follow.
    """
    words = _BELOW_ZERO.match(text, end)
    return words.end() if words else end


def counts_thousands(text: str, at: int) -> bool:
    """Tells whether the letter behind a number stands for a thousand: ``10k users``.

    A ``10K run`` is one of kilometres, ``10-K`` and ``401k`` are names.

    Args:
        text: The text.
        at: Where the number begins.
    """
    return _THOUSANDS.match(text, at) is not None


def is_dash(text: str, at: int, end: int) -> bool:
    """Tells whether a sign before a number is no minus: in ``5 - 7 days``, and of a list item.

    Args:
        text: The text.
        at: Where the sign is.
        end: Where the amount before it ends; 0 where there is none.
    """
    if not _SPACED.match(text, at):
        return False
    joins = 0 < end <= at and text[end:at].isspace()
    line = text.rfind("\n", max(at - _INDENT, 0), at)
    opens = (line >= 0 or at <= _INDENT) and not text[line + 1 : at].strip()
    return joins or opens


def may_be_marked(before: str) -> bool:
    """Tells whether what stands before a number may make it a bound or a rough figure.

    Patterns that are tried from the end of a text take long, and few numbers are either.

    Args:
        before: The end of the text before the number and its currency.
    """
    pieces = before.rsplit(None, 2)
    if not pieces:
        return False
    last = pieces[-1].lower()
    if not (last.isascii() and last.isalpha()):
        return last[-1].isalpha() or last[-1] in _LAST_SIGNS
    if last not in _BEFORE_LAST:
        return last in _LAST_WORDS
    return len(pieces) > 1 and pieces[-2].lower().endswith(_BEFORE_LAST[last])


def is_hedged(before: str) -> bool:
    """Tells whether what stands before a number makes it a rough figure.

    Args:
        before: The end of the text before the number and its currency.
    """
    return may_be_marked(before) and bool(_HEDGES.search(before))


def bound_of(before: str, after: str) -> Bound:
    """Returns what kind of bound a number is.

    Args:
        before: The end of the text before the number and its currency.
        after: The beginning of the text behind its unit.
    """
    if may_be_marked(before):
        for bound, pattern in _BEFORE_PATTERNS:
            if pattern.search(before):
                return bound
    if _AFTER_SIGNS.isdisjoint(after[:2]):
        return ""
    for bound, pattern in _AFTER_PATTERNS:
        if pattern.match(after):
            return bound
    return ""
