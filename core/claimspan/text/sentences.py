"""Sentences and clauses of a text as people write it for a chat window.

Prose goes to a sentence splitter; lists, tables, headings and code have their own lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final, Literal, NamedTuple, cast

from sentencex import segment  # type: ignore[import-untyped]  # compiled, without stubs

__all__ = [
    "Piece",
    "abstains",
    "assertions",
    "asserts_something",
    "clauses",
    "every_sentence",
    "sentence_pieces",
    "split_prose",
]


class Piece(NamedTuple):
    """A sentence, and how it reads on its own."""

    sentence: str
    """As written in the text."""

    text: str
    """Without list marker and markup, with the words that a list or a table lends it."""


# Sentences -----------------------------------------------------------------------------------

_SCRIPTS: Final = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("zh", re.compile(r"[\u4e00-\u9fff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("ar", re.compile(r"[\u0600-\u06ff]")),
    ("hi", re.compile(r"[\u0900-\u097f]")),
    ("bn", re.compile(r"[\u0980-\u09ff]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
    ("el", re.compile(r"[\u0370-\u03ff]")),
    ("he", re.compile(r"[\u0590-\u05ff]")),
)
# A Chinese name in an English sentence does not make it Chinese.
_SCRIPT_SHARE: Final = 0.2

# "3. maja" and "npr. danes": the splitter takes the dot for an end, the lower case says otherwise.
_FALSE_END: Final = re.compile(r"(?:\b\d{1,3}|\b[^\W\d_]{1,4})\.\s*$")


def split_prose(text: str, language: str) -> list[str]:
    """Split running text into sentences, each a substring of ``text`` without outer white space.

    Args:
        text: Prose; a line break in it is white space.
        language: Language code for text in Latin script; other scripts tell their own.
    """
    merged: list[str] = []
    for piece in _segment(_language_of(text, language), text):
        if merged and piece[:1].islower() and _FALSE_END.search(merged[-1]):
            merged[-1] += piece
        else:
            merged.append(piece)
    return [stripped for piece in merged if (stripped := piece.strip())]


def _segment(language: str, text: str) -> list[str]:
    return cast("list[str]", segment(language, text))


def _language_of(text: str, default: str) -> str:
    if text.isascii():
        return default
    letters = sum(character.isalpha() for character in text)
    for code, script in _SCRIPTS:
        if len(script.findall(text)) > _SCRIPT_SHARE * letters:
            return code
    return default


# Blocks --------------------------------------------------------------------------------------

_Kind = Literal["blank", "fence", "code", "heading", "table", "item", "quote", "prose"]


class _Block(NamedTuple):
    """Lines that belong together; ``text[start:end]`` is what they say."""

    kind: _Kind
    start: int
    end: int


_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE: Final = re.compile(r"\s*(`{3,}|~{3,})")
_LINE_KINDS: Final[tuple[tuple[_Kind, re.Pattern[str]], ...]] = (
    ("blank", re.compile(r"[\s\-=*_]*$")),
    ("heading", re.compile(r"\s*(?:#{1,6}\s|\*\*[^*]+\*\*:?\s*$)")),
    ("table", re.compile(r"\s*\|.*\|\s*$|[^|]+\|[^|]+\|")),
    ("item", re.compile(r"\s*(?:[-*+•‣◦–]|\(?(?:\d{1,3}|[a-zA-Z])[.)])\s+(?=\S)")),
    ("quote", re.compile(r"\s*(?:>\s?)+")),
)
# A shorter line ends where its writer wanted it to; a longer one may have been wrapped.
_WRAPPED_LENGTH: Final = 60
_LINE_END: Final = re.compile(r"[.!?:;。！？।؟…]['\"”’»)\]*_]*\s*$")


def _lines(text: str) -> Iterator[_Block]:
    fence = ""
    for match in _LINE.finditer(text):
        line, start = match.group(), match.start()
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
            yield _Block("fence", start, match.end())
        elif fence:
            yield _Block("code", start, match.end())
        else:
            kind, marker = _kind_of(line)
            yield _Block(kind, start + marker, match.end())


def _kind_of(line: str) -> tuple[_Kind, int]:
    """The kind of a line outside of code, and the length of its list or quotation marker."""
    for kind, pattern in _LINE_KINDS:
        if match := pattern.match(line):
            return kind, match.end() if kind in ("item", "quote") else 0
    return "prose", 0


def _blocks(text: str) -> Iterator[_Block]:
    """The blocks of a text, in order, without blank lines and fences."""
    open_block: _Block | None = None
    last_line = ""
    for line in _lines(text):
        written = text[line.start : line.end]
        if open_block and _continues(open_block.kind, last_line, line.kind, written):
            open_block = open_block._replace(end=line.end)
        else:
            if open_block:
                yield open_block
            open_block = None if line.kind in ("blank", "fence") else line
        last_line = written
    if open_block:
        yield open_block


def _continues(block: _Kind, last_line: str, kind: _Kind, line: str) -> bool:
    if kind in ("code", "table"):
        return block == kind
    if kind != "prose" or block not in ("prose", "item", "quote"):
        return False
    ended = bool(_LINE_END.search(last_line))
    starts_low = line.lstrip()[:1].islower()
    return starts_low or (block == "prose" and (ended or len(last_line) >= _WRAPPED_LENGTH))


# Pieces --------------------------------------------------------------------------------------

# Code marks and citations. Underscores stay: `__init__` and `_name` are names.
_MARKUP: Final = re.compile(r"`|\s*\[\d+(?:,\s*\d+)*\]")
# `*so*` and `**so**`, but neither `*args` nor `2 * 3 * 4`.
_EMPHASIS: Final = re.compile(r"(?<![\w*])(\*{1,2})(?=\S)([^*\n]+)(?<=\S)\1(?![\w*])")
_TABLE_RULE: Final = re.compile(r"[\s|:+-]*-[\s|:+-]*")
# Items up to this length are fragments that need the line before the list: "Symptoms include:".
_FRAGMENT_WORDS: Final = 6


def sentence_pieces(text: str, language: str) -> Iterator[Piece]:
    """The sentences of a text in order, headings and table headers left out.

    A fenced block of code is one piece. A row of a table reads ``header: cell; header: cell``, and
    a short list item reads with the line that introduces its list.

    Args:
        text: Prose or Markdown in any language.
        language: Language code for text in Latin script; other scripts tell their own.
    """
    lead = ""
    for kind, start, end in _blocks(text):
        block = text[start:end]
        if kind == "code":
            yield Piece(block.strip(), block.strip())
        elif kind == "table":
            yield from _table_rows(block)
        elif kind != "heading":
            pieces = [Piece(each, _plain(each)) for each in split_prose(block, language)]
            yield from (_led(piece, lead) if kind == "item" else piece for piece in pieces)
        if kind in ("heading", "prose", "quote"):
            lead = _lead_in(block)


def every_sentence(text: str, language: str) -> Iterator[str]:
    """All of a text, sentence by sentence: markers, headings and table headers, too.

    Args:
        text: Prose or Markdown in any language.
        language: Language code for text in Latin script; other scripts tell their own.
    """
    last = 0
    for kind, _, end in _blocks(text):
        block, last = text[last:end], end
        if kind in ("code", "table"):
            yield from block.split("\n")
        else:
            yield from split_prose(block, language)
    yield text[last:]


def _plain(sentence: str) -> str:
    unmarked = _EMPHASIS.sub(r"\2", _MARKUP.sub("", sentence))
    return " ".join(unmarked.split()) or sentence


def _lead_in(block: str) -> str:
    """The words before the colon that announces a list; empty where none is announced."""
    last = _plain(block).rsplit(". ", 1)[-1].strip()
    announces = last.endswith(":") and not _FILLER.match(last)
    return last[:-1].rstrip() if announces else ""


def _led(piece: Piece, lead: str) -> Piece:
    is_fragment = len(piece.text.split()) <= _FRAGMENT_WORDS
    return Piece(piece.sentence, f"{lead} {piece.text}") if lead and is_fragment else piece


def _table_rows(block: str) -> Iterator[Piece]:
    rows = [line.strip() for line in block.split("\n") if line.strip()]
    headers: Sequence[str] = ()
    for row, below in zip_longest(rows, rows[1:], fillvalue=""):
        if _TABLE_RULE.fullmatch(row):
            continue
        if _TABLE_RULE.fullmatch(below):
            headers = _cells(row)
        else:
            yield Piece(row, _labelled(_cells(row), headers) or row)


def _cells(row: str) -> list[str]:
    return [_plain(cell.strip()) for cell in row.strip("|").split("|")]


def _labelled(cells: Sequence[str], headers: Sequence[str]) -> str:
    pairs = zip_longest(headers[: len(cells)], cells, fillvalue="")
    return "; ".join(f"{head}: {cell}" if head else cell for head, cell in pairs if cell)


# Clauses -------------------------------------------------------------------------------------

_AUXILIARY: Final = (
    r"is|are|was|were|has|had|have|will|would|can|could|may|might|must|should|does|did"
)
_FINITE: Final = (
    rf"{_AUXILIARY}|became|becomes|began|bought|brought|built|came|chose|contains|died|fought|"
    "gave|got|grew|includes|kept|knew|made|paid|ran|rose|sang|sent|sold|spent|spoke|taught|told|"
    "took|went|won|wrote"
)
_FINITE_VERB: Final = re.compile(rf"\b(?:{_FINITE})\b")
_PAST_VERB: Final = re.compile(r"\b(?!hundred\b|sacred\b)[a-z]{2,}[^\We]ed\b")
_STARTS_WITH_AUXILIARY: Final = re.compile(rf"(?:{_AUXILIARY})\b")
_STARTS_WITH_VERB: Final = re.compile(rf"(?:{_FINITE}|[a-z]{{2,}}[^\We]ed)\b")
_OWN_SUBJECT: Final = re.compile(
    rf"(?:(?:he|she|it|they|we|this|these|that|those)|(?:the\s+|its\s+|[A-Z])[^,;]{{1,40}}?)"
    rf"\s+(?:{_FINITE})\b"
)
_PASSIVE: Final = re.compile(r"\b(?:is|are|was|were|been|being)\s+(?!born\b)\w+(?:ed|en|t)\b")
_JOINT: Final = re.compile(r"\s*;\s+|,?\s+(?:and|but)\s+")
# What hangs on another clause cannot be cut at its "and": reports, conditions, choices, quotations.
_DEPENDENT: Final = re.compile(
    r"\b(?:if|when|while|although|though|because|since|unless|until|whether|that|which|who|whom|"
    r"whose|where|either|neither|both|between)\b|[\"“”«»]",
    re.IGNORECASE,
)
_NEGATION: Final = re.compile(r"\b(?:not|never|no)\b|n['’]t\b", re.IGNORECASE)
_NO_SUBJECT: Final = re.compile(
    r"(?:in|on|at|by|after|before|during|for|from|to|with|as|however|then|there|also)\b|"
    r".*(?:,|\b(?:a|an|the|of|and|or|to|in)$)",
    re.IGNORECASE,
)
_MIN_CLAUSE_WORDS: Final = 3
_MAX_SUBJECT_WORDS: Final = 6
# Nobody writes such a sentence; it is a list or a dump, and searching it would take quadratic time.
_MAX_SENTENCE_LENGTH: Final = 600


def clauses(sentence: str) -> list[str]:
    """The clauses of an English sentence that stand on their own; else the sentence alone.

    ``X was born in 1950 and moved to Y`` gives ``X was born in 1950`` and ``X moved to Y``. What
    would lose its subject, a condition or a negation stays whole.
    """
    if len(sentence) > _MAX_SENTENCE_LENGTH:
        return [sentence]
    found: list[str] = []
    rest = sentence
    while cut := _first_cut(rest):
        left, rest = cut
        found.append(left)
    return [*found, rest]


def _first_cut(sentence: str) -> tuple[str, str] | None:
    for joint in _JOINT.finditer(sentence):
        left, right = sentence[: joint.start()], sentence[joint.end() :]
        if min(len(left.split()), len(right.split())) < _MIN_CLAUSE_WORDS:
            continue
        standing = _standing(left, right, is_semicolon=";" in joint.group())
        if standing:
            return left, standing
    return None


def _standing(left: str, right: str, *, is_semicolon: bool) -> str | None:
    """``right`` as a sentence of its own; None where it needs ``left``."""
    verb = _FINITE_VERB.search(left) or _PAST_VERB.search(left)
    if not verb:
        return None
    if is_semicolon:
        return right if _FINITE_VERB.search(right) else None
    if _DEPENDENT.search(left) and not _ABSTENTION.match(left):
        return None
    if _OWN_SUBJECT.match(right):
        return right
    subject = left[: verb.start()].strip()
    return f"{subject} {right}" if _shares_subject(subject, left, right) else None


def _shares_subject(subject: str, left: str, right: str) -> bool:
    if not 0 < len(subject.split()) <= _MAX_SUBJECT_WORDS or _NO_SUBJECT.match(subject):
        return False
    if _NEGATION.search(left):  # it may reach over the "and"
        return False
    if _STARTS_WITH_AUXILIARY.match(right):
        return True
    # "was tried and acquitted" shares its auxiliary as well.
    return bool(_STARTS_WITH_VERB.match(right)) and not _PASSIVE.search(left)


# Assertions ----------------------------------------------------------------------------------

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


def assertions(sentence: str) -> list[str]:
    """The clauses of a sentence that assert something; none of a question."""
    if not _is_closed(sentence):
        return []
    return [clause for clause in clauses(sentence) if asserts_something(clause)]


def asserts_something(text: str) -> bool:
    """Whether a sentence says anything that could be true or false.

    Questions, lead-ins that end in a colon, pleasantries and abstentions ("I don't know", "The
    context does not say") do not.
    """
    said = text.strip().replace("’", "'")
    if not _is_closed(said) or _ABSTENTION.match(said) or _APOLOGY.match(said):
        return False
    return not (_FILLER.match(said) and len(said.split()) <= _MAX_FILLER_WORDS)


def abstains(text: str) -> bool:
    """Whether a text declines to answer, and says nothing else that could be true or false."""
    sentences = [piece.text.strip().replace("’", "'") for piece in sentence_pieces(text, "en")]
    if any(assertions(sentence) for sentence in sentences):
        return False
    return any(_ABSTENTION.match(s) or _APOLOGY.match(s) for s in sentences)


def _is_closed(text: str) -> bool:
    """Whether it has words, and neither asks nor announces."""
    said = text.strip()
    has_words = any(character.isalnum() for character in said)
    return has_words and not said.endswith((":", "：")) and not _QUESTION.search(said)
