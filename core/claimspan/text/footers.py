"""What stands beside an answer by itself: sources, pointers to more, disclaimers, ratings.

A disclaimer ("Prices may change") is true of any answer, and a pointer ("Read more:") of none: a
judge would look for both in the chunks.
"""

from __future__ import annotations

import re
from typing import Final

from claimspan.text.beside_answers import alternatives

__all__ = [
    "FILE",
    "PLACE",
    "SOURCE_WORD",
    "URL",
    "is_excerpt_heading",
    "is_footer",
    "is_source_heading",
]

FILE: Final = r"[\w%./ -]{1,80}\.(?:pdf|html?|docx?|md|txt|csv|xlsx?|pptx?|json|xml|rst)\b"
URL: Final = r"(?:https?://|www\.)[^\s<>\])]+"
PLACE: Final = (
    r"(?:,?\s*(?:p{1,2}\.|pages?|sections?|sec\.|§|chapters?|lines?|paragraphs?|table|fig(?:ure|"
    r"\.)?|"
    r"S\.|Seite|str\.|strani?)\s*[\divxlc][\d.,\s–-]*)"
)
SOURCE_WORD: Final = (
    r"(?:sources?|documents?|docs?|passages?|chunks?|refs?\.?|references?|contexts?|citations?|"
    r"articles?|quellen?|viri?|bron|fuente|fonte)"
)
_QUALIFIED: Final = (
    r"(?:(?:my|the|all|retrieved|relevant|supporting|cited|consulted|used|original|quoted|matching|"
    r"source|context|text) ){0,3}"
)
_SOURCES: Final = (
    rf"{_QUALIFIED}(?:{SOURCE_WORD}|footnotes|bibliography|further reading|see also|search results)"
)
_EXCERPTS: Final = (
    rf"{_QUALIFIED}(?:excerpts?|snippets?|quotes?|quotations?|evidence|based on|taken from)"
)
_USED: Final = (
    r"(?: (?:used|consulted|cited|retrieved|found|for (?:this|the) answer|from the \w+))?"
    r"(?: [#№]?\d{1,3})?"
)


def _heading(name: str, english: str) -> re.Pattern[str]:
    return re.compile(
        rf"[\s>#*_\-]*(?:\d{{1,2}}[.)] )?(?:{english}{_USED}|{alternatives(name)})"
        r"[\s*_]*(?:\([^()\n]{1,40}\))?[\s*_]*[:：]?[\s*_]*",
        re.IGNORECASE,
    )


_SOURCE_HEADING: Final = _heading("headings", _SOURCES)
_EXCERPT_HEADING: Final = _heading("excerpts", _EXCERPTS)
_POINTERS: Final = (
    rf"(?:{SOURCE_WORD}|further reading|(?:read|learn|find out) more(?: about [^:\n]{{1,80}})?|"
    rf"see also|"
    r"(?:more|further|full|additional) (?:information|details|info))\s*[:：].*"
    rf"|(?:\[\^?\w{{1,12}}\]:?\s*)?(?:{FILE}|{URL}){PLACE}?[.,;]?"
    rf"|\[\^\w{{1,12}}\]:.*|\[\d{{1,3}}\]:?\s*{SOURCE_WORD}\b.*|\[\d[\d,\s–-]*\]"
    # A link alone, or behind words that point.
    r"|(?:(?:please |you can (?:also )?)?(?:for|see|read|visit|check|find|more|link|learn|go to|"
    r"via|full|at|here)"
    rf"\b[^\[\]\n]{{0,80}}[ :]\s*)?(?:\[[^\[\]\n]{{1,200}}\]\([^()\s]{{1,500}}\)|<?{URL}>?)[.!]?",
    r"(?:(?:please|you can(?: also)?|also) )?(?:see|visit|check|consult|read|refer to|view|find) "
    r"(?:\S+ ){0,8}(?:for (?:more|further|full|additional)(?: \w+)?|for (?:details|"
    r"information))[.!]?"
    r"|(?:(?:please|you can(?: also)?|also) )?(?:see|read|view|find|learn) (?:\S+ ){0,8}here[.!]?"
    r"|click (?:here|the link)\b.*|for (?:more|further|additional) (?:information|details|help)\b.*"
    r"|(?:read|learn|find out) more(?: about (?:\S+ ){0,6}\S+| here| at \S+)?[.!]?",
)
"""Sentences that send the reader on for more."""

_DISCLAIMERS: Final = (
    r"(?:disclaimer|haftungsausschluss|avertissement|aviso legal|descargo de responsabilidad|"
    r"avvertenza|isenção de responsabilidade|omejitev odgovornosti)\s*[:：].*",
    r"(?:please note(?: that)? |note(?: that)?:? )?(?:this|that|it|the above|"
    r"the information above|this "
    r"(?:answer|response|information))(?:'s| is| does) (?:(?:only|just|general|provided|intended|"
    r"meant|offered) (?:\w+ ){0,4}information(?:al)?\b.*|(?:not|no)(?: (?:a|be|constitute|"
    r"intended as|"
    r"meant as|a substitute for|taken as))? (?:\w+,? ){0,3}(?:or )?\w+ advice\b.*)",
    r"(?:please|always|you should(?: always)?|it(?:'s| is) (?:always )?(?:best|advisable|"
    r"recommended) to) "
    r"(?:consult|speak (?:to|with)|talk to|see|contact|ask|seek (?:the )?advice (?:of|"
    r"from))(?: with)? "
    r"(?:an?|your) (?:\w+ ){0,2}(?:doctor|physician|pharmacist|lawyer|attorney|solicitor|"
    r"professional|"
    r"expert|specialist|advis[eo]r|accountant|provider)"
    r"(?: (?:or|and) (?:\w+ ){0,3}\w+)?(?: (?:for|before making|regarding|about) [^.]*)?[.!]?",
    r"(?:i(?:'m| am) (?:just |only )?an? (?:ai|artificial|(?:\w+ )?language model|chatbot|"
    r"virtual|digital)|"
    r"this (?:answer|response|text) was (?:generated|written|created) by (?:an? )?ai)\b.*",
    r"(?:please note(?: that)? |note(?: that)?:? )?(?:all |these |the |our )?(?:prices?|fees?|"
    r"rates?|terms|"
    r"details|information|polic(?:y|ies)|availability|hours|times|conditions|offers?|data|figures)"
    r"(?: and \w+)? (?:(?:may|can|could|might) (?:change|be (?:outdated|out of date|incomplete))|"
    r"(?:is|are) subject to change)(?: (?:at any time|without (?:prior )?notice|over time|"
    r"in the future))?"
    r"(?:\s*[.!]?|\s*[;,:–—-]\s.*|,? (?:so|and) .*)",
    r"(?:please )?(?:always )?(?:verify|double-check|check|confirm) (?:this|the|all|these|"
    r"any) (?:\w+ ){0,3}"
    r"(?:information|details|answer|facts|prices?)\b.*",
)
"""Sentences that are true of any answer."""

# "(Source: guide.pdf)" may stand behind the full stop of what it is the source of.
_AROUND: Final = " \t\r\n()*_→\u2139\u26a0\ufe0f\U0001f449"
_FOOTER: Final = re.compile(
    r"(?:(?:my )?confidence|certainty|relevance|zaupanje|konfidenz)(?:\s+(?:score|level))?"
    r"\s*[:=：]\s*(?:very\s+)?(?:high|medium|moderate|low|hoch|mittel|niedrig|[\d.,/ ]+%?)[.!]?"
    r"|(?:note: )?(?:this (?:information|answer|response|summary)"
    r"|the (?:information|answer|response|summary) above) (?:is|was) "
    r"(?:based on|taken from|drawn from|sourced from)\b.*"
    r"|(?:last )?(?:updated|retrieved|accessed|reviewed)(?: on)?\s*[:：].*"
    rf"|{'|'.join((*_POINTERS, *_DISCLAIMERS))}"
    rf"|{alternatives('pointers')}|{alternatives('disclaimers')}",
    re.IGNORECASE,
)


def is_footer(sentence: str) -> bool:
    """Tells whether a sentence is a pointer, a disclaimer, or a rating of the answer.

    Args:
        sentence: One sentence, such as ``Confidence: 95%``, ``guide.pdf, p. 3`` or ``Read more:``.
    """
    return bool(_FOOTER.fullmatch(sentence.replace("’", "'").strip(_AROUND)))


def is_source_heading(line: str) -> bool:
    """Tells whether a line is the heading of a list of sources, as ``**Quellen:**``."""
    return bool(_SOURCE_HEADING.fullmatch(line))


def is_excerpt_heading(line: str) -> bool:
    """Tells whether a line is the heading of passages, or of reasons: ``Based on:``."""
    return bool(_EXCERPT_HEADING.fullmatch(line))
