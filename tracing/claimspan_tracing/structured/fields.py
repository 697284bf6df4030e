"""The fields of a structure: of a mapping, a pydantic model, a dataclass, or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from itertools import islice
from string import ascii_letters
from typing import Final

from pydantic import BaseModel

from claimspan_tracing.shapes import is_list, is_mapping

__all__ = [
    "MAX_DEPTH",
    "MAX_FIELDS",
    "MAY_BE_JSON",
    "FieldsOf",
    "by_words",
    "fields_of",
    "json_in",
]

MAX_DEPTH: Final = 5
"""Levels of a structure that are looked into."""

MAX_FIELDS: Final = 100
"""Fields of a structure, or items of a list, that are looked at on one level."""

MAX_JSON: Final = 256 * 1024
"""Characters of a text that may be read as JSON."""

MAY_BE_JSON: Final = "{[` \n\r\t"
"""First characters of texts that may be JSON, in a fence or not; most answers begin otherwise."""

FieldsOf = Callable[[object], Mapping[str, object]]
"""Returns the fields of an object; empty where it has none. A framework has one for its objects."""

_FENCE: Final = "```"
_PAIRS: Final = ("{}", "[]")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def fields_of(value: object) -> Mapping[str, object]:
    """Return the fields of a mapping, a pydantic model or a dataclass, without its properties."""
    if is_mapping(value):
        return {str(name): each for name, each in islice(value.items(), MAX_FIELDS)}
    if isinstance(value, BaseModel):
        return dict(islice(vars(value).items(), MAX_FIELDS))
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name, None) for f in fields(value)[:MAX_FIELDS]}
    return {}


def json_in(text: str) -> object:
    """Return the mapping or the list that a text is as JSON, also in a fence; None for others."""
    if text[:1] not in MAY_BE_JSON or len(text) > MAX_JSON:
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
