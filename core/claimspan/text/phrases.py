"""Recognises sentences by fixed phrases: filler, abstentions, apologies and questions.

The phrases are English, with one Slovene abstention; question marks of other scripts are known as
well. The patterns match at the start of a sentence and have straight apostrophes: ``normalise``
prepares a sentence for them.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "is_apology",
    "is_filler",
    "is_statement",
    "normalise",
    "starts_with_abstention",
    "starts_with_filler",
]

_QUESTION: Final = re.compile(r"[?？؟][\"'”’»)\]*_]*$")
_FILLER: Final = re.compile(
    r"(?:here(?:'s|’s| is| are)\b|below (?:is|are)\b|sure\b[!,.]?|certainly\b|of course\b|"
    r"absolutely\b|great question|thank|i hope|hope this|let me know|feel free|please let|"
    r"yes[.!]*$|no[.!]*$|(?:the )?answer:?$)",
    re.IGNORECASE,
)
# "Sure, X is Y" asserts that X is Y: only a short sentence is filler as a whole.
_MAX_FILLER_WORDS: Final = 9
_SOURCE: Final = (
    r"(?:(?:the|this|that|these|any|your) )?(?:\w+ )?"
    r"(?:context|texts?|documents?|passages?|information|sources?|articles?|chunks?|data)"
)
_ABSTENTION: Final = re.compile(
    r"(?:(?:i(?:'m| am) (?:sorry|afraid)|sorry|unfortunately|based on [^,]*)[,.]?\s*(?:but )?)?"
    r"(?:i (?:do not|don't|cannot|can't|could not|couldn't) "
    r"(?:\w+ )?(?:know|answer|find|determine|have|say|tell|see)\b"
    r"|i(?:'m| am) (?:not (?:able|sure)|unable)\b"
    rf"|{_SOURCE} (?:given |provided )?(?:does not|doesn't|do not|don't) "
    r"(?:\w+ )?(?:say|mention|contain|provide|specify|include|state|give|answer|tell)\b"
    rf"|(?:there is |there's )?(?:no|not enough|insufficient) (?:\w+ )?information\b"
    rf"|(?:it|this|that|the answer) is not (?:\w+ )?(?:in|by) {_SOURCE}"
    r"|ne vem\b)",
    re.IGNORECASE,
)
_APOLOGY: Final = re.compile(r"(?:i(?:'m| am) )?(?:sorry|afraid)[.!]?$", re.IGNORECASE)


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
    """Tells whether a sentence is filler as a whole: it opens as filler and has at most 9 words."""
    return starts_with_filler(sentence) and len(sentence.split()) <= _MAX_FILLER_WORDS


def starts_with_abstention(sentence: str) -> bool:
    """Tells whether a sentence opens like ``I don't know`` or ``The context does not say``."""
    return bool(_ABSTENTION.match(sentence))


def is_apology(sentence: str) -> bool:
    """Tells whether a sentence is an apology and nothing else, like ``I'm sorry``."""
    return bool(_APOLOGY.match(sentence))
