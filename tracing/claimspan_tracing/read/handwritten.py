"""Finds evidence that an application wrote into a prompt by hand, where nothing else shows it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Final

__all__ = ["MIN_EVIDENCE", "before_end", "written_evidence"]

MIN_EVIDENCE: Final = 40
"""Characters of a text from which on it may be evidence: what is shorter is part of a sentence."""

_NAMED: Final = (
    r"\b(?:context|documents?|sources?|passages?|excerpts?|snippets?|articles?|evidence|knowledge"
    r"|information|references?|facts|memor(?:y|ies)|(?:search|retrieval) results?"
    r"|kontexte?|contextes?|contextos?|contesto|kontekst)\b"
)
"""What prompts call the material that the model is to answer from, in a few languages."""

MAX_ASKED: Final = 100
"""Characters before a question in which its label is looked for."""

MAX_TAGS: Final = 500
"""Closing tags that are looked at, of which one ends the evidence."""

_ANNOUNCED: Final = re.compile(rf"{_NAMED}[^\n:<>.]{{0,60}}(?:[:>]|\n)", re.IGNORECASE)
"""A name, the rest of its phrase, as in "the following context in your response", and a colon, a
tag or a line's end behind it: the material comes next."""

_AHEAD: Final = r"\b(?:following|below|folgende[mnrs]?|suivante?s?|siguientes?|seguent[ei])\b"
_POINTED_AT: Final = re.compile(
    rf"(?:{_AHEAD}|\bretrieved\b)[^\n.:]{{0,60}}?{_NAMED}|{_NAMED}[^\n.:]{{0,60}}?{_AHEAD}",
    re.IGNORECASE,
)
"""A sentence that points ahead, as "Use the following pieces of context to answer": the material
comes after its paragraph, or behind a label."""

_LABEL: Final = re.compile(
    rf"(?:^|(?<=[.!?] ))[ \t#*\[<]*(?:\w+[ \t]+){{0,4}}{_NAMED}[^\n:<>.]{{0,40}}[:>\]]",
    re.IGNORECASE | re.MULTILINE,
)
"""A name at the beginning of a line or a sentence, with a colon or a bracket behind it."""

_PARAGRAPH_ENDS: Final = (re.compile(r"\n[ \t]*(?:\n|[-=#*`]{3})"), re.compile(r"\n"))
"""A blank line or a line of signs; where there is none, the end of the line."""

_TAG: Final = re.compile(r"[<\[]/(\w+)[>\]]")
_SIGNS: Final = '\n\t -=#*`"]'
"""What stands between an announcement and the material, beside words."""

_QUOTES: Final = '"""'

_ENDED: Final = re.compile(
    r"""
    ^[ \t]*[-=#*]{3,}[ \t]*$
    | ^[ \t>*#]*(?:question|query|user|human|answer|instructions?|chat\ history)\b[^\n]{0,20}:
    | ^[ \t]*\#{1,6}[ \t]*(?:user[ \t]+)?(?:question|query|answer|instructions?)[ \t*]*$
    """,
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
"""Where it ends: a line of signs, or the label or heading of the question."""

_ASKED: Final = re.compile(
    r"[\s#*\[<]{0,20}\b(?:user\s{1,9})?(?:question|query|input)[\s:>\]*]{0,20}$", re.IGNORECASE
)
"""What stands before the question."""


def written_evidence(texts: Sequence[str], query: str) -> list[str]:
    """Return what the texts of a prompt announce as the material to answer from.

    A prompt that announces nothing has no evidence: instructions are not what an answer is compared
    with.

    Args:
        texts: What the system and the user say in the prompt.
        query: What the user asked, which is no evidence.
    """
    return [found for text in texts if (found := _evidence(text, query))]


def _evidence(text: str, query: str) -> str:
    start = _start_of_evidence(text)
    if start is None:
        return ""
    found = _before_closing_tag(before_end(text[start:].lstrip(_SIGNS), query.strip()))
    found = found.strip().removesuffix("```").removesuffix(_QUOTES).rstrip()
    return found if len(found) >= MIN_EVIDENCE else ""


def before_end(text: str, query: str) -> str:
    """What stands before the question, its label, or a line of signs."""
    found = _without_question(text, query)
    ended = _ENDED.search(found)
    return found if ended is None else found[: ended.start()]


def _start_of_evidence(text: str) -> int | None:
    """Where the material begins, by the first words that announce it; None without any."""
    announced, pointed_at = _ANNOUNCED.search(text), _POINTED_AT.search(text)
    if pointed_at is None or (announced is not None and announced.start() < pointed_at.end()):
        return None if announced is None else announced.end()
    ends = (end.search(text, pointed_at.end()) for end in _PARAGRAPH_ENDS)
    end = next((end.end() for end in ends if end is not None), len(text))
    label = _LABEL.search(text, pointed_at.end(), end) or _LABEL.match(text, end)
    return end if label is None else label.end()


def _without_question(found: str, query: str) -> str:
    """What stands before the question, or behind a line or label after one that comes first."""
    before, asked, after = found.partition(query) if query else (found, "", "")
    before = before[:-MAX_ASKED] + _ASKED.sub("", before[-MAX_ASKED:])
    if not asked or len(before) >= MIN_EVIDENCE:
        return before
    after = after.lstrip()
    parted = _ENDED.match(after) or _LABEL.match(after)
    return before if parted is None else after[parted.end() :]


def _before_closing_tag(found: str) -> str:
    """What stands before the end of the tag that announced it; tags within are part of it."""
    for tag in islice(_TAG.finditer(found), MAX_TAGS):
        if found.find(f"{tag[0][0]}{tag[1]}", 0, tag.start()) < 0:
            return found[: tag.start()]
    return found
