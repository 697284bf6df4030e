"""The text of a structured answer, which is what its claims are taken from.

Sources, scores and reasoning stand beside the answer in one structure. Where a field is named as
the answer it is the answer; else all texts are, apart from those that only tell where it is from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from claimspan_tracing.shapes import is_list, is_mapping
from claimspan_tracing.structured.fields import (
    MAX_DEPTH,
    MAX_FIELDS,
    MAY_BE_JSON,
    FieldsOf,
    by_words,
    fields_of,
    json_in,
)
from claimspan_tracing.text import join_bounded

__all__ = ["ANSWER_FIELDS", "BESIDE_FIELDS", "structured_text", "texts_in"]

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
"""Fields that say nothing by themselves: where an answer is from, and what kind it is of."""

ARGUMENTS: Final = "args"
"""Where LangChain's parsers keep what a model has filled a tool's fields in with."""

_NUMBERS: Final = (int, float)
_CALL_FIELDS: Final = frozenset({ARGUMENTS, "id", "name", "type"})
"""The fields of such a call."""

_ANSWER_NAME: Final = re.compile(r"_(?:answer|response)s?$|^(?:answer|response)(?:s|_text)$")
"""Names of fields that hold an answer, or a part of it: ``short_answer``."""


def structured_text(value: object, fields_of: FieldsOf = fields_of) -> str:
    """Return the text of a mapping, a pydantic model, a dataclass, or a list of those.

    A text that is JSON of such is read in the same way, and any other text is returned as it is.

    Args:
        value: The answer.
        fields_of: Returns the fields of the objects of a framework as well.

    Returns:
        A line for each text; empty where there is none.
    """
    if not isinstance(value, str):
        return join_bounded(_said(value, fields_of, MAX_DEPTH), "\n")
    # Asked at once, since most answers are plain text.
    found = json_in(value) if value[:1] in MAY_BE_JSON else None
    if found is None:
        return value
    # All of it is what a model has said, so sources and numbers by themselves are the answer.
    said = join_bounded(_said(found, fields_of, MAX_DEPTH), "\n")
    said = said or join_bounded(_texts(found, fields_of, MAX_DEPTH, frozenset()), "\n")
    return said or (value if _has_value(found) else "")


def texts_in(value: object, fields_of: FieldsOf = fields_of) -> Iterator[str]:
    """Yield all texts in a structure, apart from those that only tell where it is from."""
    return _texts(value, fields_of, MAX_DEPTH, BESIDE_FIELDS)


def _said(value: object, fields_of: FieldsOf, depth: int) -> Iterator[str]:
    """Yield the texts of the fields that are named as an answer, else all, on each level."""
    if isinstance(value, str):
        yield from [value] if value.strip() else []
    elif is_list(value):
        for each in value[:MAX_FIELDS] if depth else ():
            yield from _said(each, fields_of, depth - 1)
    elif depth and (found := fields_of(value)):
        named = by_words(found)
        arguments = named.get(ARGUMENTS)
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
        for each in value[:MAX_FIELDS] if depth else ():
            yield from _texts(each, fields_of, depth - 1, beside)
    elif depth:
        for name, each in by_words(fields_of(value)).items():
            if name not in beside:
                yield from _texts(each, fields_of, depth - 1, beside)


def _has_value(value: object, depth: int = MAX_DEPTH) -> bool:
    """Whether a structure without texts says anything: a number, true or false."""
    inner = [*value.values()] if is_mapping(value) else value
    if is_list(inner):
        return not depth or any(_has_value(each, depth - 1) for each in inner[:MAX_FIELDS])
    return value is not None and value != ""
