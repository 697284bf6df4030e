"""Makes training pairs from open texts: claims with premises of the length of a chunk.

A claim is one or two sentences of a text, rewritten; a false one has a detail changed, or its
evidence taken away. Half of the changes are made to the premise and not to the claim, so that
nothing in a claim alone tells whether it is true.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from random import Random
from typing import Final, NamedTuple

from train_local_judge.falsehoods import Falsifier
from train_local_judge.rewrites import Rewrite, sentence_case, telegraphic

__all__ = ["Document", "Pair", "PairMaker", "Summary"]

Document = list[str]
"""The sentences of one text, in order."""

Summary = tuple[Document, str]
"""A text with a statement about it, by a person or by an extractor that people checked."""

_LONGEST_PREMISE: Final = 260
"""Length of a usual chunk, in words."""

_RARE: Final = 60
"""A word in at most this many documents is taken to indicate a topic."""


class Pair(NamedTuple):
    """One training pair."""

    premise: str
    claim: str
    label: str
    """``E``, ``N``, ``C``, or ``NE``: not entailed, but not known whether ``N`` or ``C``."""


class PairMaker:
    """Makes an endless sequence of pairs from documents."""

    def __init__(
        self,
        documents: list[Document],
        splits: list[tuple[str, str, str]],
        summaries: list[Summary],
        rewrites: tuple[Rewrite, ...],
        falsify: Falsifier,
    ) -> None:
        """Store the texts and the functions that change them.

        Args:
            documents: Sentences that belong together.
            splits: A sentence, and the two that an editor made of it.
            summaries: Texts with true claims on them.
            rewrites: Changes that keep a sentence true.
            falsify: Changes that do not.
        """
        self._documents = documents
        self._splits = splits
        self._summaries = summaries
        self._mentions = _mentions(documents)
        self._rewrites = rewrites
        self._falsify = falsify

    def pairs(self, seed: int) -> Iterator[Pair]:
        """Yield pairs without end; the same seed gives the same pairs."""
        chance = Random(seed)  # noqa: S311 - training data, no secret
        lengths = [min(len(document), 12) for document in self._documents]
        while True:
            way = chance.random()
            if way < 0.22:
                made = self._from_split(chance.choice(self._splits), chance)
            elif way < 0.36:
                made = self._from_summary(*chance.choice(self._summaries), chance)
            else:
                made = self._from_document(chance.choices(self._documents, lengths)[0], chance)
            if made and 2 < len(made.claim.split()) < 60:
                yield made

    def _from_document(self, document: Document, chance: Random) -> Pair | None:
        start = chance.randrange(len(document))
        source = document[start]
        near = document[max(start - 6, 0) : start] + document[start + 1 : start + 7]
        way = chance.random()
        if way < 0.42:
            return self._true(source, near, chance)
        if way < 0.76:
            return self._false(source, near, chance)
        if way < 0.90:
            return self._unsupported(source, near, chance)
        return self._half_supported(source, near, chance)

    def _true(self, source: str, near: list[str], chance: Random) -> Pair:
        claim = self._rewritten(source, chance)
        shown = [source]
        if near and chance.random() < 0.2:  # the evidence is in two places
            second = chance.choice(near)
            near = [each for each in near if each != second]
            claim, shown = _joined(claim, self._rewritten(second, chance)), [source, second]
        return Pair(self._premise(shown, near, chance), self._as_claim(claim, chance), "E")

    def _false(self, source: str, near: list[str], chance: Random) -> Pair | None:
        in_premise = chance.random() < 0.5
        claim = self._rewritten(source, chance)
        changed = self._falsify(source if in_premise else claim, near, chance)
        if not changed:
            return None
        if in_premise:
            # What a stronger premise says of a weaker claim is not known to be false.
            if changed.label == "N" or _is_lost(source, changed.text, claim):
                return None
            source = changed.text
        else:
            claim = changed.text
        premise = self._premise([source], near, chance)
        return Pair(premise, self._as_claim(claim, chance), changed.label)

    def _unsupported(self, source: str, near: list[str], chance: Random) -> Pair | None:
        if len(near) < 2 or chance.random() < 0.4:
            near = self._related(source, chance)
        if source in near:
            return None
        claim = self._as_claim(self._rewritten(source, chance), chance)
        return Pair(self._premise([], near, chance), claim, "N")

    def _related(self, source: str, chance: Random) -> Document:
        """Choose a document that shares a rare word with the source, if there is one."""
        rare = [word for word in _words(source) if len(self._mentions.get(word, ())) > 1]
        if not rare or chance.random() < 0.1:
            return chance.choice(self._documents)
        return self._documents[chance.choice(self._mentions[chance.choice(rare)])][:12]

    def _from_summary(self, document: Document, claim: str, chance: Random) -> Pair | None:
        way = chance.random()
        premise = " ".join(document)
        if way < 0.5:
            return Pair(premise, self._as_claim(claim, chance), "E")
        if way < 0.8:
            changed = self._falsify(claim, document, chance)
            return changed and Pair(premise, self._as_claim(changed.text, chance), changed.label)
        other, _ = chance.choice(self._summaries)
        if chance.random() < 0.6:
            other = self._related(claim, chance)
        return None if other == document else Pair(" ".join(other), claim, "N")

    def _half_supported(self, source: str, near: list[str], chance: Random) -> Pair:
        own = near if len(near) > 1 and chance.random() < 0.6 else chance.choice(self._documents)
        added = chance.choice(own)
        near = [each for each in near if each != added]
        parts = [self._rewritten(source, chance), self._rewritten(added, chance)]
        chance.shuffle(parts)
        claim = self._as_claim(_joined(*parts), chance)
        return Pair(self._premise([source], near, chance), claim, "N")

    def _from_split(self, split: tuple[str, str, str], chance: Random) -> Pair | None:
        whole, first, second = split
        near = chance.choice(self._documents)[:6] if chance.random() < 0.4 else []
        way = chance.random()
        if way < 0.3:
            claim = self._rewritten(chance.choice((first, second)), chance)
            return Pair(self._premise([whole], near, chance), self._as_claim(claim, chance), "E")
        if way < 0.45:
            claim = self._as_claim(self._rewritten(whole, chance), chance)
            return Pair(self._premise([first, second], near, chance), claim, "E")
        if way < 0.65:
            kept, lost = (first, second) if chance.random() < 0.5 else (second, first)
            claim = whole if chance.random() < 0.4 else lost
            return Pair(self._premise([kept], near, chance), self._as_claim(claim, chance), "N")
        changed = self._falsify(chance.choice((first, second)), [whole, *near], chance)
        if not changed:
            return None
        claim = self._as_claim(changed.text, chance)
        return Pair(self._premise([whole], near, chance), claim, changed.label)

    def _rewritten(self, sentence: str, chance: Random) -> str:
        for rewrite in chance.sample(self._rewrites, chance.randint(0, 8)):
            sentence = rewrite(sentence, chance) or sentence
        return sentence

    def _as_claim(self, claim: str, chance: Random) -> str:
        if chance.random() < 0.25:
            return telegraphic(claim, chance)
        return claim.rstrip(".") if chance.random() < 0.1 else claim

    def _premise(self, shown: list[str], near: list[str], chance: Random) -> str:
        if chance.random() < 0.15 and shown:
            near = []
        sentences = near[: chance.randint(0, len(near))] if shown else list(near)
        for each in shown:
            sentences.insert(chance.randint(0, len(sentences)), each)
        words = sum(len(each.split()) for each in sentences)
        while words > _LONGEST_PREMISE and len(sentences) > len(shown):
            extra = chance.choice([each for each in sentences if each not in shown] or sentences)
            sentences.remove(extra)
            words -= len(extra.split())
        return " ".join(sentences)


def _mentions(documents: list[Document]) -> dict[str, list[int]]:
    """Map each rare word to the documents that contain it."""
    found: dict[str, list[int]] = defaultdict(list)
    for at, document in enumerate(documents):
        for word in {word for sentence in document for word in _words(sentence)}:
            found[word].append(at)
    return {word: places for word, places in found.items() if 1 < len(places) <= _RARE}


def _words(sentence: str) -> list[str]:
    return sorted({word for each in sentence.split() if len(word := each.strip(".,;:()'\"")) > 3})


def _joined(first: str, second: str) -> str:
    return sentence_case(f"{first.rstrip('.')}, and {second[:1].lower()}{second[1:]}")


def _is_lost(source: str, changed: str, claim: str) -> bool:
    """Return whether the claim no longer contains the detail that was changed in the source."""
    before = [word for word in source.split() if word not in changed.split()]
    return bool(before) and not any(word in claim for word in before)
