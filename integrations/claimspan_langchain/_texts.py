"""Finds the texts in LangChain's inputs and outputs: questions, answers, messages, prompts.

LangChain prescribes no shape for the input and the output of a chain, so the usual names are tried
in the order of the constants below.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from itertools import chain, islice
from typing import Final

from langchain_core.documents import Document as LangChainDocument
from langchain_core.messages import BaseMessage, ToolMessage, get_buffer_string
from langchain_core.outputs import ChatGeneration, LLMResult
from pydantic import BaseModel

from claimspan_tracing.adapters import is_list, is_mapping, join_bounded

__all__ = [
    "Asked",
    "Said",
    "Structure",
    "answer_in",
    "as_said",
    "completion_of",
    "content_of",
    "prompt_messages",
    "prompt_of",
    "question_in",
    "role_and_text",
    "structured_text",
    "text_of",
    "usage_of",
]

QUERY_KEYS: Final = ("question", "query", "input", "user_input", "user_query", "messages")
RESPONSE_KEYS: Final = (
    "structured_response",
    "parsed",
    "answer",
    "final_answer",
    "result",
    "response",
    "final_response",
    "output",
    "output_text",
    "text",
    "generation",
    "messages",
)
"""The first two are where an agent and ``with_structured_output`` keep what a user sees."""

ANSWER_FIELDS: Final = (
    "answer",
    "final_answer",
    "response",
    "result",
    "output",
    "text",
    "content",
    "summary",
)
"""Fields of a structured answer that say it by themselves: the others are sources or reasoning."""

BESIDE_FIELDS: Final = frozenset(
    "source sources citation citations quote quotes reference references id url metadata type "
    "status language model confidence".split()
)
"""Fields that say nothing by themselves: where an answer is from, and what kind it is of."""

ARGUMENTS_KEY: Final = "args"
"""Where a parsed tool call keeps its arguments, beside its type."""

MAX_FIELDS: Final = 100
MAX_DEPTH: Final = 4
"""How far a structured answer is looked into."""

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

# Messages name their role ``human`` and ``ai``, OpenAI's dicts ``user`` and ``assistant``. A
# streamed message keeps its own type.
_SPELLINGS: Final = {"human": ("human", "user"), "ai": ("ai", "assistant", "AIMessageChunk")}


@dataclass(frozen=True, slots=True)
class Said:
    """A message as it was: its application may change it as soon as it has it."""

    type: str
    content: object
    name: str | None


class Asked(list[object]):
    """The messages of a prompt, with the contents that they had when a model was asked."""

    __slots__ = ("contents",)

    def __init__(self, messages: Sequence[BaseMessage]) -> None:
        """Copy the list: it may be the history of the application, which grows by the answer."""
        super().__init__(messages)
        self.contents: Final[list[object]] = [each.content for each in messages]


class Structure(dict[str, object]):
    """The fields of a structured answer as they were."""


def as_said(message: BaseMessage) -> Said | BaseMessage:
    """Return what a message says; one of a tool as it is, with the documents that it keeps."""
    if isinstance(message, ToolMessage):
        return message
    return Said(message.type, message.content, message.name)


# --- questions and answers ----------------------------------------------------------------------


def question_in(value: object) -> str:
    """Return the question in an input: a text, a message, messages, or a mapping of the usual keys.

    An unknown key counts only where there is no choice: a wrong text is worse than none.
    """
    if not is_mapping(value):
        return text_of(value, "human")
    named = (text_of(value.get(key), "human") for key in QUERY_KEYS)
    return next(filter(None, named), _only_text(value))


def answer_in(value: object, given: object, completions: Sequence[str]) -> str:
    """Return the answer in an output: a text, messages, a structure, or one of the usual keys.

    Args:
        value: The output.
        given: The input: a graph returns its whole state, and what it was given is no answer.
        completions: What models have said, in order, for a mapping with several unknown keys.
    """
    if is_list(value) and not isinstance(value, list):
        # A function that returns the answer and its documents, or its sources: a tuple.
        found = (_answer(item, completions) for item in value)
        return next(filter(None, found), "")
    if not is_mapping(value) or isinstance(value, Structure):
        return _answer(value, completions)
    for key in RESPONSE_KEYS:
        if text := _answer(value.get(key), completions):
            return text
    nested = _nested_answer(value.values(), MAX_DEPTH)
    if nested:
        return nested
    before: Mapping[object, object] = given if is_mapping(given) else _NOTHING
    new = {k: v for k, v in value.items() if before.get(k) is not v or v is None}
    texts = {str(key): item for key, item in new.items() if isinstance(item, str) and item.strip()}
    if len(texts) <= 1:
        return next(iter(texts.values()), "")
    return _said_by_a_model(texts, completions)


_NOTHING: Final[Mapping[object, object]] = {}


def _said_by_a_model(texts: Mapping[str, str], completions: Sequence[str]) -> str:
    """The text of the key that is named as an answer, else the longest that a model has said."""
    said = {
        key: text
        for key, text in texts.items()
        if any(each and (each in text or text in each) for each in completions)
    }
    named = [t for key, t in said.items() if any(word in key.lower() for word in ANSWER_FIELDS)]
    return max(named or said.values(), key=len, default="")


def _answer(value: object, completions: Sequence[str]) -> str:
    if isinstance(value, str | BaseMessage | Said):
        return text_of(value)
    if is_list(value) and any(_role(item) is not None for item in value):
        return _said_last(value, completions)
    messages = getattr(value, "messages", None)
    if is_list(messages):
        return _said_last(messages, completions)
    return structured_text(value)


def _said_last(messages: Sequence[object], completions: Sequence[str]) -> str:
    """Return what a conversation ends with: the last message of a model after the last question.

    A fixed text behind it, such as a request for feedback, is none that a model has said. A tool
    may answer by itself, and an agent may report to others in messages that bear its name.
    """
    turn = _after_the_question(messages)
    last = turn[-1] if turn else None
    if _role(last) == "tool" and isinstance(last, BaseMessage | Said):
        return text_of(last)
    texts = [text_of(message[1] if is_list(message) else message) for message in turn]
    said = [text for text in texts if text and text in completions]
    return said[-1] if said and texts[-1] else next(iter(texts[-1:]), "")


def _after_the_question(messages: Sequence[object]) -> list[object]:
    turn: list[object] = []
    for message in messages:
        is_named = bool(getattr(message, "name", None))
        if _role(message) in _SPELLINGS["human"] and not is_named:
            turn = []
        elif is_named or _role(message) in (*_SPELLINGS["ai"], "tool"):
            turn.append(message)
    return turn


def _nested_answer(values: Iterable[object], depth: int) -> str:
    """The text of a field that is named as an answer, within structures below an output."""
    held = [dict(_fields(value)) for value in values if not isinstance(value, LangChainDocument)]
    for named in held:
        found = (named.get(key) for key in ANSWER_FIELDS)
        if text := next((t for t in found if isinstance(t, str) and t.strip()), ""):
            return text
    inner = (_nested_answer(named.values(), depth - 1) for named in held if named and depth)
    return next(filter(None, inner), "")


def _only_text(value: Mapping[object, object]) -> str:
    texts = [item for item in value.values() if isinstance(item, str) and item]
    return texts[0] if len(texts) == 1 else ""


def structured_text(value: object) -> str:
    """Return the text of a pydantic model, a dataclass, a mapping, or a list of those.

    The field that is named as an answer where there is one, else all texts by line.
    """
    if is_list(value):
        return join_bounded(filter(None, map(structured_text, value[:MAX_FIELDS])), "\n")
    named = dict(_fields(value))
    arguments = named.get(ARGUMENTS_KEY)
    if is_mapping(arguments):
        return structured_text(arguments)
    found = (named.get(key) for key in ANSWER_FIELDS)
    answer = next((text for text in found if isinstance(text, str) and text.strip()), "")
    return answer or join_bounded(_texts_in(value, MAX_DEPTH), "\n")


def _fields(value: object) -> Iterator[tuple[str, object]]:
    """The fields of an object, without calling code of the user's; none of a document."""
    if isinstance(value, LangChainDocument):
        return
    if isinstance(value, BaseMessage):
        yield "content", content_of(value.content)
    elif is_mapping(value):
        yield from ((str(key), item) for key, item in islice(value.items(), MAX_FIELDS))
    elif isinstance(value, BaseModel):
        yield from islice(vars(value).items(), MAX_FIELDS)
    elif is_dataclass(value):
        yield from ((f.name, getattr(value, f.name, None)) for f in fields(value)[:MAX_FIELDS])


def _texts_in(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield from [value] if value.strip() else []
    elif is_list(value) and depth:
        for item in value[:MAX_FIELDS]:
            yield from _texts_in(item, depth - 1)
    elif depth:
        for name, item in _fields(value):
            if name not in BESIDE_FIELDS:
                yield from _texts_in(item, depth - 1)


# --- messages -----------------------------------------------------------------------------------


def text_of(value: object, role: str | None = None) -> str:
    """Return a text, that of a message, or that of the last message of a role."""
    if isinstance(value, str):
        return value
    if isinstance(value, BaseMessage | Said):
        # What a tool returns in blocks are texts of their own; a model's are parts of one.
        return content_of(value.content, "\n" if value.type == "tool" else "")
    if is_list(value):
        return _last_message(value, role)
    if is_mapping(value):
        return content_of(value.get("content"))
    messages = getattr(value, "messages", None)
    return _last_message(messages, role) if is_list(messages) else ""


def _last_message(messages: Sequence[object], role: str | None) -> str:
    """Return the last message of a role: an object, ``(role, text)`` or ``{role, content}``."""
    for message in reversed(messages):
        if role is None or _role(message) in _SPELLINGS[role]:
            return text_of(message[1] if is_list(message) else message)
    return ""


def _role(message: object) -> object:
    if is_list(message):
        first = message[0] if len(message) == 2 else None
        return first if isinstance(first, str) and first in ROLES else None
    if is_mapping(message):
        return message.get("role", message.get("type")) if "content" in message else None
    return message.type if isinstance(message, BaseMessage | Said) else None


def content_of(content: object, separator: str = "") -> str:
    """Return the text of a message, whose content is a str or a list of blocks."""
    if isinstance(content, str):
        return content
    if not is_list(content):
        return ""
    texts = (block.get("text") if is_mapping(block) else block for block in content)
    return join_bounded((text for text in texts if isinstance(text, str)), separator)


def role_and_text(message: BaseMessage) -> tuple[str, str]:
    """Return OpenInference's role of a message, and its text."""
    # ``ChatMessage`` has its role in a field, and streamed messages are of the type AIMessageChunk.
    role = str(getattr(message, "role", message.type)).removesuffix("MessageChunk").lower()
    return ROLES.get(role, ""), text_of(message)


# --- prompts and completions --------------------------------------------------------------------


def prompt_of(inputs: object) -> str:
    """Return the first prompt; chat models are given one list of messages for each prompt."""
    first = _first_prompt(inputs)
    if isinstance(first, str):
        return first
    # One by one: a conversation may be far longer than what is kept of it.
    return join_bounded(chain.from_iterable(map(_told, prompt_messages(inputs))), "\n")


def _told(message: BaseMessage) -> Iterator[str]:
    """Yield what a model reads of a message: its text, and the texts in blocks of other kinds."""
    yield get_buffer_string([message])
    if is_list(message.content):
        for block in message.content:
            if is_mapping(block) and "text" not in block:
                yield from _texts_in({**block, "type": ""}, MAX_DEPTH)


def prompt_messages(inputs: object) -> list[BaseMessage]:
    """Return the messages of the first prompt; nothing where it is a text."""
    first = _first_prompt(inputs)
    if not is_list(first):
        return []
    contents = first.contents if isinstance(first, Asked) else [None] * len(first)
    pairs = zip(first, contents, strict=False)
    return [_as_asked(m, content) for m, content in pairs if isinstance(m, BaseMessage)]


def _as_asked(message: BaseMessage, content: object) -> BaseMessage:
    """A message with the content that it had when a model was asked."""
    if content is None or message.content is content:
        return message
    return message.model_copy(update={"content": content})


def _first_prompt(inputs: object) -> object:
    return inputs[0] if is_list(inputs) and inputs else ""


def completion_of(result: object) -> str:
    """Return what a model answered: its text, or else what it fills the call of a tool with."""
    if not isinstance(result, LLMResult) or not result.generations or not result.generations[0]:
        return ""
    generation = result.generations[0][0]
    if isinstance(generation, ChatGeneration):
        return content_of(generation.message.content)
    return generation.text


def usage_of(result: LLMResult | None) -> tuple[int | None, int | None]:
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
