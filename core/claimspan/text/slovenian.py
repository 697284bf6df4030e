"""Splits Slovenian text into words, each with the stem by which its inflected forms meet.

Slovenian has six cases in three numbers and three genders: a noun has up to eighteen endings. The
stemmer takes the endings of nouns, adjectives and verbs off step by step for as long as one fits:
the ``em`` of ``problem`` looks like one, and only so do ``problem`` and ``problema`` meet. It knows
the ``e`` that comes and goes (``teden``, ``tedna``) and a handful of irregular words. The endings
come from the tables of Slovenian grammar, and were fitted to no data set.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

__all__ = ["slovenian_stem", "slovenian_words"]

_WORD: Final = re.compile(r"[^\W_]+")

_SHORTEST_STEM: Final = 3
"""Letters that stay: with two, words that have nothing in common would meet."""

# One step of an ending: "ega" is "eg" and "a", "ami" is "am" and "i". A word is cut step by step,
# so that what is left of "alkohola" and "alkohol" is the same, whatever the word itself ends in.
_STEP: Final = re.compile(
    r"(?:[aeiou]|al|el|il|am|em|im|om|ah|ih|ov|ev|aj|ij|uj|ej|eg|eh|at|it|(?<=t)j)$"
)
_LONGEST_STEP: Final = 2

_FLEETING: Final = re.compile(r"(?<=[^aeiou])e(?=[cklnrv]$)")
"""The vowel of ``konec``, ``sestanek`` and ``center`` that ``konca`` does not have."""

_IRREGULAR: Final = {
    form: stem
    for stem, forms in {
        "dan": "dan dne dni dneh dnem dnevi dneva dnevu dnevom dnevov dnevih dnevoma dnema dnevna",
        "ura": "ur ura ure uri uro urah uram urama urami",
        "ima": "ima imam imas imamo imate imata imajo imel imela imelo imeli imele imeti",
        "otrok": "otroci otroke",
        "clovk": "ljudje ljudi ljudem ljudmi ljudeh",
        "pes": "psa psu psom psi psov psih pse",
        "oc": "oce oceta ocetu ocetom",
        "mat": "mati mater matere materi materjo",
        "hc": "hci hcer hcere hceri hcerjo hcerk hcerka hcerke hcerki hcerko",
    }.items()
    for form in forms.split()
}


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
    if folded in _IRREGULAR:
        return _IRREGULAR[folded]
    end = len(folded)
    # Looked for at the end alone: a cry of a thousand letters is cut a thousand times.
    while (step := _STEP.search(folded, max(end - _LONGEST_STEP, 0), end)) and (
        step.start() >= _SHORTEST_STEM
    ):
        end = step.start()
    folded = folded[:end]
    fleeting = _FLEETING.sub("", folded)
    return fleeting if len(fleeting) >= _SHORTEST_STEM else folded


def _without_carons(word: str) -> str:
    # NFKD takes a caron off its letter; "č" would otherwise be no "c".
    decomposed = unicodedata.normalize("NFKD", word).casefold()
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))
