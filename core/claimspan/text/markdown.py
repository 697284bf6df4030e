"""Splits Markdown into blocks, and blocks into sentences.

Responses of language models and chunks of a corpus mix prose with headings, lists, tables and code.
Prose goes to the sentence splitter; every other kind of block has its own unit: a list item, a row
of a table, a fenced block of code. Blocks, and marks within a line, are read by markdown-it; the
patterns here are for what models write and CommonMark does not know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, cast

from claimspan.forks import kept_from_forks
from claimspan.text.citations import masked, without_citations
from claimspan.text.refusals import starts_with_filler
from claimspan.text.sentences import split_prose

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

__all__ = [
    "Sentence",
    "content_sentences",
    "every_sentence",
    "most_sentences",
    "without_emphasis",
]


# --- formulas -------------------------------------------------------------------------------------

# A dollar before a blank, or behind one, is money: "It costs $24 or $36."
_FORMULA: Final = re.compile(
    r"\\\((?P<round>(?:[^\n\\]|\\[^\n(]){1,500}?)\\\)"
    r"|\\\[(?P<square>(?:[^\n\\]|\\[^\n\[]){1,500}?)\\\]"
    r"|\$\$(?P<block>[^$]{1,500})\$\$|(?<![\w$])\$(?=[^\s$])(?P<line>[^$\n]{1,200})(?<=\S)\$(?![\w$])"
)
# "\(see below\)" and "\[1\]" are brackets that were escaped.
_OF_FORMULAS: Final = re.compile(r"[\\=^_<>]")
_NUMBER: Final = re.compile(r"[\d.,{}]+\s*\\?%?")
_SIGNS: Final = {
    "times": "×", "cdot": "·", "div": "÷", "pm": "±", "approx": "≈", "sim": "~", "neq": "≠",
    "leq": "≤", "le": "≤", "geq": "≥", "ge": "≥", "circ": "°", "degree": "°", "to": "→",
    "rightarrow": "→", "infty": "∞", "quad": " ", "left": "", "right": "",
    "text": "", "mathrm": "", "mathbf": "", "mathit": "", "textbf": "", "operatorname": "",
}  # fmt: skip
_FRACTION: Final = re.compile(r"\\[dt]?frac\s*\{([^{}]{1,100})\}\s*\{([^{}]{1,100})\}")
_COMMAND: Final = re.compile(r"\\([A-Za-z]+)")
_SPACE: Final = re.compile(r"\\[,;:! ]|~")
_POWER: Final = re.compile(r"\^\{?([0-9]{1,2}|°)\}?")
_POWERS: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def _without_formulas(sentence: str) -> str:
    """Returns a sentence in which formulas are written without TeX."""
    return _FORMULA.sub(_said, sentence) if "\\" in sentence or "$" in sentence else sentence


def _said(match: re.Match[str]) -> str:
    inner = str(match[match.lastgroup or 0])
    is_formula = _OF_FORMULAS.search(inner) or ("$" in match[0] and _NUMBER.fullmatch(inner))
    if not is_formula:
        return match[0]
    inner = _SPACE.sub(" ", _FRACTION.sub(r"\1/\2", inner))
    inner = _COMMAND.sub(lambda command: _SIGNS.get(command[1], command[1]), inner)
    inner = _POWER.sub(lambda power: power[1].translate(_POWERS), inner)
    return re.sub(r"[\\{}$]", "", inner).strip()


# --- markdown -------------------------------------------------------------------------------------


class Sentence(NamedTuple):
    """A sentence of a text, as written and in a form that can be read on its own."""

    written: str
    """The substring of the text."""

    standalone: str
    """Without markup; with the introduction of its list, or the headers of its table."""

    is_code: bool = False
    """Whether it is a fenced block of code."""


_BlockKind = Literal["blank", "code", "heading", "note", "table", "item", "prose"]


class _Block(NamedTuple):
    """Neighbouring lines of one kind; ``text[start:end]`` is their content."""

    kind: _BlockKind
    start: int
    end: int


_Links = dict[str, object]
"""What the links of a text refer to by a label, as markdown-it keeps it."""

# Without any of these a text has no block but paragraphs, and need not be parsed.
_MARKED: Final = re.compile(
    r"\n[ \t]*(?:[-*+][ \t]|>|#{1,6}[ \t]|\d{1,9}[.)][ \t]|`{3}|~{3}|\[[^\]\n]{1,99}\]:"
    r"|(?:-+|=+)[ \t\r]*(?=\n|\Z))"
)
# Nothing would be left of "[Price]: $12" if its value were the address of a link.
_NO_ADDRESS: Final = re.compile(
    r"(?m)^([ \t]*)\[(?!\^)(?=[^\]\n]{1,99}\]:(?![ \t]*[^\s/.#@:]{0,99}[/.#@:]))"
)
_BLANK: Final = _Block("blank", 0, 0)
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
# What models write in a paragraph of CommonMark: bullets of their own, rows without a rule, notes.
_LINE_KIND: Final = re.compile(
    r"(?P<blank>[\s\-=*_]*$|\s*\[![A-Za-z]+\]\s*$)"
    r"|(?P<note>\s*(?:\[\^[\w-]{1,30}\]:|[¹²³⁴-⁹]\s))"
    r"|(?P<heading>\s*(?:[Tt]able|[Ff]igure|Tabelle|[Tt]abela|Tableau|Tabla)\s\d{1,3}[.:]\s[^.!?]{1,80}$)"
    r"|(?P<table>\s*\||[^|]+\|[^|]+\|)"
    r"|(?P<item>\s*(?:[-*+•‣◦–]|\(?(?:\d{1,3}|[a-zA-Z])[.)])\s+(?=\S))"
)
# `__init__` in a line of its own is a name.
_BOLD: Final = re.compile(
    r"(?:\*{2,3}(?P<stars>[^*]+)\*{2,3}|__(?=[^\W\d_]*[A-Z ])(?P<lines>[^_]+)__):?"
)
_DEFINITION: Final = re.compile(r"\s*:\s+\S")
_TASK: Final = re.compile(r"\[[ xX]\]\s+")
# "1999. It was a good year." begins with no number of an item.
_MAX_NUMBER_DIGITS: Final = 3
# A shorter line was ended on purpose; a longer one may have been wrapped at a fixed width.
_WRAPPED_LENGTH: Final = 60
_LINE_END: Final = re.compile(r"[.!?:;。！？।؟…]['\"”’»)\]*_]*\s*$")
_LABEL_LINE: Final = re.compile(r"\s*[*_]{0,2}\w[\w -]{0,40}[*_]{0,2}[:：]")
_FULL_STOPS: Final = (".", "!", "。", "！", "…")

# Emphasis of whole sentences ends behind the stop at which they are split: "**It is. So.** [1]".
_STRESSED: Final = re.compile(
    r"(?<![\w*])(?P<mark>\*{1,3}|__?(?=[^\W_]))(?=\S)"
    r"(?P<said>(?:(?!(?P=mark)).)*[.!?。！？…])(?P=mark)(?![\w*])"
)
# CommonMark ends no emphasis between a sign and a letter, as in "**Length:**725 km".
_LABEL: Final = re.compile(r"(\*\*[^*\n]{1,80}[:：.,;!?)）。，]\*\*)(?=\w)")
_MARKS: Final = re.compile(r"[*_`\[\\&~<]")
# A product of values, whose signs emphasise nothing.
_WITHIN_WORD: Final = re.compile(r"(?<=[0-9A-Za-z])\*+(?=[0-9A-Za-z])")
_HIDDEN: Final = "\ue000"
# A sentence beyond this is a dump, whose marks are not worth the time.
_LONGEST_MARKED: Final = 5_000
_REFERENCE: Final = re.compile(r"(?<!\s)\s*+\[{1,2}\d+(?:,\s*\d+)*\]{1,2}")
_CITED: Final = re.compile(r"\^?\d{1,3}(?:,\s*\d{1,3})*|[¹²³⁴-⁹]+")
_BLANK_BEFORE_STOP: Final = re.compile(r" (?=[.,:;!?](?:\s|$))")
_BLANKS_BEFORE_STOPS: Final = (" .", " ,", " :", " ;", " !", " ?")
_MAY_END: Final = re.compile(r"[^A-Za-z0-9 ,]")
_TABLE_RULE: Final = re.compile(r"(?=[\s|:+]*-)[\s|:+-]+")
_PIPE: Final = re.compile(r"(?<!\\)\|")
# Items up to this length are fragments that need the line before the list: "Symptoms include:".
_MAX_FRAGMENT_WORDS: Final = 6


def content_sentences(text: str, language: str) -> Iterator[Sentence]:
    """Yields the sentences that carry the content of a text; headings and table headers do not.

    A text that has nothing but headings has its content in them.

    A fenced block of code is one sentence. A row of a table reads ``header: cell; header: cell``. A
    short list item reads with the line that introduces its list. Citations, tags, lists of sources,
    what is struck out and a model's thoughts are left out.

    Args:
        text: Prose or Markdown in any language.
        language: Code of the language of text in Latin script; see ``split_prose``.

    Yields:
        The sentences in the order of the text. A sentence is read when it is asked for, so that
        who needs the first one alone does not pay for the others.
    """
    before_list = ""
    asserted = masked(text)
    links: _Links = {}
    blocks = list(_blocks(asserted, links))
    if all(block.kind == "heading" for block in blocks):
        blocks = [block._replace(kind="prose") for block in blocks]
    for kind, start, end in blocks:
        if kind == "code":
            if code := text[start:end].strip():
                yield Sentence(code, code, is_code=True)
        elif kind == "table":
            yield from _table_rows(text, asserted, start, end, links)
        elif kind in ("item", "prose"):
            found = _sentences(text, asserted, start, end, language, links)
            introduction = _list_introduction(before_list) if kind == "item" else ""
            yield from (_introduced(s, introduction) if introduction else s for s in found)
        if kind in ("heading", "prose"):
            before_list = asserted[start:end]


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
    for kind, _, end in _blocks(text, {}):
        block, last = text[last:end], end
        if kind in ("code", "table"):
            yield from block.split("\n")
        else:
            yield from split_prose(block, language)
    yield text[last:]


def most_sentences(text: str) -> int:
    """Returns how many sentences a text has at most, without splitting it.

    Returns:
        No fewer than ``every_sentence`` yields that are not blank.
    """
    # No sentence ends at a letter, a digit, a blank or a comma of ASCII; any has two characters.
    return 1 + (len(_MAY_END.findall(text)) if text.isascii() else len(text) // 2)


# --- blocks ---


def _blocks(text: str, links: _Links) -> Iterator[_Block]:
    """Yields the blocks of a text in order, without blank lines and code fences."""
    lines = [match.span() for match in _LINE.finditer(text)]
    is_marked = "|" in text or _MARKED.search(f"\n{text}") is not None
    open_block: _Block | None = None
    last_line = ""
    for line in _parsed(text, lines, links) if is_marked else _kinds(text, lines):
        written = text[line.start : line.end]
        if open_block and _DEFINITION.match(written):  # "**Fee**\n: 3 %" says what the fee is
            open_block = _Block("prose", open_block.start, line.end)
        elif open_block and _continues(open_block.kind, last_line, line.kind, written):
            open_block = open_block._replace(end=line.end)
        else:
            if open_block:
                yield open_block
            open_block = None if line.kind == "blank" else line
        last_line = written
    if open_block:
        yield open_block


def _parsed(text: str, lines: Sequence[tuple[int, int]], links: _Links) -> Iterator[_Block]:
    """Yields the lines of a text by the blocks that they are in; a block of code in one piece."""
    tokens: list[Token] = []
    # Other characters, but no other places: it is the lines of the text that are yielded.
    shown = text.replace("\r", " ")
    shown = _NO_ADDRESS.sub(r"\1(", shown) if "]:" in shown else shown
    _parser().block.parse(shown, _parser(), links, tokens)
    for at, token in enumerate(tokens):
        if token.map is None:
            continue
        within = lines[slice(*token.map)]
        if token.type == "fence":
            n_lines = len(token.content.removesuffix("\n").split("\n"))
            if code := within[1 : 1 + n_lines]:
                yield _Block("code", code[0][0], code[-1][1])
        elif token.type == "table_open":
            # A line without a cell is one of a paragraph that follows.
            kinds = zip(within, _kinds(text, within), strict=True)
            yield from (b._replace(kind="table") if "|" in text[slice(*s)] else b for s, b in kinds)
        elif tokens[at - 1].type in ("heading_open", "paragraph_open"):
            yield from _of_paragraph(shown, within, tokens, at)
        else:
            continue
        yield _BLANK


def _of_paragraph(
    text: str, lines: Sequence[tuple[int, int]], tokens: Sequence[Token], at: int
) -> Iterator[_Block]:
    """Yields the lines of a paragraph or a heading, each from behind the marks of its block."""
    contents = [line.strip() for line in tokens[at].content.split("\n")]
    placed = [
        (start, end) if not content else (text.rindex(content, start, end), end)
        for (start, end), content in zip(lines, contents, strict=False)
    ]
    opened = tokens[at - 1]
    # A rule below a sentence makes it a heading of CommonMark; to the model it was a rule.
    if opened.type == "heading_open" and not (opened.markup in "=-" and _is_said(contents)):
        yield _Block("heading", placed[0][0], placed[-1][1])
        return
    before = tokens[at - 2] if at > 1 else opened
    first, *others = _kinds(text, placed)
    if before.type == "list_item_open":
        if len(before.info) > _MAX_NUMBER_DIGITS:
            first = _Block("prose", lines[0][0], first.end)
        elif first.kind == "prose":
            task = _TASK.match(text, first.start, first.end)
            first = _Block("item", task.end() if task else first.start, first.end)
        elif first.kind == "heading" and tokens[at + 2].type == "list_item_close":
            first = first._replace(kind="item")  # else it is the title of the list below
    yield first
    yield from others


def _kinds(text: str, lines: Sequence[tuple[int, int]]) -> Iterator[_Block]:
    """Yields every line of a paragraph as a block of its own, without its list marker."""
    for start, end in lines:
        line = text[start:end]
        match = _LINE_KIND.match(line)
        if match is None:
            yield _Block("heading" if _is_bold(line) else "prose", start, end)
        elif match["item"]:
            yield _Block("item", start + match.end(), end)
        else:
            yield _Block(cast("_BlockKind", match.lastgroup), start, end)


def _is_bold(line: str) -> bool:
    """Tells whether a line is a heading in bold, and not a sentence: ``**The fee is 3 %.**``."""
    bold = _BOLD.fullmatch(line.strip())
    return bold is not None and not _is_said([bold["stars"] or bold["lines"]])


def _is_said(lines: Sequence[str]) -> bool:
    """Tells whether a heading is a sentence: of three words and a full stop, or of two lines."""
    return len(lines) > 1 or (lines[0].endswith(_FULL_STOPS) and len(lines[0].split()) > 2)


def _continues(block: _BlockKind, last_line: str, kind: _BlockKind, line: str) -> bool:
    """Tells whether a line belongs to the block of the line before it."""
    if kind == "table":
        return block == kind
    if kind != "prose" or block not in ("prose", "item", "note"):
        return False
    ended = bool(_LINE_END.search(last_line))
    if block == "note" and last_line.rstrip().endswith("]:"):
        return True
    is_label = _LABEL_LINE.match(line) and _LABEL_LINE.match(last_line)
    starts_low = line.lstrip()[:1].islower() and not is_label
    return starts_low or (block == "prose" and (ended or len(last_line) >= _WRAPPED_LENGTH))


@lru_cache
def _parser(*, reads_emphasis_alone: bool = False) -> MarkdownIt:
    # Most texts are prose, and a process that reads no other imports no parser.
    with kept_from_forks():
        from markdown_it import MarkdownIt

    if reads_emphasis_alone:
        return MarkdownIt("zero").enable("emphasis")
    # What is set in by four blanks is mostly no code; tags are read by ``masked``.
    parser = MarkdownIt("commonmark").disable(["code", "html_block", "html_inline"])
    return parser.enable(["table", "strikethrough"])


# --- sentences of a block ---


def _sentences(
    text: str, asserted: str, start: int, end: int, language: str, links: _Links
) -> Iterator[Sentence]:
    """Yields the sentences of a block of prose, each as it is written in the text."""
    cursor = 0
    block = _STRESSED.sub(_unstressed, asserted[start:end])
    for piece in split_prose(block, language):
        at = block.index(piece, cursor)
        cursor = at + len(piece)
        if standalone := _without_markup(piece, links):
            yield Sentence(text[start + at : start + cursor], standalone)


def _unstressed(match: re.Match[str]) -> str:
    """Blanks the marks, so that positions stay those of the text."""
    blanks = " " * len(match["mark"])
    return f"{blanks}{match['said']}{blanks}"


def without_emphasis(text: str) -> str:
    """Returns a text without the marks of Markdown's emphasis, as in ``*so*`` and ``_and so_``."""
    is_marked = ("*" in text or "_" in text) and len(text) <= _LONGEST_MARKED
    return _read(text, _parser(reads_emphasis_alone=True), {}) if is_marked else text


def _read(sentence: str, parser: MarkdownIt, links: _Links) -> str:
    """Returns the text of the markup within a sentence."""
    tokens: list[Token] = []
    shown = _WITHIN_WORD.sub(lambda m: _HIDDEN * len(m[0]), _LABEL.sub(r"\1 ", sentence))
    parser.inline.parse(shown, parser, links, tokens)
    open_texts: list[list[str]] = [[]]
    for token in tokens:
        if token.nesting == 1:
            open_texts.append([])
        elif token.nesting == -1:
            inner = "".join(open_texts.pop())
            open_texts[-1].append(_marked(token, inner))
        elif token.type != "image":
            open_texts[-1].append(token.content or "\n")
    return "".join(open_texts[0]).replace(_HIDDEN, "*")


def _marked(closing: Token, inner: str) -> str:
    if closing.type == "s_close":
        return ""
    if closing.type == "link_close" and _CITED.fullmatch(inner):
        return "[0]"
    # `__init__` and `_name` are names.
    is_name = "_" in closing.markup and " " not in inner
    return f"{closing.markup}{inner}{closing.markup}" if is_name else inner


def _without_markup(sentence: str, links: _Links) -> str:
    # Most sentences have none of the signs, and looking for a sign is fast.
    read = _without_formulas(sentence)
    if len(read) <= _LONGEST_MARKED and _MARKS.search(read):
        read = _read(read, _parser(), links)
    read = without_citations(read)
    if "[" in read:
        read = _REFERENCE.sub("", read)
    joined = " ".join(read.split())
    # A tag that was blanked leaves a blank before the full stop.
    if any(map(joined.__contains__, _BLANKS_BEFORE_STOPS)):
        joined = _BLANK_BEFORE_STOP.sub("", joined)
    return joined


def _list_introduction(block: str) -> str:
    """Returns the words before the colon that introduces a list; empty if there is none."""
    last = _without_markup(block, {}).rsplit(". ", 1)[-1].strip()
    introduces = last.endswith(":") and not starts_with_filler(last)
    return last[:-1].rstrip() if introduces else ""


def _introduced(sentence: Sentence, introduction: str) -> Sentence:
    """Puts the introduction of its list before an item that is a fragment."""
    is_fragment = len(sentence.standalone.split()) <= _MAX_FRAGMENT_WORDS
    if not is_fragment:
        return sentence
    return Sentence(sentence.written, f"{introduction} {sentence.standalone}")


def _table_rows(
    text: str, asserted: str, start: int, end: int, links: _Links
) -> Iterator[Sentence]:
    rows = [
        (row, text[start + at : start + at + len(row)])
        for line in _LINE.finditer(asserted[start:end])
        if (row := line.group().strip())
        for at in [line.start() + line.group().index(row)]
    ]
    headers: Sequence[str] = ()
    for (row, written), (below, _) in zip_longest(rows, rows[1:], fillvalue=("", "")):
        if _TABLE_RULE.fullmatch(row):
            continue
        if _TABLE_RULE.fullmatch(below):
            headers = _cells(row, links)
        elif told := _with_headers(_cells(row, links), headers):
            yield Sentence(written, told)


def _cells(row: str, links: _Links) -> list[str]:
    cells = [_without_markup(cell, links) for cell in _PIPE.split(row)]
    return cells[row.startswith("|") : len(cells) - (len(cells) > 1 and not cells[-1])]


def _with_headers(cells: Sequence[str], headers: Sequence[str]) -> str:
    pairs = zip_longest(headers[: len(cells)], cells, fillvalue="")
    return "; ".join(f"{head}: {cell}" if head else cell for head, cell in pairs if cell)
