"""Reads open texts as documents, each a list of sentences.

Every reader yields documents: paragraphs that belong together, in order. What the texts are and
under which licences they come is listed in the model card beside the weights.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final

from claimspan.text.sentences import split_prose
from train_local_judge.pairs import Document

__all__ = ["clapnq", "html_pages", "qed", "qed_paragraphs", "rst_pages", "wiki_split"]

_SHORTEST: Final = 4
_LONGEST: Final = 60
_TAG: Final = re.compile(r"<[^>]+>")
_PARAGRAPH: Final = re.compile(r"<(p|dd|li)\b[^>]*>(.*?)</\1>", re.DOTALL | re.IGNORECASE)
_ROLE: Final = re.compile(r":[\w:+-]+:`~?\.?([^`<]+?)(?:\s*<[^>]*>)?`")
_LITERAL: Final = re.compile(
    r"``([^`]+)``|\*\*([^*]+)\*\*|\*([^*]+)\*|`([^`<]+?)(?:\s*<[^>]*>)?`_*"
)
# Treebank's way of writing, as the Wikipedia sets have it: "1990 ) was" and "`` Arise ''".
_LOOSE: Final = (
    (re.compile(r"``\s*|\s*''"), '"'),
    (re.compile(r"\s+([.,;:!?%)\]]|'s\b|n't\b)"), r"\1"),
    (re.compile(r"([(\[$#])\s+"), r"\1"),
    (re.compile(r"(\w) - (\w)"), r"\1-\2"),
    (re.compile(r'^" | "(?=[.,]|$)'), '"'),
)


def clapnq(path: Path) -> Iterator[Document]:
    """Read the Wikipedia passages of CLAPnq's JSON lines."""
    for line in path.read_text(encoding="utf-8").strip().split("\n"):
        for passage in json.loads(line)["passages"]:
            sentences: list[str] = passage["sentences"]
            yield from _document(tidy(sentence) for sentence in sentences)


def qed(path: Path) -> Iterator[Document]:
    """Read the Wikipedia paragraphs of QED's JSON lines."""
    for line in path.read_text(encoding="utf-8").strip().split("\n"):
        entry = json.loads(line)
        text: str = entry["paragraph_text"]
        starts: list[int] = [*entry["sentence_starts"], len(text)]
        yield from _document(tidy(text[a:b].strip()) for a, b in pairwise(starts))


def qed_paragraphs(path: Path) -> dict[str, str]:
    """Map the identifiers of QED's questions to the paragraphs that answer them."""
    lines = map(json.loads, path.read_text(encoding="utf-8").strip().split("\n"))
    return {str(entry["example_id"]): tidy(entry["paragraph_text"]) for entry in lines}


def wiki_split(path: Path) -> Iterator[tuple[str, str, str]]:
    """Read sentences of Wikipedia, each with the two sentences into which an editor split it."""
    for line in path.read_text(encoding="utf-8").strip().split("\n"):
        whole, _, parts = line.partition("\t")
        first, _, second = parts.partition("<::::>")
        if second and not whole.startswith(("'", '"', "(")):
            yield tidy(whole), tidy(first), tidy(second)


def rst_pages(folder: Path) -> Iterator[Document]:
    """Read the prose of a folder of reStructuredText, one document per section."""
    for path in sorted(folder.rglob("*.txt")):
        text = path.read_text(encoding="utf-8", errors="replace")
        for section in re.split(r"\n[=\-~^*\"]{4,}\n", text):
            paragraphs = (_plain(part) for part in section.split("\n\n") if _is_prose(part))
            yield from _document(each for part in paragraphs for each in split_prose(part, "en"))


def html_pages(folder: Path) -> Iterator[Document]:
    """Read the paragraphs of a folder of HTML, one document per page."""
    for path in sorted(folder.rglob("*.html")):
        source = path.read_text(encoding="utf-8", errors="replace")
        paragraphs = (
            " ".join(html.unescape(_TAG.sub("", match[2])).split())
            for match in _PARAGRAPH.finditer(source)
        )
        yield from _document(each for part in paragraphs for each in split_prose(part, "en"))


def tidy(sentence: str) -> str:
    """Restore the usual spacing of a tokenized sentence."""
    for pattern, written in _LOOSE:
        sentence = pattern.sub(written, sentence)
    return " ".join(sentence.split())


def _plain(paragraph: str) -> str:
    text = _ROLE.sub(r"\1", paragraph)
    text = _LITERAL.sub(lambda match: next(part for part in match.groups() if part), text)
    return " ".join(text.split())


def _is_prose(paragraph: str) -> bool:
    return not re.match(r"\s*(\.\.|::|[*#\-=>|+:]|\d+\.)", paragraph) and "::" not in paragraph


def _document(sentences: Iterable[str]) -> Iterator[Document]:
    kept = [each for each in sentences if _is_usable(each)]
    if kept:
        yield kept


def _is_usable(sentence: str) -> bool:
    words = sentence.split()
    return (
        _SHORTEST <= len(words) <= _LONGEST
        and sentence[-1] in ".!\"'"
        and sum(character.isalpha() for character in sentence)
        > 0.7 * len(sentence.replace(" ", ""))
    )
