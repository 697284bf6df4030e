"""Finds the question in a prompt that is all that a run was given: a model that is called alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from claimspan_tracing.read.answering import Generated
from claimspan_tracing.read.handwritten import MIN_EVIDENCE, written_evidence
from claimspan_tracing.read.unnamed import unnamed_evidence

__all__ = ["labelled_question"]

MAX_LABELS: Final = 100
"""Labels of questions that are looked at."""

MAX_QUESTION: Final = 2_000
"""Characters of a question; what is longer has more in it than that."""

_ASKED: Final = r"(?:question|query|frage|pregunta|domanda|vpra\u0161anje)"

_TAGGED: Final = re.compile(
    rf"<(\w{{0,20}}{_ASKED})>(?P<asked>[^<]{{1,{MAX_QUESTION}}})</\1>", re.IGNORECASE
)
"""A question between tags."""

_LABELLED: Final = re.compile(
    rf"^[ \t>*#\[]{{0,20}}(?:[\w'\u2019]+[ \t]+){{0,6}}{_ASKED}[ \t*\]]{{0,10}}:[ \t*]{{0,10}}"
    rf"(?P<asked>\n?[^\n]{{1,{MAX_QUESTION}}})",
    re.IGNORECASE | re.MULTILINE,
)
"""A label at the beginning of a line, and what stands behind it or on the next line."""

_HEADED: Final = re.compile(
    rf"^[ \t]{{0,20}}#{{1,6}}[ \t]{{0,20}}(?:\w+[ \t]+){{0,3}}{_ASKED}[ \t*]{{0,10}}\n\s{{0,20}}"
    rf"(?P<asked>[^\n]{{1,{MAX_QUESTION}}})",
    re.IGNORECASE | re.MULTILINE,
)
"""A heading, and the line below it."""

_ANSWER: Final = re.compile(r"\b(?:\w{1,20} )?answer[ *]{0,5}:[\s*]{0,20}$", re.IGNORECASE)
"""The label of the answer, at the end of the same line."""


def labelled_question(query: str, generations: Sequence[Generated]) -> str:
    """Return the question of a query that is itself a prompt with evidence.

    Args:
        query: What the run was given.
        generations: What models have read.

    Returns:
        The one question that a label or a tag announces; the query itself where there is none or
        several, or where the query is no prompt with evidence.
    """
    given = query.strip()
    if len(given) < 2 * MIN_EVIDENCE or not any(_is_prompt(given, each) for each in generations):
        return query
    evidence = written_evidence([given], "")
    # A document may have questions of its own.
    around = given
    for text in evidence:
        around = around.replace(text, "\n")
    found = set(islice(_questions(around), MAX_LABELS))
    if len(found) != 1:
        return query
    question = found.pop()
    return question if evidence or unnamed_evidence([given], [], question) else query


def _is_prompt(text: str, generation: Generated) -> bool:
    return any(text == each.strip() for each in (generation.prompt, *generation.told))


def _questions(text: str) -> Iterator[str]:
    for pattern in (_TAGGED, _LABELLED, _HEADED):
        for match in pattern.finditer(text):
            if _LABELLED.match(match["asked"]):  # a label below a heading, and found by itself
                continue
            if asked := _ANSWER.sub("", match["asked"]).strip(" \t\n*#"):
                yield asked
