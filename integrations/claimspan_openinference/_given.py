"""Documents that a span was given and no retriever has found: windows and neighbours of those.

Postprocessors of LlamaIndex and ``SentenceWindowRetriever`` of Haystack put them in, and their
spans show no documents: a node stands there by its id, and a document by its beginning.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from claimspan_openinference._kinds import Attributes
from claimspan_openinference._messages import parsed
from claimspan_tracing import semconv
from claimspan_tracing.adapters import Document, is_list, is_mapping

__all__ = ["holds_nodes", "holds_windows", "nodes_in", "refined_in", "windows_in"]

TEXTS: Final = "text_chunks"
"""Argument of LlamaIndex's synthesizers: the texts of the nodes, each with its metadata."""

CONTEXTS: Final = ("context_str", "context_msg")
"""Variables of LlamaIndex's templates that hold the texts of nodes."""

WINDOWS: Final = "context_windows"
WINDOWED: Final = "context_documents"
"""Outputs of Haystack's ``SentenceWindowRetriever``."""

MAX_TEXTS: Final = 1_000
"""Texts of one span that are looked at."""

MIN_HANDED_ON: Final = 20
"""Characters of an answer from which on its words in a node are no coincidence."""

MIN_AROUND: Final = 20
"""Characters around a document from which on they are no label, such as "Source 1:"."""

SHOWN: Final = 100
"""Characters of a document that Haystack shows, where it has more."""

_FIELD: Final = re.compile(r"([\w .-]+): ")

_SHOWN_DOCUMENT: Final = re.compile(
    r"Document\(id=(\S*), content: '(.*?)'"
    r"(?:, (?:blob|meta|score|embedding|sparse_embedding): .*)?\)",
    re.DOTALL,
)


def holds_nodes(attributes: Attributes) -> bool:
    """Whether a span is that of a synthesizer that was given nodes."""
    return f'"{TEXTS}"' in str(attributes.get(semconv.INPUT_VALUE, ""))


def nodes_in(
    attributes: Attributes, found: Sequence[Document], said: Collection[str]
) -> list[Document]:
    """Return the nodes that a synthesizer was given.

    Args:
        attributes: Those of its span.
        found: What retrievers have found. A node with the text of one of these is that one, and a
            node with more around it has its id.
        said: What models have said. A node that holds it is the answer to a part of the question.
    """
    texts = _listed(attributes, semconv.INPUT_VALUE, TEXTS)
    long = [text for text in said if len(text) >= MIN_HANDED_ON]
    return _nodes([text for text in texts if not any(each in text for each in long)], found)


def refined_in(attributes: Attributes, found: Sequence[Document]) -> list[Document]:
    """Return the node that a model was given to refine its answer by, in the same way."""
    variables = parsed(attributes.get(semconv.LLM_TEMPLATE_VARIABLES))
    named = [variables.get(name) for name in CONTEXTS] if is_mapping(variables) else []
    return _nodes([text for text in named if isinstance(text, str)], found)


def holds_windows(attributes: Attributes) -> bool:
    """Whether a span has found the windows around documents."""
    return f'"{WINDOWS}"' in str(attributes.get(semconv.OUTPUT_VALUE, ""))


def windows_in(attributes: Attributes) -> list[Document]:
    """Return the windows around documents, and the documents that they consist of."""
    windows = _listed(attributes, semconv.OUTPUT_VALUE, WINDOWS)
    shown = _listed(attributes, semconv.OUTPUT_VALUE, WINDOWED)
    matches = [each for text in shown if (each := _SHOWN_DOCUMENT.fullmatch(text))]
    begun = [(each[1], _beginning(each[2])) for each in matches]
    parts = (part for window in windows for part in _parts(window, begun))
    return [*parts, *map(Document, windows)]


def _listed(attributes: Attributes, name: str, key: str) -> list[str]:
    value = parsed(attributes.get(name))
    listed = value.get(key) if is_mapping(value) else None
    return [t for t in listed[:MAX_TEXTS] if isinstance(t, str)] if is_list(listed) else []


def _nodes(texts: Sequence[str], found: Sequence[Document]) -> list[Document]:
    fields = {key for each in found for key in each.metadata}
    return [_node(_without_fields(text, fields), found) for text in texts]


def _node(text: str, found: Sequence[Document]) -> Document:
    around: Document | None = None
    for each in found:
        own = str(each.text).strip()
        if own and own in text:
            if len(text) - len(own) < MIN_AROUND:
                return each
            # A window that a retriever keeps with its sentence is known to the reader of prompts.
            kept = (value for value in each.metadata.values() if isinstance(value, str))
            whole = next((value for value in kept if value.strip() == text), text)
            around = around or replace(each, text=whole)
    return around or Document(text)


def _without_fields(text: str, fields: set[str]) -> str:
    """A node's text without the lines before it that are the fields of its metadata."""
    head, blank, rest = text.partition("\n\n")
    names = [_FIELD.match(line) for line in head.split("\n")]
    is_head = all(name is not None and name[1] in fields for name in names)
    return rest.strip() if blank and is_head else text.strip()


def _beginning(shown: str) -> str:
    is_cut = len(shown) == SHOWN + len("...") and shown.endswith("...")
    return shown[:SHOWN] if is_cut else shown


def _parts(window: str, begun: Sequence[tuple[str, str]]) -> Iterator[Document]:
    """The documents that a window consists of, by where each begins in it."""
    places = {window.find(beginning): id_ for id_, beginning in begun if beginning}
    places.pop(-1, None)
    for start, end in pairwise([*sorted(places), len(window)]):
        yield Document(window[start:end], places[start])
