"""Finds the chunks that the answering generator read, and how that is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from claimspan_tracing.capture.reader import Document
from claimspan_tracing.read.answering import Generated, answering
from claimspan_tracing.read.prompted import read_texts
from claimspan_tracing.text import MAX_JOINED, MAX_KEY_BYTES, bounded

__all__ = ["Context", "ContextSource", "find_context"]

ContextSource = Literal["prompt", "last_documents", "retriever"]
"""The values of ``claimspan.context.source``."""

MAX_CANDIDATES: Final = 300
"""Documents that are looked for in a prompt: three times what is kept of a record."""

MAX_CANDIDATES_CHARACTERS: Final = 2 * 1024 * 1024
"""Characters of all of them: twice what is kept of a record. Each is read a few times."""


@dataclass(frozen=True, slots=True)
class Context:
    """What the generator read."""

    documents: Sequence[Document] | None
    """In the order of their retrieval; None for all that was retrieved."""

    source: ContextSource
    """How that is known."""


def find_context(
    named: Sequence[Document] | None,
    candidates: Callable[[], Iterable[Document]],
    generations: Sequence[Generated],
    response: str,
) -> Context:
    """Find what the generator read.

    Documents that stand in the prompts which the response rests on were read, and no others. Where
    a prompt is not seen, or has none of them in a form that is known, the pipeline's own word
    counts, or else all that was retrieved.

    Args:
        named: What the pipeline itself says that its generator was given; None where it does not.
        candidates: Returns every document that was seen, also more than once.
        generations: Those that ended well, in the order in which they started.
        response: What the pipeline returned.
    """
    gave = answering(generations, response)
    if named:
        # Drafts that a model refines may leave no words in its prompt: all prompts until the
        # answer count. What reads the documents after it, such as a check, gave none of it.
        until = generations.index(gave[-1]) + 1 if gave else 0
        named = _once(named)
        found = _read(_whole(generations[:until]), named)
        return Context(found, "prompt") if found else Context(named, "last_documents")
    prompts = _whole(gave)
    found = _read(prompts, _once(candidates())) if prompts else []
    if found:
        return Context(found, "prompt")
    return Context(named, "retriever" if named is None else "last_documents")


def _whole(generations: Sequence[Generated]) -> list[str]:
    """The prompts; none where one is not seen or was cut: they prove nothing of what they lack."""
    prompts = [each.prompt for each in generations]
    is_whole = all(prompts) and all(len(prompt) < MAX_JOINED for prompt in prompts)
    return prompts if is_whole else []


def _read(prompts: Sequence[str], documents: Sequence[Document]) -> list[Document]:
    """The documents that stand in prompts, each with the part of its text that does."""
    texts = [*map(_text, documents)]
    parts = read_texts(prompts, texts)
    return [
        document if part == text else replace(document, text=part)
        for document, text, part in zip(documents, texts, parts, strict=True)
        if part is not None
    ]


def _once(documents: Iterable[Document]) -> list[Document]:
    """The first ones, each text with its id once: documents pass through many runs."""
    found: dict[tuple[str, str], Document] = {}
    room = MAX_CANDIDATES_CHARACTERS
    for document in documents:
        key = bounded(document.id, MAX_KEY_BYTES), _text(document)
        if key in found:
            continue
        found[key] = document
        room -= len(key[1])
        if len(found) >= MAX_CANDIDATES or room <= 0:
            break
    return [*found.values()]


def _text(document: Document) -> str:
    if isinstance(document.text, str):
        return document.text[:MAX_JOINED]  # no prompt that is looked at holds more
    return bounded(document.text, MAX_JOINED)
