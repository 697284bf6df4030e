"""Adds to documents the fields of theirs that a template printed, and that the answer speaks of.

A template prints the price of a product above its description, and the model answers with it. The
text of the document alone does not support that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from claimspan_tracing.capture.reader import Document

__all__ = ["with_printed_fields"]

MAX_FIELDS: Final = 30
"""Fields of a document that are looked at."""

MAX_VALUE: Final = 300
"""Characters of a field that is told beside a text; what is longer is a text by itself."""

MIN_VALUE: Final = 2
"""Characters of a field that an answer may speak of: a shorter one stands in any text."""

MAX_AROUND: Final = 600
"""Characters before or behind a text in which its template prints its fields."""

_PLUMBING: Final = re.compile(
    r"(?:^|[_.-])(?:ids?|uuid|hash|file\w*|path|urls?|uri|link|scores?|page\w*|index|seq|chunk\w*"
    r"|offset|start\w*|end\w*|window|original_text|mime\w*|type|size|length|lang\w*|source|origin)$",
    re.IGNORECASE,
)
"""Names of fields that say where a text is from, and nothing about what it tells."""


def with_printed_fields(
    documents: Sequence[Document], prompts: Sequence[str], response: str
) -> list[Document]:
    """Return documents with the fields before their text that were printed beside it.

    Only those whose value the response has and no document's text does, so that a usual record
    stays as it is.

    Args:
        documents: What was read.
        prompts: What the model read.
        response: What it answered.
    """
    texts = [str(each.text) for each in documents]
    return [
        _with(document, told) if (told := _told(document, texts, prompts, response)) else document
        for document in documents
    ]


def _with(document: Document, told: Sequence[str]) -> Document:
    return replace(document, text="\n".join([*told, str(document.text)]))


def _told(
    document: Document, texts: Sequence[str], prompts: Sequence[str], response: str
) -> list[str]:
    named = [
        (name, value)
        for name, value in _answered(document, response)
        if not any(value in text for text in texts)
    ]
    if not named:  # as in most records
        return []
    around = "\0".join(_around(str(document.text).strip(), texts, prompts))
    return [f"{name}: {value}" for name, value in named if _has_word(around, value)]


def _answered(document: Document, response: str) -> Iterator[tuple[str, str]]:
    """The fields whose value the response has."""
    # A mapping of another kind may do anything when it is read.
    if type(document.metadata) is not dict:
        return
    for name, value in islice(document.metadata.items(), MAX_FIELDS):
        kind = type(value)
        if kind is not str and kind is not int and kind is not float:
            continue
        text = value if isinstance(value, str) else str(value)
        # In this order, since it is done for each field of each document.
        if MIN_VALUE <= len(text) <= MAX_VALUE and text in response:
            text = text.strip()
            if _has_word(response, text) and not _PLUMBING.search(str(name)):
                yield str(name), text


def _has_word(text: str, value: str) -> bool:
    """Whether a value stands in a text, and not within a word or a number."""
    at = text.find(value) if value else -1
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(value) : at + len(value) + 1]
        if not (before.isalnum() and value[0].isalnum()) and not (
            after.isalnum() and value[-1].isalnum()
        ):
            return True
        at = text.find(value, at + 1)
    return False


def _around(text: str, texts: Sequence[str], prompts: Sequence[str]) -> Iterator[str]:
    """What stands before and behind a text in the prompts, up to the next document."""
    others = [each.strip() for each in texts if each.strip() and each.strip() != text]
    for prompt in prompts:
        at = prompt.find(text) if text else -1
        if at < 0:
            continue
        end = at + len(text)
        before, after = prompt[max(0, at - MAX_AROUND) : at], prompt[end : end + MAX_AROUND]
        for other in others:
            before = before.rpartition(other[-MAX_AROUND // 10 :])[2]
            after = after.partition(other[: MAX_AROUND // 10])[0]
        yield before
        yield after
