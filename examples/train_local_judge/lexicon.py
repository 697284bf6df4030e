"""Reads the synonyms, antonyms, hypernyms and siblings of a word from WordNet."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["Lexicon", "Related"]

_PARTS: Final = ("noun", "verb", "adj", "adv")
# A word whose first sense is one of many is read wrongly too often.
_MOST_SENSES: Final = 4


class Related(NamedTuple):
    """Single words related to a word in its first sense, by relation."""

    same: tuple[str, ...]
    opposite: tuple[str, ...]
    wider: tuple[str, ...]
    beside: tuple[str, ...]
    """Other words with the same hypernym: ``cat`` for ``dog``."""


class _Synset(NamedTuple):
    words: tuple[str, ...]
    hypernyms: tuple[str, ...]
    antonyms: dict[int, list[tuple[str, int]]]


class Lexicon:
    """The four parts of speech of a WordNet database: its ``index`` and ``data`` files."""

    def __init__(self, folder: Path) -> None:
        """Read the database in ``folder``, where Debian has it: ``/usr/share/wordnet``."""
        self._related: dict[str, Related] = {}
        seen: Counter[str] = Counter()
        for part in _PARTS:
            synsets = _synsets(folder / f"data.{part}")
            children = _children(synsets)
            for word, offset in _first_senses(folder / f"index.{part}"):
                seen[word] += 1
                self._related[word] = _related(word, offset, synsets, children)
        # "Large" is a noun as well, "dog" a verb: no rule tells which one is meant.
        self._related = {word: each for word, each in self._related.items() if seen[word] == 1}

    def __getitem__(self, word: str) -> Related:
        """Return the words related to a word; none for a word that is not in WordNet."""
        return self._related.get(word.lower(), Related((), (), (), ()))


def _first_senses(path: Path) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for line in path.read_text(encoding="latin-1").splitlines():
        if line.startswith(" "):
            continue
        fields = line.split()
        senses = int(fields[2])
        if "_" not in fields[0]:
            found.append((fields[0], fields[-senses] if senses <= _MOST_SENSES else ""))
    return found


def _synsets(path: Path) -> dict[str, _Synset]:
    found: dict[str, _Synset] = {}
    for line in path.read_text(encoding="latin-1").splitlines():
        if not line.startswith(" "):
            fields = line.partition(" | ")[0].split()
            found[fields[0]] = _synset(fields)
    return found


def _synset(fields: list[str]) -> _Synset:
    count = int(fields[3], 16)
    words = tuple(word.partition("(")[0] for word in fields[4 : 4 + 2 * count : 2])
    start = 4 + 2 * count
    pointers = [
        fields[at : at + 4] for at in range(start + 1, start + 1 + 4 * int(fields[start]), 4)
    ]
    antonyms: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for kind, offset, _, ends in pointers:
        if kind == "!":
            antonyms[int(ends[:2], 16)].append((offset, int(ends[2:], 16)))
    hypernyms = tuple(offset for kind, offset, *_ in pointers if kind == "@")
    return _Synset(words, hypernyms, dict(antonyms))


def _children(synsets: dict[str, _Synset]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for offset, synset in synsets.items():
        for above in synset.hypernyms:
            found[above].append(offset)
    return found


def _related(
    word: str, offset: str, synsets: dict[str, _Synset], children: dict[str, list[str]]
) -> Related:
    if not offset:
        return Related((), (), (), ())
    synset = synsets[offset]
    place = next((at for at, each in enumerate(synset.words, 1) if each.lower() == word), 0)
    opposite = [synsets[other].words[at - 1] for other, at in synset.antonyms.get(place, ())]
    above = [synsets[each] for each in synset.hypernyms if each in synsets]
    beside = [
        synsets[child].words[0]
        for parent in synset.hypernyms
        for child in children[parent]
        if child != offset
    ]
    return Related(
        same=_single(synset.words, word),
        opposite=_single(opposite, word),
        wider=_single([each.words[0] for each in above], word),
        beside=_single(beside[:40], word),
    )


def _single(words: list[str] | tuple[str, ...], word: str) -> tuple[str, ...]:
    return tuple(each for each in words if each.islower() and each.isalpha() and each != word)
