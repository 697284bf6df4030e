"""Detects text that is addressed to a judge instead of to a reader: prompt injection.

The result is a flag, not a filter: judges treat every text as data whatever it says. It shows where
to look when a score seems too good. Only the plain forms are known; a careful attacker avoids them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple, cast

from claimspan.text.tables import read_table

__all__ = ["injection_signs", "suspects_injection"]


class _Sign(NamedTuple):
    """A pattern of one kind of injection, for text in lower case."""

    kind: str
    stems: tuple[str, ...]
    """Substrings of which every match has at least one; looking for them first is much cheaper."""

    pattern: re.Pattern[str]

    marks: tuple[str, ...]
    """Characters of which every match has at least one; none if it may be all letters."""


_SIGNS: Final = tuple(
    _Sign(
        each["kind"],
        tuple(stem.replace("~", " ") for stem in each["stems"].split()),
        re.compile(each["pattern"], re.MULTILINE),
        tuple(each.get("marks", "")),
    )
    for each in cast("Sequence[Mapping[str, str]]", read_table("text", "injection.toml")["sign"])
)
# The signs that a text in ASCII may have, each with the stems that may be in it.
_PLAIN_SIGNS: Final = tuple(
    sign._replace(stems=plain)
    for sign in _SIGNS
    if (plain := tuple(stem for stem in sign.stems if stem.isascii()))
)


def injection_signs(text: str) -> list[str]:
    """Returns the kinds of signs that a text is meant to influence a judge.

    Returns:
        Each kind found, once: ``role token``, ``verdict block``, ``placeholder``, ``hidden text``,
        ``order``; an empty list for nearly every text.
    """
    return list(dict.fromkeys(sign.kind for sign in _occurring(text.lower())))


def suspects_injection(text: str) -> bool:
    """Tells whether a text has any sign that ``injection_signs`` knows; stops at the first."""
    return next(_occurring(text.lower()), None) is not None


def _occurring(lowered: str) -> Iterator[_Sign]:
    """Yields the signs of a text, which must be in lower case."""
    for sign in _PLAIN_SIGNS if lowered.isascii() else _SIGNS:
        may_occur = not sign.marks or _has_one(lowered, sign.marks)
        if may_occur and _has_one(lowered, sign.stems) and sign.pattern.search(lowered):
            yield sign


def _has_one(text: str, parts: tuple[str, ...]) -> bool:
    # A loop takes a third of the time of ``any``.
    for part in parts:  # noqa: SIM110 - see above
        if part in text:
            return True
    return False
