"""Finds the parts that a text does not assert: citations, footers, markup, and a model's thoughts.

``X (Source: guide.pdf, p. 3)`` asserts X. Left in, the name of the file would be looked for in the
chunks, and a list of sources would become claims of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Final

from claimspan.text.openers import alternatives

__all__ = [
    "is_excerpt_heading",
    "is_footer",
    "is_source_heading",
    "masked",
    "without_citations",
]


# --- footers --------------------------------------------------------------------------------------

# A disclaimer ("Prices may change") is true of any answer, and a pointer ("Read more:") of none: a
# judge would look for both in the chunks.

_FILE: Final = r"[\w%./ -]{1,80}\.(?:pdf|html?|docx?|md|txt|csv|xlsx?|pptx?|json|xml|rst)\b"
_URL: Final = r"(?:https?://|www\.)[^\s<>\])]+"
_PLACE: Final = (
    r"(?:,?\s*+(?:p{1,2}\.|pages?|sections?|sec\.|§|chapters?|lines?|paragraphs?|table|fig(?:ure|"
    r"\.)?|"
    r"S\.|Seite|str\.|strani?)\s*+[\divxlc][\d.,\s–-]*)"
)
_SOURCE_WORD: Final = (
    r"(?:sources?|documents?|docs?|passages?|chunks?|refs?\.?|references?|contexts?|citations?|"
    r"articles?|quellen?|viri?|bron|fuente|fonte)"
)
_QUALIFIED: Final = (
    r"(?:(?:my|the|all|retrieved|relevant|supporting|cited|consulted|used|original|quoted|matching|"
    r"source|context|text) ){0,3}"
)
_SOURCES: Final = (
    rf"{_QUALIFIED}(?:{_SOURCE_WORD}|footnotes|bibliography|further reading|see also"
    r"|search results)"
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
        rf"[\s>#*_\-]*+(?:\d{{1,2}}[.)] )?(?:{english}{_USED}|{alternatives(name)})"
        r"[\s*_]*+(?:\([^()\n]{1,40}\))?[\s*_]*+[:：]?[\s*_]*+",
        re.IGNORECASE,
    )


_SOURCE_HEADING: Final = _heading("headings", _SOURCES)
_EXCERPT_HEADING: Final = _heading("excerpts", _EXCERPTS)
_POINTERS: Final = (
    rf"(?:{_SOURCE_WORD}|further reading|(?:read|learn|find out) more(?: about [^:\n]{{1,80}})?|"
    rf"see also|"
    r"(?:more|further|full|additional) (?:information|details|info))\s*[:：].*"
    rf"|(?:\[\^?\w{{1,12}}\]:?\s*)?(?:{_FILE}|{_URL}){_PLACE}?[.,;]?"
    rf"|\[\^\w{{1,12}}\]:.*|\[\d{{1,3}}\]:?\s*{_SOURCE_WORD}\b.*|\[\d[\d,\s–-]*\]"
    # A link alone, or behind words that point.
    r"|(?:(?:please |you can (?:also )?)?(?:for|see|read|visit|check|find|more|link|learn|go to|"
    r"via|full|at|here)"
    rf"\b[^\[\]\n]{{0,80}}[ :]\s*)?(?:\[[^\[\]\n]{{1,200}}\]\([^()\s]{{1,500}}\)|<?{_URL}>?)[.!]?"
)
"""Sentences that send the reader on for more."""

# "(Source: guide.pdf)" may stand behind the full stop of what it is the source of.
_AROUND: Final = " \t\r\n()*_→\u2139\u26a0\ufe0f\U0001f449"
_FOOTER: Final = re.compile(
    r"(?:(?:my )?confidence|certainty|relevance|zaupanje|konfidenz)(?:\s+(?:score|level))?"
    r"\s*[:=：]\s*(?:very\s+)?(?:high|medium|moderate|low|hoch|mittel|niedrig|[\d.,/ ]+%?)[.!]?"
    r"|(?:note: )?(?:this (?:information|answer|response|summary)"
    r"|the (?:information|answer|response|summary) above) (?:is|was) "
    r"(?:based on|taken from|drawn from|sourced from)\b.*"
    r"|(?:last )?(?:updated|retrieved|accessed|reviewed)(?: on)?\s*[:：].*"
    rf"|{_POINTERS}"
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


# --- citations ------------------------------------------------------------------------------------

_REFERENCE: Final = (
    rf"(?:{_FILE}|{_URL}|{_SOURCE_WORD}\s*+(?:#|no\.\s*+)?\d++(?:\s*+(?:,|and|&)\s*+\d++)*+|"
    rf"{_SOURCE_WORD}\s*+:[^()\[\]]{{1,160}})"
)
_BRACKETED: Final = (
    # [^1], [Source 2], [guide.pdf, p. 3], (Source: guide.pdf), (see section 4.2), (p. 12), 【4†x】
    r"(?:\[\^[\w-]{1,12}\](?!:)"
    rf"|\[{_REFERENCE}{_PLACE}?\]"
    rf"|\((?:(?:see|cf\.|from|in|via|per|as per|siehe|glej|voir|zie)\s++)?(?:the\s++)?"
    rf"{_REFERENCE}{_PLACE}?\)"
    rf"|\((?:(?:see|cf\.|siehe|glej|voir|zie)\s++){_PLACE}\)|\({_PLACE}\)"
    r"|【[^】]{0,80}】)"
)
_INLINE: Final = re.compile(rf"(?<!\s)\s*+{_BRACKETED}", re.IGNORECASE)
# To look for it without the blanks before it takes a fraction of the time.
_ANY_INLINE: Final = re.compile(rf"(?=[\[(【]){_BRACKETED}", re.IGNORECASE)
_PICTOGRAPH: Final = re.compile(
    "^(?:[\u2600-\u27bf\u2b00-\u2bff\U0001f300-\U0001faff]\ufe0f?\\s*)+"
)
_SHORT_CODE: Final = re.compile(r"(?<!\S):[a-z][a-z0-9_+-]{1,30}:(?!\S)")
_FIRST_PICTOGRAPH: Final = "\u2600"

_CODE: Final = re.compile(r"(?ms)^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1|\Z)|`[^`\n]+`")
_THOUGHTS: Final = re.compile(
    r"<(think|thinking|reasoning|scratchpad|reflection|analysis)>.*?(?:</\1>|\Z)",
    re.IGNORECASE | re.DOTALL,
)
# Up to the next beginning only: a text of many beginnings is still read once.
_COMMENT: Final = re.compile(r"<!--(?:(?!<!--).)*?-->", re.DOTALL)
_TAGS: Final = re.compile(
    r"</?(?:a|b|strong|i|em|u|s|sup|sub|span|small|mark|code|cite|q|"
    r"caption|dl|dd|details|summary|figure|blockquote|"
    r"answer|response|final|final_answer|result|output|explanation|quote|citation|source)"
    r"(?:\s[^<>\n]{0,200})?/?>",
    re.IGNORECASE,
)
# The number of a footnote behind a word or a stop; "10<sup>6</sup>", "cm<sup>3</sup>" are values.
_FOOTNOTE: Final = re.compile(
    r"(?<=[a-z]{3}|[a-z]{2}[.!?,;:)])<sup>\[?\d{1,3}(?:,\s*\d{1,3})*\]?</sup>", re.IGNORECASE
)
_QUOTATION: Final = re.compile(r"(?m)^[ \t]*(?:>[ \t]?)+")
# An image is blanked here, and not where links are read, since a sentence ends at its mark. A
# bracket in its text is closed there, as in CommonMark: else each of many is read on to the bound.
_IMAGE: Final = re.compile(
    r"!\[(?:[^\[\]\n]|\[[^\[\]\n]{0,100}\]){0,200}\]"
    r"\((?:[^()\s]{1,500}|\([^()\s]{0,200}\)){0,9}\)"
)
_MARKUP: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (_THOUGHTS, " "),
    (_COMMENT, " "),
    (_FOOTNOTE, " "),
    # Structures of HTML become those of Markdown, so that a cell, an item and a heading are known.
    *(
        (re.compile(rf"<{name}\b[^<>\n]{{0,200}}>{behind}", re.IGNORECASE), fill)
        for name, behind, fill in (
            ("/th", r"\s*</tr>\s*", "\n|-|\n"),
            (r"(?:/t[dh]|/?t(?:head|body|foot)|tr)", r"\s*", ""),
            ("/tr", r"\s*", "\n"),
            (r"t[dh]", "", "|"),
            ("li", "", "\n- "),
            (r"(?:h[1-6]|summary)", "", "\n# "),
            ("/dt", r"\s*", ": "),
            (r"/?(?:br|p|div|li|ul|ol|dt|h[1-6]|hr|section|table|summary)", "", "\n"),
        )
    ),
    (_TAGS, " "),
    (_IMAGE, " "),
    (_QUOTATION, " "),
)
"""A part that is not asserted, and the end of the blanks that stand for it."""
_SIGN_OFF: Final = re.compile(
    r"(?:^|(?<=[.!?]))[ \t]*"
    r"(?:(?:with )?(?:best|kind|kindest|warm|warmest|many)? ?(?:regards|wishes)"
    r"|(?:yours )?(?:sincerely|truly|faithfully)"
    r"|(?:mit )?(?:freundliche\w*|viele|beste|liebe) grü(?:ß|ss)en?"
    r"|cordialement|bien à vous|saludos(?: cordiales)?|atentamente"
    r"|(?:cordiali|distinti) saluti|(?:met )?vriendelijke groet\w*|lep pozdrav|s spoštovanjem)"
    r"[,.!]?[ \t]*(?:\n[^.!?\n]{0,80}){0,8}\Z",
    re.IGNORECASE | re.MULTILINE,
)
"""The end of a letter, with the names below it."""
_MAX_SIGN_OFF: Final = 700

_LINE: Final = re.compile(r"[^\n]+")
_NEXT_LINE: Final = re.compile(r"\n([^\n]*)")
_LIST_LINE: Final = re.compile(r"[ \t]*(?:[-*+•–]|\(?\d{1,3}[.):\]]|\[\^?\w{1,12}\])\s*\S")


def without_citations(sentence: str) -> str:
    """Returns a sentence without citations."""
    read = sentence
    if ("(" in read or "[" in read or "【" in read) and _ANY_INLINE.search(read):
        read = _INLINE.sub("", read)
    if read.count(":") > 1:  # of a pictograph, as in ":warning:"
        read = _SHORT_CODE.sub("", read)
    return _PICTOGRAPH.sub("", read) if read[:1] >= _FIRST_PICTOGRAPH else read


def masked(text: str) -> str:
    """Returns a text of the same length, with blanks for parts that assert nothing.

    Blanked are a model's thoughts (``<think>``), HTML tags, comments, the marks of quotations,
    lists of sources, and the end of a letter. Tags of tables, lists and headings end in the sign
    that Markdown has for them. Code stays as it is. Positions stay those of the text, so that what
    is found is quoted as written.
    """
    if any(map(text.__contains__, "<>!")):
        text = _outside_code(text)
    if signed := _SIGN_OFF.search(text, max(0, len(text) - _MAX_SIGN_OFF)):
        text = text[: signed.start()] + _blank(signed.group())
    parts: list[str] = []
    last = 0
    for start, end in _source_sections(text):
        parts += [text[last:start], _blank(text[start:end])]
        last = end
    return "".join((*parts, text[last:]))


def _outside_code(text: str) -> str:
    parts: list[str] = []
    last = 0
    for code in _CODE.finditer(text):
        parts += [_without_tags(text[last : code.start()]), code.group()]
        last = code.end()
    return "".join((*parts, _without_tags(text[last:])))


def _without_tags(text: str) -> str:
    for pattern, fill in _MARKUP:
        text = pattern.sub(partial(_blanked, fill), text)
    return text


def _blanked(fill: str, match: re.Match[str]) -> str:
    return _blank(match.group(), fill)


def _blank(text: str, fill: str = " ") -> str:
    """Returns a text of the same length: its line breaks, or the sign that it stands for."""
    if fill == " ":
        return "".join("\n" if character == "\n" else " " for character in text)
    # A cell begins where its tag does.
    return fill.ljust(len(text)) if fill == "|" else fill.rjust(len(text))


def _source_sections(text: str) -> Iterator[tuple[int, int]]:
    """Yields the places of headings such as ``Sources:``, each with the list below it."""
    end = 0
    for line in _LINE.finditer(text):
        if line.start() < end or not is_source_heading(line.group()):
            continue
        start, end = line.span()
        while below := _NEXT_LINE.match(text, end):
            # A line that is neither blank nor an item belongs to the answer again.
            if below[1].strip() and not (_LIST_LINE.match(below[1]) or is_footer(below[1])):
                break
            end = below.end()
        yield start, end
