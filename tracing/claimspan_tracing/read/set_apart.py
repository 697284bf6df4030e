"""Finds a text that a prompt sets apart from its instructions, without calling it evidence.

As between backticks, or behind "Text:". It counts only where nothing else is known of what the
model has read, and where it can be nothing but the material: one block, beside the question, that
is neither code, nor an example, nor what the user said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from claimspan_tracing.read.handwritten import MIN_EVIDENCE, before_end
from claimspan_tracing.read.tagged import blocks_between_tags

__all__ = [
    "MATERIAL",
    "is_conversation",
    "is_example",
    "is_instruction",
    "is_material",
    "leads_elsewhere",
    "text_set_apart",
]

MAX_LEAD: Final = 200
"""Characters before a block that say what it is."""

MAX_CODE: Final = 0.2
"""Share of the lines of a text that may look like code."""

_SIGNS: Final = ("```", '"""', "'''")
_SIGN_LINES: Final = tuple(
    re.compile(rf"^[ \t]*{sign}{{3,}}[ \t]*$", re.MULTILINE) for sign in ("#", "=", "-", r"\*")
)
_QUOTED: Final = re.compile(r"(?:^[ \t]*>[^\n]*(?:\n|\Z))+", re.MULTILINE)
_QUOTE_SIGN: Final = re.compile(r"^[ \t]*>[ \t]?", re.MULTILINE)

MATERIAL: Final = (
    r"(?:text|article|passage|transcript|report|e-?mail|letter|story|chapter|speech|abstract|paper)"
)
"""What prompts call a text that is no document of a store."""
_NAMED: Final = re.compile(
    rf"\b(?:{MATERIAL}s?|content|material|excerpt|page|paragraphs?|notes|data|manual|contract"
    r"|following|below|delimited|backticks)\b",
    re.IGNORECASE,
)
"""What the words before a block say of material."""

_EXAMPLE: Final = re.compile(r"\b(?:examples?|for instance|samples?)\b", re.IGNORECASE)

_TURN: Final = re.compile(
    r"^(?:ai|assistant|bot|a|answer)[ \t]*:[ \t]*\S", re.IGNORECASE | re.MULTILINE
)
"""A turn of a conversation, or the answer of an example, that is written out in a prompt."""

_INSTRUCTION: Final = re.compile(
    r"[\s#*>-]{0,10}(?:you(?:'re| are| will| have| can| must| should)\b|your\b|act as\b|as an? \w+,"
    r"|i want you\b|we\b|please\b|do not\b|don't\b|never\b|always\b|follow\b|be\b|read\b"
    r"|answer\w*\b|respond\b|reply\b|use\b|using\b|keep\b|write\b|cite\b|think\b|help\b|today\b"
    r"|the (?:current|user|rules?|instructions?)\b|rules?\b|instructions?\b|system\b|task\b"
    r"|here (?:is|are)\b|now\b|below\b|given\b|consider\b|look at\b|examples?\b|du bist\b"
    r"|sie sind\b|antworte\b|beantworte\b|tu es\b|vous \u00eates\b|eres\b|sei un\b)",
    re.IGNORECASE,
)
"""How the lines begin with which a prompt tells a model what it is to do."""

_LABEL: Final = re.compile(
    rf"^[ \t]*(?:\*{{0,2}}(?:the[ \t]+|input[ \t]+)?{MATERIAL}[ \t]*(?:\*{{0,2}}:\*{{0,2}})"
    rf"|\#{{1,6}}[ \t]*{MATERIAL}[ \t]*:?[ \t]*$)",
    re.IGNORECASE | re.MULTILINE,
)
_OPENED: Final = re.compile(rf"<({MATERIAL})>", re.IGNORECASE)

_PLAIN: Final = frozenset({"", "text", "txt", "plaintext", "markdown", "md"})
"""What may stand behind the sign that opens a block of plain text."""

_OTHER: Final = re.compile(
    r"\b(?:examples?|for instance|formats?|formatted|schemas?|templates?|outputs?|respond|reply"
    r"|code|functions?|scripts?|snippets?|quer(?:y|ies)|json|yaml|xml|sql|csv|styles?|tones?|rules?"
    r"|instructions?|guidelines?|structures?|samples?|steps?|history|conversations?|chat|turns?|said|drafts?"
    r"|answers?\s+(?:like|as))\b",
    re.IGNORECASE,
)
"""What the line before a block says of one that is no material."""

_CODE: Final = re.compile(
    r"[;{}]\s*$|=>|==|\(\)|^\s*(?:def|class|import|from\s+\S+\s+import|return|function|const|let|var"
    r"|public|private|\#include|select\s.+\sfrom|[\w.]+\s*=\s|</?\w+[^>]*>|\$\s|[-+]{3}\s|@@)",
    re.IGNORECASE,
)


def text_set_apart(texts: Sequence[str], system: Sequence[str], query: str) -> list[str]:
    """Return the text that a prompt sets apart; nothing where it has none, or several.

    Args:
        texts: What the system and the user say in the prompt. Of these, one that lacks the question
            is a turn before.
        system: What the system says, which may have the text while the user asks.
        query: What the user asked.
    """
    asked = query.strip()
    if not asked:
        return []
    # What the user has pasted into a question is a part of it.
    looked_at = [text for text in texts if asked in text and text.strip() != asked]
    looked_at += [text for text in system if text not in looked_at]
    found = dict.fromkeys(block for text in looked_at for block in _blocks_in(text, asked))
    return [*found] if len(found) == 1 else []


def _blocks_in(text: str, query: str) -> Iterator[str]:
    """The blocks of a text that may be material; the first kind of sign that it has."""
    if is_conversation(text):
        return
    for lead, body in (*_between(text), *_quoted(text), *_labelled(text, query)):
        block = body.strip().strip('"').strip()
        if is_material(block, query) and _leads_to_material(lead):
            yield block
            return


def _between(text: str) -> Iterator[tuple[str, str]]:
    """What stands between two signs, or two lines of signs, with what stands before."""
    for sign in _SIGNS:
        parts = text.split(sign)
        if len(parts) == 3:
            kind, line, rest = parts[1].partition("\n")
            is_plain = kind.strip().lower() in _PLAIN and bool(line)
            is_code = sign == "```" and line and re.fullmatch(r"[\w+#.-]+", kind.strip())
            if is_plain or not is_code:
                yield parts[0], rest if is_plain else parts[1]
    for signs in _SIGN_LINES:
        parts = signs.split(text)
        if len(parts) == 3:
            yield parts[0], parts[1]
    opened = _OPENED.search(text)
    blocks = [] if opened is None else blocks_between_tags(text, opened[1])
    if opened is not None and len(blocks) == 1:
        yield text[: opened.start()], blocks[0]


def _quoted(text: str) -> Iterator[tuple[str, str]]:
    quotations = [*_QUOTED.finditer(text)]
    if len(quotations) == 1:
        yield text[: quotations[0].start()], _QUOTE_SIGN.sub("", quotations[0][0])


def _labelled(text: str, query: str) -> Iterator[tuple[str, str]]:
    """What stands behind a label; of several the first ones are examples."""
    labels = [*_LABEL.finditer(text)]
    if len(labels) == 1:
        rest = text[labels[0].end() :].lstrip()
        if not rest.startswith(_SIGNS):
            yield text[: labels[0].end()], before_end(rest, query)


def is_conversation(text: str) -> bool:
    """Whether turns of a conversation, or examples with their answers, are written out in it."""
    return _TURN.search(text) is not None


def leads_elsewhere(line: str) -> bool:
    """Whether a line speaks of what is no material: a format, an example, what was said."""
    return _OTHER.search(line) is not None or is_example(line)


def is_example(line: str) -> bool:
    """Whether a line speaks of an example."""
    return _EXAMPLE.search(line) is not None


def is_instruction(line: str) -> bool:
    """Whether a line begins as those do that tell a model what it is to do."""
    return _INSTRUCTION.match(line) is not None


def is_material(block: str, query: str) -> bool:
    """Whether a block may be what a model is to answer from: no code, no question, no order."""
    if len(block) < MIN_EVIDENCE or query in block or block in query:
        return False
    if block.startswith(("{", "[{", '["')) or is_instruction(block):
        return False
    lines = [line for line in block.split("\n") if line.strip()]
    return sum(_CODE.search(line) is not None for line in lines) <= MAX_CODE * len(lines)


def _leads_to_material(lead: str) -> bool:
    """Whether the words before a block say that it is material, or there are none."""
    before = lead.rstrip()[-MAX_LEAD:]
    *others, last = before.split("\n")
    if _OTHER.search(last) or _EXAMPLE.search(" ".join(others[-2:])):
        return False
    return not before or _NAMED.search(before) is not None
