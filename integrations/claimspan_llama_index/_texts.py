"""Reads question, answer and prompt out of the arguments and results that the hooks have taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from typing import Final

from claimspan_llama_index._snapshots import Answer, Call, Fields, Said, ToolResult
from claimspan_llama_index._streams import StreamedAnswer
from claimspan_tracing.adapters import fields_of as plain_fields_of
from claimspan_tracing.adapters import is_list, is_mapping, join_bounded, structured_text

__all__ = [
    "STRUCTURE",
    "answer_in",
    "fields_of",
    "given_to",
    "is_answer",
    "items",
    "messages_in",
    "question_in",
    "question_of",
]

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

STRUCTURE: Final = "structured_response"
"""Where an agent has its structured answer."""

RESPONSE_KEYS: Final = (
    STRUCTURE,
    "response",
    "answer",
    "result",
    "output",
    "text",
    "message",
    "summary",
    "content",
)
"""Where results have the answer. An agent has a structured one beside its message."""


# --- questions ----------------------------------------------------------------------------------


def question_of(call: Call) -> str:
    """Return the question among the arguments of a call."""
    return _question_among(call.flat())


def question_in(value: object) -> str:
    """Return the text of a question: a text, a message, the last one of a person, or an event."""
    match value:
        case str():
            return value
        case Said():
            return value.text
        case Fields():
            return _question_among(value)
        case _:
            asked = [each for each in messages_in(value) if each.role == "user"]
            return asked[-1].text if asked else ""


def _question_among(named: Mapping[str, object]) -> str:
    texts = (question_in(named.get(key)) for key in QUERY_KEYS)
    # An unknown name counts only where there is no choice: a wrong text is worse than none.
    others = [value for value in named.values() if isinstance(value, str) and value]
    return next(filter(None, texts), others[0] if len(others) == 1 else "")


# --- answers ------------------------------------------------------------------------------------


def is_answer(value: object) -> bool:
    """Whether a result says by its type what was answered, also where that is nothing."""
    if isinstance(value, Fields):
        return any(isinstance(value.get(key), str | Said | Answer) for key in RESPONSE_KEYS)
    return value is None or isinstance(value, str | Said | Answer | StreamedAnswer | ToolResult)


def answer_in(value: object, *, is_structured: bool = False) -> str:
    """Return the text in the result of a query engine, chat engine, agent, model or workflow.

    Args:
        value: The result.
        is_structured: Whether all of it is the answer, as in a user's own model.
    """
    match value:
        case str():
            return value
        case StreamedAnswer():
            return join_bounded(value.parts)
        case Said() | ToolResult():
            return value.text
        case Answer():
            return answer_in(value.said, is_structured=True)
        case _ if not is_structured:
            return "" if is_list(value) else _answer_among(_fields(value))
        case _:
            # A conversation has questions as well.
            return "" if messages_in(value) else structured_text(value, fields_of)


def _answer_among(named: Mapping[str, object]) -> str:
    """Return the text of the first usual field that has one."""
    found = (named[key] for key in RESPONSE_KEYS if named.get(key) is not None)
    texts = (answer_in(each, is_structured=True) for each in found)
    return next(filter(None, texts), _blocks(named.get("blocks")))


def fields_of(value: object) -> Mapping[str, object]:
    """Return the fields of an object that was taken: of what says an answer, that alone."""
    if isinstance(value, _SAID):
        return {"answer": answer_in(value)}
    named = _fields(value)
    if said := named.get(STRUCTURE) or _blocks(named.get("blocks")):
        return {"answer": said}
    said = next((named[key] for key in RESPONSE_KEYS if isinstance(named.get(key), _SAID)), None)
    return named if said is None else {"answer": said}


_SAID: Final = (Said, Answer, StreamedAnswer, ToolResult)


def _fields(value: object) -> Mapping[str, object]:
    """The fields of a mapping or of the user's own object; none of what is LlamaIndex's or ours."""
    if is_mapping(value) or (
        is_dataclass(value) and not type(value).__module__.startswith(_OTHERS)
    ):
        return plain_fields_of(value)
    inner: object = getattr(value, "response", None)
    return {"response": inner} if isinstance(inner, str) else {}


_OTHERS: Final = ("llama_index.", "workflows.", "claimspan_")
"""Beginnings of the modules whose dataclasses are documents, events and the like."""


def _blocks(blocks: object) -> str:
    """Return the text of a message that a workflow has turned into a dict."""
    texts = [block.get("text") for block in items(blocks) if is_mapping(block)]
    return join_bounded((text for text in texts if isinstance(text, str)), "\n")


# --- prompts ------------------------------------------------------------------------------------


def given_to(call: Call) -> object:
    """Return what a model was given: a text or messages."""
    named = call.flat()
    # The LLM callbacks of LlamaIndex wrap a method as ``(self, *args, **kwargs)``.
    positional = [*items(named.get("args")), ""]
    return named.get("messages") or named.get("prompt") or positional[0]


def messages_in(value: object) -> list[Said]:
    """Return the messages of a list."""
    return [each for each in items(value) if isinstance(each, Said)]


def items(value: object) -> Sequence[object]:
    """Return the items of a list; nothing of any other value."""
    return value if is_list(value) else ()
