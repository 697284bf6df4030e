"""Finds evidence in a prompt that does not call it so: set apart, in tags, numbered, led in to.

It counts only where nothing else is known of what the model has read, and only where the prompt has
it in one place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from claimspan_tracing.read.handwritten import before_end, before_label
from claimspan_tracing.read.pointed_back import text_pointed_back
from claimspan_tracing.read.set_apart import (
    MATERIAL,
    is_conversation,
    is_example,
    is_instruction,
    is_material,
    leads_elsewhere,
    text_set_apart,
)
from claimspan_tracing.read.tagged import blocks_between_tags, numbered_blocks

__all__ = ["unnamed_evidence"]

MAX_LEADS: Final = 50
"""Lines that may lead in to a text that are looked at."""

_TAG: Final = re.compile(
    r"<(docs?|documents?|chunks?|passages?|excerpts?|snippets?|sources?|results?|texts?|articles?"
    r"|pages?|sections?|nodes?|paragraphs?|data|content|material)(?:\s[^<>\n]{0,100})?>",
    re.IGNORECASE,
)
"""Tags between which prompts have texts to answer from."""

_LEAD: Final = re.compile(
    rf"^[^\n]{{0,100}}\b(?:{MATERIAL}s?|excerpts?|contents?|pages?|paragraphs?|notes|manual"
    r"|information|sources?|found|retrieved|read this)\b[^\n]{0,60}[:.][ \t]*\n",
    re.IGNORECASE | re.MULTILINE,
)
"""A line that leads in to a text, as "Here is some text:"."""


def unnamed_evidence(texts: Sequence[str], system: Sequence[str], query: str) -> list[str]:
    """Return the texts that a prompt has beside its question and its instructions.

    Nothing where these cannot be told apart.

    Args:
        texts: What the system and the user say in the prompt.
        system: What the system says.
        query: What the user asked.
    """
    if not query.strip():
        return []
    return (
        _blocks(texts, system, query.strip())
        or text_set_apart(texts, system, query)
        or text_pointed_back(texts, query)
        or _led_in_to(texts, query.strip())
    )


def _blocks(texts: Sequence[str], system: Sequence[str], query: str) -> list[str]:
    """The texts that stand each between tags of one name, or behind a number."""
    looked_at = [text for text in texts if text in system or (query in text and text != query)]
    for text in looked_at:
        if is_conversation(text):
            continue
        numbered = numbered_blocks(before_end(text, query))
        numbered = [*numbered[:-1], *map(_without_orders, numbered[-1:])]
        for found in (*_tagged(text), numbered):
            if _are_material(found, query) and not is_example(_outside(text, found)):
                return found
    return []


def _are_material(blocks: Sequence[str], query: str) -> bool:
    """Whether blocks may be what a model is to answer from; some may be short beside others."""
    if any(query in each or is_instruction(each) for each in blocks):
        return False
    return any(is_material(each, query) for each in blocks)


def _outside(text: str, blocks: Sequence[str]) -> str:
    for block in blocks:
        text = text.replace(block, " ", 1)
    return text


def _tagged(text: str) -> Iterator[list[str]]:
    # A mention of a tag is no pair of them.
    names = dict.fromkeys(found[1].lower() for found in islice(_TAG.finditer(text), MAX_LEADS))
    yield from (blocks_between_tags(text, name) for name in reversed(names))


def _led_in_to(texts: Sequence[str], query: str) -> list[str]:
    looked_at = [text for text in texts if query in text and text.strip() != query]
    found = dict.fromkeys(block for text in looked_at if (block := _behind_lead(text, query)))
    return [*found] if len(found) == 1 else []


def _behind_lead(text: str, query: str) -> str:
    if is_conversation(text):
        return ""
    for lead in islice(_LEAD.finditer(text), MAX_LEADS):
        if leads_elsewhere(lead[0]) or query in lead[0]:
            continue
        block = _without_orders(before_label(before_end(text[lead.end() :].lstrip(), query)))
        if is_material(block, query):
            return block
    return ""


def _without_orders(text: str) -> str:
    """A text without the paragraphs behind it that tell a model what to do."""
    paragraphs = re.split(r"\n[ \t]*\n", text.strip())
    while paragraphs and (is_instruction(paragraphs[-1]) or paragraphs[-1].rstrip().endswith(":")):
        del paragraphs[-1]
    return "\n\n".join(paragraphs).strip()
