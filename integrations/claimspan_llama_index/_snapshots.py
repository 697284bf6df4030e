"""Takes what a record needs of LlamaIndex's objects, while a hook runs.

Applications change nodes, messages and responses in place after a call: they shorten a text for the
user interface, clear the sources, append to a history. Strings do not change, so references to them
are taken, and lists and mappings are copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    TextBlock,
)
from llama_index.core.base.response.schema import PydanticResponse, Response
from llama_index.core.chat_engine.types import AgentChatResponse
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import (
    BaseComponent,
    BaseNode,
    MetadataMode,
    NodeWithScore,
    QueryBundle,
    TextNode,
)
from llama_index.core.tools import ToolOutput
from llama_index.core.workflow import Event
from pydantic import BaseModel

from claimspan_tracing.adapters import (
    NOT_KNOWN,
    Document,
    ModelCall,
    Run,
    is_list,
    is_mapping,
    read_call,
)

MAX_DEPTH: Final = 3
"""How deep lists and mappings are copied: a result holds an event, which holds nodes."""

_PLAIN: Final = frozenset({str, int, float, bool, type(None), bytes})

Known = dict[str, Document]
"""The documents of one query by node id: a node that is handed on unchanged is taken once."""

_Taker = Callable[[Any, Known, int], object]


# Not frozen, though nothing changes them: a frozen one takes twice the time to make, and hooks make
# one for each run, message and document.
@dataclass(slots=True)
class Call:
    """The input of a run: the object whose method was called, and the arguments by name."""

    instance: object
    arguments: Mapping[str, object]

    known: Known = field(default_factory=dict[str, Document])
    """Shared by the runs of a query."""

    is_beside: bool = False
    """Whether the run answers nothing: an evaluator, an index that is built, a memory."""

    def flat(self) -> dict[str, object]:
        """Return the arguments, with the contents of ``**kwargs`` among them."""
        named = dict(self.arguments)
        for value in self.arguments.values():
            if type(value) is dict:
                named.update({str(key): item for key, item in value.items()})  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType, reportUnknownMemberType] - whatever it holds
        return named


def call_of(run: Run | None) -> Call:
    """Return the input of a run; an empty one if there is none, or another framework's run."""
    return run.inputs if run and isinstance(run.inputs, Call) else Call(None, {})


@dataclass(slots=True)
class Said:
    """A message, or the words of a model."""

    role: str
    text: str

    call: ModelCall = NOT_KNOWN
    """What its provider says of the call."""

    calls: Sequence[object] = ()
    """The arguments with which it calls tools, of each call."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of an engine."""

    said: object
    """A text, or the fields of a structured answer."""

    sources: Sequence[Document]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool."""

    text: str
    raw: object
    is_error: bool = False


class Fields(dict[str, object]):
    """The fields of an event or of the user's own model."""


def taken(value: object, known: Known, depth: int = 0) -> object:
    """Return a value that nothing changes later; itself if it has no texts that are known to us.

    Args:
        value: Argument or result of a run.
        known: The documents that were taken for the same query; added to.
        depth: How deep in a result it stands.
    """
    if type(value) in _PLAIN:
        return value
    taker = _taker(type(value))  # type: ignore[arg-type]  # hashable
    return value if taker is None or depth > MAX_DEPTH else taker(value, known, depth + 1)


def documents_of(value: object, depth: int = 0) -> list[Document]:
    """Return the documents in a value that was taken; the sources of an answer are none of them."""
    if isinstance(value, Document):
        return [value]
    if isinstance(value, ToolResult):
        return documents_of(value.raw, depth + 1)
    inner: Sequence[object] = ()
    if depth <= MAX_DEPTH and is_mapping(value):
        inner = [*value.values()]
    elif depth <= MAX_DEPTH and is_list(value) and not _is_plain(value):
        inner = value  # embeddings are lists of many numbers
    found: list[Document] = []
    for each in inner:
        if type(each) is Document:
            found.append(each)
        elif type(each) not in _PLAIN:
            found += documents_of(each, depth + 1)
    return found


def _is_plain(values: Sequence[object]) -> bool:
    return not values or type(values[0]) in _PLAIN


def _of_node(node: BaseNode, known: Known, score: object = None) -> Document:
    # Without the metadata that LlamaIndex writes into its prompts: a chunk keeps text and metadata
    # apart. The plain attribute where it is no code of the user's, as it is many times faster.
    if type(node) is TextNode:
        text, id_ = node.text, node.id_
    else:
        text, id_ = node.get_content(metadata_mode=MetadataMode.NONE), node.node_id
    same, metadata = known.get(id_), node.metadata
    if same and same.text is text and same.score == score and same.metadata == metadata:
        return same
    document = Document(text=text, id=id_, score=score, metadata=dict(metadata))
    known[id_] = document
    return document


def _text(message: ChatMessage) -> str:
    blocks = message.blocks
    if len(blocks) == 1 and type(blocks[0]) is TextBlock:
        return blocks[0].text
    return message.content or ""


def _calls(message: ChatMessage) -> Sequence[object]:
    # Told by the field: releases before 0.13 have no such block.
    found: list[object] = [getattr(block, "tool_kwargs", None) for block in message.blocks]
    return [dict(each) if is_mapping(each) else each for each in found if each]


def _told_by(response: Any) -> ModelCall:
    # Read at once: what the provider has sent may be large, and nothing else needs it.
    message = getattr(response, "message", None)
    extras = (response.additional_kwargs, getattr(message, "additional_kwargs", None))
    sources = [each for each in extras if each]
    if response.raw is not None:
        sources.append(response.raw)
    return read_call((), sources) if sources else NOT_KNOWN


def _answer(response: Any, known: Known, depth: int) -> Answer:
    said: object = response.response
    if isinstance(said, BaseModel):
        said = _fields_of_model(said, known, depth)
    return Answer(said, documents_of(taken(response.source_nodes, known, depth)))


def _fields_of_model(model: BaseModel, known: Known, depth: int) -> Fields:
    return Fields({name: taken(each, known, depth) for name, each in model.__dict__.items()})


def _mapping(values: dict[object, object], known: Known, depth: int) -> dict[object, object]:
    # Copied in one step: another thread may change it meanwhile.
    return {key: taken(value, known, depth) for key, value in values.copy().items()}


def _list(values: Sequence[object], known: Known, depth: int) -> object:
    if _is_plain(values):
        return list(values)
    return [
        _of_node(each.node, known, each.score)  # the usual item, without a call in between
        if type(each) is NodeWithScore
        else taken(each, known, depth)
        for each in list(values)
    ]


def _fields_of_event(event: Event, known: Known, depth: int) -> Fields:
    # Those of its class, and those given to it beyond the class.
    named: dict[str, object] = {**event.__dict__, **dict(event.items())}
    return Fields({name: taken(value, known, depth) for name, value in named.items()})


_TAKERS: Final[Sequence[tuple[type[Any] | tuple[type[Any], ...], _Taker | None]]] = (
    (NodeWithScore, lambda found, known, depth: _of_node(found.node, known, found.score)),
    (BaseNode, lambda node, known, depth: _of_node(node, known)),
    (ChatMessage, lambda message, known, depth: Said(message.role.value, _text(message))),
    (
        ChatResponse,
        lambda r, known, depth: Said(
            r.message.role.value, _text(r.message), _told_by(r), _calls(r.message)
        ),
    ),
    (
        CompletionResponse,
        lambda response, known, depth: Said("", response.text, _told_by(response)),
    ),
    ((Response, PydanticResponse, AgentChatResponse), _answer),
    (QueryBundle, lambda query, known, depth: query.query_str),
    (
        ToolOutput,
        lambda result, known, depth: ToolResult(
            result.content, taken(result.raw_output, known, depth), result.is_error
        ),
    ),
    (Event, _fields_of_event),
    # Models, prompts, embeddings: LlamaIndex's own parts hold no text of a record.
    ((BaseComponent, BasePromptTemplate), None),
    (BaseModel, _fields_of_model),
)


@lru_cache(maxsize=1024)
def _taker(kind: type[Any]) -> _Taker | None:
    # Cached, as ``issubclass`` of an abstract class takes longer than the rest of a hook. Only the
    # exact types of containers: to read a subclass may run code of the user's.
    if kind is dict:
        return _mapping
    if kind is list or kind is tuple:
        return _list
    return next((taker for base, taker in _TAKERS if issubclass(kind, base)), None)
