"""Structured answers: the texts in the fields of pydantic models, dataclasses and mappings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import islice
from typing import Final

from langchain_core.documents import Document as LangChainDocument
from langchain_core.messages import BaseMessage
from pydantic import BaseModel

from claimspan_langchain._messages import content_of
from claimspan_tracing.adapters import is_list, is_mapping, join_bounded

__all__ = [
    "ANSWER_FIELDS",
    "MAX_DEPTH",
    "Structure",
    "fields_of",
    "is_grade",
    "said_at_once",
    "structured_text",
    "texts_in",
]

ANSWER_FIELDS: Final = (
    "answer",
    "final_answer",
    "response",
    "result",
    "output",
    "text",
    "content",
)
"""Fields of a structured answer that say it by themselves: the others are sources or reasoning."""

BESIDE_FIELDS: Final = frozenset(
    "source sources citation citations quote quotes reference references id url metadata type "
    "status language model confidence".split()
)
"""Fields that say nothing by themselves: where an answer is from, and what kind it is of."""

ARGUMENTS_KEY: Final = "args"
"""Where a parsed tool call keeps its arguments, beside its type."""

_GRADE_NAME: Final = re.compile(
    r"(?:^|_)(?:scores?|grade[ds]?|grounded|relevan(?:t|ce|cy)|correct(?:ness)?|supported|faithful"
    r"(?:ness)?|hallucinat\w*|useful|helpful|verdict|rating)(?:_|$)"
)
_REASON_NAME: Final = re.compile(r"expla|reason|justif|comment|feedback|thought|critique|rationale")
_MARKS: Final = frozenset(
    "yes no true false relevant irrelevant correct incorrect supported unsupported grounded useful "
    "pass fail good bad ambiguous 0 1 2 3 4 5".split()
)
"""Parts of the names of the fields in which a grader says how good an answer is, and why."""

MAX_FIELDS: Final = 100
MAX_DEPTH: Final = 4
"""How far a structured answer is looked into."""


class Structure(dict[str, object]):
    """The fields of a structured answer as they were."""


def structured_text(value: object) -> str:
    """Return the text of a pydantic model, a dataclass, a mapping, or a list of those.

    The field that is named as an answer where there is one, else all texts by line.
    """
    if is_list(value):
        return join_bounded(filter(None, map(structured_text, value[:MAX_FIELDS])), "\n")
    named = dict(fields_of(value))
    arguments = named.get(ARGUMENTS_KEY)
    if is_mapping(arguments):
        return structured_text(arguments)
    found = (named.get(key) for key in ANSWER_FIELDS)
    answer = next((text for text in found if isinstance(text, str) and text.strip()), "")
    return answer or join_bounded(texts_in(value, MAX_DEPTH), "\n")


def fields_of(value: object) -> Iterator[tuple[str, object]]:
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


def texts_in(value: object, depth: int) -> Iterator[str]:
    """Yield the texts in a structure, without those that only tell where it is from."""
    if isinstance(value, str):
        yield from [value] if value.strip() else []
    elif is_list(value) and depth:
        for item in value[:MAX_FIELDS]:
            yield from texts_in(item, depth - 1)
    elif depth:
        for name, item in fields_of(value):
            if name not in BESIDE_FIELDS:
                yield from texts_in(item, depth - 1)


def said_at_once(fields: Mapping[object, object], completions: Sequence[str]) -> str:
    """The texts of an output whose fields a model filled in with one completion.

    Empty where one of them is named as an answer, and where a function made some of them.
    """
    if any(word in str(key).lower() for key in fields for word in ANSWER_FIELDS):
        return ""
    texts = [*texts_in(fields, MAX_DEPTH)]
    as_json = [(text, json.dumps(text)[1:-1]) for text in texts]
    is_one = any(all(any(f in said for f in forms) for forms in as_json) for said in completions)
    return join_bounded(texts, "\n") if texts and is_one else ""


def is_grade(value: object) -> bool:
    """Whether a structure says how good something is, and nothing else but why."""
    named = {name.lower(): item for name, item in fields_of(value)}
    grades = [item for name, item in named.items() if _GRADE_NAME.search(name)]
    others = [name for name in named if not _GRADE_NAME.search(name)]
    return bool(grades) and all(map(_is_mark, grades)) and all(map(_REASON_NAME.search, others))


def _is_mark(value: object) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in _MARKS
    return isinstance(value, bool | int | float)
