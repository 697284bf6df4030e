"""Reads what a model was told and what it said, in the words of those who wrote it into a span.

OpenInference has attributes for it. What is no JSON stands there as Python shows it, as Haystack's
and LlamaIndex's messages do.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import count, islice
from typing import Final

from claimspan_openinference._kinds import MIN_TOOL_TEXT, Attributes, flattened
from claimspan_tracing import semconv
from claimspan_tracing.adapters import (
    ROLES,
    arguments_of,
    is_echo,
    is_list,
    is_mapping,
    join_bounded,
    written_evidence,
)

__all__ = [
    "ASSISTANT",
    "CUT",
    "TOOL",
    "USER",
    "Message",
    "answered",
    "arguments_in",
    "as_attribute",
    "called",
    "completed",
    "inside_of",
    "is_conversation",
    "is_cut",
    "is_told_evidence",
    "is_told_to_grade",
    "last_asked",
    "last_turn",
    "messages_in",
    "messages_of",
    "parsed",
    "prompted",
    "role_of",
    "shown_event",
    "shown_result",
    "shown_role",
    "shown_text",
    "shown_texts",
    "text_of_parts",
    "tool_results",
    "user_turns",
]

ASSISTANT: Final = "assistant"
TOOL: Final = "tool"
USER: Final = "user"
TOLD: Final = ("system", "user")
"""Roles of the messages in which an application tells a model what to answer from."""

MAX_LOOKED_AT: Final = 64 * 1024
"""Characters of a message in which evidence is looked for, on the application's thread."""

MAX_INSTRUCTION: Final = 200
"""Characters at the beginning of a prompt that say what the model is to do."""

_GRADING: Final = re.compile(
    r"""
    \byou\ are\ an?\ (?:[\w-]+\ ){0,4}(?:grader|evaluator|evaluation\ system|judge)\b
    | \bgrading\ (?:a|an|the)\ (?:quiz|answer|response|submission|document)\b
    | \b(?:assess|evaluat)ing\ (?:the\ )?(?:relevance|quality|whether|if)\b
    | \byour\ task\ is\ to\ evaluate\b
    | \bplease\ tell\ if\ a\ given\ piece\ of\ information\s+is\ supported\ by\ the\ context\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""What checks of documents and answers begin with, those of LangChain, LangGraph and LlamaIndex."""

_FAILED: Final = '"status": "error"'
_SHOWN_FAILED: Final = "error=True)], _name="
"""How a message of LangChain's, and one of Haystack's, is written whose tool has failed."""

_SHOWN_FIRST: Final = '{"messages": ["ChatMessage(_role='

Said = list[tuple[object, object]]


def parsed(value: object) -> object:
    """Return the parsed JSON, or the value itself where it is none."""
    # Most inputs are plain text, and parsing those as JSON would fail at some cost.
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[", '"')):
        return value
    try:
        found: object = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return found


def messages_of(attributes: Attributes) -> Said:
    """Role and text of each message that a model read; nothing where they were not recorded."""
    given = attributes.get(semconv.INPUT_VALUE)
    # Of a model of Haystack's only the input has what its tools have returned.
    is_shown_there = isinstance(given, str) and given.startswith(_SHOWN_FIRST)
    shown = messages_in(parsed(given)) if is_shown_there else ()
    return [(each.role, each.text) for each in shown] or list(_numbered(attributes))


def last_asked(attributes: Attributes) -> str:
    """What the user of a model or an agent said last; empty where no messages were recorded."""
    return next(iter(user_turns(attributes)[-1:]), "")


def user_turns(attributes: Attributes) -> list[str]:
    """Everything that the user of a model or an agent has said."""
    return [str(text) for role, text in messages_of(attributes) if role == USER]


def prompted(attributes: Attributes) -> str:
    """Everything that a model read, as one text; empty where it was not recorded."""
    said = messages_of(attributes)
    if said:
        return join_bounded((str(text) for _, text in said), "\n")
    listed = attributes.get(semconv.LLM_PROMPTS)
    texts = [str(text) for text in listed] if is_list(listed) else []
    texts = texts or [*flattened(attributes, semconv.completion_prompt)]
    return join_bounded(texts, "\n") or str(attributes.get(semconv.INPUT_VALUE, ""))


def answered(attributes: Attributes) -> str:
    """The first completion of a model; empty where it said nothing, or called a tool."""
    content = attributes.get(semconv.output_message(0, semconv.MESSAGE_CONTENT))
    if content is not None:
        return str(content)
    parts = [*flattened(attributes, partial(semconv.output_part, 0))]
    if parts:
        return join_bounded(parts, "\n")
    if choice := next(flattened(attributes, semconv.completion_choice), ""):
        return choice
    if semconv.output_message(0, semconv.MESSAGE_ROLE) in attributes:
        return ""  # a call of a tool, of which the output is the JSON
    output = parsed(attributes.get(semconv.OUTPUT_VALUE, ""))
    named: Mapping[object, object] = output if is_mapping(output) else {}
    if "messages" in named:
        return ""  # what LlamaIndex makes ready for a model, in a span of that kind
    # A completion of LlamaIndex's has its text beside what its provider has sent.
    text = named.get("text")
    return text if isinstance(text, str) else str(attributes.get(semconv.OUTPUT_VALUE, ""))


def completed(attributes: Attributes) -> str:
    """The first completion of a model, or else what it has filled in the calls of tools with."""
    if said := answered(attributes):
        return said
    return arguments_of([*flattened(attributes, partial(semconv.output_arguments, 0))])


def is_told_evidence(attributes: Attributes) -> bool:
    """Whether a prompt has what a tool has returned, or announces material to answer from."""
    if any(r == TOOL and len(str(text)) >= MIN_TOOL_TEXT for r, text in messages_of(attributes)):
        return True
    return bool(written_evidence([text[:MAX_LOOKED_AT] for text in _told(attributes)], ""))


def tool_results(attributes: Attributes) -> list[str]:
    """What tools have found for a model: one that failed has not, nor one that repeats its call."""
    said = messages_of(attributes)
    results = [str(text) for role, text in said if role == TOOL]
    names = (partial(semconv.input_arguments, index) for index in range(len(said)))
    calls = (each for name in names for each in flattened(attributes, name))
    given = [each for call in calls for each in arguments_in(call)] if results else []
    failed = {*_failed_in(attributes.get(semconv.INPUT_VALUE))}
    return [text for text in results if text not in failed and not is_echo(text, given)]


def arguments_in(call: object) -> list[object]:
    """What a tool was called with: the values of a mapping, which may stand under one name."""
    given = parsed(call)
    values = [*given.values()] if is_mapping(given) else [given]
    return values + [each for value in values if is_mapping(value) for each in value.values()]


def _failed_in(value: object) -> Iterator[str]:
    """The messages of a model whose tool has failed, if only the input tells that."""
    if not isinstance(value, str) or not (_FAILED in value or _SHOWN_FAILED in value):
        return
    found = parsed(value)
    prompts = found.get("messages") if is_mapping(found) else None
    shown = prompts if is_list(prompts) else ()
    yield from (shown_text(e) for e in shown if isinstance(e, str) and _SHOWN_FAILED in e)
    for message in prompts[0] if is_list(prompts) and prompts and is_list(prompts[0]) else ():
        if is_mapping(message) and (inside := inside_of(message)).get("status") == "error":
            yield text_of_parts(inside.get("content"))


def is_told_to_grade(attributes: Attributes) -> bool:
    """Whether a prompt begins as those do that check a document or an answer."""
    beginning = next(iter(_told(attributes)), "")[:MAX_INSTRUCTION]
    return _GRADING.search(beginning) is not None


def _told(attributes: Attributes) -> list[str]:
    """What a prompt says itself: the messages of the system and the user, or all of it."""
    said = [str(text) for role, text in messages_of(attributes) if role in TOLD]
    return said or [prompted(attributes)]


def text_of_parts(value: object) -> str:
    """The text of a message's content: of parts what was said, and what tools have returned."""
    if isinstance(value, str):
        return value
    items: Sequence[object] = value if is_list(value) else ()
    return join_bounded(filter(None, map(_text_of_part, items)), "\n")


def inside_of(message: Mapping[object, object]) -> Mapping[object, object]:
    """The part of a message that has its content.

    LangChain serialises a message as ``{"kwargs": {"content": ...}}``, older releases under
    ``data``.
    """
    inside = message.get("kwargs", message.get("data"))
    return inside if is_mapping(inside) else message


def _numbered(attributes: Attributes) -> Iterator[tuple[object, object]]:
    """Messages in OpenInference's form: one attribute for each field of each message."""
    for index in count():
        role = attributes.get(semconv.input_message(index, semconv.MESSAGE_ROLE))
        text = attributes.get(semconv.input_message(index, semconv.MESSAGE_CONTENT))
        if text is None:
            text = join_bounded(flattened(attributes, partial(semconv.input_part, index)), "\n")
        if role is None and not text:
            return
        yield role_of(role), text


def _text_of_part(part: object) -> str:
    if isinstance(part, str):
        return part
    if not is_mapping(part):
        return ""
    told = (part.get(name) for name in ("content", "text", "response", "result"))
    found = next((each for each in told if each), "")
    return found if isinstance(found, str) else json.dumps(found, default=str)


def role_of(role: object) -> object:
    """Return a role as it is called here."""
    # Haystack's roles are members of an enumeration.
    name = str(role.value if isinstance(role, Enum) else role).lower()
    return ROLES.get(name, name)


_LITERAL: Final = r"""( '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" )"""

_TEXT: Final = re.compile(
    r"(?:TextContent\(text|TextBlock\(block_type='text',\ text|ToolCallResult\(result"
    r"|GeneratedAnswer\(data|ExtractedAnswer\(.{0,4000}?data)=" + _LITERAL,
    re.VERBOSE | re.DOTALL,
)
"""The text in what messages and answers are shown as."""

_ROLE: Final = re.compile(r"ChatMessage\(_?role=<\w+\.\w+: '(\w+)'>")

SHOWN_CHARACTERS: Final = 50
"""Characters that LlamaIndex shows of a text that a workflow returns; then come three dots."""

CUT: Final = "..."

_EVENT: Final = re.compile(r"[A-Z]\w*\((?:\w+=|\)$)")
"""How an event is shown: its class, and its fields."""

_RESPONSE: Final = re.compile(r"StopEvent\(result=\w*Response\(response=" + _LITERAL, re.VERBOSE)
"""How the result begins that an engine has returned, whose sources are cut off."""

_SHOWN_TEXT: Final = re.compile(_LITERAL, re.VERBOSE)

_ANSWERS: Final = ("GeneratedAnswer(", "ExtractedAnswer(")
_CLASSES: Final = ("ChatMessage(", *_ANSWERS)


def shown_role(value: str) -> str:
    """Return the role of a message; empty where it is none."""
    found = _ROLE.match(value)
    return found.group(1) if found else ""


def shown_text(value: str) -> str:
    """Return the text of a message or an answer, empty where it has none; any other as it is."""
    if not value.startswith(_CLASSES):
        return value
    found = _TEXT.finditer(value)
    try:
        # An answer of Haystack's holds the messages behind it as well, which say the same.
        kept = islice(found, 1) if value.startswith(_ANSWERS) else found
        texts = [str(ast.literal_eval(each.group(1))) for each in kept]
    except (ValueError, SyntaxError):  # it was cut, or is no message after all
        return value
    return "\n".join(texts)


def shown_result(value: object) -> object:
    """Return what a workflow of LlamaIndex's returned; the value itself if that is not seen.

    That is the result of its ``StopEvent``, or the fields of an event of the user's own.
    """
    fields = shown_event(value)
    if fields is None:
        response = _RESPONSE.match(value) if isinstance(value, str) else None
        return value if response is None else _as_shown(response.group(1))
    found = fields.get("result", fields)
    return value if found is None or not fields else found


def shown_event(value: object) -> dict[str, object] | None:
    """Return the fields of an event of LlamaIndex's; None if a text is none, or was cut."""
    if not isinstance(value, str) or not _EVENT.match(value):
        return None
    found = _as_shown(value)
    return {str(k): each for k, each in found.items()} if is_mapping(found) else None


def is_cut(text: object) -> bool:
    """Whether of a text in an event only the beginning is shown."""
    return isinstance(text, str) and len(text) == SHOWN_CHARACTERS + len(CUT) and text.endswith(CUT)


def shown_texts(value: str) -> list[str]:
    """Return the texts, whole ones, in a value as Python shows it, also if that was cut."""
    found = (_as_shown(each.group(1)) for each in _SHOWN_TEXT.finditer(value))
    return [each for each in found if isinstance(each, str)]


def _as_shown(shown: str) -> object:
    """What Python shows as a text: of an object its fields. Empty if that cannot be read."""
    try:
        return _value(ast.parse(shown.strip(), mode="eval").body)
    except (ValueError, SyntaxError, RecursionError, MemoryError):  # it was cut, or is an object
        return ""


def _value(node: ast.expr) -> object:
    match node:
        case ast.Call():
            return {each.arg: _value(each.value) for each in node.keywords if each.arg}
        case ast.Dict():
            pairs = zip(node.keys, node.values, strict=True)
            return {ast.literal_eval(k): _value(v) for k, v in pairs if k is not None}
        case ast.List() | ast.Tuple():
            return [_value(each) for each in node.elts]
        case ast.Constant():
            return node.value
        case _:
            return None


def last_turn(value: object) -> str:
    """Return what the user said last in an input that is a conversation, or has one.

    Empty if it is none, or if no user speaks in it.
    """
    found = parsed(value)
    messages = messages_in(found.get("messages") if is_mapping(found) else found)
    said = (each.text for each in reversed(messages) if each.role == USER)
    return next(filter(None, said), "")


def is_conversation(value: object) -> bool:
    """Whether a value is a list of messages that tell who has said them."""
    return is_list(value) and any(each.role in ROLES for each in messages_in(value))


# --- messages in a value --------------------------------------------------------------------------


MAX_NESTED: Final = 20
"""Levels of lists and objects in one another in which messages are looked for."""

_LISTS: Final = ("messages", "replies", "choices", "generations", "prompt", "input", "output")
"""Names under which the input or the output of a model has its messages."""

_NAMED: Final = ("tool_call_result", "toolResult", "tool_call", "toolUse")
"""Names under which Haystack and Bedrock have a part, in place of its type."""

_RESULTS: Final = (
    *("tool_call_response", "tool-result", "tool_result", "function_call_output"),
    *_NAMED[:2],
)
_CALLS: Final = ("tool_call", "tool-call", "tool_use", "function_call", *_NAMED[2:])
"""Types of messages and of their parts."""


@dataclass(frozen=True, slots=True)
class Message:
    """What one has said in a conversation."""

    role: str
    """Empty if it does not say who has said it."""

    text: str
    calls: Sequence[object] = ()
    """The calls of tools in it."""


def messages_in(value: object, depth: int = MAX_NESTED) -> list[Message]:
    """Return those in a value: a text, a message, a list of these, or an object that has one."""
    if isinstance(value, str):
        return [Message(shown_role(value), shown_text(value))] if value else []
    if is_list(value):
        match value:
            case [str(role), str(text)] if role.lower() in ROLES:
                return [Message(ROLES[role.lower()], text)]
            case _:
                return [found for each in value if depth for found in messages_in(each, depth - 1)]
    if not is_mapping(value) or not depth:
        return []
    if value.get("type") in (*_RESULTS, *_CALLS):  # OpenAI has them beside its messages
        return [*_parts_of({"content": [value]})]
    named = next((value[name] for name in _LISTS if value.get(name)), None)
    if named is None or "role" in value:
        inner = value.get("message")  # of a choice, or of a generation
        return messages_in(inner, depth - 1) if is_mapping(inner) else [*_parts_of(value)]
    system = value.get("system")
    before = [Message("system", system)] if isinstance(system, str) else []
    return [*before, *messages_in(named, depth - 1)]


def _parts_of(message: Mapping[object, object]) -> Iterator[Message]:
    """A message, with what tools have returned as messages of their own."""
    inside = inside_of(message)
    named = (each.get(name) for each in (inside, message) for name in ("role", "type"))
    role = str(role_of(next(filter(None, named), "")))
    content = inside.get("parts", inside.get("content", inside.get("text")))
    calls = inside.get("tool_calls")
    texts: list[object] = []
    called = [*calls] if is_list(calls) else []
    for part in content if is_list(content) else (content,):
        if not is_mapping(part):
            texts.append(part)
            continue
        kind = next((name for name in _NAMED if name in part), part.get("type", "text"))
        inner = part.get(kind)
        of_kind = inner if is_mapping(inner) else part
        if kind in _RESULTS:
            yield Message(TOOL, _result(of_kind))
        elif kind in _CALLS:
            called.append(of_kind)
        elif str(kind).endswith("text"):  # and neither thoughts nor images
            texts.append(text_of_parts([part]))
    text = "\n".join(each for each in texts if isinstance(each, str) and each)
    if text or called:
        yield Message(role, text, called)


def _result(part: Mapping[object, object]) -> str:
    """What a tool has returned, as a text."""
    names = ("response", "result", "output", "content")
    found = next((part[name] for name in names if name in part), "")
    if is_mapping(found) and {*found} == {"type", "value"}:  # Vercel's
        found = found["value"]
    are_parts = is_list(found) and all(
        is_mapping(e) and (e.get("type") == "text" or {*e} == {"text"}) for e in found
    )
    return text_of_parts(found) if are_parts else str(as_attribute(found))


def called(call: object) -> tuple[object, object]:
    """Return name and arguments of a call of a tool."""
    inner: object = call.get("function", call) if is_mapping(call) else None
    fields: Mapping[object, object] = inner if is_mapping(inner) else {}
    name = next((fields[n] for n in ("name", "toolName", "tool_name") if n in fields), None)
    return name, next((fields[n] for n in ("arguments", "args", "input") if n in fields), None)


def as_attribute(value: object) -> object:
    """Return a value as attributes have it."""
    if is_list(value) or is_mapping(value):
        return json.dumps(value, ensure_ascii=False, default=str)
    return value
