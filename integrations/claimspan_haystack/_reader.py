"""Reads Haystack's inputs and outputs: finds query, response, chunks and model in a run tree.

Haystack reports no kind for a component, and users give components any name. What a component does
is therefore told by the types of its outputs. Every method of the reader runs on the worker except
``parts``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from haystack.core.errors import BreakpointException
from haystack.dataclasses import ChatMessage, ChatRole, ExtractedAnswer, GeneratedAnswer
from haystack.dataclasses import Document as HaystackDocument

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

__all__ = ["HaystackReader", "is_streaming", "kind_of", "root_name"]

QUERY_KEYS: Final = ("query", "question", "text", "user_input", "prompt", "messages", "input")
RESPONSE_KEYS: Final = (
    "answers",
    "answer",
    "replies",
    "last_message",
    "messages",
    "response",
    "output",
    "text",
)
DOCUMENTS_KEY: Final = "documents"
"""Name of an output that holds documents; tells only where the list is empty."""

REPLIES_KEY: Final = "replies"
"""Name of the output of all of Haystack's generators."""

GENERATOR_RUNS: Final = ("haystack.agent.step.llm", "haystack.chat_generator.run")
"""Operations that are model calls: of an agent, and of a component that has a generator inside."""

RETRIEVING_RUNS: Final = ("haystack.component.run", "haystack.agent.step.tool")
"""Operations that may retrieve: of a component, and of a tool that an agent calls."""

AGENT_STEP: Final = "haystack.agent.step"
DECLARED_TAG: Final = "haystack.component.output_spec"
"""Tag with the outputs that a component declares; known before it runs."""


class HaystackReader:
    """Finds query, response, chunks and model in the runs of any Haystack pipeline."""

    def __init__(self, query_key: Key | None = None, response_key: Key | None = None) -> None:
        self._query_key = query_key
        self._response_key = response_key

    def is_query(self, root: Run) -> bool:
        """Return False for a retriever that is called by itself."""
        return root.kind is not RunKind.RETRIEVER

    def query(self, root: Run) -> object:
        """Return the user's question, which may be among the inputs of any component."""
        if self._query_key is not None:
            return _text(value_at(root.inputs, self._query_key), ChatRole.USER)
        return _query(root.inputs)

    def response(self, root: Run) -> object:
        """Return the answer among the outputs of the pipeline, or the last completion."""
        if self._response_key is not None:
            return _text(value_at(root.outputs, self._response_key), ChatRole.ASSISTANT)
        if root.outputs is None:
            return ""
        # Backwards: Haystack lists the outputs of components in the order in which they ran.
        parts = list(_parts(root.outputs))[::-1]
        return _by_key(parts, RESPONSE_KEYS, ChatRole.ASSISTANT) or _unnamed_answer(root)

    def names_answer(self, root: Run) -> bool:
        """Whether a key of the answer was given."""
        return self._response_key is not None

    def retrieval(self, run: Run) -> Retrieval:
        """Return the query of a retriever run and the documents that it returned."""
        documents = _documents(run.outputs) or []
        asked = _query(run.inputs) or _embedded(run) or self.query(run.tree.root)
        return Retrieval(asked, [_document(document) for document in documents])

    def unreported_retrieval(self, run: Run) -> Retrieval | None:
        """Return the documents that another run returned, such as an agent from its state."""
        return self.retrieval(run) if _documents(run.outputs) else None

    def given_documents(self, run: Run) -> Sequence[Document]:
        """Return the documents among the inputs of a component."""
        return [_document(document) for document in _documents(run.inputs) or ()]

    def passages(self, run: Run) -> Sequence[str]:
        """Return nothing: all texts are looked for as documents."""
        return ()

    def context(self, root: Run) -> Sequence[Document] | None:
        """Return the documents of the last prompt, or of the last reader, before the answer.

        These are its input documents, or its output documents where a prompt builder drops some
        and returns the rest. Documents that an agent's tools found later were read as well.
        """
        # Prompts inside a retriever are for rewriting the query.
        runs = [run for run in root.tree.runs[1:] if not run.has_ancestor(RunKind.RETRIEVER)]
        answering = [n for n, run in enumerate(runs) if _is_answering(run)]
        until = answering[-1] + 1 if answering else len(runs)
        for index in reversed(range(until)):
            read = _read(runs[index])
            if read is not None:
                later = [run for run in runs[index + 1 : until] if _is_tool(run)]
                looked_up = [d for run in later for d in _documents(run.outputs) or ()]
                return [_document(document) for document in read + looked_up]
        return None

    def generation(self, run: Run) -> Generation:
        """Return prompt, completion, model and tokens of a generator run."""
        told = _by_key([run.inputs], ("messages", "prompt"), None) if run.inputs else ""
        meta = _meta(run.outputs)
        usage = meta.get("usage")
        tokens: Mapping[object, object] = usage if is_mapping(usage) else {}
        return Generation(
            prompt=told,
            completion=_by_key([run.outputs], (REPLIES_KEY,), ChatRole.ASSISTANT),
            model=meta.get("model"),
            input_tokens=_count(tokens, "prompt_tokens", "input_tokens"),
            output_tokens=_count(tokens, "completion_tokens", "output_tokens"),
            messages=_messages(run.inputs),
        )

    def is_internal(self, name: str) -> bool:
        """Return False: all metadata are what the application gave its pipeline."""
        return False

    def parts(self, value: object) -> Sequence[object]:
        """Return what a document, a message or an answer holds."""
        match value:
            case HaystackDocument():
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
        return isinstance(root.error, BreakpointException)


# --- what a run is ------------------------------------------------------------------------------


def kind_of(operation: str, tags: Mapping[str, Any], inputs: object, outputs: object) -> RunKind:
    """Return what an operation did.

    A retriever returns documents and takes none: rankers and joiners pass on documents of others.
    Whatever returns messages or answers beside its documents is no retriever.

    Args:
        operation: Name of the operation.
        tags: Tags that the operation started with.
        inputs: What went in.
        outputs: What came out; None if the operation failed.
    """
    if operation in GENERATOR_RUNS:
        return RunKind.GENERATOR
    if operation not in RETRIEVING_RUNS:
        return RunKind.CHAIN
    # A failed component is judged by the outputs that it declares, as if each were empty.
    if outputs is None:
        outputs = dict.fromkeys(tags.get(DECLARED_TAG) or (), ())
    if is_mapping(outputs) and REPLIES_KEY in outputs:
        return RunKind.GENERATOR
    found, given = _documents(outputs), _documents(inputs)
    retrieved = found is not None and given is None and not _answers(outputs)
    return RunKind.RETRIEVER if retrieved else RunKind.CHAIN


def root_name(operation: str, tags: Mapping[str, Any]) -> object:
    """Return the name of the component, else of the pipeline, else of the operation."""
    # Pipelines have no name in Haystack; users put one into ``Pipeline(metadata={"name": ...})``.
    metadata = tags.get("haystack.pipeline.metadata")
    named = metadata.get("name") if is_mapping(metadata) else None
    return tags.get("haystack.component.name") or named or operation


def is_streaming(inputs: object) -> bool:
    """Whether the answer is streamed, which Haystack does through a callback in the inputs."""
    return any(part.get("streaming_callback") is not None for part in _parts(inputs))


def _is_answering(run: Run) -> bool:
    """Whether a run is a generator, and not one that a ranker or an extractor uses."""
    if run.kind is not RunKind.GENERATOR or run.parent is None:
        return False
    around = run.parent.outputs
    return _documents(around) is None or _answers(around)


def _is_tool(run: Run) -> bool:
    """Whether a run is a retriever that an agent called; the model reads what it found."""
    called = run.parent is not None and run.parent.name == AGENT_STEP
    return called and run.kind is RunKind.RETRIEVER


def _read(run: Run) -> list[HaystackDocument] | None:
    """Return the documents that a run made into a text; None where it did no such thing."""
    read = _documents(run.inputs)
    if read is None or not _says(run.outputs):
        return None
    left = _documents(run.outputs)
    return read if left is None else left


def _answers(outputs: object) -> bool:
    """Whether the outputs hold a message or an answer."""
    said = (ChatMessage, GeneratedAnswer, ExtractedAnswer)
    return any(isinstance(item, said) for item in _items(outputs))


def _says(outputs: object) -> bool:
    """Whether the outputs hold a text: a prompt, a message or an answer."""
    return any(isinstance(value, str) for value in _values(outputs)) or _answers(outputs)


# --- texts --------------------------------------------------------------------------------------


def _parts(value: object) -> Iterator[Mapping[object, object]]:
    """Yield the inputs or outputs of each component of a pipeline, then the whole mapping.

    An agent or a component that runs alone has no level of components.
    """
    if is_mapping(value):
        yield from (part for part in value.values() if is_mapping(part))
        yield value


def _query(inputs: object) -> str:
    return _by_key(list(_parts(inputs)), QUERY_KEYS, ChatRole.USER) or _only_text(inputs)


def _by_key(parts: Sequence[object], keys: Sequence[str], role: ChatRole | None) -> str:
    """Return the text under the first key that has one in any part."""
    for key in keys:
        for part in parts:
            value = part.get(key) if is_mapping(part) else None
            # ``replies`` are alternative completions, of which the first counts. ``messages`` are
            # a conversation, of which the last counts.
            if key == REPLIES_KEY and is_list(value):
                value = value[:1]
            text = _text(value, role)
            if text:
                return text
    return ""


def _only_text(values: object) -> str:
    """Return the text under an unknown name, if there is only one."""
    texts = {v for part in _parts(values) for v in part.values() if isinstance(v, str) and v}
    return texts.pop() if len(texts) == 1 else ""


def _text(value: object, role: ChatRole | None) -> str:
    """Return the text of a str, a message of the role, an answer, or a list of those."""
    if isinstance(value, str):
        return value
    if isinstance(value, ChatMessage):
        return _said(value) if role is None or value.is_from(role) else ""
    if isinstance(value, GeneratedAnswer | ExtractedAnswer):
        return value.data or ""
    if not is_list(value):
        return ""
    texts = [text for text in (_text(item, role) for item in value) if text]
    if role is None:
        return join_bounded(texts, "\n")
    of_messages = any(isinstance(item, ChatMessage) for item in value)
    return texts[-1 if of_messages else 0] if texts else ""


def _said(message: ChatMessage) -> str:
    # An agent that stops after a tool call returns the tool's message, which has no text.
    results = (str(result.result) for result in message.tool_call_results)
    return message.text or join_bounded(results, "\n")


def _unnamed_answer(root: Run) -> str:
    """Return the answer of outputs with unknown names: the last reply, else the only text."""
    runs = [run for run in root.tree.runs if _is_answering(run)]
    if not runs:
        return _only_text(root.outputs)
    return _by_key([runs[-1].outputs], (REPLIES_KEY,), ChatRole.ASSISTANT)


def _embedded(run: Run) -> str:
    """Return the text behind the embedding that a retriever was given.

    Haystack passes the list of floats from the embedder to the retriever as the same object.
    """
    embeddings = [value for value in _values(run.inputs) if is_list(value) and value]
    for other in run.tree.runs:
        if any(made is used for made in _values(other.outputs) for used in embeddings):
            return _query(other.inputs)
    return ""


# --- documents and generations ------------------------------------------------------------------


def _documents(values: object) -> list[HaystackDocument] | None:
    """Return the documents in inputs or outputs, each once; None where they hold no list of any."""
    named = dict(values) if is_mapping(values) else {DOCUMENTS_KEY: values}
    lists = [v for k, v in named.items() if is_list(v) and _may_hold_documents(k, v)]
    if not lists:
        return None
    found = [item for value in lists for item in _flat(value)]
    documents = [item for item in found if isinstance(item, HaystackDocument)]
    # By identity: an agent's state and a joiner's inputs may hold the same document twice.
    return list({id(document): document for document in documents}.values())


def _may_hold_documents(name: object, value: Sequence[object]) -> bool:
    first = next(_flat(value), None)
    return name == DOCUMENTS_KEY if first is None else isinstance(first, HaystackDocument)


def _flat(value: Sequence[object]) -> Iterator[object]:
    """Yield the items of a list of lists too: a joiner gets one list for each retriever."""
    for item in value:
        if is_list(item):
            yield from item
        else:
            yield item


def _values(value: object) -> Sequence[object]:
    """Return the value of each socket, or the result of a tool, which has no sockets."""
    return list(value.values()) if is_mapping(value) else [value]


def _items(values: object) -> Iterator[object]:
    for value in _values(values):
        if is_list(value):
            yield from value
        else:
            yield value


def _document(document: HaystackDocument) -> Document:
    return Document(
        text=document.content, id=document.id, score=document.score, metadata=document.meta
    )


def _meta(outputs: object) -> Mapping[object, object]:
    """Return what a generator reports about its reply.

    Chat generators put it on the message, text generators into a second output, ``meta``.
    """
    if not is_mapping(outputs):
        return {}
    for item in _items({key: outputs.get(key) for key in (REPLIES_KEY, "meta")}):
        meta: object = item.meta if isinstance(item, ChatMessage) else item
        if is_mapping(meta):
            return meta
    return {}


def _messages(inputs: object) -> list[tuple[object, object]]:
    """Return role and text of the messages that a chat generator was given."""
    given = inputs.get("messages") if is_mapping(inputs) else None
    messages = given if is_list(given) else ()
    return [(m.role.value, _said(m)) for m in messages if isinstance(m, ChatMessage)]


def _count(usage: Mapping[object, object], *keys: str) -> int | None:
    # OpenAI's names and Anthropic's; Haystack passes on what the service sent.
    counts = [usage[key] for key in keys if key in usage]
    return next((count for count in counts if isinstance(count, int)), None)
