"""Finds the question in LangChain's inputs, and the answer in its outputs.

LangChain prescribes no shape for the input and the output of a chain, so the usual names are tried
in the order of the constants below.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from langchain_core.documents import Document as LangChainDocument
from langchain_core.messages import BaseMessage

from claimspan_langchain._messages import SPELLINGS, Said, role_of, text_of
from claimspan_langchain._structures import Structure, fields_of
from claimspan_tracing.adapters import (
    ANSWER_FIELDS,
    is_list,
    is_mapping,
    structured_text,
    texts_in,
)

__all__ = ["answer_in", "question_in"]

QUERY_KEYS: Final = ("question", "query", "input", "user_input", "user_query", "messages")
RESPONSE_KEYS: Final = (
    "structured_response",
    "parsed",
    "final_answer",
    "answer",
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

MAX_DEPTH: Final = 4
"""Levels of an output in which a field is looked for that is named as an answer."""


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
    if isinstance(value, str):
        return value  # as most answers are
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
    return _said_at_once(new, completions) or _said_by_a_model(texts, completions)


_NOTHING: Final[Mapping[object, object]] = {}


def _said_at_once(output: Mapping[object, object], completions: Sequence[str]) -> str:
    """The text of an output whose fields a model filled in with one completion.

    Empty where a function made some of them.
    """
    texts = [*texts_in(output, fields_of)]
    as_json = [(text, json.dumps(text)[1:-1]) for text in texts]
    is_one = any(all(any(f in said for f in forms) for forms in as_json) for said in completions)
    return structured_text(output, fields_of) if texts and is_one else ""


def _said_by_a_model(texts: Mapping[str, str], completions: Sequence[str]) -> str:
    """The only text, that of the key that is named as an answer, or the longest of a model's."""
    if len(texts) <= 1:
        return next(iter(texts.values()), "")
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
    if is_list(value) and any(role_of(item) is not None for item in value):
        return _said_last(value, completions)
    messages = getattr(value, "messages", None)
    if is_list(messages):
        return _said_last(messages, completions)
    return structured_text(value, fields_of)


def _said_last(messages: Sequence[object], completions: Sequence[str]) -> str:
    """Return what a conversation ends with: the last message of a model after the last question.

    A fixed text behind it, such as a request for feedback, is none that a model has said. A tool
    may answer by itself, and an agent may report to others in messages that bear its name.
    """
    turn = _after_the_question(messages)
    last = turn[-1] if turn else None
    if role_of(last) == "tool" and isinstance(last, BaseMessage | Said):
        return text_of(last)
    texts = [text_of(message[1] if is_list(message) else message) for message in turn]
    said = [text for text in texts if text and text in completions]
    return said[-1] if said and texts[-1] else next(iter(texts[-1:]), "")


def _after_the_question(messages: Sequence[object]) -> list[object]:
    turn: list[object] = []
    for message in messages:
        is_named = bool(getattr(message, "name", None))
        if role_of(message) in SPELLINGS["human"] and not is_named:
            turn = []
        elif is_named or role_of(message) in (*SPELLINGS["ai"], "tool"):
            turn.append(message)
    return turn


def _nested_answer(values: Iterable[object], depth: int) -> str:
    """The text of a field that is named as an answer, within structures below an output."""
    held = [fields_of(value) for value in values if not isinstance(value, LangChainDocument)]
    for named in held:
        found = (named.get(key) for key in ANSWER_FIELDS)
        if text := next((t for t in found if isinstance(t, str) and t.strip()), ""):
            return text
    inner = (_nested_answer(named.values(), depth - 1) for named in held if named and depth)
    return next(filter(None, inner), "")


def _only_text(value: Mapping[object, object]) -> str:
    texts = [item for item in value.values() if isinstance(item, str) and item]
    return texts[0] if len(texts) == 1 else ""
