"""The demo's corpus: the language reference that comes with Python, split into passages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pydoc_data.topics import topics
from typing import Final

from langchain_core.documents import Document

__all__ = ["MAX_WORDS", "load_corpus"]

MAX_WORDS: Final = 180
"""Longest passage in words. A small model can still use three passages of this length."""

_RULE: Final = re.compile(r"^[*=\-~^]{3,}\n", re.MULTILINE)  # the underline of a heading
_BLANK: Final = re.compile(r"\n\s*\n")
_WRAP: Final = re.compile(r"(?<=\S)\n(?=[^\s|+*])")  # in prose only, not in code or tables
_SEE_ALSO: Final = re.compile(r"^See also:\s*\n(?:[ \t]*\n|[ \t]+.*\n?)+", re.MULTILINE)


def load_corpus() -> list[Document]:
    """Split every topic into passages, with ids such as ``with#2`` in the order of the text.

    Long topics repeat short ones word for word (``compound`` contains ``with``). Short topics are
    read first and repeated paragraphs are dropped, so that each paragraph has one topic.

    Returns:
        The passages, each with its topic in the metadata. The same interpreter always
        returns the same list.
    """
    seen: set[str] = set()
    return [
        Document(id=f"{topic}#{number}", page_content=passage, metadata={"topic": topic})
        for topic in sorted(topics, key=lambda name: (len(topics[name]), name))
        for number, passage in enumerate(_passages(topics[topic], seen))
    ]


def _passages(text: str, seen: set[str]) -> Iterator[str]:
    """Split one topic. Each passage starts with the title of the topic, for context."""
    title, _, body = _RULE.sub("", text.strip() + "\n").partition("\n")
    paragraphs = _joined(_BLANK.split(_SEE_ALSO.sub("", body).strip("\n")))
    # A paragraph that is longer than a passage, such as a table, is split between lines.
    pieces = (piece for paragraph in paragraphs for piece in _packed(paragraph.split("\n"), "\n"))
    for passage in _packed(_unseen(pieces, seen), "\n\n"):
        yield f"{title}\n\n{_WRAP.sub(' ', passage)}"


def _joined(blocks: Iterable[str]) -> Iterator[str]:
    """Join a heading, or a sentence that ends in a colon, with the block that follows it."""
    held: list[str] = []
    for block in blocks:
        held.append(block.rstrip())
        if not _announces(held[-1]):
            yield "\n\n".join(held)
            held = []
    if held:
        yield "\n\n".join(held)


def _announces(block: str) -> bool:
    """Return whether a block is a heading, a signature or the sentence before an example."""
    is_heading = "\n" not in block and not block.startswith(" ") and not block.endswith(".")
    return is_heading or block.endswith(":")


def _unseen(pieces: Iterable[str], seen: set[str]) -> Iterator[str]:
    """Yield the pieces that are not in `seen` yet, and add them to it."""
    for piece in pieces:
        key = " ".join(piece.split())
        if key and key not in seen:
            seen.add(key)
            yield piece


def _packed(parts: Iterable[str], glue: str) -> Iterator[str]:
    """Join neighbours up to `MAX_WORDS`. A part that is longer by itself is not joined."""
    held: list[str] = []
    for part in parts:
        if held and len(" ".join([*held, part]).split()) > MAX_WORDS:
            yield glue.join(held)
            held = []
        held.append(part)
    if held:
        yield glue.join(held)
