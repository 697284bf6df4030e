"""Reads prompts into blocks, and tells which are evidence that was written there by hand.

A prompt names its material, sets it apart from the instructions, numbers it, leads to it or points
back to it. What it names as what a store returns is evidence. The rest is only if nothing else is
known of what the model has read, and if it can be nothing but the material: in one place, beside
the question, and neither code, nor an example, nor what the user said.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from itertools import takewhile
from typing import Final

from claimspan_tracing.read import vocabulary as words
from claimspan_tracing.read.answering import Generated

__all__ = ["labelled_question", "names_evidence", "written_evidence"]

MIN_EVIDENCE: Final = 40
"""Characters of a text from which on it may be evidence: what is shorter is part of a sentence."""

MIN_BLOCK: Final = 5
"""Characters of a first block between tags; what is shorter stands between two that are named."""

MAX_WORDS: Final = 4
"""Words of a label."""

MAX_BLOCKS: Final = 100
"""Items of one list that are looked at: as many as chunks are kept of a record."""

MAX_ASKED: Final = 100
"""Characters before a question in which its label is looked for."""

MAX_QUESTION: Final = 2_000
"""Characters of a question; what is longer has more in it than that."""

MAX_LEAD: Final = 200
"""Characters before a block that say what it is."""

MAX_POINTER: Final = 400
"""Characters of a paragraph that points back."""

MAX_CODE: Final = 0.2
"""Share of the lines of a text that may look like code."""

_FLAGS: Final = re.IGNORECASE | re.MULTILINE
_WITHIN: Final = r"[^\n:.<>]{0,60}?"

_STORED: Final = re.compile(rf"\b{words.STORED}\b", _FLAGS)
_TEXT: Final = re.compile(rf"\b{words.TEXT}\b", _FLAGS)
_LEADS: Final = re.compile(rf"\b(?:{words.TEXT}|{words.SET_APART})\b", _FLAGS)
_ELSEWHERE: Final = re.compile(rf"\b(?:{words.ELSEWHERE}|{words.EXAMPLE})\b", _FLAGS)
_EXAMPLE: Final = re.compile(rf"\b{words.EXAMPLE}\b", _FLAGS)
_SHOWN: Final = re.compile(rf"\b(?:{words.AHEAD}|{words.GIVEN})\b", _FLAGS)
_SECTION: Final = re.compile(words.SECTION, _FLAGS)
_HOW: Final = re.compile(rf"\b{words.HOW}\b", _FLAGS)
_TURN: Final = re.compile(rf"^{words.SPEAKER}[ \t]*:[ \t]*\S", _FLAGS)
_ORDER: Final = re.compile(rf"[\s\d.)#*>-]{{0,10}}{words.ORDER}(?!\w)", _FLAGS)
_CONDITION: Final = re.compile(rf"[\s*-]{{0,10}}{words.CONDITION}\b", _FLAGS)
_LACKING: Final = re.compile(rf"{words.CONDITION} (?:\w+ ){{0,2}}{words.STORED}\b", _FLAGS)
_CODE: Final = re.compile(rf"[;{{}}]\s*$|=>|==|\(\)|^\s*{words.CODE}", re.IGNORECASE)
_QUESTION: Final = re.compile(rf"(?:[\w'\u2019]+[ \t]+){{0,6}}{words.QUESTION}[ \t*\]]*", _FLAGS)
_ENDS: Final = re.compile(rf"{words.ENDS}\b[^\n:]{{0,20}}", _FLAGS)
_TAG_NAME: Final = re.compile(
    rf"(?:\w+[_-])?(?:(?P<stored>{words.STORED})|(?P<text>{words.TEXT_TAG})"
    rf"|(?P<asked>{words.QUESTION})|(?P<other>{words.EXAMPLE}))",
    _FLAGS,
)
_POINTS_BACK: Final = re.compile(
    rf"\b{words.BACK}(?:[- ](?:mentioned|given|provided|quoted))?[ \n](?:\w{{1,20}} ){{0,2}}"
    rf"{words.POINTED_AT}\b"
    rf"|\b{words.POINTED_AT}(?:[ \n]\w{{1,20}}){{0,3}}[ \n]{words.BACK_BEHIND}\b"
    r"|\b(?:based on|from|given|using) the above[,:.]",
    _FLAGS,
)
"""What points back at the material, as in "by the text above" or "the above pieces of context"."""

_ITEM: Final = r"(?:document|doc|source|passage|chunk|excerpt|result|snippet)[ \t]{0,3}"
_NUMBER: Final = (
    rf"^[ \t]{{0,8}}(?:\[(?P<n>\d{{1,3}})\]|\[{_ITEM}(?P<k>\d{{1,3}})\b[^\n\[\]]{{0,100}}\]"
    rf"|{_ITEM}(?P<m>\d{{1,3}})[ \t]{{0,3}}[:.)])[ \t]{{0,3}}"
)
NUMBER: Final = re.compile(_NUMBER, _FLAGS)
"""How the items of a list of sources begin."""

_SIGN_LINE: Final = re.compile(r"^[ \t]*([-=#*_~])\1{2,}[ \t]*$", re.MULTILINE)
_ENCLOSING: Final = re.compile(
    r"[<\[](?P<close>/?)(?P<tag>\w[\w-]{0,40})(?:\s[^<>\[\]]{0,300})?[>\]]"
    r"|(?P<fence>```|\"\"\"|''')|^[ \t]*(?P<sign>[-=#*])(?P=sign){2,}[ \t]*$"
    r"|(?P<quote>(?:^[ \t]*>[^\n]*(?:\n|\Z))+)",
    _FLAGS,
)
_QUOTE_SIGN: Final = re.compile(r"^[ \t]*>[ \t]?", re.MULTILINE)
_LANGUAGE: Final = re.compile(r"([\w+#.-]*)[ \t]*\n")
_PLAIN: Final = frozenset({"", "text", "txt", "plaintext", "markdown", "md"})
"""What may stand behind the sign that opens a block of plain text."""

_NAMING: Final = re.compile(
    rf"{_NUMBER}"
    r"|^[ \t]*(?:(?:\#{1,6}[ \t]+|%|\*\*|[-=]{2,10}[ \t]+)(?:begin )?(?P<heading>[^\n:]{1,80}?)"
    rf"|(?P<bare>(?:[^\W\d_]+[ \t]+){{0,3}}{words.STORED}))[ \t*#%=-]*:?[ \t*]*$"
    r"|(?:^|(?<=[.!?] ))[ \t>*#\[]{0,20}(?:instructions?: )?(?P<label>[^\n:.!?<>]{1,150})[:\uff1a][*\] \t]*"
    rf"|\b(?P<stored>{words.AHEAD}{_WITHIN}\b{words.STORED}"
    rf"|{words.STORED}\b{_WITHIN}\b{words.AHEAD})\b"
    rf"|\b(?P<text>{words.AHEAD}{_WITHIN}\b{words.TEXT}|{words.TEXT}\b{_WITHIN}\b{words.AHEAD}"
    rf"|(?:given|retrieved|found|provided){_WITHIN}\b{words.STORED})\b",
    _FLAGS,
)
"""Numbers, headings, labels, and sentences that point ahead."""

_ASKED: Final = re.compile(
    r"[\s#*\[<]{0,20}\b(?:user\s{1,9})?(?:question|query|input)[\s:>\]*]{0,20}$"
    r"|\n[ \t#*]{0,10}[^\W\d_][^\n:]{0,60}:[\s*\"]{0,20}$",
    re.IGNORECASE,
)
"""What stands before the question: its label, in any language where it has a line of its own."""

_CHAT: Final = re.compile(r"\[/|</|<\|")
"""How the signs begin by which a model is told that a message ends."""

_SIGNS: Final = '\n\t -=#*`"]'
"""What stands between a name and the material, beside words."""


class _Role(Enum):
    STORED = "stored"
    TEXT = "text"
    QUESTION = "question"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class _Mark:
    """A place at which a block begins."""

    start: int
    end: int
    role: _Role | None
    sort: str
    inside: tuple[int, int] | None = None
    """Where the block is, if it is enclosed."""

    @property
    def is_label(self) -> bool:
        """Whether it calls a block a text, and says no more."""
        return (
            self.role is _Role.TEXT and self.inside is None and self.sort not in ("number", "ahead")
        )

    @property
    def is_query(self) -> bool:
        """Whether it is the question itself, as it is known."""
        return self.sort == "query"

    @property
    def names(self) -> bool:
        """Whether it is the very label of what a store returned, and no sentence."""
        is_label = self.inside is None and self.sort not in ("number", "ahead")
        return self.role is _Role.STORED and is_label and self.sort.count(" ") < MAX_WORDS

    @property
    def ends(self) -> bool:
        """Whether the material before it ends here."""
        return self.role in (_Role.QUESTION, _Role.OTHER)


@dataclass(frozen=True, slots=True)
class _Block:
    text: str
    role: _Role | None
    sort: str
    lead: str
    """What stands before it."""


def names_evidence(name: object) -> bool:
    """Whether an input of this name has a text that the model is to answer from."""
    return words.INPUT.search(str(name)) is not None


def written_evidence(
    texts: Sequence[str], query: str, *, is_all: bool = False, system: Sequence[str] = ()
) -> list[str]:
    """Return the material in a prompt, as the texts that the prompt keeps apart.

    A prompt without material has no evidence: instructions are not what an answer is compared with.

    Args:
        texts: What the system and the user say in the prompt.
        query: What the user asked, which is no evidence.
        is_all: Whether nothing else is known of what the model has read. Then material counts that
            the prompt does not announce.
        system: What the system says, which may have the text while the user asks.
    """
    asked = query.strip()
    read = {text: _blocks(text, asked) for text in dict.fromkeys(texts)}
    named = [block for blocks in read.values() for block in _named(blocks, asked)]
    if named or not (is_all and asked):
        return named
    # Not the question alone, and not a turn before, which has another one.
    asking = [text for text in read if asked in text and text.strip() != asked]
    looked_at = [text for text in [*asking, *system] if not _TURN.search(text)]
    blocks = {text: read.get(text) or _blocks(text, asked) for text in looked_at}
    lists = (_list_in(text, blocks[text], asked) for text in blocks)
    return (
        next(filter(None, lists), [])
        or _only_one(_set_apart(blocks[text], asked) for text in blocks)
        or _only_one(_before(text, asked) for text in asking if text in blocks)
    )


def _named(blocks: Sequence[_Block], query: str) -> list[str]:
    """The blocks that are named as what a store returns; some may be short beside others."""
    found = [each.text for each in blocks if each.role is _Role.STORED and each.text]
    # An instruction may name both tags, with a word between them.
    found = found[1:] if len(found) > 1 and len(found[0]) < MIN_BLOCK else found
    return found if any(len(each) >= MIN_EVIDENCE for each in found) else []


def _list_in(text: str, blocks: Sequence[_Block], query: str) -> list[str]:
    """The texts that stand each between tags of one name, or behind a number."""
    for sort in dict.fromkeys(each.sort for each in blocks if each.role is _Role.TEXT):
        found = [each.text for each in blocks if each.sort == sort and each.text][:MAX_BLOCKS]
        is_list = sort == "number" or sort.startswith("<")
        is_other = any(query in each or _is_order(each) for each in found)
        if not is_list or is_other or not any(_is_material(each, query) for each in found):
            continue
        outside = text
        for block in found:
            outside = outside.replace(block, " ", 1)
        if not _EXAMPLE.search(outside):
            return found
    return []


def _set_apart(blocks: Sequence[_Block], query: str) -> str:
    """The first block that may be material; of what is there twice each may be an example."""
    times = Counter(each.sort for each in blocks)
    for each in blocks:
        may_be = each.role in (_Role.TEXT, None) and times[each.sort] == 1
        block = _without_orders(each.text.strip('"').strip()) if may_be else ""
        if _is_material(block, query) and _leads_to_material(each.lead):
            return block
    return ""


def _only_one(found: Iterable[str]) -> list[str]:
    """What was found if it is one text, since of several it is not known which is the material."""
    different = dict.fromkeys(filter(None, found))
    return [*different] if len(different) == 1 else []


def _before(text: str, query: str) -> str:
    """What stands before the line that points back, without question and instructions."""
    # A text may itself say "the documents above": the last one is the prompt's. And so may the
    # question, which is made unreadable.
    ends = [each.start() for each in _POINTS_BACK.finditer(text.replace(query, "\0" * len(query)))]
    begins = text.rfind("\n", 0, ends[-1]) + 1 if ends else 0
    if not ends or _HOW.search(text, begins, ends[-1]):
        return ""
    parts = [_before_label(part) for part in text[:begins].split(query)]
    block = _behind_orders(max(parts, key=len))
    return block if _is_material(block, query) else ""


# --- reading a prompt -----------------------------------------------------------------------------


def _blocks(text: str, query: str) -> list[_Block]:
    """The blocks of a prompt that something before them names or encloses."""
    marks = [*_marks(text, query)]
    times = Counter(mark.sort for mark in marks)
    # Of what is labelled alike each may be an example.
    marks = [mark for mark in marks if not mark.is_label or times[mark.sort] == 1]
    marks = _unanswered(text, marks)
    marks = [*marks, _Mark(len(text), len(text), _Role.OTHER, "end")]
    ends = [at for at, mark in enumerate(marks) if mark.ends]
    names = [at for at, mark in enumerate(marks) if mark.names and times[mark.sort] == 1]
    found: list[_Block] = []
    named: _Mark | None = None  # what an empty block before says of the next one
    at = 0
    while at < len(marks) - 1:
        mark, next_ = marks[at], marks[at + 1]
        body = text[slice(*(mark.inside or (mark.end, next_.start)))]
        at += 1
        if mark.inside is None and mark.role in (_Role.STORED, _Role.TEXT):
            end = ends[bisect_left(ends, at)]
            if mark.sort == "ahead":
                if named is not None:
                    mark = replace(mark, role=named.role)
                body = _behind_pointer(body)
                place = bisect_left(names, at)
                is_named = place < len(names) and names[place] < end
                body = "" if is_named else body
            if not body.strip() and mark.sort != "number":
                named = mark
                continue
            # What is announced may have in it whatever it likes.
            at = end
            begin = mark.start if mark.names and times[mark.sort] > 1 else mark.end
            body = text[begin : marks[at].start]
            body = _behind_pointer(body) if mark.sort == "ahead" else body
        elif mark.ends and mark.inside is None:
            if mark.role is _Role.QUESTION:
                found.append(_Block(_first_line(body), mark.role, mark.sort, ""))
            if named is None or not _SIGN_LINE.match(body.lstrip("\n")):
                continue
            at = ends[bisect_left(ends, at)]
            mark = replace(named, end=mark.end)
            body = text[mark.end : marks[at].start].lstrip("\n")
        role = mark.role
        if mark.inside is not None and named is not None and not mark.ends:
            role = named.role
        named = None if mark.inside is None else named
        lead = text[max(0, mark.start - MAX_LEAD) : mark.start if mark.inside else mark.end]
        items = _numbered(text[mark.start : marks[at].start] if mark.sort == "number" else body)
        sort = "number" if items else mark.sort
        for item in items or [body]:
            found.append(_Block(_trimmed(item, is_enclosed=bool(mark.inside)), role, sort, lead))
    return found


def _unanswered(text: str, marks: Sequence[_Mark]) -> list[_Mark]:
    """The marks without those of questions that have an answer, and another question behind it.

    Such questions are part of the material, as in a list of usual ones, or they are examples.
    """
    asked = [at for at, mark in enumerate(marks) if mark.role is _Role.QUESTION or mark.is_query]
    last = asked[-1] if asked else 0
    answered: set[int] = set()
    for at in asked:
        if at + 2 <= last and marks[at + 1].sort == "answer" and not marks[at].is_query:
            if text[marks[at + 1].end : marks[at + 2].start].strip():
                answered |= {at, at + 1}
    return [mark for at, mark in enumerate(marks) if at not in answered]


def _marks(text: str, query: str) -> Iterator[_Mark]:
    at = 0
    for each in _enclosed(text, query):
        yield from _names(text, at, each.start)
        yield each
        at = each.end
    yield from _names(text, at, len(text))


def _names(text: str, start: int, end: int) -> Iterator[_Mark]:
    """The numbers, headings, labels and pointers of a part of a prompt."""
    for found in _NAMING.finditer(text, start, end):
        sort = str(found.lastgroup)
        role: _Role | None = None
        if sort in ("n", "k", "m"):
            role, sort = _Role.TEXT if sort == "n" else _Role.STORED, "number"
        elif sort in ("stored", "text"):
            role, sort = _Role(sort), "ahead"
        elif not (sort == "bare" and _is_order(found[0])):
            phrase = found[sort].strip(" \t*#")
            is_section = sort == "heading" and _SECTION.fullmatch(phrase)
            role, sort = _Role.OTHER if is_section else _role_of(phrase), phrase.casefold()
        if role is not None:
            yield _Mark(found.start(), found.end(), role, sort)


@lru_cache(maxsize=1_000)
def _role_of(phrase: str) -> _Role | None:
    """What a label or a heading says of the block behind it."""
    if _POINTS_BACK.search(phrase) or _CONDITION.match(phrase):
        return None
    if _QUESTION.fullmatch(phrase):
        return _Role.QUESTION
    if _ENDS.fullmatch(phrase):
        return _Role.OTHER
    if _is_order(phrase) and not _SHOWN.search(phrase):
        return None
    if _STORED.search(phrase):
        return _Role.STORED
    return _Role.TEXT if _TEXT.search(phrase) and not _ELSEWHERE.search(phrase) else None


def _enclosed(text: str, query: str) -> Iterator[_Mark]:
    """The questions, and the blocks between tags, signs, or lines of signs, and quotations.

    A block with the question in it is not enclosed: its tag is a label.
    """
    asked = _places(text, query)
    tokens = [*_ENCLOSING.finditer(text)]
    closing: dict[str, int] = {}
    closed_at = [-1] * len(tokens)
    counts: dict[str, int] = {}
    for at in range(len(tokens) - 1, -1, -1):
        token = tokens[at]
        key = _key(token)
        counts[key] = counts.get(key, 0) + 1
        if token["tag"] is None or not token["close"]:
            closed_at[at] = closing.get(key, -1)
        if token["tag"] is None or token["close"]:
            closing[key] = at
    next_asked, at, end = 0, 0, 0
    while at < len(tokens) or next_asked < len(asked):
        if next_asked < len(asked) and (
            at >= len(tokens) or asked[next_asked] < tokens[at].start()
        ):
            place = asked[next_asked]
            next_asked += 1
            begin = len(_before_label(text[max(end, place - MAX_ASKED) : place]))
            begin += max(end, place - MAX_ASKED)
            if place >= end:
                yield _Mark(begin, place + len(query), _Role.OTHER, "query")
                end = place + len(query)
            continue
        token, close = tokens[at], closed_at[at]
        role, key = _role_of_tag(token["tag"] or ""), _key(token)
        at += 1
        if token.start() < end or (token["tag"] and (token["close"] or role is None)):
            continue
        if token["quote"] is not None:
            if counts[key] == 1:
                yield _Mark(token.start(), token.end(), None, key, token.span())
                end = token.end()
            continue
        if close < 0 or (token["sign"] and counts[key] != 2):
            continue
        # An instruction may name the tag before it is opened.
        for other in range(at, close):
            if token["tag"] and _key(tokens[other]) == key:
                token, at = tokens[other], other + 1
        begin, stop = token.end(), tokens[close].start()
        if asked and bisect_left(asked, begin) < bisect_left(asked, stop):
            if token["tag"]:
                yield _Mark(token.start(), begin, role, key)
                end = begin
            continue
        if token["fence"] == "```" and (language := _LANGUAGE.match(text, begin, stop)):
            if language[1].lower() not in _PLAIN:
                role = _Role.OTHER
            begin = language.end()
        yield _Mark(token.start(), tokens[close].end(), role, key, (begin, stop))
        at, end = close + 1, tokens[close].end()


def _places(text: str, query: str) -> list[int]:
    return [each.start() for each in re.finditer(re.escape(query), text)] if query else []


def _key(token: re.Match[str]) -> str:
    """What two signs have in common that belong together."""
    return f"<{token['tag'].lower()}>" if token["tag"] else str(token["fence"] or token["sign"])


@lru_cache(maxsize=1_000)
def _role_of_tag(name: str) -> _Role | None:
    found = _TAG_NAME.fullmatch(name)
    roles = {"stored": _Role.STORED, "text": _Role.TEXT, "asked": _Role.QUESTION}
    return None if found is None else roles.get(str(found.lastgroup), _Role.OTHER)


def _numbered(text: str) -> list[str]:
    """The items of a list that begins a text and is numbered from 1; nothing below two."""
    begin = len(text) - len(text.lstrip())
    if not NUMBER.match(text, text.rfind("\n", 0, begin) + 1):
        return []
    marks = [*NUMBER.finditer(text)][: MAX_BLOCKS + 1]
    numbers = [int(mark["n"] or mark["k"] or mark["m"]) for mark in marks]
    if len(marks) < 2 or numbers != [*range(1, len(marks) + 1)]:
        return []
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    return [text[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)]


def _behind_pointer(body: str) -> str:
    """What stands behind a sentence that points ahead, and behind the orders of its paragraph."""
    lines = body.strip("\n").split("\n")[1:]
    told = (_is_order(line) or _CONDITION.match(line) for line in lines if line.strip())
    del lines[: sum(1 for _ in takewhile(bool, told))]
    return "\n".join(lines)


def _trimmed(text: str, *, is_enclosed: bool) -> str:
    """A block without the signs around it, and without what stands there behind the material."""
    if is_enclosed:
        return _QUOTE_SIGN.sub("", text).strip() if text.lstrip().startswith(">") else text.strip()
    lines = [*_SIGN_LINE.finditer(text)]
    if lines and len(lines) > 1 and not text[: lines[0].start()].strip():
        text = text[lines[0].end() : lines[-1].start()]
        lines = []
    for line in reversed(lines):
        behind = text[line.end() :].strip()
        if behind and not _is_order(behind) and not behind.endswith(":"):
            break
        text = text[: line.start()]
    text = text.lstrip(_SIGNS).rstrip()
    before, _, last = text.rpartition("\n\n")
    is_other = last.endswith(":") or _LACKING.match(last)
    if before and (is_other or _POINTS_BACK.search(last[:MAX_POINTER])):
        text = before.rstrip()
    return text.removesuffix("```").removesuffix('"""').rstrip()


def _before_label(text: str) -> str:
    """What stands before the label of a question that comes next."""
    return text[:-MAX_ASKED] + _ASKED.sub("", text[-MAX_ASKED:])


def _first_line(text: str) -> str:
    line = text.strip()[: MAX_QUESTION + 1].partition("\n")[0]
    return _CHAT.split(line)[0].strip(" \t\n*#")


# --- what a block may be --------------------------------------------------------------------------


def _is_order(line: str) -> bool:
    """Whether a line begins as those do that tell a model what it is to do."""
    return _ORDER.match(line) is not None


def _is_material(block: str, query: str) -> bool:
    """Whether a block may be what a model is to answer from: no code, no question, no order."""
    if len(block) < MIN_EVIDENCE or query in block or block in query:
        return False
    if block.startswith(("{", "[{", '["')) or _is_order(block):
        return False
    lines = [line for line in block.split("\n") if line.strip()]
    return sum(_CODE.search(line) is not None for line in lines) <= MAX_CODE * len(lines)


def _leads_to_material(lead: str) -> bool:
    """Whether the words before a block say that it is material, or there are none."""
    before = lead.rstrip()[-MAX_LEAD:]
    *others, last = before.split("\n")
    if _ELSEWHERE.search(last) or _EXAMPLE.search(" ".join(others[-2:])):
        return False
    return not before or _LEADS.search(before) is not None


_HEADING: Final = re.compile(r"[^\n]{1,80}:\s*|\s*#{1,6}\s[^\n]{1,80}|\s*\*\*[^\n*]{1,80}\*\*\s*")


def _behind_orders(text: str) -> str:
    """A text without the orders and headings before it; nothing where these lead to an example."""
    lines = text.strip().split("\n")
    begin = 0
    for line in lines:
        if line.strip() and not (
            _HEADING.fullmatch(line) or _SIGN_LINE.fullmatch(line) or _is_order(line)
        ):
            break
        if _EXAMPLE.search(line):
            return ""
        begin += 1
    return re.sub(r"\n\s*[-=#*_~`]{3,}\s*$", "", "\n".join(lines[begin:])).strip()


def _without_orders(text: str) -> str:
    """A text without the paragraphs behind it that tell a model what to do."""
    paragraphs = re.split(r"\n[ \t]*\n", text.strip())
    while paragraphs and (_is_order(paragraphs[-1]) or paragraphs[-1].rstrip().endswith(":")):
        del paragraphs[-1]
    return "\n\n".join(paragraphs).strip()


# --- the question of a prompt ---------------------------------------------------------------------


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
    asked = {each.text for each in _blocks(given, "") if each.role is _Role.QUESTION} - {""}
    if len(asked) != 1:
        return query
    question = asked.pop()
    is_long = len(question) > MAX_QUESTION
    return question if not is_long and written_evidence([given], question, is_all=True) else query
