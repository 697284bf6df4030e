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
# Every sentence that ``phrases`` takes for an abstention or an apology denies something, and speaks
# of the speaker or of a source; or it has a word of another language by which it is told. Most
# responses are known by their words alone. Language and sentences would take ten times as long.
_NO_WORD: Final = re.compile(r"[\W_]+")
_WORDS: Final = {c: chr(c).lower() if chr(c).isalnum() else " " for c in range(0x80)}
"""Of each character of ASCII, what the words of a text are looked for in."""

_DENIALS: Final = (" not ", " cannot ", " t ", " no ", " unable ", " insufficient ")
_SUBJECTS: Final = (
    "text document passage source article chunk excerpt snippet material information data file"
    " result reference record informaci s\u00e9".split()
)
"""Beginnings of what it may speak of: ``SOURCES`` of ``openers``, and two words of Spanish."""

_SPEAKERS: Final = (" i ", " \u0131 ")
"""Also without its dot, which the patterns take for the same letter."""

_ABOUT: Final = tuple((*_SPEAKERS, *_SUBJECTS))
_ANY_SUBJECT: Final = rf"(?:con)?(?:{'|'.join(_SUBJECTS)})\w*"
_DENIED: Final = re.compile(
    # Each branch begins with a space, so that nothing is tried within a word.
    r" (?:[i\u0131] (?:\w+ ){0,6}(?:not|cannot|t|unable|no) "
    r"|(?:not?|enough|insufficient) (?:\w+ ){0,6}informa"
    rf"|is not (?:\w+ ){{0,8}}{_ANY_SUBJECT} "
    r"|no (?:\w+ )?s\u00e9 "
    rf"|{_ANY_SUBJECT} (?:\w+ ){{0,12}}(?:(?:does|doesn|do|don) (?:not|t)|no) )"
)
"""How the words of ``phrases`` follow each other in an abstention, with room for citations and
addresses between them: a technical text speaks of files, and says what is not so, as well."""

_OTHERS: Final = (" ai ", " ne ", " ni ", " non ")
_OTHER_PARTS: Final = ("sorry", "afraid", "nicht", "kein", "niet", "geen", "nimam")


def abstains(text: str) -> bool:
    """Tells whether a response declines to answer and asserts nothing else.

    Args:
        text: A response; abstentions are known in English (and one in Slovene).
    """
    if not _may_abstain(text):
        return False
    language = detect_language(text) or "en"
    declines = False
    # Sentence by sentence: most responses assert something in the first one.
    for each in content_sentences(text, language):
        sentence = normalise(each.standalone)
        if assertions(sentence, language):
            return False
        declines = declines or starts_with_abstention(sentence) or is_apology(sentence)
    return declines


def _may_abstain(text: str) -> bool:
    if _has_abstaining_words(text):
        return True
    # Where a citation or markup is left out within a word, the word shows only without it.
    without = (_MARKS.sub("", text), _CITED.sub("", text)) if _WITHIN_WORD.search(text) else ()
    return any(map(_has_abstaining_words, without))


def _has_abstaining_words(text: str) -> bool:
    words = f" {text.translate(_WORDS) if text.isascii() else _NO_WORD.sub(' ', text.casefold())} "
    if _has_any(words, _OTHERS) or _has_any(words, _OTHER_PARTS):
        return True
    if not (_has_any(words, _DENIALS) and _has_any(words, _ABOUT)):
        return False
    return _DENIED.search(f" {' '.join(words.split())} ") is not None


def _has_any(words: str, parts: tuple[str, ...]) -> bool:
    return any(map(words.__contains__, parts))


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
