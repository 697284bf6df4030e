"""Synonyms, opposites and forms of English words, from a folder with WordNet 3.0's database."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["Lexicon", "read_wordnet"]

_FILES: Final = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
_FORMS: Final = {"n": ("", "s"), "v": ("", "s", "ed", "ing"), "a": ("",), "r": ("",)}
_MIN_COUNT: Final = 3
"""A word is replaced, or is a replacement, that occurs as often in WordNet's tagged texts."""
_DOMINANT: Final = 0.75
"""Share of one part of speech, and of its first sense, from which on a word is unambiguous."""

# Grammar, words that stand for numbers, and pairs that are opposites in other contexts only.
_NO_OPPOSITES: Final = frozenset(
    "be have do not in on up down out over under one two man woman men women here there first "
    "second now then off well ill yes no home away day night black white right left hand "
    "back front come go give take get make know say see use some all any many few like use "
    "misuse service physical known wide annual raise appearance other same follow following "
    "help free plain stay set user".split()
)


class Lexicon(NamedTuple):
    """Replacements by the form that stands in the text, in lower case."""

    synonyms: Mapping[str, tuple[str, ...]]
    opposites: Mapping[str, tuple[str, ...]]
    participles: Mapping[str, str]
    """Base form by the regular past form: ``acquired`` gives ``acquire``."""

    common: frozenset[str]
    """Words that are written in lower case, and adjectives of nations: they are no names."""


class _Synset(NamedTuple):
    words: tuple[str, ...]
    opposites: tuple[tuple[int, str, int], ...]
    """Index of the word, offset of the synset of its opposite, index of that word there."""


class _Word(NamedTuple):
    lemma: str
    pos: str
    senses: tuple[str, ...]
    """Offsets of its synsets, the most frequent first."""


class _Database:
    def __init__(self, folder: Path) -> None:
        self.counts, self.first_counts = _tag_counts(folder / "cntlist.rev")
        self.words = {p: dict(_index(folder / f"index.{_FILES[p]}", p)) for p in _FILES}
        self.synsets = {p: dict(_data(folder / f"data.{_FILES[p]}")) for p in _FILES}
        self.irregular = _irregular(folder / "verb.exc")

    def is_plain(self, lemma: str, pos: str) -> bool:
        """Whether a word is mostly of this part of speech and common enough."""
        total = sum(self.counts[lemma, other] for other in _FILES)
        return self.counts[lemma, pos] >= max(_MIN_COUNT, _DOMINANT * total)

    def forms(self, lemma: str, pos: str) -> dict[str, str]:
        """The regular forms of a word by their suffix."""
        found: dict[str, str] = {}
        for suffix in _FORMS[pos]:
            form = _inflected(lemma, suffix)
            irregular = self.irregular[lemma] if pos == "v" and suffix in ("ed", "ing") else ()
            endings = [each for each in irregular if each.endswith(suffix)]
            if endings:
                found[suffix] = endings[0]
            elif not irregular or suffix == "ing":
                found[suffix] = form
        return found


def read_wordnet(folder: Path) -> Lexicon:
    """Reads synonyms, opposites and regular past forms from WordNet's database."""
    database = _Database(folder)
    synonyms: dict[str, set[str]] = defaultdict(set)
    opposites: dict[str, set[str]] = defaultdict(set)
    participles: dict[str, str] = {}
    for pos in _FILES:
        for word in database.words[pos].values():
            if not database.is_plain(word.lemma, pos):
                continue
            for other in _synonyms(database, word):
                _add_forms(synonyms, database, (word.lemma, other), pos)
            for other in _opposites(database, word):
                _add_forms(opposites, database, (word.lemma, other), pos)
            past = database.forms(word.lemma, "v").get("ed") if pos == "v" else None
            if past:
                participles[past] = word.lemma
    common = frozenset(
        word for pos, name in _FILES.items() for word in _common_words(folder / f"data.{name}", pos)
    )
    return Lexicon(_sorted(synonyms), _sorted(opposites), participles, common)


def _common_words(path: Path, pos: str) -> Iterator[str]:
    for line in _records(path):
        fields = line.partition("|")[0].split()
        for i in range(int(fields[3], 16)):
            word = fields[4 + 2 * i].partition("(")[0]
            if word.islower() or pos == "a":
                yield word.lower()


def _sorted(found: Mapping[str, set[str]]) -> dict[str, tuple[str, ...]]:
    return {word: tuple(sorted(others)) for word, others in sorted(found.items())}


def _add_forms(
    found: dict[str, set[str]], database: _Database, words: tuple[str, str], pos: str
) -> None:
    own, others = (database.forms(each, pos) for each in words)
    for suffix in own.keys() & others.keys():
        found[own[suffix]].add(others[suffix])


def _synonyms(database: _Database, word: _Word) -> Iterator[str]:
    """Synonyms in the first sense of a word whose first sense is by far its most frequent one."""
    if database.first_counts[word.lemma, word.pos] < _DOMINANT * database.counts[word[:2]]:
        return
    for other in database.synsets[word.pos][word.senses[0]].words:
        known = database.words[word.pos].get(other)
        if other == word.lemma or not known or known.senses[0] != word.senses[0]:
            continue
        if _is_simple(other) and database.is_plain(other, word.pos):
            yield other


def _opposites(database: _Database, word: _Word) -> Iterator[str]:
    """Opposites in the first two senses of a word."""
    if word.lemma in _NO_OPPOSITES:
        return
    synsets = database.synsets[word.pos]
    for sense in word.senses[:2]:
        for index, offset, target in synsets[sense].opposites:
            other = synsets[offset].words[target]
            is_own = synsets[sense].words[index] == word.lemma
            if not is_own or other in _NO_OPPOSITES:
                continue
            if _is_simple(other) and database.counts[other, word.pos]:
                yield other


def _is_simple(word: str) -> bool:
    return word.isascii() and word.isalpha() and len(word) > 2


def _tag_counts(path: Path) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    """How often a word, and its first sense, occurs in WordNet's tagged texts."""
    counts: Counter[tuple[str, str]] = Counter()
    first: Counter[tuple[str, str]] = Counter()
    for line in path.read_text(encoding="utf-8").splitlines():
        key, sense, count = line.split()
        lemma, _, rest = key.partition("%")
        word = (lemma, "nvara"[int(rest[0]) - 1])
        counts[word] += int(count)
        first[word] += int(count) * (sense == "1")
    return counts, first


def _index(path: Path, pos: str) -> Iterator[tuple[str, _Word]]:
    for line in _records(path):
        fields = line.split()
        n_senses = int(fields[2])
        if _is_simple(fields[0]):
            yield fields[0], _Word(fields[0], pos, tuple(fields[-n_senses:]))


def _data(path: Path) -> Iterator[tuple[str, _Synset]]:
    for line in _records(path):
        fields = line.partition("|")[0].split()
        n_words = int(fields[3], 16)
        words = tuple(fields[4 + 2 * i].partition("(")[0].lower() for i in range(n_words))
        pointers = fields[5 + 2 * n_words :]
        opposites = [
            (int(pointers[i + 3][:2], 16) - 1, pointers[i + 1], int(pointers[i + 3][2:], 16) - 1)
            for i in range(0, 4 * int(fields[4 + 2 * n_words]), 4)
            if pointers[i] == "!"
        ]
        yield fields[0], _Synset(words, tuple(opposites))


def _irregular(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        form, *lemmas = line.split()
        for lemma in lemmas:
            found[lemma].append(form)
    return found


def _records(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as lines:
        yield from (line for line in lines if not line.startswith(" "))


def _inflected(word: str, suffix: str) -> str:
    if not suffix:
        return word
    if suffix == "s":
        if word.endswith("y") and word[-2] not in "aeiou":
            return word[:-1] + "ies"
        return word + ("es" if word.endswith(("s", "x", "z", "ch", "sh")) else "s")
    if suffix == "ed" and word.endswith("e"):
        return word + "d"
    if word.endswith("e") and not word.endswith("ee"):
        return word[:-1] + suffix
    if suffix == "ed" and word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ied"
    return word + suffix
