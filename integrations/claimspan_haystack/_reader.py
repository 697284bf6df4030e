"""Reads Haystack's inputs and outputs: finds query, response, chunks and model in a run tree.

Every method of the reader runs on the worker except ``parts``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from haystack.core.errors import BreakpointException
from haystack.dataclasses import ChatMessage, ChatRole, ExtractedAnswer, GeneratedAnswer
from haystack.dataclasses import Document as HaystackDocument

from claimspan_haystack._answers import answer_of, builds_index, is_answered_query
from claimspan_haystack._documents import as_document, documents_in, socket_values
from claimspan_haystack._generations import generation_of
from claimspan_haystack._notes import NotedDocument
from claimspan_haystack._operations import PIPELINE_RUNS, operation_of
from claimspan_haystack._prompts import passages_of, read_documents, windows_of
from claimspan_haystack._texts import by_key, by_suffix, nested_parts, only_text, text_of
from claimspan_tracing.adapters import (
    Document,
    Generation,
    Key,
    Retrieval,
    Run,
    is_list,
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


class HaystackReader:
    """Finds query, response, chunks and model in the runs of any Haystack pipeline."""

    def __init__(self, query_key: Key | None = None, response_key: Key | None = None) -> None:
        self._query_key = query_key
        self._response_key = response_key

    def look_at(self, query_key: Key | None, response_key: Key | None) -> None:
        """Look for question and answer there from now on; None leaves it as it is."""
        self._query_key = self._query_key if query_key is None else query_key
        self._response_key = self._response_key if response_key is None else response_key

    def is_query(self, root: Run) -> bool:
        """Return False for what builds an index, embeds, judges answers, or retrieves alone."""
        return is_answered_query(root)

    def query(self, root: Run) -> object:
        """Return the user's question, which may be among the inputs of any component."""
        if self._query_key is not None:
            return text_of(value_at(root.inputs, self._query_key), ChatRole.USER)
        return _query(root.inputs)

    def response(self, root: Run) -> object:
        """Return the answer among the outputs of the pipeline, or the last completion."""
        if self._response_key is not None:
            return text_of(value_at(root.outputs, self._response_key), ChatRole.ASSISTANT)
        return answer_of(root)

    def names_answer(self, root: Run) -> bool:
        """Whether a key of the answer was given."""
        return self._response_key is not None

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

    def is_internal(self, name: str) -> bool:
        """Return False: all metadata are what the application gave its pipeline."""
        return False

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
    around = run.parent
    while around is not None and operation_of(around).name not in PIPELINE_RUNS:
        around = around.parent
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
