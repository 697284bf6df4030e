"""Writes the table of English opposites that ``LexicalJudge`` reads, from WordNet 3.0.

    python tests/benchmarks/opposites_table.py WORDNET > core/claimspan/judges/lexical/opposites.txt

``WORDNET`` is a folder with WordNet's database files: ``data.noun`` and so on, and ``cntlist.rev``.
The licence comes from the head of ``data.noun``. Words that never occur in its tagged texts are
left out, and so are pairs that are synonyms in another sense, such as ``ravel`` and ``unravel``.
"""

from __future__ import annotations

import argparse
import textwrap
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_POS: Final = {"noun": "1", "verb": "2", "adj": "35", "adv": "4"}
# Grammar, and words whose opposites are not opposites beside the same words: "long" and "short"
# are, "one" and "multiple", "see also" and "right" are not.
_LEFT_OUT: Final = frozenset(
    "a be back come do down for front get give go have he here in it like make no now of off on "
    "one other out over same she so then there this two under up us use user well will yes "
    "employment physical set service used".split()
)

_Synset = tuple[tuple[str, ...], list[tuple[int, str, int]]]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="The table of opposites, from WordNet.")
    parser.add_argument("wordnet", type=Path)
    folder: Path = parser.parse_args().wordnet
    head = (folder / "data.noun").read_text(encoding="utf-8").splitlines()[:29]
    title = (
        "Opposites of English words, from WordNet 3.0 (https://wordnet.princeton.edu), made by "
        "tests/benchmarks/opposites_table.py. Each line: a word and its opposites. Licence:"
    )
    for line in (*textwrap.wrap(title, 97), "", *(line.lstrip(" 0123456789") for line in head)):
        print(f"# {line}".rstrip())
    for word, opposites in sorted(_opposites(folder).items()):
        print(word, *sorted(opposites))


def _opposites(folder: Path) -> dict[str, set[str]]:
    """The opposites of every word, each pair once: at the word that comes first."""
    counts = _counts(folder / "cntlist.rev")
    found: dict[str, set[str]] = defaultdict(set)
    for name, types in _POS.items():
        synsets = dict(_synsets(folder / f"data.{name}"))
        together = {words for words, _ in synsets.values()}
        for words, pointers in synsets.values():
            for source, offset, target in pointers:
                one, two = sorted((words[source], synsets[offset][0][target]))
                seen = max(sum(counts[w, t] for t in types) for w in (one, two))
                is_synonym = any(one in each and two in each for each in together)
                if seen and _is_word(one) and _is_word(two) and not is_synonym:
                    found[one].add(two)
    return found


def _is_word(word: str) -> bool:
    return word.isascii() and word.isalpha() and word.islower() and word not in _LEFT_OUT


def _counts(path: Path) -> Counter[tuple[str, str]]:
    """How often each word occurs in tagged texts, by WordNet's number of its part of speech."""
    counts: Counter[tuple[str, str]] = Counter()
    for line in path.read_text(encoding="utf-8").splitlines():
        key, _, count = line.split()
        lemma, _, rest = key.partition("%")
        counts[lemma, rest[0]] += int(count)
    return counts


def _synsets(path: Path) -> Iterator[tuple[str, _Synset]]:
    """The words of every synset by its offset, with the pointers to opposites of its words."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            continue
        fields = line.partition("|")[0].split()
        n_words = int(fields[3], 16)
        words = tuple(fields[4 + 2 * i].partition("(")[0] for i in range(n_words))
        rest = fields[5 + 2 * n_words :]
        pointers = [
            (int(rest[i + 3][:2], 16) - 1, rest[i + 1], int(rest[i + 3][2:], 16) - 1)
            for i in range(0, 4 * int(fields[4 + 2 * n_words]), 4)
            if rest[i] == "!"
        ]
        yield fields[0], (words, pointers)


if __name__ == "__main__":
    main()
