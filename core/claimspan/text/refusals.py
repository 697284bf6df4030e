"""How people and models say in English that they do not know, or do not answer.

Among them are answers that frameworks and services give by themselves: ``Empty Response`` of
LlamaIndex, ``Hmm, I'm not sure`` of LangChain's tutorials, ``Sorry, the model cannot answer this
question`` of Amazon Bedrock's guardrails, ``I'm sorry, I can't respond to that`` of NeMo's.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Final, NamedTuple

from claimspan.text.openers import SOURCES, alternatives, by_language

__all__ = [
    "declined",
    "is_apology",
    "is_filler",
    "is_referral",
    "is_statement",
    "may_decline",
    "normalise",
    "starts_with_abstention",
    "starts_with_filler",
]


# --- in other languages ---------------------------------------------------------------------------

# Word order is free in many of them, so that a language has lists of words in place of sentences. A
# clause declines if it denies, and has either the speaker and what he cannot do, or the sources and
# what they do not do.

# Scripts in which a word is not set apart by blanks, or ends in a mark that is no letter.
_OPEN_ENDED: Final = frozenset({"hi", "ja", "ko", "zh"})
_CLAUSE: Final = re.compile(r"[^\W_](?:[^,;:،؛，；、：]|[,:](?=\d))*")
_MAX_CLAUSES: Final = 4
"""Clauses of a sentence up to the one that declines: regrets, and the basis of the answer."""

_MAX_BASIS: Final = 60
"""Characters of a clause that names the basis of the answer, and asserts nothing itself."""

_MAX_REGRET: Final = 30
"""Characters of a clause that regrets: ``Es tut mir sehr leid``."""

_STOPS: Final = re.compile(r"[.!?,;:\"“”()\n*_]")
_DIGIT: Final = re.compile(r"\d")


class _Row(NamedTuple):
    """The patterns of one language, named as in the table."""

    denies: re.Pattern[str]
    sources: re.Pattern[str]
    says: re.Pattern[str]
    speaker: re.Pattern[str]
    answers: re.Pattern[str]
    whole: re.Pattern[str]
    but: re.Pattern[str]
    sorry: re.Pattern[str]


# Compiled when a text has a hint of the language: all of them would take longer than the import.
@cache
def _row(language: str) -> _Row:
    before, behind = ("", "") if language in _OPEN_ENDED else (r"\b", r"(?!\w)")
    lists = by_language()[language]
    patterns = (f"{before}(?:{'|'.join(lists[name])}){behind}" for name in _Row._fields)
    return _Row(*(re.compile(each, re.IGNORECASE) for each in patterns))


_HINTS: Final = {
    language: tuple(lists["hints"]) for language, lists in by_language().items() if "hints" in lists
}
_ALL_HINTS: Final = tuple(dict.fromkeys(hint for hints in _HINTS.values() for hint in hints))


def _has_hint(lowered: str) -> bool:
    # Not ``any``, which calls a generator for each hint: this is asked of every answer.
    for hint in _ALL_HINTS:  # noqa: SIM110 - as above
        if hint in lowered:
            return True
    return False


def declined(sentence: str) -> str | None:
    """Tells whether a sentence declines to answer, and returns its other statements.

    Returns:
        What follows "but", empty if nothing does; None if the sentence does not decline.
    """
    find = _declines if len(sentence) <= _LONGEST_REMEMBERED else _declines.__wrapped__
    return find(sentence)


# Whether a sentence declines is asked by each step that reads it.
_LONGEST_REMEMBERED: Final = 500


@lru_cache(maxsize=256)
def _declines(sentence: str) -> str | None:
    lowered = _spaced(sentence)
    if not _has_hint(lowered):  # as most sentences: language by language takes three times as long
        return None
    for language, hints in _HINTS.items():
        if any(map(lowered.__contains__, hints)):
            rest = _declined(sentence, _row(language))
            if rest is not None:
                return rest
    return None


def _spaced(text: str) -> str:
    # A hint may be the first or the last word of its sentence.
    return _STOPS.sub(" ", f" {text.lower()} ")


def _declined(sentence: str, row: _Row) -> str | None:
    if not row.denies.search(sentence):
        return None
    names_sources = False
    for _, clause in zip(range(_MAX_CLAUSES), _CLAUSE.finditer(sentence), strict=False):
        text = clause.group()
        names_sources = names_sources or row.sources.search(text) is not None
        end = _end_of_refusal(text, row, names_sources=names_sources)
        if end is not None:
            but = row.but.search(sentence, clause.start() + end)
            return sentence[but.end() :].strip() if but else ""
        is_basis = row.sources.search(text) and len(text) <= _MAX_BASIS and not _DIGIT.search(text)
        regrets = row.sorry.match(text.strip()) and len(text) <= _MAX_REGRET
        if not (is_basis or regrets):
            return None
    return None


def _end_of_refusal(clause: str, row: _Row, *, names_sources: bool) -> int | None:
    """The end of the words by which a clause declines; None if it does not."""
    if whole := row.whole.search(clause):
        return whole.end()
    denial = row.denies.search(clause)
    if denial is None:
        return None
    by_speaker = row.speaker.search(clause) and row.answers.search(clause)
    by_source = names_sources and row.says.search(clause)
    return denial.end() if by_speaker or by_source else None


# --- in English -----------------------------------------------------------------------------------

_CANNOT: Final = r"(?:cannot|can't|can not|could not|couldn't)"
_NOT: Final = r"(?:do not|don't|did not|didn't|cannot|can't|can not|could not|couldn't)"
_NOT_ABLE: Final = r"(?:not able|wasn't able|unable) to"
_FIND: Final = r"(?:find|locate|determine|answer|identify|retrieve)\b"
_IS_NOT: Final = (
    r"(?:is not|isn't|are not|aren't|was not|wasn't|were not|weren't|could not be|couldn't be)"
)
_FOUND_OUT: Final = (
    r"(?:determined|answered|inferred|derived|calculated|computed|ascertained|established|deduced)"
)
_MENTIONED: Final = (
    r"(?:mentioned|specified|stated|discussed|addressed|disclosed|covered|found|provided|given|"
    r"included|available|answered|described|explained|listed|present)"
)
_SAYS_NOT: Final = (
    r"(?:does not|doesn't|do not|don't) (?:\w+ )?(?:say|mention|contain|provide|specify|include|"
    r"state|give|answer|tell|cover|discuss|address|disclose|detail|describe|refer)\b"
)
_AT_HAND: Final = (
    r"(?:(?:that |which )?(?:i|we) (?:have|had|got|found|saw|see|(?:was|were|am|are) (?:\w+ )?\w+|"
    r"(?:can|could) (?:see|find|access))|(?:given|provided|available|supplied)(?: to (?:me|us))?|"
    r"at hand)"
)
"""What may stand between a source and what it does not say: ``the documents I was given``."""
_READ: Final = (
    r"(?:(?:the|this|that|these|those|your|my|any of the) )?"
    r"(?:(?:\w+ )?(?:contexts?|texts?|documents?|documentation|passages?|sources?|articles?|"
    r"chunks?|excerpts?|snippets?|search results|knowledge base)"
    r"|(?:provided|given|retrieved|supplied) (?:\w+ )?(?:information|data|results?|records?|files?)"
    r"|(?:information|data|results?|records?|files?) (?:provided|given|retrieved|supplied))\b"
)
"""What models call what they were given. ``The data`` and ``the results`` may be what an answer is
about: they count only if the words say that they were given."""

_LACKED: Final = r"(?:no|not enough|insufficient)"
_NAMED: Final = (
    r"(?:information|context|data|details?|mention|answers?|results?|documents?|sources?|matches)"
)
_ANSWER: Final = r"(?:answer|help|assist|discuss|respond|talk|provide)"
_SERVE: Final = (
    # "I can't help but admire it" and "I can't help admiring it" admire.
    r"(?:help(?! but\b| (?:\w+ )?\w{3,}ing\b)|assist|comply|fulfil+|discuss|respond|reply|engage|"
    r"chat|talk|provide|offer|give|share|continue|proceed|process|complete|confirm|verify|access|"
    r"identify|extract|calculate|compute|assess|specify)\b"
)

_SPEAKER: Final = (
    # does not know
    rf" {_NOT} (?:\w+ )?(?:know|answer|find|determine|have|say|tell|see)\b",
    rf" {_NOT} (?:\w+ )?understand(?: (?:it|that|this|(?:the|your|this) \w+))?\W*$",
    rf"(?:'m| am| was)? {_NOT_ABLE} (?:\w+ )?{_FIND}",
    r"(?:'m| am) (?:\w+ )?(?:not (?:able|sure|certain|aware)|unable)\b",
    rf" (?:\w+ )?(?:lack|have {_LACKED}) (?:\w+ ){{0,3}}"
    r"(?:information|context|knowledge|data|details|records?|idea|access|answer)\b",
    # does not answer
    rf" (?:{_CANNOT}|will not|won't) (?:\w+ )?{_SERVE}",
    r"(?:'m| am) (?:\w+ )?not (?:programmed|designed|trained|allowed|permitted|authori[sz]ed|"
    r"comfortable|going to|in a position)\b",
    r"(?:'ll|'m going to| (?:must|will|would|have to|need to|am going to))?(?: have to)?(?: \w+)? "
    rf"(?:decline|refuse)(?:\W*$| (?:to {_ANSWER}|th(?:is|at)|your)\b)",
    r"(?:'d| would)? (?:rather not|prefer not to) (?:say|answer|discuss|talk|comment|continue)\b",
    r" (?:do not|don't) feel comfortable\b",
    r"(?: can only| am only able to|'m only able to) (?:answer|help|assist|discuss|respond|talk)\b",
    r"(?:'m| am) (?:just |only )?an? (?:ai|(?:large )?language model)\b",
)
"""What follows ``I`` if the speaker does not know, or does not answer."""

_ENGLISH: Final = (
    rf"i(?:{'|'.join(_SPEAKER)})",
    rf"we (?:(?:are|were) (?:not able|unable) to|weren't able to|{_CANNOT}) (?:\w+ )?{_FIND}",
    r"you (?:haven't|have not|did not|didn't) provided? (?:\w+ ){0,4}"
    r"(?:information|context|evidence|data|documents?|details|question|text)\b",
    r"as an? (?:\w+ )?(?:ai|language model)\b|as a (?:virtual|digital) assistant\b",
    r"the (?:model|assistant) (?:cannot|can't|is unable to) answer\b",
    r"(?:it|(?:that|this)(?: question| request| topic)?|(?:the|your) (?:question|request|topic))"
    r"(?:'s| is| falls| lies) (?:\w+ )?(?:outside|beyond|out)(?: of)? "
    r"(?:my|what i|the scope of (?:what i|my|this (?:chat|conversation|assistant)))\b",
    r"that(?:'s| is) (?:not something i can|something i (?:cannot|can't))\b",
    # The source does not say.
    rf"(?:(?:the|this|that|these|any|your|my) )?(?:\w+ )?(?:{SOURCES}|knowledge base) "
    rf"(?:{_AT_HAND} )?{_SAYS_NOT}",
    rf"{_READ} (?:makes?|has|have|contains?|gives?|provides?|offers?) no (?:\w+ )?{_NAMED}\b",
    rf"(?:none of|nothing in) {_READ} (?:\w+ )?"
    r"(?:say|mention|contain|provide|specif|include|state|give|answer|cover|discuss|address|refer)",
    # "No information is stored on your device" is a fact about storage.
    rf"(?:there is |there's )?{_LACKED} (?:\w+ )?information"
    r"(?:[.!]?$| (?:(?:is|was|has been) )?(?:available|provided|given|found|included|mentioned)\b"
    r"| (?:about|on|regarding|concerning|in the|to)\b)",
    rf"(?:there (?:is|are|was|were) |there's )?{_LACKED} (?:\w+ ){{0,2}}{_NAMED}"
    r"(?: (?:is|was|were|are|has been|have been|could be))?(?: \w+)? "
    r"(?:found|retrieved|returned|provided)\b",
    rf"(?:there (?:is|are|was|were) |there's ){_LACKED} (?:\w+ )?{_NAMED}(?: of [^,.;:]{{1,60}})? "
    rf"in {_READ}",
    r"there(?: is| was|'s) no mention(?: of (?:it|that|this))?\W*$",
    # It is not to be found.
    r"(?:it|(?:this|that)(?: \w+)?|(?:the|your) (?:\w+ )?(?:question|answer|information|query)) "
    rf"(?:\w+ )?{_CANNOT} be (?:\w+ )?{_FOUND_OUT}\b",
    rf"[^,.;:]{{1,80}} (?:{_CANNOT} be|{_IS_NOT}) (?:\w+ )?(?:{_FOUND_OUT}|{_MENTIONED}) "
    rf"(?:from|in|within|based on|using|with) {_READ}",
    rf"(?:it|this|that|the answer) is not (?:\w+ )?(?:in|by) (?:the |your )?(?:\w+ )?{SOURCES}",
    r"(?:the|this|that) (?:\w+ )?(?:information|answer|details?|topic|question) "
    rf"{_IS_NOT} (?:\w+ )?{_MENTIONED}\W*$",
    # Nothing but a label.
    r"(?:n/a|idk|unanswerable|not[ _](?:found|sure|answerable|enough[ _]\w+)"
    r"|(?:no|empty|insufficient)[ _](?:\w+[ _])?"
    r"(?:answers?|response|results?|idea|information|context|data|documents?|matches)"
    r"(?: found)?)\W*$",
)

_OPENERS: Final = (
    r"(?:(?:hmm+|well|oh|i(?:'m| am) (?:(?:so|very|really|truly|deeply) )?(?:sorry|afraid)|sorry|"
    r"unfortunately|regrettably|however|therefore|(?:my )?apologies|"
    r"i apologi[sz]e(?: for [^,.]{1,60})?)[,.]*\s*(?:but |that )?){0,3}"
    r"(?:(?:based on|according to|as of (?:my|the) last) [^,.]{1,120}[,.]?\s*)?"
)
_ABSTENTIONS: Final = _OPENERS + ("(?:" + "|".join(f"(?:{each})" for each in _ENGLISH) + ")")
"""A pattern that matches the beginning of an abstention, in lower or upper case."""


# --- phrases --------------------------------------------------------------------------------------

# Abstentions and referrals are known in many languages, everything else in English; question marks
# of other scripts are known too. The patterns match at the start of a sentence and have straight
# apostrophes: ``normalise`` prepares a sentence for them.

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
_ABSTENTION: Final = re.compile(_ABSTENTIONS, re.IGNORECASE)
_HINT: Final = re.compile(
    r"n['’]t(?![a-z])|\b(?:no|not|none|nothing|cannot|unable|lack|decline|refuse|only|insufficient|"
    r"empty|unanswerable|idk|n/a|ai|assistant|language model|outside|beyond|out|sorry|afraid|"
    r"apolog\w+)(?![a-z])",
    re.IGNORECASE,
)
"""What each abstention and each apology in English has."""
_REFERRAL: Final = re.compile(alternatives("refers"), re.IGNORECASE)
_APOLOGY: Final = re.compile(
    r"(?:(?:i(?:'m| am) )?(?:(?:so|very|really) )?(?:sorry|afraid)(?: about that)?"
    r"|(?:i apologi[sz]e|my apologies)(?: for (?:the|this|any) \w+)?)[.!]?$",
    re.IGNORECASE,
)


def normalise(sentence: str) -> str:
    """Strips outer white space and replaces curly apostrophes by straight ones."""
    return sentence.strip().replace("’", "'")


def may_decline(text: str) -> bool:
    """Tells at little cost whether a text may have an abstention or an apology in it."""
    return _HINT.search(text) is not None or _has_hint(_spaced(text))


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
