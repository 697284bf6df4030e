"""Makes pairs by rule: facts from templates, and sentences of texts with their twins.

Every kind of inference gets as many pairs as any other, half of them true. What is true of a
sentence is made false by changing the premise as often as by changing the claim.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Final

from train_local_judge.facts import TEMPLATES
from train_local_judge.lexicon import Lexicon
from train_local_judge.pairs import Document, Pair
from train_local_judge.restatements import RESTATEMENTS, restated
from train_local_judge.rewrites import replace_words, telegraphic
from train_local_judge.twins import Sentences

__all__ = ["RelationMaker"]

_LONGEST_PREMISE: Final = 150
"""In words; what a template says is short, and the text around it adds nothing to learn."""

# Where only the order of words differs there is more to learn than where a word does.
_HARD: Final = {"passive": 3.0, "active": 4.0, "compared": 1.5, "placed": 1.5, "cause": 4.0,
                "led to": 4.0, "names": 3.0, "opposite": 3.0, "other name": 2.0}  # fmt: skip
_WAYS: Final = (1.0, 1.0, 1.5, 1.5)
"""Weights of the two true and the two false ways to put a sentence and its twin together."""


class RelationMaker:
    """Makes an endless sequence of pairs."""

    def __init__(
        self, documents: Sequence[Document], others: Sequence[str], lexicon: Lexicon
    ) -> None:
        """Find out which change applies to which sentence.

        Args:
            documents: Sentences that belong together.
            others: Further sentences, which stand alone.
            lexicon: Synonyms and opposites.
        """
        self._documents = [each for each in documents if len(each) > 2]
        self._near = {sentence: document for document in documents for sentence in document}
        self._lexicon = lexicon
        sentences = Sentences([*self._near, *others], lexicon)
        self._names = [each for each in sentences.names if len(each.split()) < 4]
        self._twins = sentences.makers()
        chance = Random(0)  # noqa: S311 - training data, no secret
        self._fitting = {
            name: [each for each in sentences.all if twin(each, chance)]
            for name, twin in self._twins.items()
        }
        self._restatable = [
            [each for each in sentences.all if (said := rule(each, chance)) and said != each]
            for rule in RESTATEMENTS
        ]

    def counts(self) -> dict[str, int]:
        """Count the sentences to which each change applies."""
        return {name: len(found) for name, found in self._fitting.items()}

    def pairs(self, seed: int) -> Iterator[Pair]:
        """Yield pairs without end; the same seed gives the same pairs."""
        chance = Random(seed)  # noqa: S311 - training data, no secret
        while True:
            way = chance.random()
            made: Pair | None
            if way < 0.30:
                made = self._from_template(chance)
            elif way < 0.88:
                made = self._from_twin(chance)
            else:
                made = self._from_restatement(chance)
            if made:
                yield made

    def _from_template(self, chance: Random) -> Pair:
        name = chance.choice(list(TEMPLATES))
        made = TEMPLATES[name](chance, self._names)
        others = [chance.choice(list(TEMPLATES)) for _ in range(chance.choice((0, 0, 1, 2, 3, 4)))]
        beside = [TEMPLATES[each](chance, self._names) for each in others if each != name]
        premises = [each.premise for each in beside]
        if beside and chance.random() < 0.15:  # a second fact in the claim
            made = _both(made, beside[0], chance)
        elif chance.random() < 0.3:
            premises = chance.choice(self._documents)[: chance.randint(1, 6)]
        return made._replace(premise=_among(made.premise, premises, chance))

    def _from_twin(self, chance: Random) -> Pair | None:
        kinds = [name for name, found in self._fitting.items() if found]
        kind = chance.choices(kinds, [_HARD.get(name, 1.0) for name in kinds])[0]
        sentence = chance.choice(self._fitting[kind])
        twin = self._twins[kind](sentence, chance)
        if not twin or twin.text == sentence:
            return None
        ways = [(sentence, sentence, "E"), (twin.text, twin.text, "E"),
                (sentence, twin.text, twin.label), (twin.text, sentence, twin.back)]  # fmt: skip
        shown, said, label = chance.choices(ways, _WAYS)[0]
        if not label:
            return None
        claim = self._worded(said, chance)
        return Pair(self._premise(shown, sentence, chance), claim, label)

    def _from_restatement(self, chance: Random) -> Pair:
        sentence = chance.choice(chance.choice([each for each in self._restatable if each]))
        claim = restated(sentence, chance)
        shown, claim = (sentence, claim) if chance.random() < 0.7 else (claim, sentence)
        if chance.random() < 0.25:
            claim = replace_words(claim, chance, lambda word: self._lexicon[word].same, 2) or claim
        return Pair(self._premise(shown, sentence, chance), claim, "E")

    def _worded(self, said: str, chance: Random) -> str:
        if chance.random() < 0.35:
            said = restated(said, chance)
        return telegraphic(said, chance) if chance.random() < 0.15 else said

    def _premise(self, shown: str, source: str, chance: Random) -> str:
        near = [each for each in self._near.get(source, ()) if each != source]
        if not near and chance.random() < 0.5:
            near = chance.choice(self._documents)
        start = chance.randrange(max(len(near), 1))
        return _among(shown, near[start : start + chance.choice((0, 1, 2, 3, 5, 8))], chance)


def _among(shown: str, others: Sequence[str], chance: Random) -> str:
    sentences, words = [shown], len(shown.split())
    for each in others:
        words += len(each.split())
        if words < _LONGEST_PREMISE:
            sentences.append(each)
    place = chance.randrange(len(sentences))
    sentences[0], sentences[place] = sentences[place], sentences[0]
    return " ".join(sentences)


def _both(first: Pair, second: Pair, chance: Random) -> Pair:
    """Join two claims; the claim is as true as the less true of them."""
    label = next((each for each in ("C", "NE", "N") if each in (first.label, second.label)), "E")
    parts = [first.claim, second.claim]
    chance.shuffle(parts)
    claim = f"{parts[0].rstrip('.')}, and {parts[1][:1].lower()}{parts[1][1:]}"
    return Pair(first.premise, claim, label)
