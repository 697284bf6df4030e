"""Open texts in a folder, as passages of neighbouring sentences, for claims changed by rule."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Final, Literal, NamedTuple

from claimspan.text.sentences import split_prose

__all__ = ["Half", "Passage", "half_of", "passages_of_text", "read_passages"]

Half = Literal["tune", "test"]

_PASSAGE_LENGTH: Final = 800
"""A passage ends with the first sentence that exceeds this number of characters."""
_SENTENCE: Final = re.compile(r"[A-Z“\"'(][^\n{}<>|\\=]{25,300}[.]")
# Code, markup, and references that are cut at an abbreviation.
_CODE: Final = re.compile(
    r"[`*_@]|::|\(\)|:\w+:|\w\(\w|==|\.\w+\(|[a-z][A-Z]\w*[a-z]\.|\. [a-z]|\?|\.\.|\bSee\b"
)
_SENTENCE_WORDS: Final = range(6, 41)
# CLAPnq's passages are written with a space between all tokens.
_SPACED: Final = (
    (re.compile(r"\s+([,.;:?!%)\]])"), r"\1"),
    (re.compile(r"([(\[$])\s+"), r"\1"),
    (re.compile(r"``\s*|\s*''"), '"'),
    (re.compile(r"\s+('(?:s|re|ve|d|ll|m)?\b|n't\b)"), r"\1"),
    (re.compile(r"(\w) - (\w)"), r"\1-\2"),
    (re.compile(r"\s*--\s*"), " – "),
    (re.compile(r"\s+"), " "),
)
_SKIPPED_TAGS: Final = frozenset({"pre", "script", "style", "nav", "table", "dt", "h1", "h2", "h3"})


class Passage(NamedTuple):
    """Neighbouring sentences of one document."""

    source: str
    """Name of the folder that the text came from."""

    document: str
    """What the halves are split by."""

    sentences: tuple[str, ...]
    """All sentences, in order."""

    @property
    def text(self) -> str:
        """The sentences, joined."""
        return " ".join(self.sentences)

    @property
    def usable(self) -> list[str]:
        """The sentences that can be changed by rule: whole, of ordinary length, no code."""
        return [
            each
            for each in self.sentences
            if _SENTENCE.fullmatch(each)
            and len(each.split()) in _SENTENCE_WORDS
            and not _CODE.search(each)
        ]


def half_of(document: str) -> Half:
    """The half of a document, the same on every machine."""
    digest = hashlib.sha256(f"perturbed: {document}".encode()).digest()
    return "test" if digest[0] % 2 else "tune"


def read_passages(folder: Path) -> Iterator[Passage]:
    """Yields the passages of every ``.jsonl`` (CLAPnq), ``.html`` and ``.txt`` below a folder."""
    for path in sorted(folder.rglob("*")):
        if any(part.startswith("_") for part in path.relative_to(folder).parts):
            continue  # the sources of generated pages
        if path.suffix == ".jsonl":
            yield from _clapnq(path, folder.name)
        elif path.suffix in (".html", ".txt"):
            written = path.read_text(encoding="utf-8", errors="replace")
            text = "\n\n".join(_paragraphs(written)) if path.suffix == ".html" else written
            document = path.relative_to(folder).as_posix()
            yield from passages_of_text(text, folder.name, f"{folder.name}/{document}")


def passages_of_text(text: str, source: str, document: str) -> Iterator[Passage]:
    """Yields the passages of a text whose paragraphs stand between blank lines."""
    sentences: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        sentences += split_prose(" ".join(paragraph.split()), "en")
        if sum(map(len, sentences)) > _PASSAGE_LENGTH:
            yield from _cut(sentences, source, document)
            sentences = []
    yield from _cut(sentences, source, document)


def _cut(sentences: Sequence[str], source: str, document: str) -> Iterator[Passage]:
    taken: list[str] = []
    for sentence in sentences:
        taken.append(sentence)
        if sum(map(len, taken)) > _PASSAGE_LENGTH:
            yield Passage(source, document, tuple(taken))
            taken = []
    if taken:
        yield Passage(source, document, tuple(taken))


def _clapnq(path: Path, source: str) -> Iterator[Passage]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            for passage in json.loads(line)["passages"]:
                text, title = str(passage["text"]), str(passage["title"])
                for pattern, replacement in _SPACED:
                    text = pattern.sub(replacement, text)
                yield from passages_of_text(text.strip(), source, f"{source}/{title}")


def _paragraphs(html: str) -> list[str]:
    parser = _Paragraphs()
    parser.feed(html)
    return [text for each in parser.found if (text := each.replace("¶", "").strip())]


class _Paragraphs(HTMLParser):
    """Collects the text of ``p`` elements."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside = 0
        self._skipped = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "p":
            self._inside += 1
            self.found.append("")
        self._skipped += tag in _SKIPPED_TAGS

    def handle_endtag(self, tag: str) -> None:
        self._inside = max(self._inside - (tag == "p"), 0)
        self._skipped = max(self._skipped - (tag in _SKIPPED_TAGS), 0)

    def handle_data(self, data: str) -> None:
        if self._inside and not self._skipped:
            self.found[-1] += data
