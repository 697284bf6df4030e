"""Splits prose into sentences.

The boundaries come from sentencex, which knows the abbreviations of 244 languages. This module
chooses the language by script and repairs boundaries at ordinals and abbreviations.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final, cast

from sentencex import segment  # type: ignore[import-untyped]  # compiled, without stubs

__all__ = ["split_prose"]

_SCRIPTS: Final = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("zh", re.compile(r"[\u4e00-\u9fff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("ar", re.compile(r"[\u0600-\u06ff]")),
    ("hi", re.compile(r"[\u0900-\u097f]")),
    ("bn", re.compile(r"[\u0980-\u09ff]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
    ("el", re.compile(r"[\u0370-\u03ff]")),
    ("he", re.compile(r"[\u0590-\u05ff]")),
)
# A Chinese name in an English sentence does not make the sentence Chinese.
_SCRIPT_SHARE: Final = 0.2

# sentencex ends a sentence at the dot of "3. maja" and "npr. danes"; the lower case after it shows
# that the sentence goes on.
_FALSE_END: Final = re.compile(r"(?:\b\d{1,3}|\b[^\W\d_]{1,4})\.\s*$")

# Slovenian abbreviations that stand before a number or a name, whose upper case says nothing.
_BEFORE_NAMES: Final = {
    "sl": re.compile(r"\b(?:str|št|sl|ul|čl|prim|gl|mag|doc|akad|sv|tel)\.\s*$", re.IGNORECASE)
}


def split_prose(text: str, language: str) -> list[str]:
    """Splits running text into sentences.

    Args:
        text: Prose; a line break in it counts as white space. Markdown goes to ``markdown``.
        language: Code of the language (``en``, ``sl``) of text in Latin script; for other scripts
            the language is taken from the script.

    Returns:
        The sentences in order, each a substring of ``text`` without outer white space.
    """
    merged: list[str] = []
    found = _language_of(text, language)
    for piece in _segment(found, text):
        if merged and _goes_on(merged[-1], piece, found):
            merged[-1] += piece
        else:
            merged.append(piece)
    return [stripped for piece in merged if (stripped := piece.strip())]


def _goes_on(piece: str, following: str, language: str) -> bool:
    """Whether the boundary between two pieces is none."""
    if following[:1].islower() and _FALSE_END.search(piece):
        return True
    before_names = _BEFORE_NAMES.get(language)
    # In the composed form: a caron may be a character of its own.
    return bool(before_names and before_names.search(unicodedata.normalize("NFC", piece)))


def _segment(language: str, text: str) -> list[str]:
    return cast("list[str]", segment(language, text))


def _language_of(text: str, default: str) -> str:
    """Returns the language that the script of a text implies, or ``default`` for Latin script."""
    if text.isascii():
        return default
    letters = sum(character.isalpha() for character in text)
    for code, script in _SCRIPTS:
        if len(script.findall(text)) > _SCRIPT_SHARE * letters:
            return code
    return default
