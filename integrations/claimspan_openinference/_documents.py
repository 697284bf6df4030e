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

from claimspan_openinference._kinds import (
    TEXTS,
    Attributes,
    attributes_of,
    holds_documents,
    holds_nodes,
    kind_of,
    runs_below,
)
from claimspan_openinference._messages import (
    CUT,
    TOOL,
    answered,
    arguments_in,
    inside_of,
    messages_of,
    parsed,
    text_of_parts,
)
from claimspan_tracing import semconv
from claimspan_tracing.adapters import (
    Document,
    Run,
    RunKind,
    is_echo,
    is_list,
    is_mapping,
    names_evidence,
)

__all__ = [
    "LIST_KEYS",
    "documents_in",
    "found_by",
    "given_to",
    "passages_of",
    "reranked",
    "reranked_in",
    "retrieved",
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


def _documents_given(attributes: Attributes) -> list[Document]:
    """The documents that a span was given, in the form that LangChain writes."""
    given = attributes.get(semconv.INPUT_VALUE)
    # Told at once, since most are given none.
    is_told = isinstance(given, str) and f'"{TEXT_KEYS[0]}"' in given
    return documents_in(parsed(given)) if is_told else []


def _attached(attributes: Attributes) -> list[Document]:
    """The documents in what a tool has returned; nothing where that is a text."""
    found = parsed(attributes.get(semconv.OUTPUT_VALUE))
    # LangChain's tools return a message, which has the documents beside its text.
    inside = inside_of(found) if is_mapping(found) else found
    artifact = inside.get("artifact") if is_mapping(inside) else None
    return documents_in(artifact) or documents_in(inside)


def _told(attributes: Attributes) -> str:
    """What a tool has returned, as a text."""
    result = attributes.get(semconv.OUTPUT_VALUE)
    found = parsed(result)
    inside = inside_of(found) if is_mapping(found) else None
    # A message of LangChain's has the text as its content, and an output of LlamaIndex's in blocks.
    parts = inside.get("content", inside.get("blocks")) if is_mapping(inside) else found
    return text_of_parts(parts) or str(result or "")


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
        # Under any other name a list is one of documents if LangChain has written it.
        others = (each for each in found.values() if is_list(each) and each)
        written = (e for e in others if is_mapping(e[0]) and "page_content" in e[0])
        found = next(iter(named), None) or next(written, None)
    listed: Sequence[object] = found if is_list(found) else ()
    read = [_item(item) for item in listed if is_mapping(item)]
    return [document for document in read if document is not None]


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


def _nodes_in(run: Run) -> list[Document]:
    """Return the nodes that a synthesizer was given.

    A node with the text of a document that was found is that one, and a node with more around it
    has its id. One that ends with a label and what a model has said before is none: an engine made
    it of another question and its answer.
    """
    models = run.tree.of_kind(RunKind.GENERATOR)
    said = [answered(attributes_of(each)).rstrip() for each in models if each.start < run.start]
    ends = tuple([f": {each}" for each in said if each])
    nodes = _nodes(_listed(attributes_of(run), semconv.INPUT_VALUE, TEXTS), _found_in(run))
    return [each for each in nodes if each.id or not str(each.text).endswith(ends)]


def _refined_in(attributes: Attributes, found: Sequence[Document]) -> list[Document]:
    """Return the node that a model was given to refine its answer by, in the same way."""
    variables = parsed(attributes.get(semconv.LLM_TEMPLATE_VARIABLES))
    named = [variables.get(name) for name in CONTEXTS] if is_mapping(variables) else []
    return _nodes([text for text in named if isinstance(text, str)], found)


def _windows_in(attributes: Attributes) -> list[Document]:
    """Return the windows around documents, and the documents that they consist of."""
    windows = _listed(attributes, semconv.OUTPUT_VALUE, WINDOWS)
    shown = _listed(attributes, semconv.OUTPUT_VALUE, WINDOWED)
    matches = [each for text in shown if (each := _SHOWN_DOCUMENT.fullmatch(text))]
    # Three dots stand behind what was cut.
    is_cut = [len(each[2]) == SHOWN + len(CUT) and each[2].endswith(CUT) for each in matches]
    begun = [(e[1], e[2][:SHOWN] if cut else e[2]) for e, cut in zip(matches, is_cut, strict=True)]
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


def _parts(window: str, begun: Sequence[tuple[str, str]]) -> Iterator[Document]:
    """The documents that a window consists of, by where each begins in it."""
    places = {window.find(beginning): id_ for id_, beginning in begun if beginning}
    places.pop(-1, None)
    for start, end in pairwise([*sorted(places), len(window)]):
        yield Document(window[start:end], places[start])


# --- of runs --------------------------------------------------------------------------------------

REFINES: Final = "Refine."
"""How the name of the span begins in which LlamaIndex refines an answer."""


def found_by(run: Run) -> list[Document]:
    """Return what a reranker let through, or the documents that a tool has returned."""
    attributes = attributes_of(run)
    kind = kind_of(attributes)
    if kind == semconv.KIND_TOOL:
        return reranked(attributes) or _attached(attributes)
    is_found = kind == semconv.KIND_RERANKER or holds_documents(attributes)
    return (reranked(attributes) or retrieved(attributes)) if is_found else []


def given_to(run: Run) -> Sequence[Document]:
    """Return what a tool has told the model, what a reranker let through, and neighbours.

    These are what a postprocessor of LlamaIndex, or a component of Haystack, put beside or
    around what was found.
    """
    attributes = attributes_of(run)
    # A tool that makes a text of what a retriever below it has found has found nothing itself.
    if kind_of(attributes) == semconv.KIND_TOOL and not runs_below(run, RunKind.RETRIEVER):
        return _attached(attributes)
    if run.kind is RunKind.GENERATOR:
        # LlamaIndex refines an answer with one node a call.
        refines = any(str(each.name).startswith(REFINES) for each in run.around())
        refined = _refined_in(attributes, _found_in(run)) if refines else []
        results = (parsed(text) for role, text in messages_of(attributes) if role == TOOL)
        return [*refined, *(document for found in results for document in documents_in(found))]
    if holds_nodes(attributes):
        # A synthesizer within another one gets texts that this one has joined.
        is_inner = any(holds_nodes(attributes_of(each)) for each in run.around())
        return () if is_inner else _nodes_in(run)
    if f'"{WINDOWS}"' in str(attributes.get(semconv.OUTPUT_VALUE, "")):
        return _windows_in(attributes)
    if found := reranked(attributes):
        return found
    return _documents_given(attributes)


def passages_of(run: Run) -> Sequence[str]:
    """Return the text of a tool, or what a builder of a prompt was given as ``context``."""
    attributes = attributes_of(run)
    kind, given = kind_of(attributes), attributes.get(semconv.INPUT_VALUE)
    if kind == semconv.KIND_TOOL and not runs_below(run, RunKind.RETRIEVER):
        text = _told(attributes)
        # A tool that only says what it was given has found nothing.
        is_found = not (_attached(attributes) or is_echo(text, arguments_in(given)))
        return [text] if is_found else ()
    found = parsed(given) if kind == semconv.KIND_PROMPT else None
    named = islice(found.items(), MAX_FIELDS) if is_mapping(found) else ()
    return [text for name, text in named if isinstance(text, str) and names_evidence(name)]


def reranked_in(root: Run) -> list[Document] | None:
    """Return what the rerankers let through, with what none of them was given.

    None where there was no reranker.
    """
    left: list[list[Document]] = []
    has_reranked = False
    for run in sorted(root.tree.runs, key=lambda run: run.end or 0):
        attributes = attributes_of(run)
        kind = kind_of(attributes)
        if run.has_ancestor(RunKind.RETRIEVER):
            continue
        if kind == semconv.KIND_RETRIEVER:
            left.append(retrieved(attributes))
        elif kind == semconv.KIND_RERANKER and (found := reranked(attributes)):
            has_reranked = True
            given = {
                each.text
                for each in _flattened(attributes, semconv.reranker_input)
                if isinstance(each.text, str)
            }
            # All that was found was given to it, where that is not recorded.
            others = [e for e in left if given and not any(one.text in given for one in e)]
            left = [*others, found]
    return [document for found in left for document in found] if has_reranked else None


def _found_in(run: Run) -> list[Document]:
    """Everything that retrievers have found below the root of a run."""
    every = map(attributes_of, run.tree.of_kind(RunKind.RETRIEVER))
    return [document for each in every for document in retrieved(each)]
