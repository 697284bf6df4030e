"""How LlamaIndex's arguments and results are read: the shapes that its pipelines come in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    MessageRole,
)
from llama_index.core.base.response.schema import Response
from llama_index.core.chat_engine.types import AgentChatResponse, StreamingAgentChatResponse
from llama_index.core.llms.llm import LLM
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.response_synthesizers import Generation as ReadsNothing
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.workflow import Event, StopEvent
from pydantic import BaseModel

from claimspan_llama_index._streams import StreamedAnswer
from claimspan_tracing.adapters import (
    Document,
    Generation,
    Retrieval,
    Run,
    RunKind,
    is_list,
    is_mapping,
)

__all__ = ["Call", "LlamaIndexReader", "documents_of"]

QUERY_KEYS: Final = (
    "str_or_query_bundle",
    "query_bundle",
    "query",
    "query_str",
    "message",
    "user_msg",
    "question",
    "input",
    "start_event",
    "chat_history",
)
RESPONSE_KEYS: Final = ("response", "answer", "result", "output", "text", "message", "content")
SYNTHESIZING: Final = (".synthesize", ".asynthesize")

NOTHING_SAID: Final = "Empty Response"
"""What response synthesizers give out where the model said nothing, or had nothing to read."""


@dataclass(frozen=True, slots=True)
class Call:
    """What went into a run: the object that was asked, and the arguments by name."""

    instance: object
    arguments: Mapping[str, object]

    def flat(self) -> dict[str, object]:
        """The arguments, with those that came as ``**kwargs`` among them."""
        named = dict(self.arguments)
        for value in self.arguments.values():
            if is_mapping(value):
                named.update({str(key): item for key, item in value.items()})
        return named


class LlamaIndexReader:
    """Finds query, response, chunks and model in the runs of any LlamaIndex pipeline."""

    def query(self, root: Run) -> object:
        """What the user said to the root: the question before any rewriting."""
        named = _call(root).flat()
        for key in QUERY_KEYS:
            text = _question(named.get(key))
            if text:
                return text
        texts = [value for value in named.values() if isinstance(value, str) and value]
        return texts[0] if len(texts) == 1 else ""

    def response(self, root: Run) -> object:
        """The text of the answer in the root's result; else what the last model said."""
        if root.kind is RunKind.RETRIEVER:
            return ""
        text = _answer(root.outputs) or self._last_completion(root)
        return "" if text == NOTHING_SAID else text

    def retrieval(self, run: Run) -> Retrieval:
        """What the retriever was asked, and the documents that it returned."""
        documents = [each for each in _items(run.outputs) if isinstance(each, Document)]
        return Retrieval(_question(_call(run).flat().get(QUERY_KEYS[0])), documents)

    def unreported_retrieval(self, run: Run) -> Retrieval | None:
        """Nodes that a function or step of the user's own put out."""
        documents = documents_of(run.outputs)
        return Retrieval(self.query(run), documents) if documents else None

    def context(self, root: Run) -> Sequence[Document] | None:
        """The nodes that response synthesizers were given; else the sources of the answer."""
        synthesized = [run for run in root.tree.runs if _is_synthesis(run)]
        if synthesized:
            return list(_each_once(node for run in synthesized for node in _nodes_read(run)))
        return documents_of(getattr(root.outputs, "source_nodes", None)) or None

    def generation(self, run: Run) -> Generation:
        """What the model was told, what it said, and how many tokens that took."""
        call, said = _call(run), run.outputs
        model = call.instance.metadata.model_name if isinstance(call.instance, LLM) else None
        counts = _counts(said)
        return Generation(
            prompt=_prompt(call),
            completion=_answer(said),
            model=model,
            input_tokens=counts[0],
            output_tokens=counts[1],
        )

    def size(self, outputs: object) -> int:
        """Characters of the documents that a retriever returned."""
        documents = [each for each in _items(outputs) if isinstance(each, Document)]
        return sum(len(each.text) for each in documents if isinstance(each.text, str))

    def interrupted(self, root: Run) -> bool:
        """Whether the task, or the workflow through its handler, was cancelled."""
        return isinstance(root.error, asyncio.CancelledError)

    def _last_completion(self, root: Run) -> str:
        """For results of a shape of their own; one that says nothing, or a text, has said it."""
        if root.outputs is None or isinstance(root.outputs, str | Response | StreamedAnswer):
            return ""
        completions = [
            _answer(run.outputs)
            for run in root.tree.of_kind(RunKind.GENERATOR)
            if not run.has_ancestor(RunKind.RETRIEVER)
        ]
        return completions[-1] if completions else ""


def documents_of(nodes: object) -> list[Document]:
    """The nodes of a list, as documents that refer to the nodes' own texts."""
    return [_document(node) for node in _items(nodes) if isinstance(node, NodeWithScore)]


def _document(found: NodeWithScore) -> Document:
    node = found.node
    metadata: dict[str, object] = node.metadata
    # Without the metadata that LlamaIndex writes into its prompts: they stand apart in a chunk.
    text = node.get_content(metadata_mode=MetadataMode.NONE)
    score = None if found.score is None else float(found.score)
    return Document(text=text, id=node.node_id, score=score, metadata=metadata)


# --- what was read ------------------------------------------------------------------------------


def _is_synthesis(run: Run) -> bool:
    is_synthesizer = isinstance(_call(run).instance, BaseSynthesizer)
    return is_synthesizer and str(run.name).endswith(SYNTHESIZING)


def _nodes_read(run: Run) -> list[Document]:
    """The nodes given; none where they are answers to sub-questions, whose sources came before."""
    arguments = _call(run).arguments
    if arguments.get("additional_source_nodes") or isinstance(_call(run).instance, ReadsNothing):
        return []
    return documents_of(arguments.get("nodes"))


def _each_once(documents: Iterator[Document]) -> Iterator[Document]:
    seen: set[object] = set()
    for document in documents:
        if document.id not in seen:
            seen.add(document.id)
            yield document


# --- texts --------------------------------------------------------------------------------------


def _call(run: Run) -> Call:
    return run.inputs if isinstance(run.inputs, Call) else Call(None, {})


def _items(value: object) -> Sequence[object]:
    return value if is_list(value) else ()


def _question(value: object) -> str:
    """The text of a str, a query, a message, a list of messages, or the event of a workflow."""
    match value:
        case str():
            return value
        case QueryBundle():
            return value.query_str
        case ChatMessage():
            return value.content or ""
        case Event():
            return _question_in(value)
        case _:
            messages = [each for each in _items(value) if isinstance(each, ChatMessage)]
            asked = [each for each in messages if each.role is MessageRole.USER]
            return _question(asked[-1]) if asked else ""


def _fields(event: Event) -> dict[str, object]:
    """Those of its class, and those that it was made with besides."""
    named: dict[str, object] = {name: getattr(event, name) for name in type(event).model_fields}
    return named | dict(event.items())


def _question_in(event: Event) -> str:
    named = _fields(event)
    texts = [_question(named.get(key)) for key in QUERY_KEYS]
    others = [value for value in named.values() if isinstance(value, str) and value]
    return next(filter(None, texts), others[0] if len(others) == 1 else "")


def _answer(value: object) -> str:
    """The text of whatever a query engine, a chat engine, an agent, a model or a workflow gave."""
    match value:
        case str():
            return value
        case StreamedAnswer():
            return "".join(value.parts)
        case CompletionResponse():
            return value.text
        case ChatResponse():
            return value.message.content or ""
        case ChatMessage():
            return value.content or ""
        case AgentChatResponse() | StreamingAgentChatResponse():
            return value.response
        case StopEvent() if type(value) is StopEvent:
            return _answer(value.result)
        case _:
            return _answer_in(value)


def _answer_in(value: object) -> str:
    """The first of the usual fields that has a text; else the JSON of a structured answer."""
    if isinstance(value, Event):
        value = _fields(value)
    if is_mapping(value):
        texts = (_answer(value.get(key)) for key in RESPONSE_KEYS)
        return next(filter(None, texts), _blocks(value.get("blocks")))
    inner: object = getattr(value, "response", None)
    if isinstance(inner, BaseModel) and not isinstance(inner, ChatMessage):
        return inner.model_dump_json()
    return "" if inner is None else _answer(inner)


def _blocks(blocks: object) -> str:
    """The text of a message that has become a dict on its way through a workflow."""
    texts = [block.get("text") for block in _items(blocks) if is_mapping(block)]
    return "\n".join(text for text in texts if isinstance(text, str))


def _prompt(call: Call) -> str:
    named = call.flat()
    positional = [*_items(named.get("args")), ""]
    given = named.get("messages") or named.get("prompt") or positional[0]
    if isinstance(given, str):
        return given
    messages = [each for each in _items(given) if isinstance(each, ChatMessage)]
    return "\n".join(f"{each.role.value}: {each.content or ''}" for each in messages)


def _counts(said: object) -> tuple[int | None, int | None]:
    """Tokens in and out, where the integration of the model passes on what its service counted."""
    counted: object = getattr(said, "additional_kwargs", None)
    if not is_mapping(counted):
        return None, None
    return _number(counted.get("prompt_tokens")), _number(counted.get("completion_tokens"))


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None
