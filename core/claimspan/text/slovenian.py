"""Splits Slovenian text into words, each with the stem by which its inflected forms meet.

Slovenian has six cases in three numbers and three genders: a noun has up to eighteen endings. The
stemmer is light: it takes off one ending of nouns, adjectives or verbs, and knows no exceptions.
The endings come from the tables of Slovenian grammar, and were fitted to no data set.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

__all__ = ["slovenian_stem", "slovenian_words"]

_WORD: Final = re.compile(r"[^\W_]+")

_SHORTEST_STEM: Final = 3
"""Letters that stay: with two, words that have nothing in common would meet."""

_NOUNS: Final = "a e i o u om em ov ev am ama ah ih oma ema ami imi mi"
_ADJECTIVES: Final = "ega emu ih im imi ima ej ejsi ejsa ejse ejsega ejsih"
_VERBS: Final = (
    "ti ati iti eti am as amo ate ajo im is imo ite ijo em es emo ete ejo al ala alo ali ale "
    "il ila ilo ili ile el ela elo eli ele la lo li le"
)
_ENDINGS: Final = tuple(
    sorted({*f"{_NOUNS} {_ADJECTIVES} {_VERBS}".split()}, key=lambda ending: (-len(ending), ending))
)
"""Without carons, as words are compared; the longest that fits is taken off."""


def slovenian_words(text: str) -> list[str]:
    """Split a text into the stems of its words, in order; numbers stay as they are.

    Args:
        text: Slovenian text in any of Unicode's forms.
    """
    return [slovenian_stem(word) for word in _WORD.findall(unicodedata.normalize("NFC", text))]


def slovenian_stem(word: str) -> str:
    """Reduce a word to the form by which its inflected forms are compared.

    Args:
        word: One word. Case and carons do not count, since many write without them: ``Učiteljem``
            and ``ucitelj`` give the same stem.

    Returns:
        At least three letters, or the whole of a shorter word.
    """
    folded = _without_carons(word)
    # "2022" has no ending, and of "B12" nothing may be taken off.
    if not folded.isalpha():
        return folded
    for ending in _ENDINGS:
        if folded.endswith(ending) and len(folded) - len(ending) >= _SHORTEST_STEM:
            return folded.removesuffix(ending)
    return folded


def _without_carons(word: str) -> str:
    # NFKD takes a caron off its letter; "č" would otherwise be no "c".
    decomposed = unicodedata.normalize("NFKD", word).casefold()
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))
