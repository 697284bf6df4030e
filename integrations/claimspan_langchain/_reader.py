"""Reads LangChain's inputs and outputs: finds query, response, chunks and model in a run tree.

Every method runs on the worker except ``parts``. LangChain prescribes no shape for the input and
the output of a chain, so the usual names are tried in the order of the constants below.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from langchain_core.documents import Document as LangChainDocument
from langchain_core.messages import BaseMessage, ToolMessage, get_buffer_string
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.outputs import Generation as OneGeneration
from langchain_core.prompt_values import ChatPromptValue, StringPromptValue

from claimspan_tracing.adapters import (
    Document,
    Generation,
    Key,
    Retrieval,
    Run,
    RunKind,
    is_list,
    is_mapping,
    join_bounded,
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
"""Metadata keys in which retrievers and rerankers keep a score. A LangChain ``Document`` has no
field for it."""

CONTEXT_KEY: Final = "context"
"""Output key in which ``create_retrieval_chain`` returns the documents of the prompt."""

INTERNAL_NAMES: Final = (
    "__",
    "branch:",
    "checkpoint_",
    "graph:step:",
    "langgraph_",
    "langsmith",
    "lc_",
    "ls_",
    "map:key:",
    "seq:step:",
)
"""Beginnings of the metadata keys and tags that LangChain and LangGraph add to a run."""

ROLES: Final = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
"""The type of a message, or the role of one that names it itself, to OpenInference's role."""

INTERRUPT_KEY: Final = "__interrupt__"
"""Output key that LangGraph adds when a graph has stopped to wait for a person."""


class LangChainReader:
    """Finds query, response, chunks and model in the runs of any LangChain pipeline."""

    def __init__(self, query_key: Key | None = None, response_key: Key | None = None) -> None:
        self._query_key = query_key
        self._response_key = response_key

    def query(self, root: Run) -> object:
        """Return the text of the question in the input of the root."""
        if self._query_key is not None:
            return _text(value_at(root.inputs, self._query_key))
        return _by_shape(root.inputs, QUERY_KEYS, "human")

    def response(self, root: Run) -> object:
        """Return the text of the answer in the output of the root, or the last completion."""
        if self._response_key is not None:
            return _text(value_at(root.outputs, self._response_key))
        found = _by_shape(root.outputs, RESPONSE_KEYS, "ai")
        # LangGraph returns its whole state: before there is an answer, the only text in it is
        # the question.
        if is_mapping(root.outputs) and found == self.query(root):
            found = ""
        return found or self._last_completion(root)

    def retrieval(self, run: Run) -> Retrieval:
        """Return the query of a retriever run and the documents that it returned."""
        found = run.outputs if is_list(run.outputs) else ()
        documents = [_document(item) for item in found if isinstance(item, LangChainDocument)]
        # ``ls_*`` keys are what LangChain itself adds to the metadata, for LangSmith.
        return Retrieval(run.inputs, documents, run.metadata.get("ls_vector_store_provider"))

    def unreported_retrieval(self, run: Run) -> Retrieval | None:
        """Return the documents in the output of a node, function or tool that searched a store.

        ``VectorStore.similarity_search`` calls no callback. A tool with the response format
        ``content_and_artifact`` keeps the documents beside the text that the model reads. Only
        the output of the tool itself counts: the messages of a conversation have those of
        earlier queries, too.
        """
        found = run.outputs.artifact if isinstance(run.outputs, ToolMessage) else run.outputs
        values = found.values() if is_mapping(found) else [found]
        lists = [value for value in values if is_list(value)]
        documents = [
            item for found in lists for item in found if isinstance(item, LangChainDocument)
        ]
        query = _by_shape(run.inputs, QUERY_KEYS, "human")
        return Retrieval(query, [_document(d) for d in documents]) if documents else None

    def given_documents(self, run: Run) -> Sequence[Document]:
        """Return the documents that a chain was called with, or that its state holds."""
        values = run.inputs.values() if is_mapping(run.inputs) else [run.inputs]
        found = [item for value in values if is_list(value) for item in value]
        kept = [item.artifact for item in found if isinstance(item, ToolMessage)]
        found += [item for artifact in kept if is_list(artifact) for item in artifact]
        return [_document(item) for item in found if isinstance(item, LangChainDocument)]

    def context(self, root: Run) -> Sequence[Document] | None:
        """Return the documents in the prompt of a retrieval chain; None if it does not say."""
        found = root.outputs.get(CONTEXT_KEY) if is_mapping(root.outputs) else None
        if not is_list(found) or not all(isinstance(item, LangChainDocument) for item in found):
            return None
        return [_document(item) for item in found if isinstance(item, LangChainDocument)]

    def generation(self, run: Run) -> Generation:
        """Return prompt, completion, model and tokens of a model run."""
        result = run.outputs if isinstance(run.outputs, LLMResult) else None
        usage = _usage(result)
        return Generation(
            prompt=_prompt(run.inputs),
            completion=_completion(result),
            model=run.metadata.get("ls_model_name"),
            provider=run.metadata.get("ls_provider"),
            input_tokens=usage[0],
            output_tokens=usage[1],
            messages=[_with_role(message) for message in _prompt_messages(run.inputs)],
        )

    def is_internal(self, name: str) -> bool:
        """Whether LangChain or LangGraph has added a metadata key or a tag."""
        return name.startswith(INTERNAL_NAMES)

    def parts(self, value: object) -> Sequence[object]:
        """Return what a document, a message, a prompt or a completion holds."""
        match value:
            case LangChainDocument():
                return value.page_content, value.metadata or None
            case ToolMessage():
                return value.content, value.artifact
            case BaseMessage():
                return value.content, value.additional_kwargs or None
            case ChatGeneration():
                return value.text, value.message
            case OneGeneration():
                return (value.text,)
            case LLMResult():
                return (value.generations,)
            case StringPromptValue():
                return (value.text,)
            case ChatPromptValue():
                return (value.messages,)
            case _:
                return ()

    def interrupted(self, root: Run) -> bool:
        """Whether the graph waits for a person, or the task was cancelled."""
        if is_mapping(root.outputs) and INTERRUPT_KEY in root.outputs:
            return True
        if root.failed_with(asyncio.CancelledError):
            return True
        # In a stream the output lacks the key, and only the waiting node fails. The exception is
        # compared by name because langgraph is no dependency of this package.
        return any(run.error and run.error.__name__ == "GraphInterrupt" for run in root.tree.runs)

    def _last_completion(self, root: Run) -> str:
        """Return what the last generator answered, for an output of unknown shape.

        A failed or paused run (output None) has no answer, and a str output is the answer itself.
        Generators inside a retriever rewrite the query; they do not answer it.
        """
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
    """Return the text of a str, a message or messages, or of the first key that has a text."""
    if not is_mapping(value):
        return _text(value, role)
    for key in keys:
        text = _text(value.get(key), role)
        if text:
            return text
    # An unknown key counts only where there is no choice: a wrong text is worse than none.
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
    """Return the last message of a role: an object, ``(role, text)`` or ``{role, content}``."""
    for message in reversed(messages):
        if role is None or _role(message) in _SPELLINGS[role]:
            return _text(message[1] if is_list(message) else message)
    return ""


# Messages name their role ``human`` and ``ai``, OpenAI's dicts ``user`` and ``assistant``. A
# streamed message keeps its own type.
_SPELLINGS: Final = {"human": ("human", "user"), "ai": ("ai", "assistant", "AIMessageChunk")}


def _role(message: object) -> object:
    if is_list(message):
        return message[0] if len(message) == 2 else None
    if is_mapping(message):
        return message.get("role", message.get("type"))
    return getattr(message, "type", None)


def _content(content: object) -> str:
    """Return the text of a message, whose content is a str or a list of blocks."""
    if isinstance(content, str):
        return content
    if not is_list(content):
        return ""
    texts = (block.get("text") if is_mapping(block) else block for block in content)
    return join_bounded(text for text in texts if isinstance(text, str))


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
    """Return the value as a float, also if it is a numpy scalar; None if it is no number."""
    try:
        return float(value)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - float() decides
    except (TypeError, ValueError, OverflowError):
        return None


def _prompt(inputs: object) -> str:
    """Return the first prompt; chat models are given one list of messages for each prompt."""
    first = _first_prompt(inputs)
    if isinstance(first, str):
        return first
    # One by one: a conversation may be far longer than what is kept of it.
    return join_bounded((get_buffer_string([m]) for m in _prompt_messages(inputs)), "\n")


def _first_prompt(inputs: object) -> object:
    return inputs[0] if is_list(inputs) and inputs else ""


def _prompt_messages(inputs: object) -> list[BaseMessage]:
    first = _first_prompt(inputs)
    messages = first if is_list(first) else ()
    return [message for message in messages if isinstance(message, BaseMessage)]


def _with_role(message: BaseMessage) -> tuple[str, str]:
    # ``ChatMessage`` has its role in a field, and streamed messages are of the type AIMessageChunk.
    role = str(getattr(message, "role", message.type)).removesuffix("MessageChunk").lower()
    return ROLES.get(role, ""), _content(message.content)


def _completion(result: object) -> str:
    if not isinstance(result, LLMResult) or not result.generations or not result.generations[0]:
        return ""
    generation = result.generations[0][0]
    if isinstance(generation, ChatGeneration):
        return _content(generation.message.content)
    return generation.text


def _usage(result: LLMResult | None) -> tuple[int | None, int | None]:
    """Return input and output tokens, which only messages of chat models carry."""
    if result is None or not result.generations or not result.generations[0]:
        return None, None
    message = getattr(result.generations[0][0], "message", None)
    usage: object = getattr(message, "usage_metadata", None)
    if not is_mapping(usage):
        return None, None
    return _count(usage.get("input_tokens")), _count(usage.get("output_tokens"))


def _count(value: object) -> int | None:
    return value if isinstance(value, int) else None
