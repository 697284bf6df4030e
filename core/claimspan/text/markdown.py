"""Splits Markdown into blocks, and blocks into sentences.

Responses of language models and chunks of a corpus mix prose with headings, lists, tables and code.
Prose goes to the sentence splitter; every other kind of block has its own unit: a list item, a row
of a table, a fenced block of code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Final, Literal, NamedTuple

from claimspan.text.citations import masked, without_citations
from claimspan.text.phrases import starts_with_filler
from claimspan.text.sentences import split_prose

__all__ = [
    "Sentence",
    "content_sentences",
    "every_sentence",
    "most_sentences",
    "without_emphasis",
]


class Sentence(NamedTuple):
    """A sentence of a text, as written and in a form that can be read on its own."""

    written: str
    """The substring of the text."""

    standalone: str
    """Without markup; with the introduction of its list, or the headers of its table."""


_BlockKind = Literal["blank", "fence", "code", "heading", "table", "item", "quote", "prose"]


class _Block(NamedTuple):
    """Neighbouring lines of one kind; ``text[start:end]`` is their content."""

    kind: _BlockKind
    start: int
    end: int


_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE: Final = re.compile(r"\s*(`{3,}|~{3,})")
_LINE_KINDS: Final[tuple[tuple[_BlockKind, re.Pattern[str]], ...]] = (
    ("blank", re.compile(r"[\s\-=*_]*$")),
    # A line in bold is one, unless it has three words and a full stop: "**The fee is 3 %.**"
    (
        "heading",
        re.compile(
            r"\s*(?:#{1,6}\s"
            r"|\*\*(?!(?:[^*\s]+\s+){2,}[^*]*[.!。！…]\*\*)[^*]+\*\*:?\s*$)"
        ),
    ),
    ("table", re.compile(r"\s*\|.*\|\s*$|[^|]+\|[^|]+\|")),
    ("item", re.compile(r"\s*(?:[-*+•‣◦–]|\(?(?:\d{1,3}|[a-zA-Z])[.)])\s+(?=\S)")),
    ("quote", re.compile(r"\s*(?:>\s?)+")),
)
# A shorter line was ended on purpose; a longer one may have been wrapped at a fixed width.
_WRAPPED_LENGTH: Final = 60
_LINE_END: Final = re.compile(r"[.!?:;。！？।؟…]['\"”’»)\]*_]*\s*$")

# Code marks are left out as well. Underscores stay within a word: `__init__` and `_name` are names.
_REFERENCE: Final = re.compile(r"\s*\[\d+(?:,\s*\d+)*\]")
# `*so*` and `**so**`, but neither `*args` nor `2 * 3 * 4`.
_EMPHASIS: Final = re.compile(r"(?<![\w*])(\*{1,3})(?=\S)([^*\n]+)(?<=\S)\1(?![\w*])")
_UNDERLINED: Final = re.compile(r"(?<!\w)(_{1,2})(?=[^\W_])([^_\n]* [^_\n]*)(?<=[^\s_])\1(?!\w)")
_ESCAPED: Final = re.compile(r"\\([\[\](){}*_#$%&~.!|-])")
# A formula that is a number: "within $24$ months" names no dollars.
_NUMBER_IN_FORMULA: Final = re.compile(r"(?<![\w$])\$(\d[\d.,]*%?)\$(?![\w$])")
# Emphasis of whole sentences ends behind the stop at which they are split: "**It is. So.** [1]".
_STRESSED: Final = re.compile(
    r"(?<![\w*])(?P<mark>\*{1,3}|__?(?=[^\W_]))(?=\S)"
    r"(?P<said>(?:(?!(?P=mark)).)*[.!?。！？…])(?P=mark)(?![\w*])"
)
_HEADING_MARK: Final = re.compile(r"\s*#{1,6}\s+")
_BLANK_BEFORE_STOP: Final = re.compile(r" (?=[.,;!?](?:\s|$))")
_BLANKS_BEFORE_STOPS: Final = (" .", " ,", " ;", " !", " ?")
_MAY_END: Final = re.compile(r"[^A-Za-z0-9 ,]")
_TABLE_RULE: Final = re.compile(r"[\s|:+-]*-[\s|:+-]*")
# Items up to this length are fragments that need the line before the list: "Symptoms include:".
_MAX_FRAGMENT_WORDS: Final = 6


def content_sentences(text: str, language: str) -> Iterator[Sentence]:
    """Yields the sentences that carry the content of a text; headings and table headers do not.

    A text that has nothing but headings has its content in them.

    A fenced block of code is one sentence. A row of a table reads ``header: cell; header: cell``. A
    short list item reads with the line that introduces its list. Citations, tags, lists of sources
    and a model's thoughts are left out.

    Args:
        text: Prose or Markdown in any language.
        language: Code of the language of text in Latin script; see ``split_prose``.

    Yields:
        The sentences in the order of the text.
    """
    yield from (_remembered if len(text) <= _LONGEST_REMEMBERED else _content)(text, language)


# Claims are extracted from an answer, and whether it abstains is asked twice; the last texts of a
# few records are remembered for that.
_LONGEST_REMEMBERED: Final = 2_000


@lru_cache(maxsize=8)
def _remembered(text: str, language: str) -> Sequence[Sentence]:
    return tuple(_content(text, language))


def _content(text: str, language: str) -> Iterator[Sentence]:
    before_list = ""
    asserted = masked(text)
    blocks = list(_blocks(asserted))
    if all(kind == "heading" for kind, _, _ in blocks):
        blocks = [_said_in_heading(asserted, *place) for _, *place in blocks]
    for kind, start, end in blocks:
        block = asserted[start:end]
        if kind == "code":
            yield Sentence(block.strip(), block.strip())
        elif kind == "table":
            yield from _table_rows(block)
        elif kind != "heading":
            found = _sentences(text, asserted, start, end, language)
            introduction = _list_introduction(before_list) if kind == "item" else ""
            yield from (_introduced(s, introduction) if introduction else s for s in found)
        if kind in ("heading", "prose", "quote"):
            before_list = block


def _said_in_heading(text: str, start: int, end: int) -> _Block:
    mark = _HEADING_MARK.match(text, start, end)
    return _Block("prose", mark.end() if mark else start, end)


def every_sentence(text: str, language: str) -> Iterator[str]:
    """Yields the whole text sentence by sentence, with markers, headings and table headers.

    A reference is searched for evidence: unlike a response it may not lose a heading.

    Args:
        text: Prose or Markdown in any language.
        language: Code of the language of text in Latin script; see ``split_prose``.

    Yields:
        The sentences as written, in the order of the text; for code and tables, their lines.
    """
    last = 0
    for kind, _, end in _blocks(text):
        block, last = text[last:end], end
        if kind in ("code", "table"):
            yield from block.split("\n")
        else:
            yield from split_prose(block, language)
    yield text[last:]


def most_sentences(text: str) -> int:
    """Returns how many sentences a text has at most, without splitting it.

    Args:
        text: Any text.

    Returns:
        No fewer than ``every_sentence`` yields that are not blank.
    """
    # No sentence ends at a letter, a digit, a blank or a comma of ASCII; any has two characters.
    return 1 + (len(_MAY_END.findall(text)) if text.isascii() else len(text) // 2)


# --- blocks ---


def _blocks(text: str) -> Iterator[_Block]:
    """Yields the blocks of a text in order, without blank lines and code fences."""
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


def _lines(text: str) -> Iterator[_Block]:
    """Yields every line as a block of its own, without its list or quotation marker."""
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
            kind, marker_length = _line_kind(line)
            yield _Block(kind, start + marker_length, match.end())


def _line_kind(line: str) -> tuple[_BlockKind, int]:
    """Returns the kind of a line outside of code, and the length of its list or quote marker."""
    for kind, pattern in _LINE_KINDS:
        if match := pattern.match(line):
            return kind, match.end() if kind in ("item", "quote") else 0
    return "prose", 0


def _continues(block: _BlockKind, last_line: str, kind: _BlockKind, line: str) -> bool:
    """Tells whether a line belongs to the block of the line before it."""
    if kind in ("code", "table"):
        return block == kind
    if kind != "prose" or block not in ("prose", "item", "quote"):
        return False
    ended = bool(_LINE_END.search(last_line))
    starts_low = line.lstrip()[:1].islower()
    return starts_low or (block == "prose" and (ended or len(last_line) >= _WRAPPED_LENGTH))


# --- sentences of a block ---


def _sentences(text: str, asserted: str, start: int, end: int, language: str) -> Iterator[Sentence]:
    """Yields the sentences of a block of prose, each as it is written in the text."""
    cursor = 0
    block = _STRESSED.sub(_unstressed, asserted[start:end])
    for piece in split_prose(block, language):
        at = block.index(piece, cursor)
        cursor = at + len(piece)
        yield Sentence(text[start + at : start + cursor], _without_markup(piece))


def _unstressed(match: re.Match[str]) -> str:
    """Blanks the marks, so that positions stay those of the text."""
    blanks = " " * len(match["mark"])
    return f"{blanks}{match['said']}{blanks}"


def without_emphasis(text: str) -> str:
    """Returns a text without the marks of Markdown's emphasis, as in ``*so*`` and ``_and so_``."""
    plain = _EMPHASIS.sub(r"\2", text) if "*" in text else text
    return _UNDERLINED.sub(r"\2", plain) if "_" in plain else plain


def _without_markup(sentence: str) -> str:
    # Most sentences have none of the signs, and looking for a sign is fast.
    unmarked = _ESCAPED.sub(r"\1", sentence) if "\\" in sentence else sentence
    if "$" in unmarked:
        unmarked = _NUMBER_IN_FORMULA.sub(r"\1", unmarked)
    unmarked = without_citations(unmarked)
    if "[" in unmarked:
        unmarked = _REFERENCE.sub("", unmarked)
    unmarked = without_emphasis(unmarked.replace("`", ""))
    joined = " ".join(unmarked.split())
    # A tag that was blanked leaves a blank before the full stop.
    if any(map(joined.__contains__, _BLANKS_BEFORE_STOPS)):
        joined = _BLANK_BEFORE_STOP.sub("", joined)
    return joined or sentence


def _list_introduction(block: str) -> str:
    """Returns the words before the colon that introduces a list; empty where there is none."""
    last = _without_markup(block).rsplit(". ", 1)[-1].strip()
    introduces = last.endswith(":") and not starts_with_filler(last)
    return last[:-1].rstrip() if introduces else ""


def _introduced(sentence: Sentence, introduction: str) -> Sentence:
    """Puts the introduction of its list before an item that is a fragment."""
    is_fragment = len(sentence.standalone.split()) <= _MAX_FRAGMENT_WORDS
    if not is_fragment:
        return sentence
    return Sentence(sentence.written, f"{introduction} {sentence.standalone}")


def _table_rows(block: str) -> Iterator[Sentence]:
    rows = [line.strip() for line in block.split("\n") if line.strip()]
    headers: Sequence[str] = ()
    for row, below in zip_longest(rows, rows[1:], fillvalue=""):
        if _TABLE_RULE.fullmatch(row):
            continue
        if _TABLE_RULE.fullmatch(below):
            headers = _cells(row)
        else:
            yield Sentence(row, _with_headers(_cells(row), headers) or row)


def _cells(row: str) -> list[str]:
    return [_without_markup(cell.strip()) for cell in row.strip("|").split("|")]


def _with_headers(cells: Sequence[str], headers: Sequence[str]) -> str:
    pairs = zip_longest(headers[: len(cells)], cells, fillvalue="")
    return "; ".join(f"{head}: {cell}" if head else cell for head, cell in pairs if cell)
