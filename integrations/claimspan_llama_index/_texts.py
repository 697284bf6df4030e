"""Reads question, answer and prompt out of the arguments and results that the hooks have taken."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from claimspan_llama_index._snapshots import Answer, Call, Fields, Said, ToolResult
from claimspan_llama_index._streams import StreamedAnswer
from claimspan_tracing.adapters import is_list, is_mapping, join_bounded

__all__ = [
    "answer_in",
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

RESPONSE_KEYS: Final = (
    "structured_response",
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

MAX_DEPTH: Final = 5
"""How deep a structured answer is read."""


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
        is_structured: Whether any text in it is part of the answer, as in a user's own model.
    """
    match value:
        case str():
            return value
        case StreamedAnswer():
            return join_bounded(value.parts)
        case Said():
            return value.text
        case ToolResult():
            return value.text
        case Answer():
            return answer_in(value.said, is_structured=True)
        case _ if is_mapping(value):
            return _answer_among(value, is_structured=is_structured)
        case _:
            # An object of the user's own.
            inner: object = getattr(value, "response", None)
            return inner if isinstance(inner, str) else ""


def _answer_among(named: Mapping[object, object], *, is_structured: bool) -> str:
    """Return the text of the first usual field that has one, or all of a structured answer."""
    texts = (answer_in(named.get(key), is_structured=True) for key in RESPONSE_KEYS)
    found = next(filter(None, texts), _blocks(named.get("blocks")))
    if found or not is_structured:
        return found
    return join_bounded(_texts(named), "\n")


def _texts(value: object, depth: int = 0) -> Iterator[str]:
    """The texts in the fields of a structured answer, in their order."""
    if isinstance(value, str):
        if value:
            yield value
    elif depth < MAX_DEPTH:
        for each in value.values() if is_mapping(value) else items(value):
            yield from _texts(each, depth + 1)


def structured(text: str) -> str:
    """Return the texts of an answer that a model has given as JSON; others as they are."""
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return answer_in(found, is_structured=True) if is_mapping(found) else text


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
