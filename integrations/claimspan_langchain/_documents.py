"""Finds LangChain's documents, and other evidence, in the inputs and outputs of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Final

from langchain_core.documents import Document as LangChainDocument
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from pydantic import BaseModel

from claimspan_langchain._messages import Structure, as_said, text_of
from claimspan_tracing.adapters import Document, is_echo, is_list, is_mapping, names_evidence

STEPS_KEY: Final = "intermediate_steps"
"""Where an agent of LangChain before graphs keeps its calls of tools: pairs of call and result."""

TEXT_KEY: Final = "page_content"
"""Where a document that was turned into a dict has its text."""

TEXT_KEYS: Final = ("text", "content", "document", "snippet", "chunk", "body", "passage")
"""Keys of the text of a result, by clients of stores and searches."""

EDIT_NOTE: Final = "Note: a human reviewer replaced this tool call"
"""How the line begins that LangChain's middleware puts before the result of an edited call."""

MAX_DEPTH: Final = 4
MAX_ITEMS: Final = 2_000
"""How far an input or output is looked into."""


class Texts(list[object]):
    """A list of documents with the texts that they had when it was noted.

    An application may shorten a document for its user interface as soon as it has it.
    """

    __slots__ = ("texts",)

    def __init__(self, documents: list[object], texts: list[str]) -> None:
        """Copy a list, and keep its texts."""
        super().__init__(documents)
        self.texts: Final = texts


def with_texts(value: object, of: Callable[[object], object] | None = None) -> object:
    """Return a list of documents with their texts of now, also one in a dict.

    Any other value stays as it is. Runs on the caller's thread, for each value that comes out of a
    run.
    """
    take = of or _noted
    if type(value) is dict:
        # Copied in one step: another thread may change it meanwhile.
        held: dict[object, object] = value.copy()  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] - whatever it holds
        return {key: take(item) for key, item in held.items()}
    return take(value)


def as_returned(value: object) -> object:
    """Return what the caller of a query gave or got, with the texts that it has now.

    Messages, and the fields of a structured answer, are objects that the caller may change.
    """
    if type(value) is str:  # first, as most are, and the classes below are slow to compare
        return value
    if isinstance(value, BaseModel) and not isinstance(value, BaseMessage):
        return Structure(vars(value))
    return with_texts(value, _as_item)


def _as_item(value: object) -> object:
    if isinstance(value, BaseMessage):
        return as_said(value)
    if type(value) is not list:
        return value
    items: list[object] = value  # pyright: ignore[reportUnknownVariableType] - whatever it holds
    if items and isinstance(items[0], BaseMessage):
        return [as_said(each) if isinstance(each, BaseMessage) else each for each in items]
    return _noted(items)


def _noted(value: object) -> object:
    if type(value) is not list:
        return value
    items: list[object] = value  # pyright: ignore[reportUnknownVariableType] - whatever it holds
    if items and type(items[0]) is LangChainDocument:
        # What it holds beside documents has no such field.
        return Texts(items, [getattr(each, "page_content", "") for each in items])
    return items


def documents_in(value: object, depth: int = MAX_DEPTH) -> list[Document]:
    """Return the documents in an input or output: in lists, in states of graphs, kept by tools."""
    inner: Iterable[object] = ()
    match value:
        case None | str():  # first, as most are
            return []
        case Texts():
            pairs = zip(value, value.texts, strict=False)
            return [
                _document(text, d.id, d.metadata)
                for d, text in pairs
                if isinstance(d, LangChainDocument)
            ]
        case LangChainDocument():
            return [_document(value.page_content, value.id, value.metadata)]
        case ToolMessage():
            return documents_in(value.artifact, depth - 1)
        case _ if is_mapping(value):
            if isinstance(text := value.get(TEXT_KEY), str):
                # A dict, as a checkpoint of LangGraph brings back what a tool has kept.
                metadata = value.get("metadata")
                named = metadata.items() if is_mapping(metadata) else ()
                return [_document(text, value.get("id"), {str(k): v for k, v in named})]
            inner = islice(value.values(), MAX_ITEMS)
        case _ if is_list(value):
            inner = value[:MAX_ITEMS]
        case _ if is_mapping(update := getattr(value, "update", None)):  # LangGraph's ``Command``
            inner = (update,)
        case _:
            return []
    found: list[Document] = []
    for item in inner if depth else ():
        found += documents_in(item, depth - 1)
    return found


def _document(text: str, id_: object, metadata: Mapping[str, object]) -> Document:
    # What retrievers and rerankers keep as a score; LangChain's ``Document`` has no field for it.
    score = metadata.get("relevance_score", metadata.get("score"))
    return Document(text, id_, score, metadata)


def holds_documents(value: object) -> bool:
    """Whether an output is a list of documents, each alone or with its score."""
    found = value if is_list(value) else ()
    firsts = [item[0] if is_list(item) and item else item for item in found]
    return bool(firsts) and all(isinstance(each, LangChainDocument) for each in firsts)


def tool_results(messages: Iterable[BaseMessage]) -> list[str]:
    """Return the results of tools in the messages of a prompt.

    A tool that failed, or that repeats the model's words, has found nothing.
    """
    asked: dict[str | None, list[object]] = {}
    found: list[str] = []
    for message in messages:
        if isinstance(message, AIMessage):
            asked.update((call["id"], [*call["args"].values()]) for call in message.tool_calls)
        elif isinstance(message, ToolMessage) and message.status != "error":
            text = text_of(message)
            if text.startswith(EDIT_NOTE):
                text = text.partition("\n")[2].lstrip()
            if not is_echo(text, asked.get(message.tool_call_id, ())):
                found.append(text)
    return found


def evidence_in(inputs: object, outputs: object, *, is_tool: bool = False) -> list[str]:
    """Return the texts of a run that a model may have read as evidence, and that are no documents.

    What a tool returned as a text, and what stands under a name such as ``context``.
    """
    named = inputs if is_mapping(inputs) else _NOTHING
    found: list[str] = []
    if isinstance(outputs, ToolMessage) and outputs.status != "error":
        found.append(text_of(outputs))
    elif is_tool and isinstance(outputs, str):  # called by code
        found.append(outputs)
    if found and is_echo(found[0], named.values()):
        found = []
    if not named:
        return found
    items = islice(named.items(), MAX_ITEMS)
    found += [text for name, text in items if isinstance(text, str) and names_evidence(name)]
    steps = named.get(STEPS_KEY)
    for step in steps if is_list(steps) else ():
        if is_list(step) and len(step) == 2 and isinstance(step[1], str):
            found.append(step[1])
    return found


_NOTHING: Final[Mapping[object, object]] = {}


def listed_texts(inputs: object) -> list[Document]:
    """Return the texts that stand in a list under a name such as ``documents``, as documents.

    A client of a store that is no LangChain's returns texts, or mappings with a text each.
    """
    found: list[Document] = []
    for name, value in islice(inputs.items(), MAX_ITEMS) if is_mapping(inputs) else ():
        # In this order, as few inputs have such a list.
        if is_list(value) and value and isinstance(value[0], str | dict) and names_evidence(name):
            found += filter(None, map(_listed, value[:MAX_ITEMS]))
    return found


def _listed(item: object) -> Document | None:
    if isinstance(item, str):
        return Document(item) if item.strip() else None
    if not is_mapping(item) or "role" in item or TEXT_KEY in item:  # the last is found anyway
        return None
    text = next((item[key] for key in TEXT_KEYS if isinstance(item.get(key), str)), None)
    named = {str(key): value for key, value in item.items() if value is not text}
    return None if text is None else Document(text, item.get("id"), item.get("score"), named)
