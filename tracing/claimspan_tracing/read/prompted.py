"""Finds the texts that stand in a prompt, which is the proof that a model has read them.

As they are, escaped, cut, shortened with a sign, or with other signs and cases between their words.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

__all__ = ["InOrder", "Row", "is_made_of", "read_texts", "rows_of", "set_otherwise"]


class InOrder:
    """Looks for each text behind the one that was found last, and elsewhere only then.

    A template puts the same signs between all chunks, so that most are found without a search.
    """

    def __init__(self, around: str) -> None:
        """Take the text in which others are looked for."""
        self._around = around
        self._end = 0
        self._between = 0

    def has(self, text: str) -> bool:
        """Whether a text stands there, anywhere."""
        at = self._end + self._between
        if not self._around.startswith(text, at):
            at = self._searched(text)
            if at < 0:
                return False
            self._between = max(0, at - self._end)
        self._end = at + len(text)
        return True

    def _searched(self, text: str) -> int:
        at = self._around.find(text, self._end)
        # One that begins before the place may reach beyond it.
        return at if at >= 0 else self._around.find(text, 0, self._end + len(text))


MIN_BEGINNING: Final = 16
"""Characters of a beginning that counts where a sign says that the text was shortened there."""

MIN_ENDING: Final = 8
"""Characters of an ending that counts behind such a sign."""

PROBE: Final = 20
"""Characters of an ending by which its place in the text is found."""

MAX_PLACES: Final = 20
"""Places in a prompt or a text that are looked at."""

_LEFT_OUT: Final = re.compile(
    r"\s?(?:\.{2,}|\u2026|-{2,}|~{2,}|\*{3,}|[\[(<{] ?(?:\.{2,}|\u2026) ?[\])>}]"
    r"|(?P<note>[\[(<{])[^\[\](){}<>]{1,60}[\])>}]) ?"
)
"""What stands where a part was left out: dots, or a note in brackets."""


def with_ending(prompt: str, text: str, beginning: str) -> str:
    """Return the part of a prompt from the beginning of a text to its end, with a sign between.

    Args:
        prompt: With single spaces, as the others.
        text: The whole text.
        beginning: What of it the prompt has.

    Returns:
        Empty where there is no sign or no ending, or where nothing was left out.
    """
    at = prompt.find(beginning)
    sign = _LEFT_OUT.match(prompt, at + len(beginning)) if at >= 0 else None
    if sign is None:
        return ""
    rest = prompt[sign.end() : sign.end() + len(text)]
    ending = _ending(text, rest, len(beginning))
    if not ending or not text[len(beginning) : len(text) - len(ending)].strip():
        return ""
    return prompt[at : sign.end() + len(ending)]


def _ending(text: str, rest: str, start: int) -> str:
    """The longest ending of a text, behind a place in it, with which the rest begins."""
    at = text.find(rest[:PROBE], start) if len(rest) >= PROBE else -1
    for _ in range(MAX_PLACES):
        if at < 0:
            break
        if rest.startswith(text[at:]):
            return text[at:]
        at = text.find(rest[:PROBE], at + 1)
    short = (text[-length:] for length in range(PROBE, MIN_ENDING - 1, -1))
    return next((each for each in short if rest.startswith(each)), "")


def short_beginning(prompt: str, text: str, longest: int) -> str:
    """Return a beginning of a text behind which a sign says that it was shortened; else empty.

    Args:
        prompt: With single spaces, as the text.
        text: The whole text.
        longest: Characters from which on a beginning is found without a sign.
    """
    stem = text[:MIN_BEGINNING]
    at = prompt.find(stem)
    for _ in range(MAX_PLACES):
        if at < 0:
            break
        there = prompt[at : at + longest]
        length = next((n for n, (a, b) in enumerate(zip(there, text, strict=False)) if a != b), 0)
        length = length or min(len(there), len(text))
        is_word = at == 0 or not prompt[at - 1].isalnum()
        beginning = text[:length].rstrip()
        sign = _LEFT_OUT.match(prompt, at + len(beginning))
        if is_word and sign is not None and sign["note"] is None:
            return beginning
        at = prompt.find(stem, at + 1)
    return ""


LENGTH: Final = 4
"""Words in a row by which a text is looked for: shorter rows stand in many texts."""

MIN_ROWS: Final = 3
"""Rows that a text must have of its own, beside what documents have that were found."""

MIN_OWN: Final = 0.2
"""Share of its rows that must be its own: of overlapping chunks a dropped one has few."""

MIN_THERE: Final = 0.8
"""Share of a text's own rows that stand in the prompt where it was read: marks at line breaks,
escapes and numbers of lines interrupt the others."""

Row = tuple[str, ...]
"""Words that stand in a row in a text."""

_WORD: Final = re.compile(r"\w+")


def set_otherwise(prompts: Sequence[str], texts: Sequence[str], found: Sequence[str]) -> list[bool]:
    """Return which of the texts were read in other letters or with marks, such as Markdown's.

    Args:
        prompts: What the model read.
        texts: The texts that do not stand there as they are.
        found: The texts that do: what they explain proves nothing for others.
    """
    there = {row for prompt in prompts for row in rows_of(prompt)}
    rows = [{*rows_of(text)} for text in texts]
    # Most are far from being there: what explains the others is not needed for these.
    may_be = [len(own & there) >= MIN_THERE * MIN_OWN * len(own) for own in rows]
    if not any(may_be):
        return may_be
    explained = {row for text in found for row in rows_of(text)}
    pairs = zip(rows, may_be, strict=True)
    return [may and _is_there(own, there, explained) for own, may in pairs]


def _is_there(rows: set[Row], there: set[Row], explained: set[Row]) -> bool:
    own = rows - explained
    if len(own) < max(MIN_ROWS, MIN_OWN * len(rows)):
        return False
    return len(own & there) >= MIN_THERE * len(own)


def rows_of(text: str) -> Iterator[Row]:
    """Yield the rows of words of a text, without marks, escapes of HTML and capitals."""
    plain = html.unescape(text) if "&" in text else text
    words: list[str] = _WORD.findall(plain.casefold())
    return zip(*(words[start:] for start in range(LENGTH)), strict=False)


PIECE: Final = 40
"""Characters of the pieces by which a text is looked for that does not stand there as a whole: long
enough that texts about one subject do not share one by chance."""

MAX_PIECES: Final = 8
"""About how many pieces of one text are looked for, spread over it."""

_ESCAPED: Final = re.compile(r"[\"\\\n\t&<>']")
"""What JSON, HTML or Python writes in another way, among ASCII."""

_SAFE: Final = str.maketrans({each: f"\\u{ord(each):04x}" for each in "<>&'"})
"""What JSON has for these that may stand within HTML, as Jinja's filter ``tojson`` writes it."""

_TAKEN: Final = "\0"
"""Stands in the prompt where a text was found, so that a text with the same beginning, as that of
overlapping chunks, is not found there once more."""


def read_texts(prompts: Sequence[str], texts: Sequence[str]) -> list[str | None]:
    """Return what of each text stands in the prompts.

    White space does not count, and a text may be escaped as in JSON, HTML or Python. Overlapping
    chunks do not prove each other.

    Args:
        prompts: What the model read.
        texts: The texts of the documents.

    Returns:
        For each text itself; its beginning, with single spaces, where the prompt has only that; or
        None where it has nothing of it. None for all where the prompts end within a text: they were
        cut, and prove nothing.
    """
    prompt = _TAKEN.join(prompts)
    places = InOrder(prompt)
    seen: dict[str, int] = {}
    found: list[str | None] = []
    for text in texts:
        # A text that two stores hold, and that the prompt has once, was read once.
        times = seen[text] = seen.get(text, 0) + 1
        # Without the white space around it, which frameworks take off as they join texts.
        inner = text.strip()
        is_plain = times == 1 and len(inner) >= PIECE
        is_there = places.has(inner) if is_plain else _stands_in(prompt, inner, times)
        found.append(text if is_there else None)
    if None in found:
        _find_others(_normal(prompt), texts, found)
    return found


def _find_others(prompt: str, texts: Sequence[str], found: list[str | None]) -> None:
    """Fill in what stands in the prompt in another form, or in part."""
    normal = [_normal(text) for text in texts]
    known = {text for text in found if text is not None}
    missing = [i for i, text in enumerate(texts) if normal[i] and text not in known]
    forms = [text for text, part in zip(normal, found, strict=True) if part is not None]
    for index in missing:
        form = _form_in(prompt, texts[index])
        if form and not _consists_of(form, forms):
            found[index] = texts[index]
            forms.append(form)
    # The longest first: a text may be part of another one.
    for form in sorted(set(forms), key=len, reverse=True):
        prompt = prompt.replace(form, _TAKEN)
    parts = {i: part for i in missing if found[i] is None and (part := _part(prompt, normal[i]))}
    for index in sorted(parts, key=lambda index: -len(parts[index])):
        # Once more, as a longer one may have the same beginning.
        part = _part(prompt, normal[index])
        if not part:
            continue
        is_whole = part == normal[index] or normal[index].endswith(part[-PIECE:])
        if prompt.endswith(part) and not is_whole:
            # The record of the prompt was cut here: what it lacks may have been read.
            found[:] = [None] * len(found)
            return
        found[index] = texts[index] if part == normal[index] else part
        prompt = prompt.replace(part, _TAKEN)


def is_made_of(text: str, known: Sequence[str]) -> bool:
    """Whether a text is nothing but others in a row, as a window is of its sentences."""
    return _consists_of(_normal(text), [*map(_normal, known)])


def _consists_of(form: str, known: Sequence[str]) -> bool:
    """Whether a text is nothing but others in a row, which the prompt has with a space between."""
    for text in sorted({text for text in known if text in form}, key=len, reverse=True):
        form = form.replace(text, "")
    return not form.strip()


def _stands_in(prompt: str, text: str, times: int) -> bool:
    """Whether a stripped text is in the prompt so often; a short one not within a word."""
    if not text:
        return False
    if len(text) < PIECE:
        # An escaped line break before it ends in a letter.
        word = re.compile(rf"(?:(?<!\w)|(?<=\\[nrt])){re.escape(text)}(?!\w)")
        return sum(1 for _ in islice(word.finditer(prompt), times)) == times
    return text in prompt if times == 1 else prompt.count(text) >= times


def _normal(text: str) -> str:
    return " ".join(text.split())


def _form_in(prompt: str, text: str) -> str:
    """The form in which a text stands in the prompt; empty where it does not."""
    return next((form for form in _forms(text) if _stands_in(prompt, form, 1)), "")


def _forms(text: str) -> Iterator[str]:
    yield _normal(text)
    if not text.isascii() or _ESCAPED.search(text):
        yield _normal(json.dumps(text)[1:-1])
        yield _normal(json.dumps(text, ensure_ascii=False)[1:-1])
        yield _normal(json.dumps(text)[1:-1].translate(_SAFE))
        yield _normal(html.escape(text))
        yield _normal(repr(text)[1:-1])


def _part(prompt: str, text: str) -> str:
    """How much of a text, from its beginning on, is in the prompt; all where it is set otherwise.

    A text whose later pieces are there as well was read as a whole, with something between its
    lines. One that has only some pieces in the middle was quoted, and not read.
    """
    if len(text) < 2 * PIECE:
        return ""
    beginning = _beginning(prompt, text) or short_beginning(prompt, text, PIECE)
    if beginning and (shortened := with_ending(prompt, text, beginning)):
        return shortened
    step = max(PIECE, len(text) // MAX_PIECES)
    places = [at for at in range(0, len(text) - PIECE + 1, step) if at >= len(beginning)]
    n_there = sum(text[at : at + PIECE] in prompt for at in places)
    # Half of the pieces after the beginning: one alone may be a quotation.
    return text if n_there and 2 * n_there >= len(places) else beginning


def _beginning(prompt: str, text: str) -> str:
    """The longest beginning of a text that is in the prompt; empty below the length of a piece."""
    if text[:PIECE] not in prompt:
        return ""
    low, high = PIECE, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if text[:middle] in prompt else (low, middle - 1)
    return text[:low].rstrip()
