"""Detects responses that decline to answer.

Such a response is neither true nor false: evaluations count it apart, and as a reference it
supports little, though it may repeat every word of the question.
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

__all__ = ["abstains", "abstention_strength"]

_MAX_ABSTENTION_CHARACTERS: Final = 600
"""A longer response says more than that it cannot answer, however it begins."""

# The first and the last sentence lie within this many characters of the ends; a text of ten
# megabytes is not split for them.
_END_CHARACTERS: Final = 1000
_SOURCE: Final = (
    r"(?:context|texts?|documents?|passages?|information|sources?|articles?|chunks?|data|excerpts?|"
    r"filings?|reports?|statements?|details|10-?[kq])"
)
_ANSWER: Final = (
    r"(?:know|answer|find|determine|calculate|compute|derive|assess|confirm|identify|extract|"
    r"provide|give|offer|say|tell|access|assist|ascertain|conclude|specify)"
)
_GIVEN: Final = (
    r"(?:provided|included|given|specified|mentioned|disclosed|stated|detailed|sufficient|available|"
    r"present|found)"
)
_CANNOT: Final = (
    r"(?:cannot|can't|can not|could not|couldn't|do not|don't|did not|(?:am|be) not able to|"
    r"not able to|unable to|not be able to)"
)
_DECLINES: Final = re.compile(
    rf"\b(?:i|we|one)(?:'m| am| are)? (?:\w+ )?{_CANNOT}(?: \w+){{0,2}} (?:{_ANSWER}|have)\b"
    r"|\b(?:is|are|it's|am|i'm) (?:\w+ )?(?:unable|not able|not possible|impossible) to "
    rf"(?:\w+ )?{_ANSWER}\b"
    rf"|\b{_SOURCE}(?: \w+){{0,6}} (?:does not|doesn't|do not|don't|did not|didn't) (?:\w+ )?"
    r"(?:say|mention|contain|provide|specify|include|state|give|answer|tell|disclose|detail|have)\b"
    rf"|\bnot (?:\w+ ){{0,2}}{_GIVEN} (?:in|by|within|from) (?:\w+ ){{0,3}}{_SOURCE}\b"
    r"|\b(?:cannot|can't|can not|could not|not) be (?:\w+ )?"
    r"(?:determined|calculated|computed|answered|derived|assessed|ascertained)\b"
    r"|\b(?:i'm sorry|i am sorry|i apologi[sz]e|my apologies)\b",
    re.IGNORECASE,
)
# Regrets and referrals accompany an abstention. On their own they are advice or news as often as
# not, so they count only beside a sentence that declines.
_REFERS_ELSEWHERE: Final = re.compile(
    rf"\bnot (?:\w+ ){{0,2}}{_GIVEN}\b|\bunfortunately\b"
    r"|\b(?:no|not enough|insufficient|without|need|requires?|additional|more|missing) "
    rf"(?:\w+ ){{0,4}}{_SOURCE}\b"
    r"|\b(?:please|(?:you|one) (?:can|may|would|should|will|might)(?: \w+)?(?: to)?|"
    r"i (?:recommend|suggest)|(?:best|advisable|necessary|need) to) (?:\w+ )?"
    r"(?:refer|consult|check|review|look|provide|visit|seek|obtain|access)\b",
    re.IGNORECASE,
)
_APOLOGIES: Final = ("sorry", "afraid", "apolog")
_MAY_BEGIN: Final = re.compile(r"(?:^|[.!?:;,\u2026\u3002\n|<>])[\W\d_]*")
_ENDS: Final = re.compile(r"[.!?…。！？।\n|]+|<[^<>\n]{0,200}>|[*_`]{1,3}")
"""Where a sentence may begin, with its marks and its number in a list."""


def abstains(text: str) -> bool:
    """Tells whether a response declines to answer and asserts nothing else.

    Where it declines, a sentence that sends the reader elsewhere or asks for more asserts nothing.

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


def abstention_strength(text: str) -> float:
    """Measures how clearly a text declines to answer, also where it asserts something as well.

    People and language models decline in the first or the last sentence: ``I cannot determine the
    margin ... Please refer to the annual report``. In between they may assert much that is true.

    Args:
        text: A response or any other reference; English.

    Returns:
        0.0 where neither the first nor the last sentence declines; 0.5 where one of them does; 1.0
        where the other one declines as well, regrets, or refers elsewhere. Of the 172 answers in
        the tune half of FinanceBench that people call refusals, 118 get 1.0 and 39 get 0.5; of the
        271 that they call right, none gets 1.0 and 9 get 0.5.
    """
    if not (_may_decline(text[:_END_CHARACTERS]) or _may_decline(text[-_END_CHARACTERS:])):
        return 0.0
    ends = _ends(text)
    declines = [bool(end and _DECLINES.search(end[0])) for end in ends]
    refers = [bool(end and _REFERS_ELSEWHERE.search(end[0])) for end in ends]
    if not any(declines):
        return 0.0
    return 1.0 if all(map(max, declines, refers)) else 0.5


# Each match of ``_DECLINES`` has one of them, letters apart that have more forms than two cases.
# "Not" is a word there, or the end of one: neither "note" nor "another" declines.
_DECLINING: Final = re.compile(r"not(?!\w)|n['’]t|unable|mpo.{2,5}ble|orry|apolog")
# Where a citation or markup is left out within a word, the word shows only in the sentence.
_WITHIN_WORD: Final = re.compile(r"[`*\])】][\w'’]|[\w'’]\[")
_MARKS: Final = re.compile(r"[`*\[\]()【】]+")
_CITED: Final = re.compile(r"[`*]+|\[[^\[\]]*\](?:\([^()]*\))?|\([^()]*\)|【[^【】]*】")


def _may_decline(text: str) -> bool:
    """Tells at little cost whether a sentence of a text may decline."""
    return bool(_DECLINING.search(text.lower()) or _WITHIN_WORD.search(text))


def _ends(text: str) -> tuple[list[str], list[str]]:
    """The first and the last sentence, each in a list that is empty where there is none."""
    first = _sentences(text[:_END_CHARACTERS])
    last = first if len(text) <= _END_CHARACTERS else _sentences(text[-_END_CHARACTERS:])
    return first[:1], last[-1:]


def _sentences(text: str) -> list[str]:
    language = detect_language(text) or "en"
    return [each.standalone.replace("’", "'") for each in content_sentences(text, language)]
