"""Reads Haystack's inputs and outputs: finds query, response, chunks and model in a run tree.

Every method of the reader runs on the worker except ``parts``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from itertools import islice
from typing import Final, TypeGuard

from haystack.core.errors import BreakpointException
from haystack.dataclasses import ChatMessage, ChatRole, ExtractedAnswer, GeneratedAnswer
from haystack.dataclasses import Document as HaystackDocument

from claimspan_haystack._answers import (
    answer_of,
    builds_index,
    generation_of,
    is_answered_query,
    replies_below,
)
from claimspan_haystack._documents import (
    AnyDocument,
    NotedDocument,
    as_document,
    documents_in,
    socket_values,
)
from claimspan_haystack._texts import (
    by_key,
    by_suffix,
    holds_text,
    nested_parts,
    only_text,
    text_of,
)
from claimspan_haystack._tracer import PIPELINE_RUNS, QUERY_NAME, TOOL_RUN, operation_of
from claimspan_tracing.adapters import (
    Document,
    Generation,
    Reader,
    Retrieval,
    Run,
    RunKind,
    is_list,
    is_mapping,
    value_at,
)

__all__ = ["HaystackReader"]

QUERY_KEYS: Final = ("query", "question", "text", "user_input", "prompt", "messages", "input")
"""Names of inputs that hold a question, the surest first."""

SEVERAL_KEYS: Final = ("queries", "questions")
"""Names of inputs that hold several questions."""

MESSAGES: Final = "messages"
"""End of the names of inputs that hold a conversation, such as ``current_messages``."""

CONVERSATION_KEYS: Final = ("values", "value")
"""Names of inputs that may hold a conversation."""


ROUTER: Final = "Router"
"""End of the names of the classes that choose where a pipeline goes on."""


class HaystackReader(Reader):
    """Finds query, response, chunks and model in the runs of any Haystack pipeline."""

    def is_query(self, root: Run) -> bool:
        """Return False for what builds an index, embeds, judges answers, or retrieves alone."""
        return is_answered_query(root)

    def query(self, root: Run) -> object:
        """Return the user's question, which may be among the inputs of any component."""
        if self.query_key is not None:
            return text_of(value_at(root.inputs, self.query_key), ChatRole.USER)
        return _query(root.inputs)

    def response(self, root: Run) -> object:
        """Return the answer among the outputs of the pipeline, or the last completion."""
        if self.response_key is not None:
            return text_of(value_at(root.outputs, self.response_key), ChatRole.ASSISTANT)
        return answer_of(root)

    def retrieval(self, run: Run) -> Retrieval:
        """Return the query of a retriever run and the documents that it returned."""
        # What is loaded into a store is no evidence, whatever has found it.
        documents = () if _is_loaded(run) else documents_in(run.outputs) or ()
        asked = _query(run.inputs) or _embedded(run) or self.query(run.tree.root)
        return Retrieval(asked, [as_document(document) for document in documents])

    def unreported_retrieval(self, run: Run) -> Retrieval | None:
        """Return the documents that an agent or an unknown component found by itself."""
        is_whole = not operation_of(run).component
        if documents_in(run.inputs) is not None or not documents_in(run.outputs):
            return None
        return self.retrieval(run) if is_whole else None

    def given_documents(self, run: Run) -> Sequence[Document]:
        """Return the documents among the inputs of a component, and the windows around some."""
        if operation_of(run).component.endswith(ROUTER):
            return ()  # it answers nothing: those that it passes on are given to the next component
        given = [as_document(document) for document in documents_in(run.inputs) or ()]
        return [*given, *map(Document, windows_of(run))]

    def passages(self, run: Run) -> Sequence[str]:
        """Return texts that are named as evidence, such as what a search returned as one text."""
        return passages_of(run)

    def context(self, root: Run) -> Sequence[Document] | None:
        """Return the documents that the last prompt before the answer was made of."""
        read = read_documents(root)
        return None if read is None else [as_document(document) for document in read]

    def generation(self, run: Run) -> Generation:
        """Return prompt, completion, model and tokens of a generator run."""
        return generation_of(run)

    def parts(self, value: object) -> Sequence[object]:
        """Return what a document, a message or an answer holds."""
        match value:
            case HaystackDocument() | NotedDocument():
                return value.content, value.meta or None
            case ChatMessage():
                return [*value.texts, *(result.result for result in value.tool_call_results)]
            case GeneratedAnswer():
                return value.data, value.documents
            case ExtractedAnswer():
                return value.data, value.document, value.context
            case _:
                return ()

    def interrupted(self, root: Run) -> bool:
        """Whether the pipeline stopped at a breakpoint."""
        return root.failed_with(BreakpointException)


def _is_loaded(run: Run) -> bool:
    """Whether the pipeline that a run is part of builds an index, and answers nothing."""
    pipelines = (each for each in run.around() if operation_of(each).name in PIPELINE_RUNS)
    around = next(pipelines, None)
    return around is not None and builds_index(around) and not is_answered_query(around)


def _query(inputs: object) -> str:
    parts = nested_parts(inputs)
    return (
        by_key(parts, QUERY_KEYS, ChatRole.USER)
        or by_key(parts, SEVERAL_KEYS, None)
        or by_suffix(parts, MESSAGES, ChatRole.USER)
        or only_text(parts)
        or by_key(parts, CONVERSATION_KEYS, ChatRole.USER)
    )


def _embedded(run: Run) -> str:
    """Return the text behind the embedding that a retriever was given.

    Haystack passes the list of floats from the embedder to the retriever as the same object.
    """
    embeddings = [value for value in socket_values(run.inputs) if is_list(value) and value]
    for other in run.tree.runs:
        if any(made is used for made in socket_values(other.outputs) for used in embeddings):
            return _query(other.inputs)
    return ""


MAX_DEPTH: Final = 3
"""Levels of lists and mappings in which texts are looked for."""

MAX_ITEMS: Final = 100
"""Items of one list that are looked at: as many as chunks are kept of a record."""

_EVIDENCE: Final = re.compile(
    r"(?:^|_)(?:contexts?|documents?|docs?|passages?|chunks?|snippets?|search|results?|sources?"
    r"|knowledge|facts?|evidences?|windows?|references?|contents?|background|articles?|excerpts?"
    r"|paragraphs?|pages?|posts?|transcripts?|notes?|findings?|summaries|information)(?:_|$)"
)
"""Words in the names of inputs and outputs that hold evidence."""

_WINDOWS: Final = re.compile(r"(?:^|_)windows(?:_|$)")
"""A word in the names of inputs that hold documents with what stands around them."""


_PLACE: Final = re.compile(r"(?:^|_)(?:urls?|links?|uri|href|ids?)$")
"""Ends of the names of fields that only tell where a text is from."""


def read_documents(root: Run) -> list[AnyDocument] | None:
    """Return the documents of the last prompt, or of the last reader, before the answer.

    These are its input documents, or its output documents where a prompt builder drops some
    and returns the rest. Documents that an agent's tools found later were read as well.
    """
    # Prompts inside a retriever are for rewriting the query.
    runs = [run for run in root.below() if not run.has_ancestor(RunKind.RETRIEVER)]
    answers = replies_below(root).answers
    # Nothing that began after the answer was read for it, such as what a grader is given.
    until = next((n + 1 for n, run in enumerate(runs) if answers and run is answers[-1]), len(runs))
    for index in reversed(range(until)):
        read = _made_into_text(runs[index])
        if read is not None:
            # The model of an agent reads what a retriever found that it called.
            tools = [r for r in runs[index + 1 : until] if operation_of(r).name == TOOL_RUN]
            later = [run for run in tools if run.kind is RunKind.RETRIEVER]
            return read + [d for run in later for d in documents_in(run.outputs) or ()]
    return None


def passages_of(run: Run) -> list[str]:
    """Return the texts among the values of a run whose name says that they are evidence."""
    is_pipeline = operation_of(run).name in PIPELINE_RUNS
    found: dict[str, None] = {}
    for values in (run.inputs, run.outputs):
        for part in nested_parts(values):
            for name, value in part.items():
                # Under the name of a component stand its sockets, which have names of their own.
                is_component = is_pipeline and part is values and is_mapping(value)
                if not is_component and isinstance(name, str) and _EVIDENCE.search(name.lower()):
                    found.update(dict.fromkeys(_texts(value)))
    return list(found)


def windows_of(run: Run) -> list[str]:
    """Return the texts around documents that a run made or was given.

    ``SentenceWindowRetriever`` makes them. One takes the place of the document that it holds.
    """
    both = [*nested_parts(run.inputs), *nested_parts(run.outputs)]
    named = ((name, value) for part in both for name, value in part.items())
    lists = [value for name, value in named if _WINDOWS.search(str(name)) and is_list(value)]
    return [text for value in lists for text in value[:MAX_ITEMS] if isinstance(text, str)]


def _texts(value: object, depth: int = MAX_DEPTH) -> Iterator[str]:
    """Yield the texts in a value, without questions paired with them, and where they are from."""
    if isinstance(value, str):
        if value.strip():
            yield value
    elif is_mapping(value) and depth:
        for name, item in value.items():
            key = str(name).lower()
            if not (QUERY_NAME.search(key) or _PLACE.search(key)):
                yield from _texts(item, depth - 1)
    elif depth and (is_list(value) or _is_set(value)):
        for item in islice(value, MAX_ITEMS):
            yield from _texts(item, depth - 1)


def _is_set(value: object) -> TypeGuard[Set[object]]:
    """Whether the value is a set, in which some components keep texts apart."""
    return isinstance(value, set | frozenset)


def _made_into_text(run: Run) -> list[AnyDocument] | None:
    """Return the documents that a run made into a text; None where it did no such thing."""
    read = documents_in(run.inputs)
    if read is None or not holds_text(run.outputs):
        return None
    left = documents_in(run.outputs)
    return read if left is None else left
