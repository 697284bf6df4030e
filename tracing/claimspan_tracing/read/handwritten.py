"""Finds evidence that an application wrote into a prompt by hand, and that nothing else shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import Final

__all__: list[str] = []

MAX_BLOCKS: Final = 100
"""Blocks of one prompt that are looked at: as many as chunks are kept of a record."""

NUMBER: Final = re.compile(
    r"^[ \t]{0,8}(?:\[(?P<n>\d{1,3})\]|(?:document|doc|source|passage|chunk|excerpt|result|snippet)"
    r"[ \t]{0,3}(?P<m>\d{1,3})[ \t]{0,3}[:.)])[ \t]{0,3}",
    re.IGNORECASE | re.MULTILINE,
)
"""How the items of a list of sources begin."""


def blocks_between_tags(text: str, name: str) -> list[str]:
    """Return what stands between each pair of tags with a name, the inner ones of nested pairs.

    Args:
        text: A prompt.
        name: Of the tags, such as ``document``.
    """
    opening = re.compile(rf"<{re.escape(name)}(?:\s[^<>]{{0,300}})?>", re.IGNORECASE)
    closing = re.compile(rf"</{re.escape(name)}\s{{0,9}}>", re.IGNORECASE)
    found: list[str] = []
    start = 0
    for _ in range(MAX_BLOCKS):
        begin = opening.search(text, start)
        end = None if begin is None else closing.search(text, begin.end())
        if begin is None or end is None:
            break
        # An instruction may name the tag before it is opened.
        inner = [each.end() for each in opening.finditer(text, begin.end(), end.start())]
        found.append(text[(inner or [begin.end()])[-1] : end.start()].strip())
        start = end.end()
    return [each for each in found if each]


def numbered_blocks(text: str) -> list[str]:
    """Return the items of a list that is numbered from 1 as sources are; nothing below two.

    Args:
        text: A prompt, or what stands in it before the question.
    """
    marks = [*NUMBER.finditer(text)][: MAX_BLOCKS + 1]
    numbers = [int(mark["n"] or mark["m"]) for mark in marks]
    if len(marks) < 2 or numbers != [*range(1, len(marks) + 1)]:
        return []
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    return [text[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)]


MIN_EVIDENCE: Final = 40
"""Characters of a text from which on it may be evidence: what is shorter is part of a sentence."""

_NAMED: Final = (
    r"\b(?:context|documents?|sources?|passages?|excerpts?|snippets?|articles?|evidence|knowledge"
    r"|information|references?|facts|findings|(?:research )?notes|summaries|memor(?:y|ies)"
    r"|(?:search|retrieval) results?"
    r"|kontexte?|contextes?|contextos?|contesto|kontekst)\b"
)
"""What prompts call the material that the model is to answer from, in a few languages."""

MAX_ASKED: Final = 100
"""Characters before a question in which its label is looked for."""

MIN_BLOCK: Final = 5
"""Characters of a first block between tags; what is shorter stands between two that are named."""

MAX_OPENED: Final = 150
"""Characters of a tag that announces the material."""

MAX_ANNOUNCED: Final = 100
"""Announcements that are looked at."""

MAX_POINTER: Final = 400
"""Characters of a paragraph that points back."""

MAX_BACK: Final = 40
"""Characters before a name in which it may be said that it points back."""

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

_MATERIAL: Final = (
    r"(?:texts?|textes?|kontext\w{0,2}|context\w{0,2}|contesto|testo|document\w{0,2}|dokument\w{0,2}"
    r"|passages?|excerpts?|extra(?:its?|ctos?)|snippets?|articles?|sources?|informations?|informationen"
    r"|informaci\u00f3n|informazioni|paragraphs?|transcripts?|facts|content|material|evidence"
    r"|search results|textos?|report|e-?mail|letter|story)"
)
POINTS_BACK: Final = re.compile(
    rf"\b(?:above|preceding|obig\w{{1,2}}|zgornj\w{{1,3}})"
    rf"(?:[- ](?:mentioned|given|provided|quoted))?[ \n](?:\w{{1,20}} ){{0,2}}{_MATERIAL}\b"
    rf"|\b{_MATERIAL}(?:[ \n]\w{{1,20}}){{0,3}}[ \n]"
    r"(?:above|oben|ci-dessus|anterior(?:es)?|sopra)\b"
    r"|\b(?:based on|from|given|using) the above[,:.]",
    re.IGNORECASE,
)
"""What points back at the material, as in "by the text above" or "the above pieces of context"."""

_BACK: Final = tuple("above preceding obig zgornj oben ci-dessus anterior sopra".split())
"""Words of which each of these has one."""

_PRODUCES: Final = re.compile(
    r"[\s\d.)*#-]{0,10}(?:please )?(?:write|generate|create|compose|draft|produce|make|[{\"])",
    re.IGNORECASE,
)
"""How a line begins that asks for a passage or a document, or that is a line of JSON."""

_ITEM: Final = re.compile(r"[ \t]{0,20}([-*\u2022]|\d{1,2}(?=[.)]))[.)]?[ \t]")
"""How an item of a list begins."""

_OPENED: Final = re.compile(r"<(\w{1,40})(?:\s[^<>\n]{0,100})?>$")
"""The tag that announces the material."""

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
    r"[\s#*\[<]{0,20}\b(?:user\s{1,9})?(?:question|query|input)[\s:>\]*]{0,20}$"
    r"|\n[ \t#*]{0,10}[^\W\d_][^\n:]{0,30}:[\s*]{0,20}$",
    re.IGNORECASE,
)
"""What stands before the question: its label, in any language where it has a line of its own."""


def written_evidence(texts: Sequence[str], query: str) -> list[str]:
    """Return what the texts of a prompt announce as the material to answer from.

    A prompt that announces nothing has no evidence: instructions are not what an answer is compared
    with.

    Args:
        texts: What the system and the user say in the prompt.
        query: What the user asked, which is no evidence.
    """
    return [found for text in texts for found in _evidence(text, query)]


def _evidence(text: str, query: str) -> list[str]:
    start = _start_of_evidence(text)
    if start is None:
        return []
    if blocks := _blocks(text, start, query.strip()):
        return blocks
    found = _before_closing_tag(before_end(text[start:].lstrip(_SIGNS), query.strip()))
    found = _without_pointer(found.strip()).removesuffix("```").removesuffix(_QUOTES).rstrip()
    return [found] if len(found) >= MIN_EVIDENCE else []


def _blocks(text: str, start: int, query: str) -> list[str]:
    """What stands between tags, or behind numbers, of which the first is the announcement."""
    is_tag = text[start - 1] == ">"
    opened = _OPENED.search(text, max(0, start - MAX_OPENED), start) if is_tag else None
    if opened is None:
        blocks = _numbered(text, start, query)
        return blocks if _are_whole(blocks, query) else []
    blocks = blocks_between_tags(text, opened[1])
    # An instruction may name both tags, with a word between them.
    blocks = blocks[1:] if len(blocks) > 1 and len(blocks[0]) < MIN_BLOCK else blocks
    return blocks if _are_whole(blocks, query) else []


def _are_whole(blocks: Sequence[str], query: str) -> bool:
    """Whether blocks are evidence, and the question is in none of them."""
    has_question = bool(query) and any(query in block for block in blocks)
    return not has_question and any(len(block) >= MIN_EVIDENCE for block in blocks)


def _numbered(text: str, start: int, query: str) -> list[str]:
    """The items of a list of sources whose first label is the announcement."""
    begin = text.rfind("\n", 0, start - 1) + 1
    blocks = numbered_blocks(before_end(text[begin:], query)) if NUMBER.match(text, begin) else []
    return [*blocks[:-1], *map(_without_pointer, blocks[-1:])]


def _without_pointer(text: str) -> str:
    """A text without a last paragraph that points back to it."""
    before, _, last = text.rpartition("\n\n")
    return before.rstrip() if before and _points_back(last[:MAX_POINTER]) else text


def _points_back(text: str) -> bool:
    """Whether a text points back; most have none of the words by which it would."""
    folded = text.casefold()
    return any(word in folded for word in _BACK) and POINTS_BACK.search(text) is not None


def before_end(text: str, query: str) -> str:
    """What stands before the question, its label, or a line of signs."""
    found = _without_question(text, query)
    ended = _ENDED.search(found)
    return found if ended is None else found[: ended.start()]


def _start_of_evidence(text: str) -> int | None:
    """Where the material begins, by the first words that announce it; None without any."""
    announced, pointed_at = _announced(text), _POINTED_AT.search(text)
    if pointed_at is None or (announced is not None and announced.start() < pointed_at.end()):
        return None if announced is None else announced.end()
    ends = (end.search(text, pointed_at.end()) for end in _PARAGRAPH_ENDS)
    end = next((end.end() for end in ends if end is not None), len(text))
    label = _LABEL.search(text, pointed_at.end(), end) or _LABEL.match(text, end)
    return end if label is None else label.end()


def _announced(text: str) -> re.Match[str] | None:
    """The first announcement; what points back announces nothing."""
    for found in islice(_ANNOUNCED.finditer(text), MAX_ANNOUNCED):
        points_back = _points_back(text[max(0, found.start() - MAX_BACK) : found.end()])
        begin = max(text.rfind("\n", 0, found.start()) + 1, found.start() - MAX_ASKED)
        is_open = found[0].endswith("\n")
        is_other = is_open and (_PRODUCES.match(text, begin) or _is_item(text, begin, found.end()))
        if not points_back and not is_other:
            return found
    return None


def _is_item(text: str, begin: int, end: int) -> bool:
    """Whether a line is one item of a list, as of instructions, and the next line another one."""
    item, other = _ITEM.match(text, begin), _ITEM.match(text, end)
    return item is not None and other is not None and item[1].isdigit() == other[1].isdigit()


def before_label(text: str) -> str:
    """What stands before the label of a question that comes next."""
    return text[:-MAX_ASKED] + _ASKED.sub("", text[-MAX_ASKED:])


def _without_question(found: str, query: str) -> str:
    """What stands before the question, or behind a line or label after one that comes first."""
    before, asked, after = found.partition(query) if query else (found, "", "")
    before = before_label(before)
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
