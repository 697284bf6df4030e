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
from claimspan.text.phrases import is_apology, normalise, starts_with_abstention

__all__ = ["abstains", "abstention_strength"]

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


def abstains(text: str) -> bool:
    """Tells whether a response declines to answer and asserts nothing else.

    Args:
        text: A response; abstentions are known in English (and one in Slovene).
    """
    language = detect_language(text) or "en"
    sentences = [normalise(each.standalone) for each in content_sentences(text, language)]
    if any(assertions(sentence, language) for sentence in sentences):
        return False
    return any(starts_with_abstention(each) or is_apology(each) for each in sentences)


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
    ends = (_sentences(text[:_END_CHARACTERS])[:1], _sentences(text[-_END_CHARACTERS:])[-1:])
    declines = [bool(end and _DECLINES.search(end[0])) for end in ends]
    refers = [bool(end and _REFERS_ELSEWHERE.search(end[0])) for end in ends]
    if not any(declines):
        return 0.0
    return 1.0 if all(map(max, declines, refers)) else 0.5


def _sentences(text: str) -> list[str]:
    language = detect_language(text) or "en"
    return [each.standalone.replace("’", "'") for each in content_sentences(text, language)]
