"""Finds question and evidence in a prompt that does not call its evidence so.

The evidence is set apart from the instructions, as between backticks, tags or behind "Text:"; it is
numbered; a line leads to it, or points back to it. It counts only if nothing else is known of what
the model has read, and if it can be nothing but the material: in one place, beside the question,
and neither code, nor an example, nor what the user said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from claimspan_tracing.read.answering import Generated
from claimspan_tracing.read.handwritten import (
    MIN_EVIDENCE,
    POINTS_BACK,
    before_end,
    before_label,
    blocks_between_tags,
    numbered_blocks,
    written_evidence,
)

__all__ = ["announced_question", "labelled_question", "text_set_apart", "unnamed_evidence"]

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
        texts: What the system and the user say in the prompt.
        system: What the system says, which may have the text while the user asks.
        query: What the user asked.
    """
    asked = query.strip()
    looked_at = _asking(texts, asked) if asked else []
    looked_at += [text for text in system if asked and text not in looked_at]
    return _only_one(_block_in(text, asked) for text in looked_at)


def _asking(texts: Sequence[str], asked: str) -> list[str]:
    """The texts with the question: a turn before has another one.

    Not the question alone: what the user has pasted into it is a part of it.
    """
    return [text for text in texts if asked in text and text.strip() != asked]


def _only_one(found: Iterable[str]) -> list[str]:
    """What was found if it is one text, since of several it is not known which is the material."""
    different = dict.fromkeys(filter(None, found))
    return [*different] if len(different) == 1 else []


def _block_in(text: str, query: str) -> str:
    """The block of a text that may be material, by the first kind of sign that it has."""
    if is_conversation(text):
        return ""
    for lead, body in (*_between(text), *_quoted(text), *_labelled(text, query)):
        block = body.strip().strip('"').strip()
        if is_material(block, query) and _leads_to_material(lead):
            return block
    return ""


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


MAX_LINES: Final = 20
"""Lines of instructions before a text that are left out."""

_HOW: Final = re.compile(r"\b(?:styles?|tone|formats?|manner|structure|like|as)\b", re.IGNORECASE)
"""What says that a text is to be followed in another way than in what it says."""

_SIGN_LINE: Final = re.compile(r"\s*[-=#*_~`]{3,}\s*")
_HEADING: Final = re.compile(r"[^\n]{1,80}:\s*|\s*#{1,6}\s[^\n]{1,80}|\s*\*\*[^\n*]{1,80}\*\*\s*")


def _before(text: str, query: str) -> str:
    """What stands before the line that points back, without question and instructions."""
    # A text may itself say "the documents above": the last one is the prompt's. And so may the
    # question, which is made unreadable.
    ends = [found.start() for found in POINTS_BACK.finditer(text.replace(query, "\0" * len(query)))]
    if not ends or is_conversation(text):
        return ""
    line_begins = text.rfind("\n", 0, ends[-1]) + 1
    if _HOW.search(text, line_begins, ends[-1]):
        return ""
    above = text[:line_begins]
    parts = [before_label(part) for part in above.split(query)]
    block = _without_instructions(max(parts, key=len))
    return block if is_material(block, query) else ""


def _without_instructions(text: str) -> str:
    lines = text.strip().split("\n")
    for _ in range(MAX_LINES):
        is_heading = bool(lines) and _HEADING.fullmatch(lines[0]) is not None
        if not lines or not (is_heading or _is_blank(lines[0]) or is_instruction(lines[0])):
            break
        if is_example(lines[0]):
            return ""
        del lines[0]
    while lines and _is_blank(lines[-1]):
        del lines[-1]
    return "\n".join(lines).strip()


def _is_blank(line: str) -> bool:
    return not line.strip() or _SIGN_LINE.fullmatch(line) is not None


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
    asked = query.strip()
    if not asked:
        return []
    return (
        _blocks(texts, system, asked)
        or text_set_apart(texts, system, query)
        or _only_one(_before(text, asked) for text in _asking(texts, asked))
        or _only_one(_behind_lead(text, asked) for text in _asking(texts, asked))
    )


def _blocks(texts: Sequence[str], system: Sequence[str], query: str) -> list[str]:
    """The texts that stand each between tags of one name, or behind a number."""
    looked_at = [text for text in texts if text in system or (query in text and text != query)]
    for text in looked_at:
        if is_conversation(text):
            continue
        numbered = numbered_blocks(before_end(text, query))
        numbered = [*numbered[:-1], *map(_without_orders, numbered[-1:])]
        # A mention of a tag is no pair of them.
        names = dict.fromkeys(tag[1].lower() for tag in islice(_TAG.finditer(text), MAX_LEADS))
        tagged = [blocks_between_tags(text, name) for name in reversed(names)]
        for found in (*tagged, numbered):
            # Some may be short beside others.
            may_be = any(is_material(each, query) for each in found)
            outside = text
            for block in found:
                outside = outside.replace(block, " ", 1)
            is_other = any(query in each or is_instruction(each) for each in found)
            if may_be and not is_other and not is_example(outside):
                return found
    return []


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
    told = {text.strip() for each in generations for text in (each.prompt, *each.told)}
    if len(given) < 2 * MIN_EVIDENCE or given not in told:
        return query
    evidence = written_evidence([given], "")
    # A document may have questions of its own.
    around = given
    for text in evidence:
        around = around.replace(text, "\n")
    question = announced_question(around)
    is_told = question and (evidence or unnamed_evidence([given], [], question))
    return question if is_told else query


def announced_question(text: str) -> str:
    """Return the one question that a label or a tag announces in a text; empty if it is not one."""
    found = set(islice(_questions(text), MAX_LABELS))
    return found.pop() if len(found) == 1 else ""


def _questions(text: str) -> Iterator[str]:
    for pattern in (_TAGGED, _LABELLED, _HEADED):
        for match in pattern.finditer(text):
            if _LABELLED.match(match["asked"]):  # a label below a heading, and found by itself
                continue
            if asked := _ANSWER.sub("", match["asked"]).strip(" \t\n*#"):
                yield asked
