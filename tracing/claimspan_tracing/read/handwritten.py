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
from dataclasses import dataclass
from enum import Enum
from itertools import chain, pairwise, takewhile
from typing import Final

from claimspan_tracing.read import vocabulary as words
from claimspan_tracing.read.answering import Generated

__all__ = ["announced_question", "asked_in", "names_evidence", "question_of", "written_evidence"]

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

MAX_STEP: Final = 1_000
"""Characters that one call of a slow pattern reads: other threads do not get a turn meanwhile."""

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
_LABELLED: Final = re.compile(rf"{words.QUESTION}[ \t*]*[:\uff1a][ \t*]*(\S.*)", _FLAGS)
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
    rf"|\b(?:based on|from|given|using) the above[,:.]|{words.BACK_UNSPACED}",
    _FLAGS,
)
"""What points back at the material, as in "by the text above" or "the above pieces of context"."""

_ITEM: Final = r"(?:document|doc|source|passage|chunk|excerpt|result|snippet)[ \t]{0,3}"
_NUMBER: Final = (
    rf"^[ \t]{{0,8}}(?:\[(?P<n>\d{{1,3}})\]|\[{_ITEM}(?P<k>\d{{1,3}})\b[^\n\[\]]{{0,100}}\]"
    rf"|{_ITEM}(?P<m>\d{{1,3}})[ \t]{{0,3}}[:.)])[ \t]{{0,3}}"
)
_ITEMS: Final = re.compile(_NUMBER, _FLAGS)
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

_HEADS: Final = r"(?:\#{1,6}[ \t]+|%|\*\*|[-=]{2,10}[ \t]+|\[(?=[^\W\d]+\]))(?:begin )?"
_NAMING: Final = re.compile(
    rf"{_NUMBER}"
    rf"|^[ \t]*(?:{_HEADS}(?P<heading>[^\n:]{{1,80}}?)"
    rf"|(?P<bare>(?:[^\W\d_]+[ \t]+){{0,3}}{words.STORED}(?: (?:start|end))?))"
    r"[ \t*#%=\]-]*:?[ \t*]*$"
    r"|(?:^|(?<=[.!?] ))[ \t>*#\[]{0,20}(?:instructions?: )?"
    r"(?P<label>[^\n:.!?<>]{1,150})[:\uff1a][*\] \t]*"
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
"""What stands before the question: its label, in any language if it has a line of its own."""

_CHAT: Final = re.compile(r"\[/|</|<\|")
"""How the signs begin by which a model is told that a message ends."""

_PLACEHOLDER: Final = re.compile(r"<[^<>\n]*>|\{[^{}\n]*\}")
"""What stands for a text in the format of an answer."""

_SIGNS: Final = '\n\t -=#*`"]'
"""What stands between a name and the material, beside words."""


NUMBER: Final = "number"
POINTER: Final = "pointer"
QUERY: Final = "query"
"""Sorts of marks; those of the others are what they say themselves."""


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
    def is_text_label(self) -> bool:
        """Whether it calls a block a text, and says no more."""
        return self.role is _Role.TEXT and self._is_label

    @property
    def names(self) -> bool:
        """Whether it is the very label of what a store returned, and no sentence."""
        return self.role is _Role.STORED and self._is_label and self.sort.count(" ") < MAX_WORDS

    @property
    def asks(self) -> bool:
        """Whether it is a question, or the label of one."""
        return self.sort == QUERY or self.role is _Role.QUESTION

    @property
    def _is_label(self) -> bool:
        return self.inside is None and self.sort not in (NUMBER, POINTER)

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
    named = [block for blocks in read.values() for block in _named(blocks)]
    if named or not (is_all and asked):
        return named
    # Not the question alone, and not a turn before, which has another one.
    asking = [text for text in read if asked in text and text.strip() != asked]
    looked_at = [text for text in [*asking, *system] if not _TURN.search(text)]
    blocks = {text: read.get(text) or _blocks(text, asked) for text in looked_at}
    lists = (_list_in(text, blocks[text], asked) for text in blocks)
    return (
        next(filter(None, lists), list[str]())
        or _only_one(_set_apart(blocks[text], asked) for text in blocks)
        or _only_one(_before(text, asked) for text in asking if text in blocks)
    )


def _named(blocks: Sequence[_Block]) -> list[str]:
    """The blocks that are named as what a store returns; some may be short beside others."""
    found = [each.text for each in blocks if each.role is _Role.STORED and each.text]
    found = [text for text in found if not _PLACEHOLDER.fullmatch(text)]
    # An instruction may name both tags, with a word between them.
    found = found[1:] if len(found) > 1 and len(found[0]) < MIN_BLOCK else found
    return found if any(len(each) >= MIN_EVIDENCE for each in found) else []


def _list_in(text: str, blocks: Sequence[_Block], query: str) -> list[str]:
    """The texts that stand each between tags of one name, or behind a number."""
    lists: dict[str, list[str]] = {}
    for block in blocks:
        is_listed = block.sort == NUMBER or block.sort.startswith("<")
        if is_listed and block.role is _Role.TEXT and block.text:
            lists.setdefault(block.sort, []).append(block.text)
    for found in [found[:MAX_BLOCKS] for found in lists.values()][:MAX_BLOCKS]:
        is_other = any(query in each or _is_order(each) for each in found)
        if is_other or not any(_is_material(each, query) for each in found):
            continue
        outside = text
        for each in found:
            outside = outside.replace(each, " ", 1)
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
    marks = [mark for mark in marks if not mark.is_text_label or times[mark.sort] == 1]
    marks = [*_unanswered(text, marks), _Mark(len(text), len(text), _Role.OTHER, "end")]
    times = Counter(mark.sort for mark in marks)
    # What is announced may have in it whatever it likes: it goes on to the next of these.
    ends = [at for at, mark in enumerate(marks) if mark.ends]
    names = [at for at, mark in enumerate(marks) if mark.names and times[mark.sort] == 1]
    names.append(len(marks))
    found: list[_Block] = []
    named: _Role | None = None  # what a sentence, or a label that is followed by signs, announces
    at = 0
    while at < len(marks) - 1:
        mark, end = marks[at], ends[bisect_left(ends, at + 1)]
        body = text[mark.end : marks[at + 1].start]
        at += 1
        if mark.inside:
            role = mark.role if mark.ends else named or mark.role
            found += _made(text[slice(*mark.inside)], mark, role, text)
            continue
        if mark.ends:
            if mark.role is _Role.QUESTION:
                found.append(_Block(_first_line(body), mark.role, mark.sort, ""))
            body = body.lstrip("\n")
            if named is None or not _SIGN_LINE.match(body):
                continue
            role, begin = named, mark.end
        else:
            is_pointer = mark.sort == POINTER
            role = named or mark.role if mark.sort in (POINTER, NUMBER) else mark.role
            # The label of the material says better than a sentence before it where it begins.
            is_named_later = is_pointer and names[bisect_left(names, at)] < end
            rest = _behind_pointer(body) if is_pointer else body
            if is_named_later or not (rest.strip() or mark.sort == NUMBER):
                named = role
                continue
            # If there are several, each is part of the material.
            is_whole = mark.sort == NUMBER or (mark.names and times[mark.sort] > 1)
            begin = mark.start if is_whole else mark.end
        body, at, named = text[begin : marks[end].start], end, None
        found += _made(_behind_pointer(body) if mark.sort == POINTER else body, mark, role, text)
    return found


def _made(body: str, mark: _Mark, role: _Role | None, text: str) -> list[_Block]:
    """The blocks that a text makes up: the items of a list that is numbered, or one."""
    lead = text[max(0, mark.start - MAX_LEAD) : mark.start if mark.inside else mark.end]
    items = _numbered(body)
    sort = NUMBER if items else mark.sort
    is_enclosed = mark.inside is not None
    return [_Block(_trimmed(each, is_enclosed), role, sort, lead) for each in items or [body]]


def _unanswered(text: str, marks: Sequence[_Mark]) -> list[_Mark]:
    """The marks without those of questions that have an answer, and another question behind it.

    Such questions are part of the material, as in a list of usual ones, or they are examples. If
    each has material of its own before it, that is part of the example.
    """
    asked = [at for at, mark in enumerate(marks) if mark.asks]
    answered: set[int] = set()
    for at, later in pairwise(asked):
        answer = marks[at + 1]
        if answer.sort == "answer" and text[answer.end : marks[at + 2].start].strip():
            before = marks[at - 1]
            is_named = before.names or (before.inside and before.role is _Role.STORED)
            is_example = at > 0 and is_named and marks[later - 1].sort == before.sort
            answered |= {at - 1, at, at + 1} if is_example else {at, at + 1}
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
    steps = _steps(text, start, end)
    for found in chain.from_iterable(_NAMING.finditer(text, *step) for step in steps):
        sort = str(found.lastgroup)
        role: _Role | None = None
        if sort in ("n", "k", "m"):
            role, sort = _Role.TEXT if sort == "n" else _Role.STORED, NUMBER
        elif sort in ("stored", "text"):
            role, sort = _Role(sort), POINTER
        else:
            phrase = found[sort].strip(" \t*#")
            role = _role_of(phrase)
            # A document may have a heading like this, and no orders below it.
            if sort == "heading" and _SECTION.fullmatch(phrase) and _ORDER.match(text, found.end()):
                role = _Role.OTHER
            sort = phrase.casefold()
        if role is not None:
            yield _Mark(found.start(), found.end(), role, sort)


def _steps(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The pieces in which a part is read: of lines or sentences, which no name goes beyond."""
    while end - start > MAX_STEP:
        half, until = start + MAX_STEP // 2, start + MAX_STEP
        ends = (text.rfind(sign, half, until) + len(sign) for sign in ("\n", ". ", "。", " "))
        until = next((at for at in ends if at > half), until)
        yield start, until
        start = until
    yield start, end


def _role_of(phrase: str) -> _Role | None:
    """What a label or a heading says of the block behind it."""
    if _POINTS_BACK.search(phrase) or _CONDITION.match(phrase):
        return None
    if _QUESTION.fullmatch(phrase):
        return _Role.QUESTION
    is_shown = _SHOWN.search(phrase) is not None
    if _ENDS.fullmatch(phrase) and not (is_shown and _is_order(phrase)):
        return _Role.OTHER
    if _is_order(phrase) and not is_shown:
        return None
    if _STORED.search(phrase):
        return _Role.STORED
    return _Role.TEXT if _TEXT.search(phrase) and not _ELSEWHERE.search(phrase) else None


def _enclosed(text: str, query: str) -> list[_Mark]:
    """The questions, and the blocks between tags, signs, or lines of signs, and quotations.

    A block with the question in it is not enclosed: its tag is a label.
    """
    asked = [each.start() for each in re.finditer(re.escape(query), text)] if query else []
    tokens = [*_ENCLOSING.finditer(text)]
    times = Counter(map(_key, tokens))
    found: list[_Mark] = []
    end = 0
    for token, close in zip(tokens, _closings(tokens), strict=True):
        key, role = _key(token), _role_of_tag(token["tag"] or "")
        is_one = times[key] == (2 if token["sign"] else 1)
        if token.start() < end or (token["tag"] and role is None):
            continue
        if token["quote"]:
            found += [_Mark(*token.span(), None, key, token.span())] if is_one else []
            end = token.end()
        elif close is not None and (is_one or not token["sign"]):
            inside = token.end(), close.start()
            if bisect_left(asked, inside[0]) < bisect_left(asked, inside[1]):
                found += [_Mark(*token.span(), role, key)] if token["tag"] else []
                continue
            if token["fence"] == "```" and (language := _LANGUAGE.match(text, *inside)):
                role = None if language[1].lower() in _PLAIN else _Role.OTHER
                inside = language.end(), inside[1]
            found.append(_Mark(token.start(), close.end(), role, key, inside))
            end = close.end()
    return sorted((*found, *_asked(text, query, asked, found)), key=lambda mark: mark.start)


def _asked(
    text: str, query: str, places: Sequence[int], enclosed: Sequence[_Mark]
) -> Iterator[_Mark]:
    """The questions with their labels."""
    starts = [mark.start for mark in enclosed]
    end = 0
    for place in places:
        at = bisect_left(starts, place)
        end = max(end, enclosed[at - 1].end if at else 0)
        if place >= end:
            begin = max(end, place - MAX_ASKED)
            begin += len(_before_label(text[begin:place]))
            end = place + len(query)
            yield _Mark(begin, end, _Role.OTHER, QUERY)


def _closings(tokens: Sequence[re.Match[str]]) -> list[re.Match[str] | None]:
    """What closes each; before another opening tag of its name one is only spoken of."""
    found: list[re.Match[str] | None] = []
    closing: dict[str, re.Match[str]] = {}
    for token in reversed(tokens):
        key = _key(token)
        found.append(None if token["close"] else closing.pop(key, None))
        if token["close"] or not token["tag"]:
            closing[key] = token
    return found[::-1]


def _key(token: re.Match[str]) -> str:
    """The name by which two signs belong together."""
    return f"<{token['tag'].lower()}>" if token["tag"] else str(token["fence"] or token["sign"])


def _role_of_tag(name: str) -> _Role | None:
    found = _TAG_NAME.fullmatch(name)
    roles = {"stored": _Role.STORED, "text": _Role.TEXT, "asked": _Role.QUESTION}
    return None if found is None else roles.get(str(found.lastgroup), _Role.OTHER)


def _numbered(text: str) -> list[str]:
    """The items of a list that begins a text and is numbered from 1; nothing below two."""
    begin = len(text) - len(text.lstrip())
    if not _ITEMS.match(text, text.rfind("\n", 0, begin) + 1):
        return []
    marks = [*_ITEMS.finditer(text)][: MAX_BLOCKS + 1]
    numbers = [int(mark["n"] or mark["k"] or mark["m"]) for mark in marks]
    if len(marks) < 2 or numbers != [*range(1, len(marks) + 1)]:
        return []
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    return [text[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)]


def _behind_pointer(body: str) -> str:
    """What stands behind a sentence that points ahead, and behind the orders of its paragraph."""
    lines = body.strip("\n").split("\n")[1:]
    told = (line.strip() and (_is_order(line) or _CONDITION.match(line)) for line in lines)
    del lines[: sum(1 for _ in takewhile(bool, told))]
    return "\n".join(lines)


def _trimmed(text: str, is_enclosed: bool) -> str:
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
    """A text without the orders and headings before it; nothing if these lead to an example."""
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


def question_of(query: str, generations: Sequence[Generated]) -> str:
    """Return the question of a query that is itself a prompt with evidence; else the query."""
    given = query.strip()
    told = {text.strip() for each in generations for text in (each.prompt, *each.told)}
    is_prompt = len(given) >= 2 * MIN_EVIDENCE and given in told
    return (asked_in(given) if is_prompt else "") or query


def asked_in(prompt: str) -> str:
    """Return the question to the evidence in a prompt; empty if there is none, or no evidence.

    It is the one that a label or a tag announces, or a paragraph of one line that asks, at the end
    or at the beginning.
    """
    paragraphs = prompt.rpartition("\n\n")[2], prompt.partition("\n\n")[0]
    found = announced_question(prompt), *map(_asking, paragraphs)
    return next((q for q in found if q and written_evidence([prompt], q, is_all=True)), "")


def _asking(paragraph: str) -> str:
    """What a line asks, behind its label; empty if it asks nothing, or is more than a line."""
    line = paragraph.strip()
    if len(line) > MAX_QUESTION or "\n" in line or not line.endswith(("?", "\uff1f")):
        return ""
    labelled = _LABELLED.search(line)
    return labelled[1] if labelled else line


def announced_question(text: str) -> str:
    """Return the one question that a label or a tag announces in a text; empty if it is not one."""
    asked = {each.text for each in _blocks(text, "") if each.role is _Role.QUESTION} - {""}
    question = asked.pop() if len(asked) == 1 else ""
    return question if len(question) <= MAX_QUESTION else ""
