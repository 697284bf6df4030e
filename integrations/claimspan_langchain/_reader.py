"""How LangChain's inputs and outputs are read: the shapes that its pipelines come in."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from langchain_core.documents import Document as LangChainDocument
from langchain_core.messages import BaseMessage, get_buffer_string
from langchain_core.outputs import ChatGeneration, LLMResult

from claimspan_tracing.adapters import (
    Document,
    Generation,
    Key,
    Retrieval,
    Run,
    RunKind,
    is_list,
    is_mapping,
    value_at,
)

__all__ = ["LangChainReader"]

QUERY_KEYS: Final = ("question", "query", "input", "user_input", "user_query", "messages")
RESPONSE_KEYS: Final = (
    "answer",
    "result",
    "response",
    "output",
    "output_text",
    "text",
    "generation",
    "messages",
)
SCORE_KEYS: Final = ("relevance_score", "score")
"""Where retrievers and rerankers leave their scores: callbacks never see LangChain's own."""

CONTEXT_KEY: Final = "context"
"""Where ``create_retrieval_chain`` leaves the documents of the prompt."""

INTERRUPT_KEY: Final = "__interrupt__"
"""LangGraph's output key of a graph that has stopped to wait for a person."""


class LangChainReader:
    """Finds query, response, chunks and model in the runs of any LangChain pipeline."""

    def __init__(self, query_key: Key | None = None, response_key: Key | None = None) -> None:
        self._query_key = query_key
        self._response_key = response_key

    def query(self, root: Run) -> object:
        """The text of the question in the root's input."""
        if self._query_key is not None:
            return _text(value_at(root.inputs, self._query_key))
        return _by_shape(root.inputs, QUERY_KEYS, "human")

    def response(self, root: Run) -> object:
        """The text of the answer in the root's output; else what the last generator said."""
        if self._response_key is not None:
            return _text(value_at(root.outputs, self._response_key))
        found = _by_shape(root.outputs, RESPONSE_KEYS, "ai")
        # The state of a graph that has not answered holds the question alone.
        if is_mapping(root.outputs) and found == self.query(root):
            found = ""
        return found or self._last_completion(root)

    def retrieval(self, run: Run) -> Retrieval:
        """What the retriever was asked, and the documents that it returned."""
        found = run.outputs if is_list(run.outputs) else ()
        documents = [_document(item) for item in found if isinstance(item, LangChainDocument)]
        return Retrieval(run.inputs, documents, run.metadata.get("ls_vector_store_provider"))

    def unreported_retrieval(self, run: Run) -> Retrieval | None:
        """Documents that a node or function put out, having asked the vector store by itself."""
        values = run.outputs.values() if is_mapping(run.outputs) else [run.outputs]
        lists = [value for value in values if is_list(value)]
        documents = [
            item for found in lists for item in found if isinstance(item, LangChainDocument)
        ]
        query = _by_shape(run.inputs, QUERY_KEYS, "human")
        return Retrieval(query, [_document(d) for d in documents]) if documents else None

    def context(self, root: Run) -> Sequence[Document] | None:
        """The documents that a retrieval chain says it put into the prompt."""
        found = root.outputs.get(CONTEXT_KEY) if is_mapping(root.outputs) else None
        if not is_list(found) or not all(isinstance(item, LangChainDocument) for item in found):
            return None
        return [_document(item) for item in found if isinstance(item, LangChainDocument)]

    def generation(self, run: Run) -> Generation:
        """What the model was told, what it said, and how many tokens that took."""
        result = run.outputs if isinstance(run.outputs, LLMResult) else None
        usage = _usage(result)
        return Generation(
            prompt=_prompt(run.inputs),
            completion=_completion(result),
            model=run.metadata.get("ls_model_name"),
            provider=run.metadata.get("ls_provider"),
            input_tokens=usage[0],
            output_tokens=usage[1],
        )

    def size(self, outputs: object) -> int:
        """Characters of the documents that a retriever returned."""
        found = outputs if is_list(outputs) else ()
        return sum(len(item.page_content) for item in found if isinstance(item, LangChainDocument))

    def interrupted(self, root: Run) -> bool:
        """Whether a graph waits for a person, or the task was cancelled."""
        if is_mapping(root.outputs) and INTERRUPT_KEY in root.outputs:
            return True
        if isinstance(root.error, asyncio.CancelledError):
            return True
        # By name: langgraph need not be installed. The node that waits fails, the graph does not.
        return any(type(run.error).__name__ == "GraphInterrupt" for run in root.tree.runs)

    def _last_completion(self, root: Run) -> str:
        """For outputs of a shape of their own; a failed or paused run has no answer at all."""
        if root.outputs is None or isinstance(root.outputs, str):
            return ""
        completions = [
            _completion(run.outputs)
            for run in root.tree.of_kind(RunKind.GENERATOR)
            if isinstance(run.outputs, LLMResult) and not run.has_ancestor(RunKind.RETRIEVER)
        ]
        return completions[-1] if completions else ""


# --- texts --------------------------------------------------------------------------------------


def _by_shape(value: object, keys: Sequence[str], role: str) -> str:
    """The text of a str, a message, a list of messages, or of the first key that has one."""
    if not is_mapping(value):
        return _text(value, role)
    for key in keys:
        text = _text(value.get(key), role)
        if text:
            return text
    texts = [item for item in value.values() if isinstance(item, str) and item]
    return texts[0] if len(texts) == 1 else ""


def _text(value: object, role: str | None = None) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, BaseMessage):
        return _content(value.content)
    if is_list(value):
        return _last_message(value, role)
    if is_mapping(value):
        return _content(value.get("content"))
    messages = getattr(value, "messages", None)
    return _last_message(messages, role) if is_list(messages) else ""


def _last_message(messages: Sequence[object], role: str | None) -> str:
    """The last message of a role, as objects, as ``(role, text)`` or as ``{role, content}``."""
    for message in reversed(messages):
        if role is None or _role(message) in _SPELLINGS[role]:
            return _text(message[1] if is_list(message) else message)
    return ""


_SPELLINGS: Final = {"human": ("human", "user"), "ai": ("ai", "assistant", "AIMessageChunk")}


def _role(message: object) -> object:
    if is_list(message):
        return message[0] if len(message) == 2 else None
    if is_mapping(message):
        return message.get("role", message.get("type"))
    return getattr(message, "type", None)


def _content(content: object) -> str:
    """The text of a message: a str, or blocks of which some are text."""
    if isinstance(content, str):
        return content
    if not is_list(content):
        return ""
    texts = [block.get("text") if is_mapping(block) else block for block in content]
    return "".join(text for text in texts if isinstance(text, str))


# --- documents and generations ------------------------------------------------------------------


def _document(document: LangChainDocument) -> Document:
    metadata: dict[str, object] = document.metadata
    scores = [metadata[key] for key in SCORE_KEYS if key in metadata]
    return Document(
        text=document.page_content,
        id=document.id,
        score=_number(scores[0]) if scores else None,
        metadata=metadata,
    )


def _number(value: object) -> float | None:
    """Also of numpy's scalars, which are no floats but turn into them."""
    try:
        return float(value)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - tried out, not known
    except (TypeError, ValueError):
        return None


def _prompt(inputs: object) -> str:
    """A list of prompts, or one list of messages for each."""
    if not is_list(inputs) or not inputs:
        return ""
    first = inputs[0]
    if isinstance(first, str):
        return first
    messages = [m for m in first if isinstance(m, BaseMessage)] if is_list(first) else []
    return get_buffer_string(messages)


def _completion(result: object) -> str:
    if not isinstance(result, LLMResult) or not result.generations or not result.generations[0]:
        return ""
    generation = result.generations[0][0]
    if isinstance(generation, ChatGeneration):
        return _content(generation.message.content)
    return generation.text


def _usage(result: LLMResult | None) -> tuple[int | None, int | None]:
    """Input and output tokens, from the message where it has them."""
    if result is None or not result.generations or not result.generations[0]:
        return None, None
    message = getattr(result.generations[0][0], "message", None)
    usage: object = getattr(message, "usage_metadata", None)
    if not is_mapping(usage):
        return None, None
    return _count(usage.get("input_tokens")), _count(usage.get("output_tokens"))


def _count(value: object) -> int | None:
    return value if isinstance(value, int) else None
