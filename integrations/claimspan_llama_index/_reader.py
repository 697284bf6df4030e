"""Reads LlamaIndex's arguments and results: finds query, response, chunks and model in a run tree.

Every method runs on the worker except ``parts``.
"""

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
    TextBlock,
)
from llama_index.core.base.response.schema import Response
from llama_index.core.chat_engine.types import AgentChatResponse, StreamingAgentChatResponse
from llama_index.core.llms.llm import LLM
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.response_synthesizers import Generation as WithoutNodes
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode
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
    join_bounded,
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
"""Argument names of LlamaIndex's own methods first, then what users call theirs."""

RESPONSE_KEYS: Final = ("response", "answer", "result", "output", "text", "message", "content")
SYNTHESIZING: Final = (".synthesize", ".asynthesize")

ROLES: Final = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "model": "assistant",
    "chatbot": "assistant",
    "tool": "tool",
    "function": "tool",
}
"""LlamaIndex's roles to OpenInference's."""

NO_RESPONSE: Final = "Empty Response"
"""What a response synthesizer returns where the model said nothing, or there were no nodes."""


@dataclass(frozen=True, slots=True)
class Call:
    """The input of a run: the object whose method was called, and the arguments by name."""

    instance: object
    arguments: Mapping[str, object]

    def flat(self) -> dict[str, object]:
        """Return the arguments, with the contents of ``**kwargs`` among them."""
        named = dict(self.arguments)
        for value in self.arguments.values():
            if is_mapping(value):
                named.update({str(key): item for key, item in value.items()})
        return named


class LlamaIndexReader:
    """Finds query, response, chunks and model in the runs of any LlamaIndex pipeline."""

    def is_query(self, root: Run) -> bool:
        """Return False for a retriever that is called by itself."""
        return root.kind is not RunKind.RETRIEVER

    def query(self, root: Run) -> object:
        """Return the question that the root was asked, before any rewriting."""
        named = _call(root).flat()
        for key in QUERY_KEYS:
            text = _question(named.get(key))
            if text:
                return text
        # An unknown name counts only where there is no choice: a wrong text is worse than none.
        texts = [value for value in named.values() if isinstance(value, str) and value]
        return texts[0] if len(texts) == 1 else ""

    def response(self, root: Run) -> object:
        """Return the text of the answer in the result of the root, or the last completion."""
        # A retriever that is called by itself returns documents and answers nothing.
        if root.kind is RunKind.RETRIEVER:
            return ""
        text = _answer(root.outputs) or self._last_completion(root)
        return "" if text == NO_RESPONSE else text

    def names_answer(self, root: Run) -> bool:
        """Return False: nobody says where the answer is."""
        return False

    def retrieval(self, run: Run) -> Retrieval:
        """Return the query of a retriever run and the documents that it returned."""
        documents = [each for each in _items(run.outputs) if isinstance(each, Document)]
        return Retrieval(_question(_call(run).flat().get(QUERY_KEYS[0])), documents)

    def unreported_retrieval(self, run: Run) -> Retrieval | None:
        """Return the nodes in the result of a function or workflow step of the user's own."""
        documents = documents_of(run.outputs)
        return Retrieval(self.query(run), documents) if documents else None

    def given_documents(self, run: Run) -> Sequence[Document]:
        """Return the nodes among the arguments of a call."""
        return [node for value in _call(run).arguments.values() for node in documents_of(value)]

    def passages(self, run: Run) -> Sequence[str]:
        """Return nothing: all texts are looked for as documents."""
        return ()

    def context(self, root: Run) -> Sequence[Document] | None:
        """Return the nodes that response synthesizers were given, or the sources of the answer.

        Node post-processors report nothing: the retrieved nodes may be more than were read.
        """
        synthesized = [run for run in root.tree.runs if _is_synthesis(run)]
        if synthesized:
            # A synthesizer that refines its answer passes its nodes to another one.
            return list(_each_once(node for run in synthesized for node in _nodes_read(run)))
        return documents_of(getattr(root.outputs, "source_nodes", None)) or None

    def generation(self, run: Run) -> Generation:
        """Return prompt, completion, model and tokens of a model run."""
        call, said = _call(run), run.outputs
        model = call.instance.metadata.model_name if isinstance(call.instance, LLM) else None
        counts = _counts(said)
        return Generation(
            prompt=_prompt(call),
            completion=_answer(said),
            model=model,
            input_tokens=counts[0],
            output_tokens=counts[1],
            messages=[_with_role(message) for message in _messages(_given(call))],
        )

    def is_internal(self, name: str) -> bool:
        """Return False: all metadata are tags that the application has set."""
        return False

    def parts(self, value: object) -> Sequence[object]:
        """Return what a call, a document, a node, a message or a response holds.

        Not the object that was called: an engine and its index live without the record.
        """
        match value:
            case Call():
                return (value.arguments,)
            case Document():
                return value.text, value.metadata or None
            case NodeWithScore():
                return (value.node,)
            case TextNode():
                return value.text, value.metadata or None
            case ChatMessage():
                return [block.text for block in value.blocks if isinstance(block, TextBlock)]
            case QueryBundle():
                return (value.query_str,)
            case _:
                return _parts_of_answer(value)

    def interrupted(self, root: Run) -> bool:
        """Whether the task was cancelled, or the workflow through its handler."""
        return root.failed_with(asyncio.CancelledError)

    def _last_completion(self, root: Run) -> str:
        """Return what the last model answered, for a result of unknown shape.

        A failed run (result None) has no answer; a text or a response is the answer itself.
        Models inside a retriever rewrite the query; they do not answer it.
        """
        if root.outputs is None or isinstance(root.outputs, str | Response | StreamedAnswer):
            return ""
        completions = [
            _answer(run.outputs)
            for run in root.tree.of_kind(RunKind.GENERATOR)
            if not run.has_ancestor(RunKind.RETRIEVER)
        ]
        return completions[-1] if completions else ""


def documents_of(nodes: object) -> list[Document]:
    """Return the nodes of a list as documents; anything else in it is left out."""
    return [_document(node) for node in _items(nodes) if isinstance(node, NodeWithScore)]


def _document(found: NodeWithScore) -> Document:
    node = found.node
    metadata: dict[str, object] = node.metadata
    # ``MetadataMode.NONE``: LlamaIndex writes the metadata into its prompts, but a chunk keeps
    # text and metadata apart.
    text = node.get_content(metadata_mode=MetadataMode.NONE)
    score = None if found.score is None else float(found.score)
    return Document(text=text, id=node.node_id, score=score, metadata=metadata)


def _parts_of_answer(value: object) -> Sequence[object]:
    match value:
        case CompletionResponse():
            return (value.text,)
        case ChatResponse():
            return (value.message,)
        case StreamedAnswer():
            return value.source_nodes, value.parts
        case Response() | AgentChatResponse():
            return value.response, value.source_nodes
        case Event():
            return (_fields(value),)
        case _:
            return ()


# --- what the generator read --------------------------------------------------------------------


def _is_synthesis(run: Run) -> bool:
    is_synthesizer = isinstance(_call(run).instance, BaseSynthesizer)
    return is_synthesizer and str(run.name).endswith(SYNTHESIZING)


def _nodes_read(run: Run) -> list[Document]:
    """Return the nodes that a synthesizer was given."""
    arguments = _call(run).arguments
    # With additional sources (``SubQuestionQueryEngine``) the nodes are answers to sub-questions,
    # and other synthesizers read the real sources before. ``Generation`` ignores its nodes.
    if arguments.get("additional_source_nodes") or isinstance(_call(run).instance, WithoutNodes):
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
    """Return the text of a str, a query, a message, messages, or the event of a workflow."""
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
    """Return the fields of an event: those of its class, and those given to it beyond the class."""
    named: dict[str, object] = {name: getattr(event, name) for name in type(event).model_fields}
    return named | dict(event.items())


def _question_in(event: Event) -> str:
    named = _fields(event)
    texts = [_question(named.get(key)) for key in QUERY_KEYS]
    others = [value for value in named.values() if isinstance(value, str) and value]
    return next(filter(None, texts), others[0] if len(others) == 1 else "")


def _answer(value: object) -> str:
    """Return the text in the result of a query engine, chat engine, agent, model or workflow."""
    match value:
        case str():
            return value
        case StreamedAnswer():
            return join_bounded(value.parts)
        case CompletionResponse():
            return value.text
        case ChatResponse():
            return value.message.content or ""
        case ChatMessage():
            return value.content or ""
        case AgentChatResponse() | StreamingAgentChatResponse():
            return value.response
        # A subclass of the event is a result of the user's own shape.
        case StopEvent() if type(value) is StopEvent:
            return _answer(value.result)
        case _:
            return _answer_in(value)


def _answer_in(value: object) -> str:
    """Return the text of the first usual field that has one, or a structured answer as JSON."""
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
    """Return the text of a message that a workflow has turned into a dict."""
    texts = [block.get("text") for block in _items(blocks) if is_mapping(block)]
    return join_bounded((text for text in texts if isinstance(text, str)), "\n")


def _prompt(call: Call) -> str:
    given = _given(call)
    if isinstance(given, str):
        return given
    told = (f"{each.role.value}: {each.content or ''}" for each in _messages(given))
    return join_bounded(told, "\n")


def _given(call: Call) -> object:
    """Return what a model was given: a text or messages."""
    named = call.flat()
    # The LLM callbacks of LlamaIndex wrap a method as ``(self, *args, **kwargs)``.
    positional = [*_items(named.get("args")), ""]
    return named.get("messages") or named.get("prompt") or positional[0]


def _messages(given: object) -> list[ChatMessage]:
    return [each for each in _items(given) if isinstance(each, ChatMessage)]


def _with_role(message: ChatMessage) -> tuple[str, str]:
    return ROLES.get(message.role.value, ""), message.content or ""


def _counts(said: object) -> tuple[int | None, int | None]:
    """Return input and output tokens, where the model's integration passes them on.

    By convention they are in ``additional_kwargs``, under OpenAI's names.
    """
    counted: object = getattr(said, "additional_kwargs", None)
    if not is_mapping(counted):
        return None, None
    return _number(counted.get("prompt_tokens")), _number(counted.get("completion_tokens"))


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None
