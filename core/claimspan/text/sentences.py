"""Splits prose into sentences.

The boundaries come from sentencex, which knows the abbreviations of 244 languages. This module
chooses the language by script and repairs boundaries at ordinals and abbreviations.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, cast

from sentencex import segment  # type: ignore[import-untyped]  # compiled, without stubs

from claimspan.text.languages import language_of_script

__all__ = ["split_prose"]

# sentencex ends a sentence at the dot of "3. maja" and "npr. danes"; the lower case after it shows
# that the sentence goes on.
_FALSE_END: Final = re.compile(r"(?:\b\d{1,4}|\b[^\W\d_]{1,4})\.\s*$")

# Abbreviations that stand before a number or a name, whose upper case says nothing.
_BEFORE_NAMES: Final = {
    "sl": re.compile(r"\b(?:str|št|sl|ul|čl|prim|gl|mag|doc|akad|sv|tel)\.\s*$", re.IGNORECASE),
    "de": re.compile(
        r"\b(?:Abs|Art|Bd|bzgl|bzw|ca|Dipl|evtl|ggf|Hbf|Hr|Hrn|Fr|inkl|Ing|Kap|max|min|Mio|Mrd|Nr|"
        r"Prof|S|St|Str|Tel|vgl|Ziff|zzgl|z\.\s?B|d\.\s?h|u\.\s?a)\.\s*$"
    ),
    "fr": re.compile(r"\b(?:MM?|Mmes?|Mlles?|Ste?|av|bd|env|cf|pp?|art|chap|vol)\.\s*$"),
    "hr": re.compile(r"\b(?:str|čl|br|gđa|ul|sv|tel|prof|mr|tzv|npr)\.\s*$", re.IGNORECASE),
    "da": re.compile(r"\b(?:nr|kl|ca|bl\.\s?a|f\.\s?eks|tlf|hr|fr)\.\s*$", re.IGNORECASE),
}
# Languages that write an ordinal with a dot, and what follows it there with a capital letter.
_ORDINAL_END: Final = re.compile(r"(?:^|[^\w.,])\d{1,2}\.\s*$")
_AFTER_ORDINAL: Final = {
    "de": re.compile(
        r"(?:Jan|Feb|März|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez|Jahrhundert|Jahrtausend|Jahrestag|"
        r"Mal|Platz|Stock|Etage|Klasse|Kapitel|Absatz|Auflage|Bundesliga|Weltkrieg|Geburtstag|"
        r"Lebensjahr|Tag|Monat|Woche|Semester|Quartal|Runde|Minute|Spieltag|Teil|Stelle|Rang|Liga)",
    ),
}
# Before these a number with a dot is an ordinal, whatever word follows.
_BEFORE_ORDINAL: Final = {
    "de": re.compile(
        r"\b(?:am|vom|zum|der|die|das|den|dem|des|im|beim|ab|bis|seit|jeder|jede|jedes)\s+"
        r"\d{1,2}\.\s*$",
        re.IGNORECASE,
    ),
}

# A boundary is judged by what stands near it; a longer look back takes quadratic time.
_TAIL: Final = 40
# sentencex takes quadratic time on text without blanks and on quotes that stay open, in one step in
# which no other thread runs. What it is given at once is cut where it ends a sentence in any case,
# and if there is no such place at a blank.
_LONG: Final = 2000
_LONGEST: Final = 4000
_SURE_END: Final = re.compile(
    r"[。！？｡]+[」』”’）】》]*|[^\W\d_]{5}[.!?]+[\"”’)]*\s+(?=[^\W\d_a-z])|\n\s*\n|[।؟۔]\s+"
)
_BLANK: Final = re.compile(r"\s(?=\S)")
_ENDS: Final = re.compile(r"[.!?…][\"”’)]*\s*$")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def split_prose(text: str, language: str) -> list[str]:
    """Splits running text into sentences.

    Args:
        text: Prose; a line break in it counts as white space. Markdown goes to ``markdown``.
        language: Code of the language (``en``, ``sl``) of text in Latin script; for other scripts
            the language is taken from the script.

    Returns:
        The sentences in order, each a substring of ``text`` without outer white space.
    """
    found = language_of_script(text) or language
    merged: list[list[str]] = []
    for piece, is_cut in _segments(found, text):
        if merged and (is_cut or _goes_on(merged[-1][-1], piece, found)):
            merged[-1].append(piece)
        else:
            merged.append([piece])
    return [stripped for pieces in merged if (stripped := "".join(pieces).strip())]


def _goes_on(piece: str, following: str, language: str) -> bool:
    """Whether the boundary between two pieces is none."""
    # In the composed form: a caron may be a character of its own.
    tail = unicodedata.normalize("NFC", piece[-_TAIL:])
    if following[:1].islower() and _FALSE_END.search(tail):
        return True
    before_names = _BEFORE_NAMES.get(language)
    return bool(before_names and before_names.search(tail)) or _is_ordinal(
        tail, following, language
    )


def _is_ordinal(tail: str, following: str, language: str) -> bool:
    """Whether a number with a dot is an ordinal before a noun: ``am 3. Mai``."""
    if language not in _AFTER_ORDINAL or not _ORDINAL_END.search(tail):
        return False
    is_before_noun = _AFTER_ORDINAL[language].match(following.lstrip())
    return bool(is_before_noun or _BEFORE_ORDINAL[language].search(tail))


def _segments(language: str, text: str) -> Iterator[tuple[str, bool]]:
    """Yields the pieces into which sentencex splits a text; joined they are the text.

    Yields:
        Each piece, and whether it goes on with the one before it, which was cut off within a
        sentence.
    """
    for start, end in pairwise(_cuts(text)):
        before = text[max(start - _TAIL, 0) : start]
        is_cut = bool(before) and not _is_end(before)
        # sentencex takes no half of a surrogate pair; the replacement is as long.
        readable = _SURROGATE.sub("\ufffd", text[start:end])
        for piece in cast("list[str]", segment(language, readable)):
            yield text[start : start + len(piece)], is_cut
            start += len(piece)
            is_cut = False


def _is_end(before: str) -> bool:
    """Tells whether a text ends where a sentence may end."""
    return before[-1:] in "。！？｡」』”’）】》\n।؟۔" or _ENDS.search(before) is not None


def _cuts(text: str) -> list[int]:
    """Returns where a long text is cut before it is split, with its start and its end."""
    cuts = [0]
    while (least := cuts[-1] + _LONG) < len(text):
        most = cuts[-1] + _LONGEST
        if found := _SURE_END.search(text, least, most):
            cuts.append(found.end())
        elif most < len(text):
            blanks = [each.end() for each in _BLANK.finditer(text, most - _TAIL, most)]
            cuts.append(blanks[-1] if blanks else most)
        else:
            break
    return [*cuts, len(text)]
