"""Finds question and answer in the input and the output of a span, and in the runs of a record.

An input or output is a text, or JSON. The answer of a pipeline of Haystack's stands below the names
of its components.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Final

from claimspan_openinference._kinds import attributes_of, starts_agent
from claimspan_openinference._messages import (
    CUT,
    answered,
    completed,
    inside_of,
    is_conversation,
    is_cut,
    last_asked,
    last_turn,
    parsed,
    prompted,
    shown_event,
    shown_result,
    shown_role,
    shown_text,
    shown_texts,
    text_of_parts,
    user_turns,
)
from claimspan_tracing import semconv
from claimspan_tracing.adapters import (
    ANSWER_NAMES,
    COMPONENT_ANSWERS,
    COMPONENT_NOTES,
    PASSED_ON,
    QUESTION_NAMES,
    Key,
    Run,
    RunKind,
    filled_in,
    is_list,
    is_mapping,
    structured_text,
    texts_in,
    value_at,
)
from claimspan_tracing.adapters import fields_of as plain_fields_of

__all__ = [
    "answer_to",
    "as_said",
    "asked_of",
    "has_answer",
    "question_in",
    "returns_event",
]

QUERY_KEYS: Final = (
    *QUESTION_NAMES,
    *("query_str", "messages", "current_messages", "text", "prompt", "message"),
)
COMMAND: Final = ("graph", "update", "resume", "goto")
"""Fields of LangGraph's ``Command``."""

GIVEN_ANSWERS: Final = ("prediction", "submission", "answer", "generation", "outputs", "response")
"""Names under which a chain is given an answer, to judge it or to go on from it."""

DEEP_NAMES: Final = ("answers", "replies", "last_message")
"""Those that Haystack's outputs have below the names of its components."""

ALTERNATIVES: Final = ("answers", "replies")
"""Names of lists of which the first item counts; of messages the last one does."""

MAX_LEVELS: Final = 4
"""Levels of mappings in one another that are looked into: an input of Haystack has three."""

MAX_PARTS: Final = 100
"""Mappings of one level that are looked into."""

START: Final = "start_event"
"""Name of an input of a workflow of LlamaIndex's, with what it was asked."""

_STOPS: Final = "StopEvent("
"""How the end of a workflow is shown."""

_OBJECT_SHOWN: Final = re.compile(r"[=(\[ ]<\w")
"""How an object of LlamaIndex's or a stream stands in what Python shows."""

_NO_TEXT: Final = (
    _STOPS,
    "<generator object",
    "<async_generator object",
    "<coroutine object",
)
"""How that begins which stands for an answer of LlamaIndex and is none: shown as Python shows it,
it was cut, or was not there when the span ended."""

Part = Mapping[object, object]


def asked_of(root: Run, key: Key | None) -> object:
    """Return the question in the input of a root, or the last message of its user."""
    attributes = attributes_of(root)
    if key is None and (said := _asked_of_root(root)):
        return said
    given = attributes.get(semconv.INPUT_VALUE)
    if key is None and _goes_on(given):
        return _asked_before(root)
    found = question_in(_started_with(root) or given, key)
    return found if key is not None else found or _asked_of_agent(root)


def _asked_of_root(root: Run) -> str:
    """What the user said last in the conversation that the root was given."""
    attributes = attributes_of(root)
    if root.kind is RunKind.GENERATOR:
        return last_asked(attributes)
    if said := last_turn(attributes.get(semconv.INPUT_VALUE)):
        return said
    # OpenInference's LangChain instrumentor writes the first message of a chain's, and no other.
    first = last_asked(attributes)
    talks = (user_turns(attributes_of(run)) for run in root.tree.of_kind(RunKind.GENERATOR))
    return next((turns[-1] for turns in talks if first and first in turns), first)


def _asked_before(root: Run) -> str:
    """The question in the state of a graph that goes on after an interrupt."""
    inputs = (attributes_of(run).get(semconv.INPUT_VALUE) for run in root.tree.runs[1:])
    states = [attributes_of(root).get(semconv.OUTPUT_VALUE), *inputs]
    kept = [state for state in states if is_mapping(parsed(state)) and not _goes_on(state)]
    return next((str(said) for state in kept if (said := question_in(state))), "")


def _asked_of_agent(root: Run) -> str:
    """What the user said to the first model, if an agent asked it, or it called a tool."""
    is_agent = starts_agent(attributes_of(root))
    for run in root.tree.of_kind(RunKind.GENERATOR):
        attributes = attributes_of(run)
        if said := last_asked(attributes):
            said_back = answered(attributes)
            is_answer = said_back and not _calls_in_text(said_back)
            return "" if is_answer and not is_agent else said
    return ""


def answer_to(root: Run, key: Key | None, query_key: Key | None = None) -> object:
    """Return the answer in the output of a root, or the last completion.

    Args:
        root: What was asked.
        key: Where the answer is, as the application says; None tries the usual places.
        query_key: Where the question is, which is no answer though a state may have it.
    """
    attributes = attributes_of(root)
    given, output = attributes.get(semconv.INPUT_VALUE), attributes.get(semconv.OUTPUT_VALUE)
    if key is not None:
        found = answers_in(output, key)[0]
        return found or _filled_fields(root) or structured_text(last_answer(root))
    if root.kind is RunKind.GENERATOR:
        return structured_text(answered(attributes) or last_answer(root))
    if returns_event(root):
        return _event_answer(root)
    # A graph whose state has the question alone has answered nothing yet.
    if output is not None and output in (NOTHING, given):
        return ""
    texts = _answers_of(root, given, output)
    found = _said_last(root, texts) if len(texts) > 1 else next(iter(texts), "")
    # The messages of a graph may hold the question alone, and its answer another field.
    if str(found).strip() == str(asked_of(root, query_key)).strip():
        found = ""
    return found or _filled_fields(root) or structured_text(last_answer(root))


def _answers_of(root: Run, given: object, output: object) -> list[object]:
    """What may be the answer, in the output of a root."""
    read, found = parsed(given), parsed(output)
    if not _is_of_components(read, found):
        return answers_in(output)
    asked, parts = {*texts_in(read)}, _parts(found)
    if answers := _answers_of_components(parts, asked):
        return answers
    text, reply = _only_text(parts, asked), last_answer(root)
    # A word by itself, such as a status, is not what was answered, unless a model said it.
    return [text] if text and (not reply or " " in text.strip() or text in reply) else []


def question_in(value: object, key: Key | None = None) -> object:
    """Return the question in an input.

    Args:
        value: A text, JSON, or nothing.
        key: Where the question is, as the application says; None tries the usual places, from the
            outside in: Haystack's inputs stand below the names of its components.
    """
    # What the user said last in a conversation.
    found = _found(
        value,
        key,
        QUERY_KEYS,
        QUERY_KEYS,
        lambda v: last_turn(v) if is_conversation(v) else _text(v),
    )
    return next(iter(found), "")


def as_said(value: object, depth: int = MAX_LEVELS) -> object:
    """Return a value with the texts of the messages in it, which stand there as Python shows it."""
    if isinstance(value, str):
        return shown_text(value)
    if is_mapping(value) and depth:
        return {key: as_said(each, depth - 1) for key, each in value.items()}
    return [as_said(each, depth - 1) for each in value] if is_list(value) and depth else value


def _started_with(root: Run) -> Mapping[str, object]:
    """Return what a workflow of LlamaIndex's was asked with."""
    given = parsed(attributes_of(root).get(semconv.INPUT_VALUE))
    return (shown_event(given.get(START)) if is_mapping(given) else None) or {}


def answers_in(value: object, key: Key | None = None) -> list[object]:
    """Return what may be the answer in an output: several components of Haystack's may give one."""
    return _found(value, key, ANSWER_NAMES, DEEP_NAMES, _said)


def _answering(root: Run) -> list[Run]:
    """The models below a root that did not rewrite a query for a retriever."""
    models = (run for run in root.tree.of_kind(RunKind.GENERATOR) if run is not root)
    return [run for run in models if not run.has_ancestor(RunKind.RETRIEVER)]


def _filled_fields(root: Run) -> str:
    """Return the fields of an output that a model has filled in with one completion, as text.

    Without what the root was given. Of a pipeline of Haystack's they stand below the name of a
    component.
    """
    attributes = attributes_of(root)
    given = parsed(attributes.get(semconv.INPUT_VALUE))
    output = shown_result(parsed(attributes.get(semconv.OUTPUT_VALUE)))
    fields = fields_of(output)
    asked = fields_of(given)
    new = {name: each for name, each in fields.items() if asked.get(name) != each}
    said = [text for run in _answering(root) if (text := completed(attributes_of(run)))]
    parts = [new, *(fields_of(each) for each in new.values())]
    found = (structured_text(filled_in(part, said, fields_of), fields_of) for part in parts)
    return next(filter(None, found), "")


def fields_of(value: object) -> Mapping[str, object]:
    """Return the fields of a mapping: none of a document."""
    return {} if _is_document(value) else plain_fields_of(value)


def _goes_on(value: object) -> bool:
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
    names: Sequence[str],
    deeper: Sequence[str],
    text_of: Callable[[object], str],
) -> list[object]:
    """What stands under the first name that is there, on the outermost level that has one."""
    given = parsed(value)
    if key is not None:
        return [value_at(given, key)]
    given = shown_result(given)
    if not is_mapping(given):
        return [text_of(given)]
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
        return "" if value.startswith(_NO_TEXT) else shown_text(value)
    if is_mapping(value):
        return text_of_parts(inside_of(value).get("content"))
    # Documents have a content as well, and no role.
    return _text(value[-1]) if is_list(value) and value and not _is_document(value[-1]) else ""


def _is_document(value: object) -> bool:
    return is_mapping(value) and ("page_content" in value or value.get("type") == "Document")


_ID_NAME: Final = re.compile(r"(?:^|_)ids?$")
_OBJECT: Final = re.compile(r"<|\w+\(\w+[=:]")
"""How that begins which is no text, but an object as Python shows it."""

Parts = Sequence[Mapping[object, object]]


def _is_of_components(read: object, found: object) -> bool:
    """Whether input and output of a span are those of a pipeline of Haystack's."""
    has_data = is_mapping(read) and is_mapping(read.get("data"))
    return has_data and is_mapping(found) and 0 < len(found) == len(_parts(found))


def _parts(found: object) -> Parts:
    return [part for part in found.values() if is_mapping(part)] if is_mapping(found) else []


def _answers_of_components(parts: Parts, asked: Set[str]) -> list[object]:
    """Return what may be the answer, of several components that have one under one name.

    Replies come in the order in which their components ran. Of any other name the last component
    has the answer, since it may withhold or replace what those before it have said.
    """
    for name in COMPONENT_ANSWERS:
        found = [text for part in parts if (text := _said_in(part, name))]
        found = [text for text in found if name not in PASSED_ON or text not in asked]
        if found:
            return [*found] if name in DEEP_NAMES else [found[-1]]
    return []


def _only_text(parts: Parts, asked: Set[str]) -> str:
    """Return the only text among outputs of unknown names; empty if there are several."""
    found = set[str]()
    for part in parts:
        names = {str(key) for key in part} - COMPONENT_NOTES
        named = [part[name] for name in names if _ID_NAME.search(name.lower()) is None]
        found |= {text for text in map(_text_of_output, named) if text and text not in asked}
    return structured_text(found.pop()) if len(found) == 1 else ""


def _said_in(part: Mapping[object, object], name: str) -> str:
    value = part.get(name)
    last = value[-1] if is_list(value) and value else value
    role = shown_role(last) if isinstance(last, str) else ""
    if name not in DEEP_NAMES and role not in ("", "assistant"):
        return ""  # a conversation that waits for the assistant
    return _said(_named(part, name))


def _text_of_output(value: object) -> str:
    if not isinstance(value, str) or shown_role(value) not in ("", "assistant"):
        return ""
    text = shown_text(value)
    return "" if text is value and _OBJECT.match(value) else text


NOTHING: Final = "null"
"""Output of a function that returned nothing: what a model said in it was not the answer."""

MIN_SEEN: Final = 20
"""Characters of what a model has said by which it is found in what a workflow has returned."""


def _said_last(root: Run, given: Sequence[object]) -> object:
    """Of several answers the one that was said last, since those before it were thrown away.

    What a model made of the first one, such as a title, is none.
    """
    first = str(given[0])
    for run in root.tree.of_kind(RunKind.GENERATOR)[::-1]:
        said = answered(attributes_of(run))
        found = next((each for each in given if said and str(each) == said), None)
        if found is not None and first not in prompted(attributes_of(run)):
            return found
    return given[0]


def returns_event(root: Run) -> bool:
    """Whether a root is a workflow of LlamaIndex's, of which a span shows how it has ended."""
    attributes = attributes_of(root)
    output = str(attributes.get(semconv.OUTPUT_VALUE, ""))
    return output.startswith(_STOPS) or (
        START in fields_of(parsed(attributes.get(semconv.INPUT_VALUE)))
        and shown_event(output) is not None
    )


def _event_answer(root: Run) -> str:
    """Return what a workflow has returned; empty if its span holds too little of it."""
    output = str(attributes_of(root).get(semconv.OUTPUT_VALUE, ""))
    found = shown_result(output)
    if found is output:
        # A structure that was cut is the one that a model has filled in with all that is seen.
        seen = shown_texts(output)
        if not seen or _OBJECT_SHOWN.search(output):
            return structured_text(last_answer(root))
        said = (completed(attributes_of(run)) for run in _answering(root)[::-1])
        whole = (text for text in said if all(each in text for each in seen))
        return structured_text(next(whole, ""))
    fields = {name: _whole(root, each) for name, each in fields_of(found).items()}
    if not fields:
        return structured_text(_whole(root, found), fields_of)
    if named := next(filter(None, answers_in(fields)), ""):
        return str(named)
    lost = (name for name, each in fields_of(found).items() if is_cut(each) and not fields[name])
    return "" if any(lost) else structured_text(fields, fields_of)


def _whole(root: Run, shown: object) -> object:
    """What an event has shown; of a text that was cut the whole, None if no run has it.

    A model may have said but the end of what is seen: the workflow has put words before it.
    """
    if not isinstance(shown, str) or not is_cut(shown):
        return shown
    beginning = shown.removesuffix(CUT)
    said = [answered(attributes_of(run)) for run in root.tree.of_kind(RunKind.GENERATOR)[::-1]]
    outputs = [attributes_of(run).get(semconv.OUTPUT_VALUE) for run in root.tree.runs[:0:-1]]
    texts = [*said, *(each for each in outputs if isinstance(each, str))]
    whole = (text for text in texts if text.startswith(beginning))
    parts = (text for text in said if _begins_in(beginning, text))
    return next(whole, None) or next(parts, None)


def _begins_in(beginning: str, text: str) -> bool:
    """Whether what is seen ends as a text begins, with words of the workflow's before it."""
    at = beginning.find(text[:MIN_SEEN]) if len(text) >= MIN_SEEN else -1
    return at >= 0 and text.startswith(beginning[at:])


def last_answer(root: Run) -> str:
    """What the last model said that answered, and that did not rewrite the query."""
    said = (answered(attributes_of(run)) for run in _answering(root)[::-1])
    found = next(filter(None, said), "")
    return _final_answer(found)


_CALL: Final = re.compile(r"^[ \t]*Action:[ \t]*\S.*\n[ \t]*Action Input:", re.MULTILINE)

_ANSWER: Final = re.compile(r"\s*Thought:.*?\n[ \t]*(?:Final )?Answer:\s*(.+)", re.DOTALL)


def _calls_in_text(said: str) -> bool:
    """Whether a model has called a tool in its text, as an agent without tool calls does."""
    return _CALL.search(said) is not None


def _final_answer(said: str) -> str:
    """Return the answer after a thought; empty for a call, and any other text as it is."""
    if _calls_in_text(said):
        return ""
    found = _ANSWER.match(said)
    return found.group(1).strip() if found else said
