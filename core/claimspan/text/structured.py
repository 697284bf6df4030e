"""The text of a structured answer, from which its claims are taken.

Sources, scores and reasoning stand beside the answer in one structure. If a field is named as
the answer it is the answer; else all fields are, apart from those that only tell where it is from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import islice
from string import ascii_letters
from typing import Final

from pydantic import BaseModel

from claimspan.text.shapes import is_list, is_mapping
from claimspan.text.units import CURRENCIES, UNITS
from claimspan.text.words import stem

__all__ = [
    "ANSWER_FIELDS",
    "BESIDE_FIELDS",
    "MAX_JOINED",
    "FieldsOf",
    "answer_text",
    "arguments_of",
    "by_words",
    "fields_of",
    "filled_in",
    "join_bounded",
    "json_in",
    "structured_text",
    "texts_in",
]

ANSWER_FIELDS: Final = (
    "final_answer",
    "answer",
    "response",
    "result",
    "output",
    "text",
    "content",
    "message",
)
"""Fields that say an answer by themselves, the likeliest first: a draft may stand beside it."""

BESIDE_FIELDS: Final = frozenset(
    "source sources citation citations quote quotes reference references id url metadata type "
    "status language model confidence".split()
)
"""Fields that say nothing by themselves: source and kind of an answer."""

MAX_JOINED: Final = 256 * 1024
"""Characters that are kept of texts that are joined, and of a text that may be read as JSON."""

FieldsOf = Callable[[object], Mapping[str, object]]
"""Returns the fields of an object; empty if it has none. A framework has one for its objects."""

_MAX_DEPTH: Final = 5
"""Levels of a structure that are looked into."""
_MAX_FIELDS: Final = 100
"""Fields of a structure, or items of a list, that are looked at on one level."""
_MEASURES: Final = frozenset({"score", "scores", "page", "pages", "rank", "index"})
"""Fields of numbers that say nothing by themselves."""
# First characters of texts that may be JSON, in a fence or not; most answers begin otherwise.
_MAY_BE_JSON: Final = "{[` \n\r\t"
_FENCE: Final = "```"
_FENCED: Final = re.compile(
    r"(?m)^[ \t]*+```[ \t]*+(?:json)?[ \t]*+\n(?P<json>[^`]*)^[ \t]*```[ \t]*$", re.I
)
_PAIRS: Final = ("{}", "[]")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_ARGUMENTS: Final = "args"
"""Where LangChain's parsers keep what a model has filled a tool's fields in with."""

_NUMBERS: Final = (int, float)
_CALL_FIELDS: Final = frozenset({_ARGUMENTS, "id", "name", "type"})
"""The fields of such a call."""

_ANSWER_NAME: Final = re.compile(r"_(?:answer|response)s?$|^(?:answer|response)(?:s|_text)$")
"""Names of fields that hold an answer, or a part of it: ``short_answer``."""

_MIN_SENTENCE_WORDS: Final = 4
_FULL_STOPS: Final = (".", "!", "?", "。", "！", "？")


def fields_of(value: object) -> Mapping[str, object]:
    """Return the fields of a mapping, a pydantic model or a dataclass, without its properties."""
    if is_mapping(value):
        return {str(name): each for name, each in islice(value.items(), _MAX_FIELDS)}
    if isinstance(value, BaseModel):
        return dict(islice(vars(value).items(), _MAX_FIELDS))
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name, None) for f in fields(value)[:_MAX_FIELDS]}
    return {}


def json_in(text: str) -> object:
    """Return the mapping or the list that a text is as JSON, also in a fence; None for others."""
    if text[:1] not in _MAY_BE_JSON or len(text) > MAX_JOINED:
        return None
    inner = text.strip()
    if inner.startswith(_FENCE) and inner.endswith(_FENCE):
        # The language of the fence, which is usually called json, stands behind its beginning.
        inner = inner[len(_FENCE) : -len(_FENCE)].lstrip(ascii_letters).strip()
    if inner[:1] + inner[-1:] not in _PAIRS:
        return None
    try:
        found: object = json.loads(inner)
    except (ValueError, RecursionError):
        return None
    return found if is_mapping(found) or is_list(found) else None


def by_words(found: Mapping[str, object]) -> Mapping[str, object]:
    """Return fields by their names in small letters, words apart: ``finalAnswer`` has two."""
    if all(map(str.islower, found)):
        return found
    return {_HUMP.sub("_", name).lower(): each for name, each in found.items()}


def join_bounded(texts: Iterable[str], separator: str = "") -> str:
    """Join texts, such as the messages of a prompt, until ``MAX_JOINED`` characters are there."""
    kept: list[str] = []
    left = MAX_JOINED
    for text in texts:
        if left < 0:
            break
        kept.append(text[:MAX_JOINED])
        left -= len(text) + len(separator)
    return separator.join(kept)


# --- what a structure says ---


def answer_text(response: str) -> str:
    """Return the text of a response: in JSON, alone or in a fence, the text of its answer.

    The name of a field says what its value is, so it stands before it: ``{"length": "725 km"}``
    reads ``Length: 725 km``. Each object in a list is one line.

    Returns:
        A line for each field or object; empty if the structure says nothing. Any other response as
        it is.
    """
    found = json_in(response)
    if found is not None:
        return _lines_of(found)
    return _FENCED.sub(_read_fence, response) if _FENCE in response else response


def _read_fence(match: re.Match[str]) -> str:
    found = json_in(match["json"].strip())
    return match[0] if found is None else _lines_of(found)


def _lines_of(found: object) -> str:
    for beside in (BESIDE_FIELDS | _MEASURES, frozenset[str]()):
        if lines := join_bounded(_told(found, beside, _MAX_DEPTH), "\n"):
            return lines
    return ""


def _told(value: object, beside: frozenset[str], depth: int, name: str = "") -> Iterator[str]:
    """Yield the values of a structure as lines, each behind the name of its field."""
    if is_list(value):
        for each in value[:_MAX_FIELDS] if depth else ():
            if is_mapping(each):
                yield "; ".join(_told(each, beside, depth - 1))
            else:
                yield from _told(each, beside, depth - 1, name)
    elif is_mapping(value):
        for field, each in _answering(value, beside).items() if depth else ():
            yield from _told(each, beside, depth - 1, field)
    elif value is not None and (text := _written(value)):
        is_sentence = text.endswith(_FULL_STOPS) and len(text.split()) >= _MIN_SENTENCE_WORDS
        yield text if is_sentence or not name else _labelled(name, text)


def _labelled(name: str, text: str) -> str:
    """Return a value behind the name of its field, with the unit that the name ends in."""
    *words, last = re.split(r"[\W_]+", name.strip("_"))
    if words and text[-1:].isdigit() and (stem(last) in UNITS or last in CURRENCIES):
        text = f"{text} {last}"
    else:
        words.append(last)
    return f"{' '.join(words).capitalize()}: {text}"


def _written(value: object) -> str:
    return ("Yes" if value else "No") if isinstance(value, bool) else str(value).strip()


def _answering(value: Mapping[object, object], beside: frozenset[str]) -> Mapping[str, object]:
    """Return the field that is an answer by its name, or those named like one; else all others."""
    named = {name: each for name, each in by_words(fields_of(value)).items() if _has_value(each)}
    if answer := next((name for name in ANSWER_FIELDS if name in named), None):
        return {"": named[answer]}
    like = [each for name, each in named.items() if _ANSWER_NAME.search(name)]
    return {"": like} if like else {n: each for n, each in named.items() if n not in beside}


def structured_text(value: object, fields_of: FieldsOf = fields_of) -> str:
    """Return the text of a mapping, a pydantic model, a dataclass, or a list of those.

    A text that is JSON of such is read in the same way, and any other text is returned as it is.

    Args:
        value: The answer.
        fields_of: Returns the fields of the objects of a framework as well.

    Returns:
        A line for each text; empty if there is none.
    """
    if not isinstance(value, str):
        return join_bounded(_said(value, fields_of, _MAX_DEPTH), "\n")
    # Asked at once, since most answers are plain text.
    found = json_in(value) if value[:1] in _MAY_BE_JSON else None
    if found is None:
        return value
    # All of it is what a model has said, so sources and numbers by themselves are the answer.
    said = join_bounded(_said(found, fields_of, _MAX_DEPTH), "\n")
    said = said or join_bounded(_texts(found, fields_of, _MAX_DEPTH, frozenset()), "\n")
    return said or (value if _has_value(found) else "")


def arguments_of(calls: Sequence[object]) -> str:
    """Return what a model has filled in the calls of tools with: JSON, a list of several calls.

    Args:
        calls: The arguments of each call, as fields or as JSON.
    """
    texts = [
        c if isinstance(c, str) else json.dumps(c, ensure_ascii=False, default=str) for c in calls
    ]
    return f"[{join_bounded(texts, ', ')}]" if len(texts) > 1 else join_bounded(texts)


def filled_in(
    fields: Mapping[str, object], said: Iterable[str], fields_of: FieldsOf = fields_of
) -> dict[str, object]:
    """Return the fields that a model has filled in with one completion.

    Titles, sections and key points that came at once are one answer, whatever their names are.

    Args:
        fields: The result of a pipeline.
        said: The output of models: a text, or JSON such as the arguments of a tool's call.
        fields_of: As in ``structured_text``.

    Returns:
        Those that have a text, and no text which the completion lacks. Of several completions the
        one that has given the most text, and of those the last one.
    """
    texts = {name: [*texts_in(each, fields_of)] for name, each in fields.items()}
    texts = {name: each for name, each in texts.items() if each and name not in BESIDE_FIELDS}
    best, longest = dict[str, object](), 0
    for completion in said:
        own = {n: each for n, each in texts.items() if all(_is_in(t, completion) for t in each)}
        length = sum(len(text) for each in own.values() for text in each)
        if length and length >= longest:
            best, longest = {name: fields[name] for name in own}, length
    return best


def _is_in(text: str, completion: str) -> bool:
    """Whether a completion has a text, as it is or as JSON writes it."""
    return text in completion or any(
        json.dumps(text, ensure_ascii=is_ascii)[1:-1] in completion for is_ascii in (False, True)
    )


def texts_in(value: object, fields_of: FieldsOf = fields_of) -> Iterator[str]:
    """Yield all texts in a structure, apart from those that only tell where it is from."""
    return _texts(value, fields_of, _MAX_DEPTH, BESIDE_FIELDS)


def _said(value: object, fields_of: FieldsOf, depth: int) -> Iterator[str]:
    """Yield the texts of the fields that are named as an answer, else all, on each level."""
    if isinstance(value, str):
        yield from [value] if value.strip() else []
    elif is_list(value):
        for each in value[:_MAX_FIELDS] if depth else ():
            yield from _said(each, fields_of, depth - 1)
    elif depth and (found := fields_of(value)):
        named = by_words(found)
        arguments = named.get(_ARGUMENTS)
        if is_mapping(arguments) and named.keys() <= _CALL_FIELDS:
            yield from _said(arguments, fields_of, depth - 1)
        elif texts := _named_texts(named, fields_of, depth - 1):
            yield from texts
        else:
            for name, each in named.items():
                if name not in BESIDE_FIELDS:
                    yield from _said(each, fields_of, depth - 1)


def _named_texts(named: Mapping[str, object], fields_of: FieldsOf, depth: int) -> list[str]:
    """The texts of the first field that is an answer by its name, or of those named like one."""
    for name in ANSWER_FIELDS:
        each = named.get(name)
        if each is None:
            continue
        # A number is an answer where it is named as one; true and false need their question.
        if type(each) in _NUMBERS:
            return [str(each)]
        if texts := [*_said(each, fields_of, depth)]:
            return texts
    like = (each for name, each in named.items() if _ANSWER_NAME.search(name))
    return [text for each in like for text in _said(each, fields_of, depth)]


def _texts(value: object, fields_of: FieldsOf, depth: int, beside: frozenset[str]) -> Iterator[str]:
    if isinstance(value, str):
        yield from [value] if value.strip() else []
    elif is_list(value):
        for each in value[:_MAX_FIELDS] if depth else ():
            yield from _texts(each, fields_of, depth - 1, beside)
    elif depth:
        for name, each in by_words(fields_of(value)).items():
            if name not in beside:
                yield from _texts(each, fields_of, depth - 1, beside)


def _has_value(value: object, depth: int = _MAX_DEPTH) -> bool:
    """Whether a structure without texts says anything: a number, true or false."""
    inner = [*value.values()] if is_mapping(value) else value
    if is_list(inner):
        return not depth or any(_has_value(each, depth - 1) for each in inner[:_MAX_FIELDS])
    return value is not None and value != ""
