"""How people and models decline to answer in other languages than English.

Word order is free in many of them, so that a language has lists of words in place of sentences. A
clause declines if it denies, and has either the speaker and what he cannot do, or the sources and
what they do not do.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Final, NamedTuple

from claimspan.text.beside_answers import by_language

__all__ = ["declined", "may_decline"]


# Scripts in which a word is not set apart by blanks, or ends in a mark that is no letter.
_OPEN_ENDED: Final = frozenset({"hi", "ja", "ko", "zh"})
_CLAUSE: Final = re.compile(r"[^\W_](?:[^,;:،؛，；、：]|[,:](?=\d))*")
_MAX_CLAUSES: Final = 4
"""Clauses of a sentence up to the one that declines: regrets, and what the answer is based on."""

_MAX_BASIS: Final = 60
"""Characters of a clause that says what the answer is based on, and asserts nothing itself."""

_MAX_REGRET: Final = 30
"""Characters of a clause that regrets: ``Es tut mir sehr leid``."""

_STOPS: Final = re.compile(r"[.!?,;:\"“”()\n*_]")
_DIGIT: Final = re.compile(r"\d")


class _Row(NamedTuple):
    """The patterns of one language, named as in the table."""

    denies: re.Pattern[str]
    sources: re.Pattern[str]
    says: re.Pattern[str]
    speaker: re.Pattern[str]
    answers: re.Pattern[str]
    whole: re.Pattern[str]
    but: re.Pattern[str]
    sorry: re.Pattern[str]


# Compiled when a text has a hint of the language: all of them would take longer than the import.
@cache
def _row(language: str) -> _Row:
    before, behind = ("", "") if language in _OPEN_ENDED else (r"\b", r"(?!\w)")
    lists = by_language()[language]
    patterns = (f"{before}(?:{'|'.join(lists[name])}){behind}" for name in _Row._fields)
    return _Row(*(re.compile(each, re.IGNORECASE) for each in patterns))


_HINTS: Final = {language: tuple(lists["hints"]) for language, lists in by_language().items()}


def may_decline(text: str) -> bool:
    """Tells at little cost whether a text has a word by which sentences decline.

    Args:
        text: Any text.
    """
    lowered = _spaced(text)
    return any(hint in lowered for hints in _HINTS.values() for hint in hints)


def declined(sentence: str) -> str | None:
    """Tells whether a sentence declines to answer, and returns what it says beside that.

    Args:
        sentence: One sentence in any of the languages.

    Returns:
        What follows "but", empty if nothing does; None if the sentence does not decline.
    """
    return _remembered(sentence) if len(sentence) <= _LONGEST_REMEMBERED else _found(sentence)


# Whether a sentence declines is asked by each step that reads it.
_LONGEST_REMEMBERED: Final = 500


@lru_cache(maxsize=256)
def _remembered(sentence: str) -> str | None:
    return _found(sentence)


def _found(sentence: str) -> str | None:
    lowered = _spaced(sentence)
    for language, hints in _HINTS.items():
        if any(map(lowered.__contains__, hints)):
            rest = _declined(sentence, _row(language))
            if rest is not None:
                return rest
    return None


def _spaced(text: str) -> str:
    # A hint may be the first or the last word of its sentence.
    return _STOPS.sub(" ", f" {text.lower()} ")


def _declined(sentence: str, row: _Row) -> str | None:
    if not row.denies.search(sentence):
        return None
    names_sources = False
    for _, clause in zip(range(_MAX_CLAUSES), _CLAUSE.finditer(sentence), strict=False):
        text = clause.group()
        names_sources = names_sources or row.sources.search(text) is not None
        end = _end_of_refusal(text, row, names_sources=names_sources)
        if end is not None:
            but = row.but.search(sentence, clause.start() + end)
            return sentence[but.end() :].strip() if but else ""
        is_basis = row.sources.search(text) and len(text) <= _MAX_BASIS and not _DIGIT.search(text)
        regrets = row.sorry.match(text.strip()) and len(text) <= _MAX_REGRET
        if not (is_basis or regrets):
            return None
    return None


def _end_of_refusal(clause: str, row: _Row, *, names_sources: bool) -> int | None:
    """Where the words end by which a clause declines; None if it does not."""
    if whole := row.whole.search(clause):
        return whole.end()
    denial = row.denies.search(clause)
    if denial is None:
        return None
    by_speaker = row.speaker.search(clause) and row.answers.search(clause)
    by_source = names_sources and row.says.search(clause)
    return denial.end() if by_speaker or by_source else None
