"""Splits prose into sentences.

A mark of any script ends a sentence, unless it stands within brackets or a quotation, or after an
abbreviation, an initial or an ordinal. Abbreviations are listed by language.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Final, cast

from claimspan.text.languages import language_of_script
from claimspan.text.tables import read_table

__all__ = ["split_prose"]

# What the lower case after it shows to be an ordinal or an abbreviation: "3. maja", "npr. danes".
_FALSE_END: Final = re.compile(r"(?:\b\d{1,4}\.|\b[^\W\d_]{1,4}\.|…|\.\.)\s*$")

_TABLE: Final = read_table("text", "sentences.toml")


def _any_of(name: str) -> Mapping[str, str]:
    """Returns the patterns of a list of the table, by language."""
    lists = cast("Mapping[str, str]", _TABLE[name])
    return {language: f"(?:{'|'.join(each.split())})" for language, each in lists.items()}


_WITH_CASE: Final = cast("str", _TABLE["case_matters"]).split()
_BEFORE_NAMES: Final = {
    language: re.compile(
        (r"(?<![\w.])" if language == "en" else r"\b") + rf"{each}\.\s*$",
        re.NOFLAG if language in _WITH_CASE else re.IGNORECASE,
    )
    for language, each in _any_of("abbreviations").items()
}
# Languages that write an ordinal with a dot, and what follows it there with a capital letter.
_ORDINAL_END: Final = re.compile(r"(?:^|[^\w.,])\d{1,2}\.\s*$")
_AFTER_ORDINAL: Final = {
    language: re.compile(each) for language, each in _any_of("behind_ordinals").items()
}
_BEFORE_ORDINAL: Final = {
    language: re.compile(rf"\b{each}\s+\d{{1,2}}\.\s*$", re.IGNORECASE)
    for language, each in _any_of("before_ordinals").items()
}

_INITIAL: Final = re.compile(r"(?:^|[\s(])[^\W\d_]\.\s*$")
_ITEM: Final = re.compile(r"\s*\d{1,2}\.\s*")
"""The number of an item of a list, which stands before its sentence."""

# English abbreviations that end a sentence only before a word that begins one.
_BEFORE_ANY: Final = re.compile(
    r"(?<![\w.])(?:U\.\s?[SKN]|Inc|Ltd|Co|Corp|Bros|Jr|Sr|Ph\.\s?D|[ap]\.\s?m)\.\s*$", re.IGNORECASE
)
_BEGINNING: Final = re.compile(
    r"(?:A|After|All|Although|An|And|As|At|Before|But|By|During|For|From|He|Her|His|However|If|In|It|"
    r"Its|Many|Most|No|Now|On|Or|She|Since|So|Some|That|The|Their|Then|There|These|They|This|To|We|"
    r"What|When|While|With|You|Your)\b"
)

# A boundary is judged by what stands near it; a longer look back takes quadratic time.
_TAIL: Final = 40
_SAID: Final = 500
"""Letters at most of a quotation or a remark in brackets."""

_PAIRS: Final = ("()", "[]", '""', "“”", "„“", "„”", "«»", "»«", "‹›", "「」", "『』", "《》")
_WITHIN: Final = "|".join(
    rf"\{left}[^{re.escape(left + right)}]{{0,{_SAID}}}+\{right}" for left, right in _PAIRS
)
_CLOSING: Final = r"[\"”’“»«)\]」』》】）]*+"
_BOUNDARY: Final = re.compile(
    rf"(?P<within>{_WITHIN})"
    r"|\n[^\S\n]*\n\s*|\n(?=[^\S\n]*(?:[-*•]|\(?\d{1,2}[.)])\s)"
    rf"|[。！？｡]++{_CLOSING}\s*"
    rf"|(?<![.!?…])(?:[.!?…।॥։؟۔။។።]|(?<=[\u0370-\u03ff])[;\u037e])++{_CLOSING}(?:\[\d+\])*+"
    r"(?=\s|<|\Z|(?<=[^\W\d_A-Z]{2}[.!?])[^\W\d_a-z][^\W\d_A-Z])\s*"
)
_SPOKEN: Final = re.compile(r"[.!?][\"”“»«」』]\Z")


def split_prose(text: str, language: str) -> Iterator[str]:
    """Splits running text into sentences.

    Args:
        text: Prose; a line break in it counts as white space. Markdown goes to ``markdown``.
        language: Code of the language (``en``, ``sl``) of text in Latin script; for other scripts
            the language is taken from the script.

    Yields:
        The sentences in order, each a substring of ``text`` without outer white space.
    """
    found = language_of_script(text) or language
    sentence: list[str] = []
    for piece in _pieces(text):
        is_item = len(sentence) == 1 and _ITEM.fullmatch(sentence[0])
        if sentence and not (is_item or _goes_on(sentence[-1], piece, found)):
            if whole := "".join(sentence).strip():
                yield whole
            sentence = []
        sentence.append(piece)
    if whole := "".join(sentence).strip():
        yield whole


def _pieces(text: str) -> Iterator[str]:
    """Yields the pieces between the marks that end sentences; joined they are the text."""
    start = 0
    for found in _BOUNDARY.finditer(text):
        end = found.end()
        if found["within"]:
            # A quotation ends its sentence if its last mark does, unless a lower case follows.
            following = text[end : end + 2]
            is_spoken = _SPOKEN.search(found[0]) and following[:1].isspace()
            if not (is_spoken or found[0][-2] in "。！？") or following[1:].islower():
                continue
        yield text[start:end]
        start = end
    yield text[start:]


def _goes_on(piece: str, following: str, language: str) -> bool:
    """Whether two pieces belong to one sentence."""
    # In the composed form: a caron may be a character of its own.
    tail = unicodedata.normalize("NFC", piece[-_TAIL:])
    if following[:1].islower() and _FALSE_END.search(tail):
        return True
    before_names = _BEFORE_NAMES.get(language)
    if _INITIAL.search(tail) or (before_names and before_names.search(tail)):
        return True
    if language == "en" and _BEFORE_ANY.search(tail):
        return not _BEGINNING.match(following)
    return _is_ordinal(tail, following, language)


def _is_ordinal(tail: str, following: str, language: str) -> bool:
    """Whether a number with a dot is an ordinal before a noun: ``am 3. Mai``."""
    if language not in _AFTER_ORDINAL or not _ORDINAL_END.search(tail):
        return False
    is_before_noun = _AFTER_ORDINAL[language].match(following.lstrip())
    return bool(is_before_noun or _BEFORE_ORDINAL[language].search(tail))
