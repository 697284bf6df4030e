"""Finds the texts that stand in prompts, which is the proof that a model has read them.

A text is looked for as it is, and then by its words: their normal form knows neither white space
nor marks, quotes and capitals, nor whether JSON, YAML, XML or Python has escaped them, so that one
search finds a text however a template has written it. Each place in a prompt proves one text: the
longest one that stands there, and of overlapping texts those that explain more of it.
"""

from __future__ import annotations

import html
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

__all__ = ["Prompts", "unexplained"]

MIN_EVIDENCE: Final = 40
"""Characters of a piece of a text that proves that it was read: texts about one subject do not
share as many by chance. What is shorter is part of a sentence."""

MIN_BEGINNING: Final = 16
"""Characters of a text from which on it is looked for by its words, and proven by all of them."""

MIN_ENDING: Final = 8
"""Characters of an ending that count behind such a sign."""

MIN_WHOLE: Final = 0.8
"""Share of the words of a text that stand in the prompt if all of it does: marks at line breaks,
numbers of lines and pages interrupt the others."""

MIN_OWN: Final = 0.2
"""Share of the words of a text that stand in the prompt which no other text explains: of a chunk
that was dropped, the overlap with its neighbour stands there."""

MIN_OWN_WORDS: Final = 3
"""Words of its own that it must have."""

MIN_SHARED: Final = 0.5
"""Share of the words of the shorter of two texts that both have if one was made of the other."""

IN_ROW: Final = 4
"""Words in a row by which a text is looked for: shorter rows stand in many texts."""

MANY: Final = 16
"""Words in a row that prove a text as well as ``MIN_EVIDENCE`` do: one sign may be a word."""

MAX_PLACES: Final = 8
"""Places of a row of words that are looked at."""

MAX_FINDS: Final = 200
"""Places of a text that are looked at."""

MAX_TORN: Final = 40
"""Characters of a word that was torn where a text was cut."""

_BREAK: Final = "\0"
"""Stands between two prompts."""

_ENDS: Final = ".,;:!?)]}\u2026\u3002\uff0c\uff01\uff1f "
"""What ends the sentence before a piece."""

_LEFT_OUT: Final = re.compile(
    r"\s?(?:\.{2,}|\u2026|-{2,}|~{2,}|\*{3,}|[\[(<{] ?(?:\.{2,}|\u2026) ?[\])>}]"
    r"|(?P<note>[\[(<{])[^\[\](){}<>]{1,60}[\])>}])\s?"
)
"""What stands where a part was left out: dots, or a note in brackets."""

# --- the normal form -----------------------------------------------------------------------------

_UNSPACED: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0002fa1f"
)
"""Scripts that put no blanks between words, so that each sign is looked for as a word."""

_LETTER: Final = rf"[^\W_{_UNSPACED}]"
_ESCAPE: Final = (
    # Also escaped more than once, as JSON within JSON.
    r"\\{1,4}(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})"
    r"|&(?:amp;){0,3}(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z]{2,31});"
)
# YAML may break a line within a word of escapes; a blank there is escaped, too.
_FOLD: Final = r"\\\r?\n[ ]{0,40}(?![ ]|\\[ ])"
_ESCAPED: Final = re.compile(rf"{_FOLD}|{_ESCAPE}")
_WORD: Final = re.compile(rf"[{_UNSPACED}]|{_LETTER}+")
_WORD_OR_ESCAPE: Final = re.compile(
    # What JSON, YAML and Python write for line breaks, quotes and blanks ends a word.
    rf"""\\{{1,4}}[nrtbf"'/_]|(?P<word>[{_UNSPACED}]|(?:{_FOLD}|{_ESCAPE}|{_LETTER})+)"""
)
_SURROGATES: Final = re.compile(r"[\ud800-\udbff][\udc00-\udfff]")


class _Words:
    """The words of a text in their normal form, each with its place in the text."""

    def __init__(self, text: str) -> None:
        self._text: Final = text
        self._is_plain: Final = "\\" not in text and "&" not in text

    @cached_property
    def words(self) -> list[str]:
        if not self._is_plain:
            return [word.casefold() for word, _ in self._unescaped]
        folded = self._text.casefold()
        if len(folded) == len(self._text):
            return _WORD.findall(folded)
        # A mark may come off a letter, and part a word: that of "\u0130" does.
        return [word.casefold() for word in _WORD.findall(self._text)]

    @cached_property
    def _places(self) -> list[tuple[int, int]]:
        if self._is_plain:
            return [found.span() for found in _WORD.finditer(self._text)]
        return [place for _, place in self._unescaped]

    @cached_property
    def _unescaped(self) -> list[tuple[str, tuple[int, int]]]:
        words: list[tuple[str, tuple[int, int]]] = []
        for found in _WORD_OR_ESCAPE.finditer(self._text):
            word = found["word"]
            if word is not None and ("\\" in word or "&" in word):
                plain = _SURROGATES.sub(_joined, _ESCAPED.sub(_read, word))
                words += [(part, found.span()) for part in _WORD.findall(plain)]
            elif word is not None:
                words.append((word, found.span()))
        return words

    @cached_property
    def starts(self) -> list[int]:
        """Where each word begins in the text."""
        return [start for start, _ in self._places]

    @cached_property
    def ends(self) -> list[int]:
        """Where each word ends in the text."""
        return [end for _, end in self._places]

    @cached_property
    def line(self) -> str:
        """All words with a blank around each."""
        return f" {' '.join(self.words)} "

    @cached_property
    def offsets(self) -> list[int]:
        """Where each word begins in the line, and where one behind the last would."""
        return [*accumulate((len(word) + 1 for word in self.words), initial=1)]

    def within(self, start: int, end: int) -> range:
        """The words that are at least in part between two places of the text."""
        return range(bisect_right(self.ends, start), bisect_left(self.starts, end))


def _read(escape: re.Match[str]) -> str:
    if "\n" in escape[0]:
        return ""
    if escape[0].startswith("&"):
        return html.unescape(f"&{escape[0][1:].replace('amp;', '') or 'amp;'}")
    return chr(int(escape[0].lstrip("\\")[1:], 16))


def _joined(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16", "surrogatepass").decode("utf-16")


# --- places in prompts ---------------------------------------------------------------------------


class _Run(NamedTuple):
    """Words of a text that stand in a row in the prompts."""

    start: int
    """The first one in the text."""

    place: int
    """The first one in the prompts."""

    length: int
    """Words."""


class _Piece(NamedTuple):
    """A part of a text that stands in the prompts."""

    start: int
    """Where it begins in the text."""

    end: int
    """Where it ends there."""

    place: int
    """Where it begins in the prompts."""

    until: int
    """Where it ends there."""


class Prompts:
    """Prompts, and what is known of each place in them."""

    def __init__(self, prompts: Sequence[str]) -> None:
        """Take the prompts that an answer rests on."""
        self._text: Final = _BREAK.join(prompts)
        # Of each character whether it is free, taken, or written by a model.
        self._marks: Final = bytearray(len(self._text))

    def write(self, text: str, told: Prompts | None = None) -> None:
        """Note what a model has written: if that stands at a place, nothing else is proven there.

        Args:
            text: Its words.
            told: What it was told; what it has quoted of that is from outside.
        """
        self._mark_all(text.strip(), WRITTEN, told)

    def has(self, text: str) -> bool:
        """Whether a piece of a text that proves it stands there, whatever else explains that."""
        text = text.strip()
        if next(self._exact_places(text), None) is not None:
            return True
        words = _Words(text if len(text) >= MIN_BEGINNING else "")
        return next(self._proven(self._runs(words, WRITTEN), words), None) is not None

    def share_of(self, text: str) -> float:
        """How much of the prompts a text makes up that has most of its words there, up to 1."""
        words = _Words(text)
        n_there = sum(run.length for run in self._runs(words, WRITTEN))
        n_all, n_words = len(self._words.words), len(words.words)
        if not n_there or n_there < MIN_SHARED * min(n_all, n_words):
            return 0.0
        return n_there / max(n_all, n_words)

    def read(self, texts: Sequence[str]) -> list[str | None]:
        """Return what of each text was read, and take the places that prove it.

        Args:
            texts: Those of documents, the likelier ones first.

        Returns:
            For each the text itself; the pieces of it that stand in the prompts, with single
            spaces, if others do not; or None if it was not read. None for all if the prompts end
            within a text: they were cut, and prove nothing.
        """
        found: list[str | None] = [None] * len(texts)
        self._read_as_they_are(texts, found)
        # Alike texts are read by their words once, as they are as often as they stand there.
        known = {text for text in found if text is not None}
        missing = [at for at, part in enumerate(found) if part is None and texts[at] not in known]
        words = {at: _Words(texts[at]) for at in missing if texts[at].strip()}
        if words and _BREAK in self._text:
            # A draft and its revision have read the same, and it was read once.
            for text in known:
                self._mark_all(text.strip(), TAKEN)
        there = {at: share for at, each in words.items() if (share := self._covered(each))}
        left = sorted(there, key=lambda at: (-there[at], at))
        # In this order: a sentence that two texts share is the ending of one rather than a piece
        # from the middle of the other.
        for at in left:
            found[at] = self._read_by_words(texts[at], words[at]) or None
        left = [at for at in left if found[at] is None]
        pieces = {at: self._beginning(texts[at], words[at]) for at in left}
        for at in left:
            kept = sorted([*pieces[at], *self._middle(texts[at], words[at], pieces[at])])
            if kept and kept[-1].until == len(self._text) and texts[at][kept[-1].end :].strip():
                return [None] * len(texts)
            found[at] = self._together(texts[at], kept) or None
        return found

    def has_row(self, words: _Words, run: _Run) -> bool:
        """Whether the words of a run stand here in a row, too."""
        row = words.words[run.start : run.start + run.length]
        return f" {' '.join(row)} " in self._words.line

    # --- as they are ---

    def _read_as_they_are(self, texts: Sequence[str], found: list[str | None]) -> None:
        # Without the white space around it, which frameworks take off as they join texts.
        inner = [text.strip() for text in texts]
        looked: dict[str, int] = {}
        for at in sorted(range(len(texts)), key=lambda at: -len(inner[at])):
            text, n_left = inner[at], MAX_FINDS
            place = self._text.find(text, looked.get(text, 0)) if text else -1
            while place >= 0 and n_left and not self._is_its_own(text, place):
                place, n_left = self._text.find(text, place + 1), n_left - 1
            if place >= 0 and n_left:
                self._mark(place, place + len(text), TAKEN)
                found[at] = texts[at]
            looked[text] = place + len(text) if place >= 0 else len(self._text)

    def _is_its_own(self, text: str, start: int) -> bool:
        """Whether a place proves a text that stands there as it is."""
        end = start + len(text)
        if len(text) < MIN_EVIDENCE and not self._is_apart(text, start, end):
            return False
        if self._marks.find(WRITTEN, start, end) >= 0:
            return False
        has_sign = False
        free = self._marks.find(FREE, start, end)
        while free >= 0:
            sign = self._text[free]
            if sign.isalnum():
                return True
            has_sign = has_sign or not sign.isspace()
            free = self._marks.find(FREE, free + 1, end)
        # Signs prove a text that has no words.
        return has_sign and not any(sign.isalnum() for sign in text)

    def _is_apart(self, text: str, start: int, end: int) -> bool:
        """Whether a short text is no part of a word or a number."""
        before = self._text[max(0, start - 2) : start]
        is_escaped = before[:1] == "\\" and before[1:] in {"n", "r", "t"}
        is_within = before[-1:].isalnum() and text[0].isalnum() and not is_escaped
        return not is_within and not (self._text[end : end + 1].isalnum() and text[-1].isalnum())

    # --- by their words ---

    @cached_property
    def _words(self) -> _Words:
        return _Words(self._text)

    @cached_property
    def _rows(self) -> tuple[dict[int, int], array[int]]:
        """The last place of each row of words, and for each place the one before it, else -1."""
        last: dict[int, int] = {}
        earlier = array("q")
        for place, row in enumerate(_rows_of(self._words.words)):
            earlier.append(last.get(row, -1))
            last[row] = place
        return last, earlier

    def _places_of(self, row: int, most: int) -> Iterator[int]:
        last, earlier = self._rows
        place = last.get(row, -1)
        while place >= 0 and most:
            yield place
            place, most = earlier[place], most - 1

    def _covered(self, words: _Words) -> float:
        """The share of the rows of words that the prompts have."""
        last, _ = self._rows
        rows = [row in last for row in _rows_of(words.words)]
        return sum(rows) / len(rows) if rows else float(self._is_whole(words))

    def _is_whole(self, words: _Words) -> bool:
        return len(words.line) - 2 >= MIN_BEGINNING and words.line in self._words.line

    def _read_by_words(self, text: str, words: _Words) -> str:
        """What of a text stands there if most of it does; takes its places.

        All of it, if only marks and numbers interrupt it. What was taken out of it, such as a
        number that was masked or a last sentence, was not read.
        """
        runs = [*self._whole_runs(words)] or [*self._runs(words, TAKEN)]
        covered = sum(run.length for run in runs)
        if covered < MIN_WHOLE * len(words.words) or not self._has_own(runs, covered):
            return ""
        for run in runs:
            self._mark(*self._place_of(run), TAKEN)
        if self._is_interrupted_alone(words, runs):
            return text
        return self._together(text, [self._piece(text, words, run) for run in runs])

    def _is_interrupted_alone(self, words: _Words, runs: Sequence[_Run]) -> bool:
        """Whether the words between the runs of a text stand between their places as well."""
        there = self._words.words
        ends = [(0, None), *((run.start + run.length, run.place + run.length) for run in runs)]
        begins = [*((run.start, run.place) for run in runs), (len(words.words), None)]
        for (start, place), (end, until) in zip(ends, begins, strict=True):
            missing = words.words[start:end]
            reach = 3 * len(missing) + IN_ROW
            first = max(0, (until or 0) - reach) if place is None else place
            last = first + reach if until is None or until < first else min(until, first + reach)
            around = iter(there[first:last])
            if not all(word in around for word in missing):
                return False
        return True

    def _has_own(self, runs: Sequence[_Run], covered: int) -> bool:
        own = sum(self._marks_of(run.place, run.length).count(FREE) for run in runs)
        return own >= max(1, min(MIN_OWN_WORDS, covered), MIN_OWN * covered)

    def _mark(self, start: int, end: int, mark: int) -> None:
        self._marks[start:end] = bytes([mark]) * (end - start)

    def _marks_of(self, place: int, length: int) -> bytes:
        """The marks of some words."""
        starts = self._words.starts[place : place + length]
        return bytes([self._marks[start] for start in starts])

    def _whole_runs(self, words: _Words) -> Iterator[_Run]:
        """Yield the first place at which all words stand in a row, and one of them is free."""
        at = self._words.line.find(words.line) if self._is_whole(words) else -1
        for _ in range(MAX_PLACES):
            if at < 0:
                return
            place = bisect_left(self._words.offsets, at + 1)
            there = self._marks_of(place, len(words.words))
            if FREE in there and WRITTEN not in there:
                yield _Run(0, place, len(words.words))
                return
            at = self._words.line.find(words.line, at + 1)

    def _runs(self, words: _Words, most: int) -> Iterator[_Run]:
        """Yield the longest runs of a text over words with a mark up to ``most``, free first."""
        starts, ends = self._words.starts, self._words.ends
        rows = [*_rows_of(words.words)]
        at, next_place, left = 0, -1, MAX_PLACES * len(rows)
        while at < len(rows):
            best, best_key = None, (0, 0, False)
            # Of a text that repeats itself without an end one place is enough.
            for place in self._places_of(rows[at], MAX_PLACES if left > 0 else 1):
                length = self._length(words.words, at, place, most)
                left -= length
                if length < IN_ROW:
                    continue
                n_free = self._marks.count(FREE, starts[place], ends[place + length - 1])
                key = n_free, length, place >= next_place
                if key > best_key:
                    best, best_key = _Run(at, place, length), key
            if best is None:
                at += 1
            else:
                yield best
                at, next_place = at + best.length, best.place + best.length

    def _length(self, words: Sequence[str], at: int, place: int, most: int) -> int:
        others, starts, marks, length = self._words.words, self._words.starts, self._marks, 0
        while (
            at + length < len(words)
            and place + length < len(others)
            and words[at + length] == others[place + length]
            and marks[starts[place + length]] <= most
        ):
            length += 1
        return length

    def _place_of(self, run: _Run) -> tuple[int, int]:
        return self._words.starts[run.place], self._words.ends[run.place + run.length - 1]

    def _beginning(self, text: str, words: _Words) -> list[_Piece]:
        """The beginning of a text, with what follows it behind signs for what was left out."""
        runs: list[_Run] = []
        kept: list[_Piece] = []
        for run in self._runs(words, TAKEN):
            piece = self._piece(text, words, run)
            if kept and not _LEFT_OUT.fullmatch(self._text, kept[-1].until, piece.place):
                continue
            if not kept and run.start:
                break
            runs.append(run)
            kept.append(piece)
        covered = sum(run.length for run in runs)
        is_short = bool(kept) and kept[0].end - kept[0].start < MIN_EVIDENCE
        if not self._has_own(runs, covered) or (
            is_short and not _is_sign(self._text, kept[0].until)
        ):
            kept = []
        if kept and (sign := _LEFT_OUT.match(self._text, kept[-1].until)) is not None:
            kept += self._ending(text, sign.end(), kept[-1].end)
        for piece in kept:
            self._mark(piece.place, piece.until, TAKEN)
        return kept

    def _piece(self, text: str, words: _Words, run: _Run) -> _Piece:
        """A run with the signs around it, and with the parts of words that were torn there."""
        start, end = words.starts[run.start], words.ends[run.start + run.length - 1]
        place, until = self._place_of(run)
        behind = _torn(text[end : end + MAX_TORN], self._text[until : until + MAX_TORN])
        before = _torn(
            text[max(0, start - MAX_TORN) : start][::-1],
            self._text[max(0, place - MAX_TORN) : place][::-1],
        )
        return _Piece(start - before, end + behind, place - before, until + behind)

    def _middle(self, text: str, words: _Words, known: Sequence[_Piece]) -> Iterator[_Piece]:
        """Yield and take other pieces that nothing else explains, as sentences that were picked."""
        for run in self._runs(words, FREE):
            piece = self._piece(text, words, run)
            is_new = all(piece.end <= each.start or each.end <= piece.start for each in known)
            if is_new and (piece.end - piece.start >= MIN_EVIDENCE or run.length >= MANY):
                self._mark(piece.place, piece.until, TAKEN)
                yield piece

    def _together(self, text: str, pieces: Sequence[_Piece]) -> str:
        """Pieces as one text, with what stands between them in the prompt."""
        parts = [text[piece.start : piece.end] for piece in pieces[:1]]
        for before, piece in pairwise(pieces):
            sign = _LEFT_OUT.fullmatch(self._text, before.until, piece.place)
            parts += [sign[0] if sign else " \u2026 ", text[piece.start : piece.end]]
        return " ".join("".join(parts).split()).lstrip(_ENDS)

    def _ending(self, text: str, place: int, start: int) -> list[_Piece]:
        """The last words of a text that stand at a place, behind a sign."""
        last = len(text.rstrip())
        for length in range(MIN_EVIDENCE, MIN_ENDING - 1, -1):
            ending = text[last - length : last]
            if self._text.startswith(ending, place) and text[start : last - length].strip():
                return [_Piece(last - length, last, place, place + length)]
        return []

    def _mark_all(self, text: str, mark: int, told: Prompts | None = None) -> None:
        """Mark where a text stands: as it is, and by its words, whole or in pieces."""
        places = [*self._exact_places(text)]
        for place in places:
            self._mark(*place, mark)
        # One prompt may have it in other letters than another one does.
        n_prompts = self._text.count(_BREAK) + 1
        if len(text) < MIN_BEGINNING or (places and n_prompts == 1):
            return
        words = _Words(text)
        for _ in range(n_prompts):
            runs = self._runs(words, mark - 1)
            own = [each for each in runs if told is None or not told.has_row(words, each)]
            places = [*self._proven(own, words)]
            for place in places:
                self._mark(*place, mark)
            if not places:
                break

    def _exact_places(self, text: str) -> Iterator[tuple[int, int]]:
        place = self._text.find(text) if text else -1
        for _ in range(MAX_FINDS):
            if place < 0:
                return
            if len(text) >= MIN_EVIDENCE or self._is_apart(text, place, place + len(text)):
                yield place, place + len(text)
            place = self._text.find(text, place + len(text))

    def _proven(self, runs: Iterable[_Run], words: _Words) -> Iterator[tuple[int, int]]:
        for run in runs:
            place, until = self._place_of(run)
            is_all = run.length == len(words.words)
            if is_all or until - place >= MIN_EVIDENCE or run.length >= MANY:
                yield place, until

    def left(self, known: Iterable[Known]) -> Iterator[str]:
        """Yield what of the prompts no known text explains: a prompt, or paragraphs of it.

        A paragraph that holds a known text is the frame that a template has put around it, and one
        that shares most of its words with them was made of them. What goes on behind the end of a
        known text is a paragraph by itself. What a model has quoted is not explained by its words.
        """
        shared = set[int]()
        for text, told in known:
            words = _Words(text)
            runs = [*self._runs(words, WRITTEN)]
            runs = [each for each in runs if told is None or not told.has_row(words, each)]
            shared.update(at for run in runs for at in range(run.place, run.place + run.length))
            for place in (*self._exact_places(text.strip()), *self._proven(runs, words)):
                self._mark(*place, TAKEN)
        start = 0
        for text in self._text.split(_BREAK):
            ends = [each.span() for each in _PARAGRAPH_END.finditer(text)]
            firsts = [0, *(end for _, end in ends)]
            lasts = [*(begin for begin, _ in ends), len(text)]
            places = [(start + one, start + end) for one, end in zip(firsts, lasts, strict=True)]
            left = [self._unexplained(*place, shared) for place in places]
            if left == [self._text[first:last] for first, last in places]:
                yield from filter(str.strip, [text])
            else:
                yield from (rest for each in left if len(rest := each.strip()) >= MIN_EVIDENCE)
            start += len(text) + len(_BREAK)

    def _unexplained(self, start: int, end: int, shared: set[int]) -> str:
        """What of a paragraph is of its own."""
        if (start := self._marks.find(FREE, start, end)) < 0:
            return ""
        words = self._words.within(start, end)
        # A few words stand in a row in another text by chance.
        is_made = end - start >= MIN_EVIDENCE and (
            len(shared.intersection(words)) >= MIN_SHARED * max(1, len(words))
        )
        return "" if is_made or TAKEN in self._marks[start:end] else self._text[start:end]


_PARAGRAPH_END: Final = re.compile(r"\n\s*\n")

FREE, TAKEN, WRITTEN = 0, 1, 2
"""Of a word in a prompt: nothing explains it, a document does, or a model has written it."""


def _rows_of(words: Sequence[str]) -> Iterator[int]:
    """Yield the hash of each row: a text takes less memory so, and words are compared anyway."""
    return map(hash, zip(*(words[start:] for start in range(IN_ROW)), strict=False))


def _is_sign(text: str, place: int) -> bool:
    """Whether dots stand at a place, and no note: that may be any text in brackets."""
    sign = _LEFT_OUT.match(text, place)
    return sign is not None and sign["note"] is None


def _common(one: str, other: str) -> int:
    """Characters with which both begin."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _torn(text: str, around: str) -> int:
    """Characters of a text that stand next to a run, without the beginning of another word."""
    length = _common(text, around)
    while length and around[length - 1 : length + 1].isalnum() and len(around) > length:
        length -= 1
    return length


Known = tuple[str, Prompts | None]
"""A document, or what a model has written with what it was told."""


def unexplained(texts: Iterable[str], known: Iterable[Known]) -> Iterator[str]:
    """Yield what no known text explains of others, as ``Prompts.left`` tells it."""
    pairs = [(text.strip(), told) for text, told in known if text.strip()]
    # Most consist of nothing but documents, which is told without a look at their words.
    rest = [text for text in texts if not _is_explained(text, [each for each, _ in pairs])]
    return Prompts(rest).left(pairs) if rest else iter(())


def _is_explained(text: str, known: Sequence[str]) -> bool:
    inside = {each for each in known if each in text}
    if inside and len(text) - sum(map(len, inside)) < MIN_EVIDENCE:
        return True
    inner = text.strip()
    return any(inner in each for each in known)
