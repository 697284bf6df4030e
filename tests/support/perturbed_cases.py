"""Claims made from the sentences of passages by rule, with what is true of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Final, NamedTuple

from perturbed_changes import CHANGES, Material, Rule, names_in
from perturbed_lexicon import Lexicon
from perturbed_paraphrases import PARAPHRASES, join
from perturbed_texts import Half, Passage, half_of

__all__ = ["KINDS", "Case", "make_cases"]

KINDS: Final = (*CHANGES, "verbatim", *PARAPHRASES, "joined")
"""Every kind of case: first those that are not entailed, then those that are."""

_PER_DOCUMENT: Final = 3
"""Cases of one kind from one document, so that no text weighs more than the others."""


class Case(NamedTuple):
    """One claim and the passage that it is checked against."""

    kind: str
    """One of ``KINDS``."""

    claim: str
    """The sentence after the change."""

    original: str
    """The sentence as it stands in the passage."""

    passage: Passage
    """The passage that has the sentence."""

    is_entailed: bool
    """True for a copy and for a paraphrase."""

    half: Half
    """The half of the passage's document."""


def make_cases(
    passages: Sequence[Passage], lexicon: Lexicon, *, half: Half | None = None, seed: int = 0
) -> Iterator[Case]:
    """Yields cases of every kind, passage by passage, at most three of a kind for a document.

    Args:
        passages: Passages of any sources.
        lexicon: Synonyms and opposites.
        half: The only half that is wanted; None for both.
        seed: Of the choice of words and replacements.

    Yields:
        Cases; none whose claim stands in its passage unless its kind is ``verbatim``.
    """
    names = _names_by_source(passages, lexicon.common)
    made: Counter[tuple[str, str]] = Counter()
    seen: set[tuple[str, str]] = set()
    for passage in passages:
        if half not in (None, half_of(passage.document)):
            continue
        material = Material(lexicon, passage.text, names[passage.source])
        chance = Random(f"{seed}: {passage.text}")
        for case in _cases_of(passage, material, chance):
            is_new = (case.kind, case.claim) not in seen
            if is_new and made[case.kind, passage.document] < _PER_DOCUMENT:
                seen.add((case.kind, case.claim))
                made[case.kind, passage.document] += 1
                yield case


def _cases_of(passage: Passage, material: Material, chance: Random) -> Iterator[Case]:
    sentences = passage.usable
    half = half_of(passage.document)
    for sentence in sentences:
        yield Case("verbatim", sentence, sentence, passage, True, half)
        yield from _by_rules(CHANGES, sentence, passage, material, chance, is_entailed=False)
        yield from _by_rules(PARAPHRASES, sentence, passage, material, chance, is_entailed=True)
    for first, second in zip(passage.sentences, passage.sentences[1:], strict=False):
        if first in sentences and second in sentences and (claim := join(first, second, material)):
            yield Case("joined", claim, f"{first} {second}", passage, True, half)


def _by_rules(
    rules: dict[str, Rule],
    sentence: str,
    passage: Passage,
    material: Material,
    chance: Random,
    *,
    is_entailed: bool,
) -> Iterator[Case]:
    for kind, rule in rules.items():
        claim = rule(sentence, material, chance)
        if claim is not None and claim not in passage.text:
            half = half_of(passage.document)
            yield Case(kind, claim, sentence, passage, is_entailed, half)


def _names_by_source(passages: Iterable[Passage], common: frozenset[str]) -> dict[str, list[str]]:
    """Names that occur in two passages at least, by source: what is none is mostly unique."""
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for passage in passages:
        seen[passage.source].update(set(names_in(passage.text, common)))
    return {
        source: sorted(name for name, count in counts.items() if count >= 2)
        for source, counts in seen.items()
    }
