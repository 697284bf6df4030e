"""Adds to documents the fields that a prompt prints beside their text and the answer names.

A template prints the price of a product above its description, out of the metadata or from
elsewhere, and the model answers with it. The text of the document alone does not support that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from claimspan_tracing.capture.runs import Document

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


_NUMBER: Final = re.compile(r"(?<![\w.,\[])\d[\d.,:]*\d(?![\w\]])")
"""A number of two digits or more, which is no citation."""

_CITED: Final = re.compile(
    r"(?:\bpages?|\bpp?\.|\bseite|\bsources?|\bdoc\w*|\bchunk|\bsection|\bids?|#|\bscore)[\s:=]{0,3}$",
    re.IGNORECASE,
)
"""What stands before a number that says where a text is from."""

_TURN: Final = re.compile(
    r"^(?:human|user|ai|assistant|bot|system|tool|q|a|question|answer)[ \t]?:",
    re.IGNORECASE | re.MULTILINE,
)
"""Where another turn begins in a conversation that is one text."""

MAX_BITS: Final = 64
"""Of a number that an answer speaks of. Python refuses to print those beyond 4,300 digits."""

MAX_NUMBERS: Final = 20
"""Numbers of a response that are looked for."""


def with_printed_fields(
    documents: Sequence[Document], prompts: Sequence[str], response: str, query: str
) -> list[Document]:
    """Return documents with the fields that prompts print beside their text, before it.

    Fields of their metadata, and lines of the same paragraph with a number. Only those that the
    response has and no document's text does, so that a usual record stays as it is. Neither the
    query is evidence nor what an assistant has said before: the prompts are without that.
    """
    numbers = _numbers_beside(documents, prompts, response, query)
    texts = [str(each.text) for each in documents]
    return [_with_told(each, texts, prompts, response, query, numbers) for each in documents]


def _numbers_beside(
    documents: Sequence[Document], prompts: Sequence[str], response: str, query: str
) -> list[str]:
    """The numbers of a response that a prompt has, and neither a document nor the query."""
    found = dict.fromkeys(islice((each[0] for each in _NUMBER.finditer(response)), MAX_NUMBERS))
    return [
        number
        for number in found
        # In this order: what no prompt has is told at once.
        if any(number in prompt for prompt in prompts)
        and number not in query
        and not any(number in str(each.text) for each in documents)
    ]


def _as_text(value: object) -> str:
    """A text, or a number as it is printed; empty for any other value."""
    if isinstance(value, str):
        return value
    if type(value) is int:
        return str(value) if value.bit_length() <= MAX_BITS else ""
    return str(value) if type(value) is float else ""


def _with_told(
    document: Document,
    texts: Sequence[str],
    prompts: Sequence[str],
    response: str,
    query: str,
    numbers: Sequence[str],
) -> Document:
    named = [
        (name, value)
        for name, value in _answered(document, response)
        if not any(value in text for text in texts)
    ]
    if not (named or numbers):  # as in most records
        return document
    around = [*_around(str(document.text).strip(), texts, prompts)]
    beside = "\0".join(around)
    told = [f"{name}: {value}" for name, value in named if _has_word(beside, value)]
    left = [number for number in numbers if not any(number in each for each in told)]
    told += _lines_with(left, around, query.strip())
    return replace(document, text="\n".join([*told, str(document.text)])) if told else document


def _lines_with(numbers: Sequence[str], around: Sequence[str], query: str) -> list[str]:
    """The lines of the paragraph around a text that have a number, and not the question."""
    # By turns what stands before a text and what stands behind it.
    parts = [
        part.rpartition("\n\n")[2] if index % 2 == 0 else part.partition("\n\n")[0]
        for index, part in enumerate(around)
    ]
    lines = (line.strip() for part in parts for line in part.split("\n"))
    return [
        line
        for line in dict.fromkeys(lines)
        if any(
            _has_word(line, number) and not _CITED.search(line.partition(number)[0])
            for number in numbers
        )
        and not (query and query in line)
    ]


def _answered(document: Document, response: str) -> Iterator[tuple[str, str]]:
    """The fields whose value the response has."""
    metadata = document.metadata
    # A mapping of another kind may do anything when it is read.
    items = islice(metadata.items(), MAX_FIELDS) if metadata.__class__ is dict else ()
    for name, value in items:
        text = _as_text(value)
        # In this order, since it is done for each field.
        if MIN_VALUE <= len(text) <= MAX_VALUE and text in response:
            text = text.strip()
            if _has_word(response, text) and not _PLUMBING.search(str(name)):
                yield str(name), text


def _has_word(text: str, value: str) -> bool:
    """Whether a value stands in a text, and not within a word or a number."""
    before = r"(?<![^\W_])" if value[:1].isalnum() else ""
    after = r"(?![^\W_])" if value[-1:].isalnum() else ""
    return bool(value) and re.search(before + re.escape(value) + after, text) is not None


def _around(text: str, texts: Sequence[str], prompts: Sequence[str]) -> Iterator[str]:
    """What stands before and behind a text in the prompts, up to the next document."""
    others = [each.strip() for each in texts if each.strip() and each.strip() != text]
    for prompt in prompts:
        at = prompt.find(text) if text else -1
        if at < 0:
            continue
        end = at + len(text)
        before, after = prompt[max(0, at - MAX_AROUND) : at], prompt[end : end + MAX_AROUND]
        before, after = _TURN.split(before)[-1], _TURN.split(after)[0]
        for other in others:
            before = before.rpartition(other[-MAX_AROUND // 10 :])[2]
            after = after.partition(other[: MAX_AROUND // 10])[0]
        yield before
        yield after
