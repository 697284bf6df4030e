"""Finds question and answer in the input and the output of a span, which are a text or JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from claimspan_openinference._messages import inside_of, parsed, text_of_parts
from claimspan_openinference._shown import is_shown, shown_result, shown_text
from claimspan_openinference._turns import is_conversation, last_turn
from claimspan_tracing.adapters import Key, is_list, is_mapping, structured_text, value_at

__all__ = [
    "DEEP_RESPONSE_KEYS",
    "answer_in",
    "answers_in",
    "goes_on",
    "has_answer",
    "question_in",
    "said_under",
]

QUERY_KEYS: Final = (
    "question",
    "query",
    "input",
    "query_str",
    "user_input",
    "messages",
    "current_messages",
    "text",
    "prompt",
    "message",
)
RESPONSE_KEYS: Final = (
    "final_answer",
    "answer",
    "answers",
    "result",
    "response",
    "replies",
    "generation",
    "output",
    "output_text",
    "text",
    "last_message",
    "messages",
)
COMMAND: Final = ("graph", "update", "resume", "goto")
"""Fields of LangGraph's ``Command``."""

GIVEN_ANSWERS: Final = ("prediction", "submission", "answer", "generation", "outputs", "response")
"""Names under which a chain is given an answer, to judge it or to go on from it."""

DEEP_RESPONSE_KEYS: Final = ("answers", "replies", "last_message")
"""Those that Haystack's outputs have below the names of its components."""

ALTERNATIVES: Final = ("answers", "replies")
"""Names of lists of which the first item counts; of messages the last one does."""

MAX_LEVELS: Final = 4
"""Levels of mappings in one another that are looked into: an input of Haystack has three."""

MAX_PARTS: Final = 100
"""Mappings of one level that are looked into."""

_NO_TEXT: Final = (
    "StopEvent(",
    "<generator object",
    "<async_generator object",
    "<coroutine object",
)
"""How that begins which stands for an answer of LlamaIndex and is none: shown as Python shows it,
it was cut, or was not there when the span ended."""

Part = Mapping[object, object]


def question_in(value: object, key: Key | None = None) -> object:
    """Return the question in an input.

    Args:
        value: A text, JSON, or nothing.
        key: Where the question is, as the application says; None tries the usual places, from the
            outside in: Haystack's inputs stand below the names of its components.
    """
    return next(iter(_found(value, key, (QUERY_KEYS, QUERY_KEYS), _asked)), "")


def answer_in(value: object, key: Key | None = None) -> object:
    """Return the answer in an output, in the same way."""
    return next(iter(answers_in(value, key)), "")


def answers_in(value: object, key: Key | None = None) -> list[object]:
    """Return what may be the answer in an output: several components of Haystack's may give one."""
    return _found(value, key, (RESPONSE_KEYS, DEEP_RESPONSE_KEYS), _said)


def said_under(part: Part, name: str) -> str:
    """Return what a component of a pipeline has said under a name; empty where it has not."""
    return _said(_named(part, name))


def goes_on(value: object) -> bool:
    """Whether an input asks nothing, and has a graph of LangGraph's go on from a state it keeps."""
    given = parsed(value)
    return given == "null" or (is_mapping(given) and all(name in given for name in COMMAND))


def has_answer(value: object) -> bool:
    """Whether an input holds an answer already."""
    given = parsed(value)
    found = [given.get(name) for name in GIVEN_ANSWERS] if is_mapping(given) else []
    return any(isinstance(each, str) and each.strip() for each in found)


def _found(
    value: object,
    key: Key | None,
    named: tuple[Sequence[str], Sequence[str]],
    text_of: Callable[[object], str],
) -> list[object]:
    """What stands under the first name that is there, on the outermost level that has one."""
    given = parsed(value)
    if key is not None:
        return [value_at(given, key)]
    given = shown_result(given)
    if not is_mapping(given):
        return [text_of(given)]
    names, deeper = named
    level: list[Part] = [given]
    for _ in range(MAX_LEVELS):
        for name in names:
            if texts := [text for part in level if (text := text_of(_named(part, name)))]:
                return [*texts]
        level = [each for part in level for each in part.values() if is_mapping(each)][:MAX_PARTS]
        names = deeper
    return []


def _named(part: Part, name: str) -> object:
    value = part.get(name)
    return value[:1] if name in ALTERNATIVES and is_list(value) else value


def _asked(value: object) -> str:
    """Return a text, or what the user said last in a conversation."""
    return last_turn(value) if is_conversation(value) else _text(value)


def _said(value: object) -> str:
    """Return a text, or those of a structured answer."""
    text = _text(value)
    if text or not _is_structure(value):
        return structured_text(text)
    # Haystack's component may have the name of its output, or of another one.
    return _text(structured_text(value))


def _is_structure(value: object) -> bool:
    """Whether a value is a mapping that is neither a document nor a message, or a list of such."""
    if is_list(value):
        return bool(value) and all(is_mapping(each) and _is_structure(each) for each in value)
    return is_mapping(value) and not _is_document(value) and "role" not in inside_of(value)


def _text(value: object) -> str:
    """Return a text, the content of a message, or that of the last message of a list."""
    if isinstance(value, str):
        return "" if value.startswith(_NO_TEXT) else shown_text(value) if is_shown(value) else value
    if is_mapping(value):
        return text_of_parts(inside_of(value).get("content"))
    # Documents have a content as well, and no role.
    return _text(value[-1]) if is_list(value) and value and not _is_document(value[-1]) else ""


def _is_document(value: object) -> bool:
    return is_mapping(value) and ("page_content" in value or value.get("type") == "Document")
