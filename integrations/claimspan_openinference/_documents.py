"""Reads documents from the attributes of a span, in whatever form an instrumentation wrote them.

Some were given to a model and found by no retriever: windows and neighbours of what was found.
Postprocessors of LlamaIndex and ``SentenceWindowRetriever`` of Haystack put them in, and their
spans show no documents: a node stands there by its id, and a document by its beginning.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import Final

from claimspan_openinference._kinds import TEXTS, Attributes
from claimspan_openinference._messages import (
    TOOL,
    arguments_in,
    messages_of,
    parsed,
    text_of_parts,
)
from claimspan_tracing import semconv
from claimspan_tracing.adapters import (
    Document,
    is_echo,
    is_list,
    is_mapping,
    names_evidence,
)

__all__ = [
    "attached",
    "documents_given",
    "documents_in",
    "holds_windows",
    "named_texts",
    "nodes_in",
    "refined_in",
    "repeats_call",
    "reranked",
    "reranker_given",
    "retrieved",
    "told",
    "told_to_model",
    "windows_in",
]

TEXT_KEYS: Final = (
    *("page_content", "pageContent", "content", "text", "document", "chunk", "snippet", "body"),
)
"""Names under which stores and frameworks write the text of a document."""

LIST_KEYS: Final = ("documents", "results", "chunks", "nodes", "docs", "matches", "hits")
"""Names under which they write the list of them."""

MAX_FIELDS: Final = 100
"""Fields of an input that are looked at."""


def retrieved(attributes: Attributes) -> list[Document]:
    """The documents of a retriever span."""
    return _flattened(attributes, semconv.document) or documents_in(
        parsed(attributes.get(semconv.OUTPUT_VALUE))
    )


def reranked(attributes: Attributes) -> list[Document]:
    """The documents that a reranker let through."""
    return _flattened(attributes, semconv.reranked)


def reranker_given(attributes: Attributes) -> list[Document]:
    """The documents that a reranker was given; nothing where they were not recorded."""
    return _flattened(attributes, semconv.reranker_input)


def documents_given(attributes: Attributes) -> list[Document]:
    """The documents that a span was given, in the form that LangChain writes."""
    given = attributes.get(semconv.INPUT_VALUE)
    # Told at once, since most are given none.
    is_told = isinstance(given, str) and f'"{TEXT_KEYS[0]}"' in given
    return documents_in(parsed(given)) if is_told else []


def attached(attributes: Attributes) -> list[Document]:
    """The documents in what a tool has returned; nothing where that is a text."""
    found = parsed(attributes.get(semconv.OUTPUT_VALUE))
    # LangChain's tools return a message, which has the documents beside its text.
    inside = found.get("data", found.get("kwargs", found)) if is_mapping(found) else found
    artifact = inside.get("artifact") if is_mapping(inside) else None
    return documents_in(artifact) or documents_in(inside)


def named_texts(value: object) -> list[str]:
    """The texts in an input under names such as ``context``."""
    found = parsed(value)
    named = islice(found.items(), MAX_FIELDS) if is_mapping(found) else ()
    return [text for name, text in named if isinstance(text, str) and names_evidence(name)]


def told(attributes: Attributes) -> str:
    """What a tool has returned, as a text."""
    result = attributes.get(semconv.OUTPUT_VALUE)
    found = parsed(result)
    inside = found.get("data", found.get("kwargs", found)) if is_mapping(found) else None
    # A message of LangChain's has the text as its content, and an output of LlamaIndex's in blocks.
    parts = inside.get("content", inside.get("blocks")) if is_mapping(inside) else found
    return text_of_parts(parts) or str(result or "")


def repeats_call(attributes: Attributes) -> bool:
    """Whether a tool has only said what it was given, or that it has done something with that."""
    return is_echo(told(attributes), arguments_in(attributes.get(semconv.INPUT_VALUE)))


def told_to_model(attributes: Attributes) -> list[Document]:
    """The documents in what tools have told a model; nothing where those are texts."""
    results = [text for role, text in messages_of(attributes) if role == TOOL]
    return [document for text in results for document in documents_in(parsed(text))]


def _flattened(attributes: Attributes, name: Callable[[int, str], str]) -> list[Document]:
    """Return documents in OpenInference's form: one attribute for each field of each document."""
    documents: list[Document] = []
    # The attributes do not say how many documents there are; the first gap ends the list.
    while (text := attributes.get(name(len(documents), "content"))) is not None:
        index = len(documents)
        documents.append(
            _document(
                text,
                attributes.get(name(index, "id")),
                attributes.get(name(index, "score")),
                parsed(attributes.get(name(index, "metadata"))),
            )
        )
    return documents


def documents_in(found: object) -> list[Document]:
    """Return the documents in a list, which may stand under a name.

    A document without its text is left out: recording content is opt-in, and a claim cannot be
    checked against an id.
    """
    if is_mapping(found):
        named = [found[name] for name in LIST_KEYS if is_list(found.get(name))]
        found = next(iter(named), None) or next(filter(_are_documents, found.values()), None)
    listed: Sequence[object] = found if is_list(found) else ()
    read = [_item(item) for item in listed if is_mapping(item)]
    return [document for document in read if document is not None]


def _are_documents(value: object) -> bool:
    """Whether a value is a list of documents as LangChain writes them."""
    return is_list(value) and bool(value) and is_mapping(value[0]) and "page_content" in value[0]


def _item(item: Mapping[object, object]) -> Document | None:
    if "role" in item or "tool_calls" in item:  # a message
        return None
    text = next((item[name] for name in TEXT_KEYS if isinstance(item.get(name), str)), None)
    if text is None:
        return None
    return _document(text, item.get("id"), item.get("score"), item.get("metadata"))


def _document(text: object, id_: object, score: object, metadata: object) -> Document:
    named = {str(k): v for k, v in metadata.items()} if is_mapping(metadata) else {}
    # OpenInference's LangChain instrumentor writes no score, but keeps the metadata.
    return Document(text, id_, named.get("score") if score is None else score, named)


CONTEXTS: Final = ("context_str", "context_msg")
"""Variables of LlamaIndex's templates that hold the texts of nodes."""

WINDOWS: Final = "context_windows"
WINDOWED: Final = "context_documents"
"""Outputs of Haystack's ``SentenceWindowRetriever``."""

MAX_TEXTS: Final = 1_000
"""Texts of one span that are looked at."""

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


def nodes_in(attributes: Attributes, found: Sequence[Document]) -> list[Document]:
    """Return the nodes that a synthesizer was given.

    Args:
        attributes: Those of its span.
        found: What retrievers have found. A node with the text of one of these is that one, and a
            node with more around it has its id.
    """
    return _nodes(_listed(attributes, semconv.INPUT_VALUE, TEXTS), found)


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
