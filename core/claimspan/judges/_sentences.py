"""Sentences and clauses of a text as people write it for a chat window.

Prose goes to a sentence splitter; lists, tables, headings and code have their own lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Final, Literal, NamedTuple

from sentencex import segment

__all__ = ["Piece", "asserts_something", "clauses", "sentence_pieces", "split_prose"]


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
    for piece in segment(_language_of(text, language), text):
        if merged and piece[:1].islower() and _FALSE_END.search(merged[-1]):
            merged[-1] += piece
        else:
            merged.append(piece)
    return [stripped for piece in merged if (stripped := piece.strip())]


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
    ("heading", re.compile(r"\s*(?:#{1,6}\s|(\*\*|__)[^*_]+\1:?\s*$)")),
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

_MARKUP: Final = re.compile(r"\*\*|__|`|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)|\s*\[\d+(?:,\s*\d+)*\]")
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


def _plain(sentence: str) -> str:
    return " ".join(_MARKUP.sub("", sentence).split()) or sentence


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

_AUXILIARY: Final = "is|are|was|were|has|had|have|will|would|can|could|may|might|must|should|does|did"
_IRREGULAR: Final = (
    "became|began|began|bought|brought|built|came|chose|cost|died|fell|felt|fought|found|gave|got|"
    "grew|held|kept|knew|led|left|lost|made|meant|met|paid|ran|rose|said|sang|saw|sent|sold|spent|"
    "spoke|stood|took|taught|told|went|wins|won|wore|wrote|becomes|contains|includes|lies|lives|"
    "moves|remains|runs|works"
)
_VERB: Final = re.compile(rf"(?:{_AUXILIARY}|{_IRREGULAR}|[a-z]{{2,}}ed)", re.IGNORECASE)
_PASSIVE: Final = re.compile(r"\b(?:is|are|was|were|been|being)\s+(?:\w+ly\s+)?(?!born\b)\w+(?:ed|en)\b")
_JOINT: Final = re.compile(r"\s*;\s+|,?\s+(?:and|but)\s+", re.IGNORECASE)
# What hangs on another clause cannot be cut at its "and": reports, conditions, choices, quotations.
_DEPENDENT: Final = re.compile(
    r"\b(?:if|when|while|although|though|because|since|unless|until|whether|that|which|who|whom|"
    r"whose|where|either|neither|both|between|not|never|said|says)\b|[\"“”«»]",
    re.IGNORECASE,
)
_MIN_CLAUSE_WORDS: Final = 3
_MAX_SUBJECT_WORDS: Final = 6


def clauses(sentence: str) -> list[str]:
    """The clauses of an English sentence that stand on their own; else the sentence alone.

    ``X was born in 1950 and moved to Y`` gives ``X was born in 1950`` and ``X moved to Y``. What
    would lose its subject, a condition or a negation stays whole.
    """
    if not sentence.isascii() and _language_of(sentence, "en") != "en":
        return [sentence]
    found: list[str] = []
    start = 0
    subject = _subject(sentence)
    for joint in _JOINT.finditer(sentence):
        left, right = sentence[start : joint.start()], sentence[joint.end() :]
        standing = _standing(left, right, subject, is_semicolon=";" in joint.group())
        if standing is None:
            continue
        found.append(left if start == 0 or not found else left)
        start = joint.end()
    found.append(sentence[start:])
    return found
