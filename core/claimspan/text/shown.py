"""Finds the evidence that an application shows beside an answer, which asserts none of it.

Many pipelines print their passages or a list of sources below the answer. Taken for claims, the
passages would make any answer faithful, since each stands in the chunks that it was copied from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, Literal, NamedTuple

from claimspan.text.answers import polarity
from claimspan.text.citations import (
    is_excerpt_heading,
    is_footer,
    is_source_heading,
    without_citations,
)
from claimspan.text.clauses import asserts_something
from claimspan.text.languages import detect_language
from claimspan.text.markdown import content_sentences
from claimspan.text.refusals import is_referral, normalise, starts_with_abstention

__all__ = ["without_shown"]

_Kind = Literal[
    "blank", "sources", "excerpts", "heading", "field", "pointer", "passage", "item", "said"
]


class _Line(NamedTuple):
    """The kind of a line of a response."""

    kind: _Kind
    text: str
    is_set_apart: bool = False
    """Whether it is quoted, cut off, or numbered in brackets, as no fact of an answer is."""


@dataclass(frozen=True, slots=True)
class _Block:
    """A line that is said, or a heading with what is shown below it; the blank lines as well."""

    start: int
    head: _Kind | None
    shown: list[_Line]


_HEADS: Final = frozenset({"sources", "excerpts"})
"""Headings of shown evidence; a list below the second may be the answer's own reasons."""

_SHINGLE: Final = 4
"""Words in a row that a line must share with the chunks, wherever it is cut into as many."""

_MAX_LABEL: Final = 6
"""Words that may stand before a passage: ``Handbook, page 3:``."""

_PROBE: Final = 20
"""Characters in the middle of a line that a chunk has if the line is a piece of it."""

_PROBED: Final = 50
"""Lines at either end that are looked at before all words of the chunks are."""

# Scripts without blanks are read letter by letter.
_UNSPACED: Final = r"\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff"
_WORD: Final = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_TAG: Final = re.compile(r"</?[a-z][^<>\n]{0,200}>", re.IGNORECASE)
_MARK: Final = re.compile(
    r"[\s>]*(?:(?:[-*+•‣–]|\(?\d{1,3}[.)])\s+)?(?:[*_]{0,2}[\[【]\^?\w{1,12}[\]】][*_]{0,2}[:.]?\s*)?"
)
_SET_APART: Final = re.compile(
    r"\s*(?:[-*+•]\s+|\d{1,3}[.)]\s+)?(?:>|[*_]{0,2}[\[【]\^?\w{1,12}[\]】]|[\"“”„«»‹›「『])"
)
_HEADING: Final = re.compile(r"\s*(?:#{1,6}\s|\*\*[^*]+\*\*:?\s*$|.*[:：][*_]{0,2}\s*$)")
_LABEL: Final = re.compile(r"[^:：–—\n]{1,80}(?:[:：]|\s[–—-])[*_]{0,2}\s+")
_SOURCE_BEHIND: Final = re.compile(r"(?:\([^()]{1,120}\)|\[[^\[\]]{1,120}\])[.\s]*$")
_QUOTES: Final = ' \t\r\n"”’»*_])'
_FIELD: Final = re.compile(
    r"[*_]{0,2}(?:title|file(?:name)?|page|score|id|url|section|chapter|author|date|similarity|"
    r"relevance|distance|rank|titel|seite|datei|page_label|file_path|content|text)\s*[*_]{0,2}[:：=]"
    r"[*_]{0,2}(?:\s.{0,120})?$",
    re.IGNORECASE,
)
_SEVERAL: Final = re.compile(r"[^\W\d_]{2}[.!?]\s+\S|[。！？।]\s*\S")
_ITEM: Final = re.compile(r"\s*(?:[-*+•–]|\(?\d{1,3}[.):\]]|\[\^?\w{1,12}\])\s*\S")


def without_shown(response: str, chunks: Sequence[str]) -> str:
    """Returns an answer without the evidence that is shown above or below it.

    Shown is a block of lines at either end, each of them a piece of a chunk or a pointer (a link, a
    file, a title), that is set apart: its heading names sources, or each passage is quoted, cut
    off or numbered in brackets. Below an answer a block is shown under any heading or none, too, if
    it has a chunk of several sentences as a whole, or all of several chunks, or nothing but
    pointers. A list of single facts is the answer itself, even if each is copied.

    Returns:
        The rest, in one piece; the response as it is if nothing else would be said, as by an answer
        that quotes a chunk.
    """
    written = response.splitlines(keepends=True)
    if len(written) < 2:
        return response
    passages = _passages_of(chunks) if _may_show(written, chunks) else _Passages(())
    blocks = _blocks(_read_ends(written, passages))
    starts = [*(block.start for block in blocks), len(written)]
    end = len(blocks)
    while end and _is_shown_below(blocks[end - 1], passages, is_last=end == len(blocks)):
        end -= 1
    start = 0
    while start < end and _is_marked(blocks[start]):
        start += 1
    for first, last in ((start, end), (0, end), (start, len(blocks))):
        rest = "".join(written[starts[first] : starts[last]])
        if last - first < len(blocks) and _says_something(rest):
            return rest.strip()
    return response


def _may_show(written: Sequence[str], chunks: Sequence[str]) -> bool:
    """Tells at little cost whether a line near one of the ends may be a piece of a chunk."""
    lines = [stripped for line in written if (stripped := line.strip())]
    middles = {
        line[max(len(line) - _PROBE, 0) // 2 :][:_PROBE]
        for line in lines[:_PROBED] + lines[-_PROBED:]
    }
    return any(middle in text for text in chunks for middle in middles)


def _read_ends(written: Sequence[str], passages: _Passages) -> list[_Line]:
    """The lines, of which those between the first and the last that is said count as said.

    Nothing between them is shown above or below the answer, and most answers begin and end with a
    line that is said.
    """
    above: list[_Line] = []
    heading: _Kind | None = None
    for line in written:
        above.append(_read(line, passages))
        kind = above[-1].kind
        if kind == "said" or (kind == "item" and heading != "sources"):
            break
        heading = kind if kind in ("sources", "excerpts", "heading") else heading
    below: list[_Line] = []
    for line in reversed(written[len(above) :]):
        below.append(_read(line, passages))
        if below[-1].kind == "said":
            break
    between = len(written) - len(above) - len(below)
    return [*above, *[_Line("said", "")] * between, *reversed(below)]


def _blocks(lines: Sequence[_Line]) -> list[_Block]:
    blocks = [_Block(0, None, [])]
    for at, line in enumerate(lines):
        kind = line.kind
        if kind == "item":  # a title, or a fact of the answer
            kind = "pointer" if blocks[-1].head == "sources" else "said"
        if kind in ("field", "pointer", "passage"):
            if blocks[-1].head == "said":
                blocks.append(_Block(at, None, []))
            blocks[-1].shown.extend([line] if kind != "field" else [])
        elif kind != "blank":
            blocks.append(_Block(at, kind, []))
    return blocks if blocks[0].shown else blocks[1:]


def _is_shown_below(block: _Block, passages: _Passages, *, is_last: bool) -> bool:
    """Whether a block is no part of the answer above it."""
    if block.head == "said":
        return False
    if not block.shown:
        return block.head in _HEADS and not is_last
    shown = [line for line in block.shown if line.kind == "passage"]
    return not shown or _is_marked(block) or passages.are_shown_whole(shown)


def _is_marked(block: _Block) -> bool:
    """Whether a block says that it shows sources: by its heading, or by each of its passages."""
    shown = [line for line in block.shown if line.kind == "passage"]
    is_named = block.head in _HEADS and bool(block.shown)
    return is_named or (bool(shown) and all(line.is_set_apart for line in shown))


def _says_something(text: str) -> bool:
    language = detect_language(text) or "en"
    return any(_says(each.standalone) for each in content_sentences(text, language))


def _says(sentence: str) -> bool:
    """Whether a sentence asserts, declines, affirms or denies something."""
    normal = normalise(sentence)
    if is_referral(normal):
        return False
    declines = starts_with_abstention(normal)
    return declines or polarity(normal) is not None or asserts_something(normal)


class _Passages:
    """The words in a row that chunks have, read as far as a line asks for them."""

    def __init__(self, chunks: Sequence[str]) -> None:
        self._chunks = chunks

    @cached_property
    def _of_each(self) -> list[set[tuple[str, ...]]]:
        return [{*_shingles(_words(text))} for text in self._chunks]

    @cached_property
    def _known(self) -> set[tuple[str, ...]]:
        return {each for text in self._chunks for each in _shingles(_words(text))}

    @cached_property
    def _lines(self) -> set[tuple[str, ...]]:
        return {tuple(_words(line)) for text in self._chunks for line in text.splitlines()}

    def has(self, line: str) -> bool:
        """Whether a line is a piece of a chunk, with its source before or behind it, or cut off."""
        if not self._chunks:
            return False
        behind = _SOURCE_BEHIND.sub("", line)
        label = _LABEL.match(behind)
        is_label = label is not None and len(_words(label.group())) <= _MAX_LABEL
        read = {line, behind, behind[label.end() :] if label and is_label else line}
        return any(self._is_piece(_words(_uncut(each))) for each in read)

    def _is_piece(self, words: Sequence[str]) -> bool:
        if len(words) < _SHINGLE:
            # A line that is too short to tell is a piece of a chunk if the chunk has it as a line.
            return bool(words) and tuple(words) in self._lines
        return self._known.issuperset(_shingles(words))

    def are_shown_whole(self, lines: Iterable[_Line]) -> bool:
        """Whether lines have a chunk of several sentences as a whole, or all of several chunks."""
        shown = {*_shingles(_words("\n".join(line.text for line in lines)))}
        whole = [shown.issuperset(of_chunk) for of_chunk in self._of_each]
        if len(whole) > 1 and all(whole):
            return True
        pairs = zip(self._chunks, whole, strict=True)
        return any(is_whole and _SEVERAL.search(text) for text, is_whole in pairs)


def _passages_of(chunks: Sequence[str]) -> _Passages:
    is_short = sum(map(len, chunks)) <= _LONGEST_REMEMBERED
    return (_remembered if is_short else _Passages)(tuple(chunks))


# One answer is read twice: to find what a model has read, and to tell whether it abstains.
_LONGEST_REMEMBERED: Final = 32_000


@lru_cache(maxsize=1)
def _remembered(chunks: tuple[str, ...]) -> _Passages:
    return _Passages(chunks)


def _uncut(line: str) -> str:
    """A line without its last word, if it is cut off there: perhaps within the word."""
    return line.rstrip().rpartition(" ")[0] if _is_cut_off(line) else line


def _is_cut_off(line: str) -> bool:
    return line.rstrip(_QUOTES).endswith(("...", "…"))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _shingles(words: Sequence[str]) -> Iterable[tuple[str, ...]]:
    return zip(*(words[at:] for at in range(_SHINGLE)), strict=False)


def _read(written: str, passages: _Passages) -> _Line:
    line = (_TAG.sub(" ", written) if "<" in written else written).strip()
    if not any(map(str.isalnum, line)):
        return _Line("blank", line)
    if is_source_heading(line):
        return _Line("sources", line)
    if is_excerpt_heading(line):
        return _Line("excerpts", line)
    bare = line[end.end() :] if (end := _MARK.match(line)) else line
    if passages.has(bare):
        is_set_apart = bool(_SET_APART.match(line)) or _is_cut_off(_SOURCE_BEHIND.sub("", bare))
        return _Line("passage", bare, is_set_apart)
    if is_footer(bare):
        return _Line("pointer", bare)
    if _FIELD.match(bare):
        return _Line("field", bare)
    if _HEADING.match(line):
        return _Line("heading", line)
    if not _says(without_citations(bare)):
        return _Line("blank", bare)
    return _Line("item" if _ITEM.match(line) else "said", bare)
