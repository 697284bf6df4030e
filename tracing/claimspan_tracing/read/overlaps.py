"""Finds, among documents that share their words, those that a model has read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from claimspan_tracing.capture.runs import Document
from claimspan_tracing.text import MAX_JOINED, bounded

__all__ = ["apart", "text_of"]


def text_of(document: Document) -> str:
    """Return the text of a document, as much as a prompt that is looked at can hold."""
    if isinstance(document.text, str):
        return document.text[:MAX_JOINED]
    return bounded(document.text, MAX_JOINED)


def apart(prompts: Sequence[str], found: Sequence[Document]) -> list[Document]:
    """Return documents without those that stand in the prompts only within another one.

    Where leaves were merged into their parent, or sentences into a window, that one was read. Of a
    document that was split between prompts, the beginning was found in one, and more in others.

    Args:
        prompts: What the model read.
        found: The documents that stand there, each with the part of its text that does.
    """
    found = _longest(found)
    # Without the white space around them, which a prompt may lack.
    texts = [text_of(document).strip() for document in found]
    return [
        document
        for document, text in zip(found, texts, strict=True)
        if not (around := [t for t in texts if len(t) > len(text) and text in t])
        or any(text in _outside(prompt, around) for prompt in prompts)
    ]


def _longest(found: Sequence[Document]) -> list[Document]:
    """The documents, each in place of the parts of it that it begins with."""
    parts: dict[str, list[Document]] = {}
    for document in found:
        if isinstance(document.id, str):
            parts.setdefault(document.id, []).append(document)
    if all(len(each) == 1 for each in parts.values()):
        return [*found]
    whole = (_whole(each, parts.get(str(each.id), [each])) for each in found)
    return [*{id(each): each for each in whole}.values()]


def _whole(part: Document, same: Sequence[Document]) -> Document:
    """The longest part of a document that begins as another part of it does."""
    form = _form(part)
    return max((each for each in same if _form(each).startswith(form)), key=lambda e: len(_form(e)))


def _form(document: Document) -> str:
    return " ".join(text_of(document).split())


def _outside(prompt: str, texts: Iterable[str]) -> str:
    for text in sorted(texts, key=len, reverse=True):
        prompt = prompt.replace(text, "\0")
    return prompt
