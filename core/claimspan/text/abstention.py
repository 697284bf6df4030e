"""Detects responses that decline to answer.

Such a response is neither true nor false: evaluations count it apart.
"""

from __future__ import annotations

import re
from typing import Final

from claimspan.text.clauses import assertions
from claimspan.text.languages import detect_language
from claimspan.text.markdown import content_sentences
from claimspan.text.refusals import (
    DENIALS,
    declined,
    is_apology,
    is_referral,
    may_decline,
    normalise,
    starts_with_abstention,
)

__all__ = ["abstains"]

_MAX_ABSTENTION_CHARACTERS: Final = 600
"""A longer response says more than that it cannot answer, however it begins."""

_APOLOGIES: Final = ("sorry", "afraid", "apolog")
_MAY_BEGIN: Final = re.compile(r"(?:^|[.!?:;,\u2026\u3002\n|<>])[\W\d_]*")
_ENDS: Final = re.compile(r"[.!?…。！？।\n|]+|<[^<>\n]{0,200}>|[*_`]{1,3}")
"""Where a sentence may begin, with its marks and its number in a list."""


def abstains(text: str) -> bool:
    """Tells whether a response declines to answer and asserts nothing else.

    If it declines, a sentence that sends the reader elsewhere or asks for more asserts nothing.

    Args:
        text: A response, in English or a language of ``beside_answers.toml``. One of more than
            ``_MAX_ABSTENTION_CHARACTERS`` does not abstain.

    Returns:
        Of the refusals of FinanceBench that are no longer than that, True for 53 of 90 in the tune
        half and 55 of 111 in the test half; the others assert something. Of the 516 answers that
        people call right, True for none.
    """
    if len(text) > _MAX_ABSTENTION_CHARACTERS or not _may_abstain(text):
        return False
    language = detect_language(text) or "en"
    declines = apologises = refers = False
    # Sentence by sentence: most responses assert something in the first one.
    for each in content_sentences(text, language):
        sentence = normalise(each.standalone)
        if is_referral(sentence):
            refers = True
        elif assertions(sentence, language):
            return False
        declines = declines or starts_with_abstention(sentence)
        apologises = apologises or is_apology(sentence)
    # "I'm sorry. Please restart the router." declines nothing.
    return declines or (apologises and not refers)


def _may_abstain(text: str) -> bool:
    """Tells at little cost whether a sentence of a text may decline, or apologise."""
    lowered = text.lower()
    if any(map(lowered.__contains__, _APOLOGIES)):
        return True
    if may_decline(text) and any(
        declined(each) is not None for each in _ENDS.split(normalise(text))
    ):
        return True
    if not any(map(lowered.__contains__, DENIALS)) and not _WITHIN_WORD.search(text):
        return False
    # Language and sentences would take ten times as long.
    return any(map(_starts, {text, _MARKS.sub("", text), _CITED.sub("", text)}))


def _starts(text: str) -> bool:
    """Tells whether a text declines at a place where a sentence may begin."""
    return any(map(starts_with_abstention, _MAY_BEGIN.split(normalise(text))))


# Where a citation or markup is left out within a word, the word shows only in the sentence.
_WITHIN_WORD: Final = re.compile(r"[`*\])】][\w'’]|[\w'’]\[")
_MARKS: Final = re.compile(r"[`*\[\]()【】]+")
_CITED: Final = re.compile(r"[`*]+|\[[^\[\]]*\](?:\([^()]*\))?|\([^()]*\)|【[^【】]*】")
