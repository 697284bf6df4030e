"""Recognises sentences by fixed phrases: filler, abstentions, apologies and questions.

Abstentions and referrals are known in many languages, everything else in English; question marks
of other scripts are known too. The patterns match at the start of a sentence and have straight
apostrophes: ``normalise`` prepares a sentence for them.
"""

from __future__ import annotations

import re
from typing import Final

from claimspan.text.beside_answers import alternatives
from claimspan.text.refusals import ABSTENTIONS, REFERRALS
from claimspan.text.refusals_by_language import declined

__all__ = [
    "is_apology",
    "is_filler",
    "is_referral",
    "is_statement",
    "normalise",
    "starts_with_abstention",
    "starts_with_filler",
]

_QUESTION: Final = re.compile(r"[?？؟][\"'”’»)\]*_]*$")
_FILLER: Final = re.compile(
    r"(?:here(?:'s|’s| is| are)\b|below (?:is|are)\b|sure\b[!,.]?|certainly\b|of course\b|"
    r"absolutely\b|(?:great|good) question|thank|hello\b|hi\b|(?:i )?hope (?:this|that|it|you)\b|"
    r"i hope|let me\b|feel free|please (?:let|feel)|"
    r"(?:if you (?:have|need)|should you have|do not hesitate|don't hesitate|"
    r"happy to (?:help|assist)|i(?:'m| am) (?:happy|here|glad) to)\b|is there anything|"
    r"i(?:'d| would) be happy|"
    r"yes[.!]*$|no[.!]*$|(?:the )?answer:?$)",
    re.IGNORECASE,
)
# "Sure, X is Y" asserts that X is Y: only a short sentence is filler as a whole.
_MAX_FILLER_WORDS: Final = 9
# A closing courtesy says nothing, however long it is.
_CLOSING: Final = re.compile(
    r"(?:(?:i )?hope (?:this|that|it)(?: information)? (?:helps|answers|clarifies)|let me know|"
    r"(?:please )?feel free|please (?:do not|don't) hesitate|"
    r"if you (?:have|need) (?:any|more|further)|"
    r"should you have any|is there anything|as an ai\b)[^;]*$",
    re.IGNORECASE,
)
_ABSTENTION: Final = re.compile(ABSTENTIONS, re.IGNORECASE)
_REFERRAL: Final = re.compile(rf"{REFERRALS}|{alternatives('refers')}", re.IGNORECASE)
_APOLOGY: Final = re.compile(
    r"(?:(?:i(?:'m| am) )?(?:(?:so|very|really) )?(?:sorry|afraid)(?: about that)?"
    r"|(?:i apologi[sz]e|my apologies)(?: for (?:the|this|any) \w+)?)[.!]?$",
    re.IGNORECASE,
)


def normalise(sentence: str) -> str:
    """Strips outer white space and replaces curly apostrophes by straight ones."""
    return sentence.strip().replace("’", "'")


def is_statement(sentence: str) -> bool:
    """Tells whether a sentence has words, and neither asks a question nor ends in a colon."""
    stripped = sentence.strip()
    has_words = any(character.isalnum() for character in stripped)
    return has_words and not stripped.endswith((":", "：")) and not _QUESTION.search(stripped)


def starts_with_filler(sentence: str) -> bool:
    """Tells whether a sentence opens like ``Here is``, ``Sure`` or ``I hope``."""
    return bool(_FILLER.match(sentence))


def is_filler(sentence: str) -> bool:
    """Tells whether a sentence is filler as a whole.

    It is a closing courtesy, or opens as filler and has at most 9 words.
    """
    if _CLOSING.match(sentence):
        return True
    return starts_with_filler(sentence) and len(sentence.split()) <= _MAX_FILLER_WORDS


def starts_with_abstention(sentence: str) -> bool:
    """Tells whether a sentence opens like ``I don't know`` or ``The context does not say``."""
    return bool(_ABSTENTION.match(sentence)) or declined(sentence) is not None


def is_apology(sentence: str) -> bool:
    """Tells whether a sentence is an apology and nothing else, like ``I'm sorry``."""
    return bool(_APOLOGY.match(sentence))


def is_referral(sentence: str) -> bool:
    """Tells whether a sentence sends the reader elsewhere, or asks for more: ``Please see``."""
    return bool(_REFERRAL.match(sentence))
