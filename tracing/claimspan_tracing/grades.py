"""Tells a grade, which says how good an answer or a document is, from an answer."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from claimspan.text.shapes import is_list, is_mapping
from claimspan.text.structured import BESIDE_FIELDS, FieldsOf, by_words, fields_of, json_in

__all__ = ["begins_with_grade", "is_grade", "is_review", "says_grade"]

_GRADES: Final = frozenset(
    "yes no true false relevant irrelevant correct incorrect ambiguous supported unsupported "
    "grounded useful good bad pass passed fail failed valid invalid ok done".split()
)
"""What graders and validators say."""

_GRADE_NAME: Final = re.compile(
    r"(?:^|_)(?:scores?|grade[ds]?|grounded|relevan(?:t|ce|cy)|correct(?:ness)?|supported|faithful"
    r"(?:ness)?|hallucinat\w*|useful|helpful|verdict|rating|valid|pass(?:ed|ing)?)(?:_|$)"
)
_REASON_NAME: Final = re.compile(
    r"expla|reason|justif|comment|feedback|thought|critique|rationale|issue|error|missing|suggest"
    r"|statement"
)
"""Parts of the names of the fields in which a grader says how good something is, and why."""

_REVIEW_NAME: Final = re.compile(
    r"review|approv|confirm|accept|edit|feedback|check|verif|valid|audit|moderat|correct|draft",
    re.IGNORECASE,
)
"""Parts of the names of steps that ask a person whether an answer is right, before it is one."""

_NUMBER: Final = re.compile(r"\d{1,3}(?:\.\d+)?(?:/\d+|%)?")
_FIRST_WORD: Final = re.compile(r"\W*(\w+)[\s*]*[,.:;-]")


def is_review(name: object) -> bool:
    """Whether a step is one that has a person say how good an answer is, by its name."""
    return _REVIEW_NAME.search(str(name)) is not None


def says_grade(text: str) -> bool:
    """Whether a text consists of words that graders say, and of no other: "Yes.", "Invalid"."""
    # A longer text has other words, or says one of them twice.
    if len(text) > 200:
        return False
    words = re.findall(r"\w+", text.lower())
    return bool(words) and _GRADES.issuperset(words)


def begins_with_grade(text: str) -> bool:
    """Whether a grade comes first and its reason after it: "Yes, all of it is in the context"."""
    word = _FIRST_WORD.match(text[:200].lower())
    return word is not None and word[1] in _GRADES


def is_grade(value: object, fields_of: FieldsOf = fields_of) -> bool:
    """Whether a structure, or JSON of one, says how good something is, and nothing else but why.

    Args:
        value: What a model or a pipeline has returned. A text that is no JSON is none: "yes" may
            be the answer to a question.
        fields_of: Returns the fields of the objects of a framework as well.
    """
    if isinstance(value, str):
        value = json_in(value)
    if value is None or is_list(value):
        return False
    named = by_words(fields_of(value))
    grades = [each for name, each in named.items() if _GRADE_NAME.search(name)]
    others = [name for name in named if not _GRADE_NAME.search(name)]
    return bool(grades) and all(map(_is_mark, grades)) and all(map(_is_reason, others))


def _is_reason(name: str) -> bool:
    return name in BESIDE_FIELDS or _REASON_NAME.search(name) is not None


def _is_mark(value: object) -> bool:
    """Whether a value is a number or a word of graders, or several of these."""
    inner: Collection[object] = ()
    if is_mapping(value):
        inner = value.values()
    elif is_list(value):
        inner = value
    if inner:
        return all(isinstance(each, str | bool | int | float) and _is_mark(each) for each in inner)
    if isinstance(value, str):
        return says_grade(value) or _NUMBER.fullmatch(value.strip()) is not None
    return isinstance(value, bool | int | float)
