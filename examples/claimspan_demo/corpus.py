"""The demo's corpus: the language reference that every Python carries, cut into passages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pydoc_data.topics import topics
from typing import Final

from langchain_core.documents import Document

__all__ = ["MAX_WORDS", "load_corpus"]

MAX_WORDS: Final = 180
"""A passage ends before it would outgrow this: three of them fit a small model's attention."""

_RULE: Final = re.compile(r"^[*=\-~^]{3,}\n", re.MULTILINE)  # what underlines a heading
_BLANK: Final = re.compile(r"\n\s*\n")
_WRAP: Final = re.compile(r"(?<=\S)\n(?=[^\s|+*])")  # inside prose; code and tables keep theirs
_SEE_ALSO: Final = re.compile(r"^See also:\s*\n(?:[ \t]*\n|[ \t]+.*\n?)+", re.MULTILINE)


def load_corpus() -> list[Document]:
    """Cut every topic into passages, with ids such as ``with#2`` in the order of the text.

    Long topics quote short ones word for word (``compound`` holds ``with``). Short topics go
    first and a paragraph is told once, so that a passage has one home.

    Returns:
        The passages, each with its topic in the metadata. The same interpreter always
        returns the same list.
    """
    told: set[str] = set()
    return [
        Document(id=f"{topic}#{number}", page_content=passage, metadata={"topic": topic})
        for topic in sorted(topics, key=lambda name: (len(topics[name]), name))
        for number, passage in enumerate(_passages(topics[topic], told))
    ]


def _passages(text: str, told: set[str]) -> Iterator[str]:
    """Cut one topic; each passage opens with the topic's title, which gives it context."""
    title, _, body = _RULE.sub("", text.strip() + "\n").partition("\n")
    paragraphs = _joined(_BLANK.split(_SEE_ALSO.sub("", body).strip("\n")))
    # Only a paragraph that is longer than a passage, such as a table, is cut between lines.
    pieces = (piece for paragraph in paragraphs for piece in _packed(paragraph.split("\n"), "\n"))
    for passage in _packed(_untold(pieces, told), "\n\n"):
        yield f"{title}\n\n{_WRAP.sub(' ', passage)}"


def _joined(blocks: Iterable[str]) -> Iterator[str]:
    """Keep what announces the next block, such as a heading or a colon, together with it."""
    held: list[str] = []
    for block in blocks:
        held.append(block.rstrip())
        if not _announces(held[-1]):
            yield "\n\n".join(held)
            held = []
    if held:
        yield "\n\n".join(held)


def _announces(block: str) -> bool:
    """Whether a block is a heading, a signature or the sentence before an example."""
    is_heading = "\n" not in block and not block.startswith(" ") and not block.endswith(".")
    return is_heading or block.endswith(":")


def _untold(pieces: Iterable[str], told: set[str]) -> Iterator[str]:
    """Pass on the pieces that no passage has told yet, and remember them."""
    for piece in pieces:
        key = " ".join(piece.split())
        if key and key not in told:
            told.add(key)
            yield piece


def _packed(parts: Iterable[str], glue: str) -> Iterator[str]:
    """Join neighbours up to `MAX_WORDS`; a part that is longer by itself stays alone."""
    held: list[str] = []
    for part in parts:
        if held and len(" ".join([*held, part]).split()) > MAX_WORDS:
            yield glue.join(held)
            held = []
        held.append(part)
    if held:
        yield glue.join(held)
