"""Reads the pairs that authors wrote for this project: passages, and claims with label and kind.

``pairs/*.jsonl`` has a passage in each line; ``pairs/README.md`` says how they came about. Passages
go as a whole to one of three parts, by a digest of their id: eight tenths are for training, one for
fitting the combination, one for tests.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final, Literal, NamedTuple

from claimspan.judges.local.reading import Passage
from train_local_judge.pairs import Pair

__all__ = [
    "FOLDER",
    "WrittenClaim",
    "WrittenPassage",
    "mixed_pairs",
    "passages",
    "training_pairs",
    "unrelated_pairs",
]

FOLDER: Final = Path(__file__).parent / "pairs"

Part = Literal["training", "fitting", "test"]


class WrittenClaim(NamedTuple):
    """A claim about a passage."""

    text: str
    label: str
    """``E``, ``N`` or ``C``, by its author and by a reader who saw neither label nor kind."""

    kind: str
    """What makes it true or false: ``neighbour_value``, ``paraphrase`` ..."""


class WrittenPassage(NamedTuple):
    """A passage with its claims."""

    id: str
    style: str
    language: str
    text: str
    claims: list[WrittenClaim]

    @property
    def part(self) -> Part:
        """The part of the data that it belongs to."""
        digit = int(hashlib.sha256(self.id.encode()).hexdigest(), 16) % 10
        return "test" if digit == 0 else "fitting" if digit == 1 else "training"


def passages(folder: Path = FOLDER) -> Iterator[WrittenPassage]:
    """Yields all passages, in the order of the files."""
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            read = json.loads(line)
            claims = [WrittenClaim(**each) for each in read.pop("claims")]
            yield WrittenPassage(**read, claims=claims)


def training_pairs(language: str | None = None) -> Iterator[Pair]:
    """Yields each claim of the training part with its whole passage, and with what is read of it.

    Args:
        language: Code of the only language to use; None for all.
    """
    for passage in passages():
        if passage.part != "training" or language not in (None, passage.language):
            continue
        whole = " ".join(passage.text.split())
        read = Passage(passage.text, passage.language)
        for claim in passage.claims:
            for shown in dict.fromkeys([whole, *read.windows_for(claim.text)]):
                yield Pair(shown, claim.text, claim.label)


def mixed_pairs(language: str | None = None) -> Iterator[Pair]:
    """Yields three of five claims with their passage beside a part of another one, before or after.

    Both are of one style, about other things, so that the label stays; the model learns to look for
    what a claim is about.
    """
    for passage, claim, other, chance in _beside(language):
        if chance.random() < _MIXED:
            whole, words = " ".join(passage.text.split()), other.text.split()
            cut = chance.randint(15, 60)
            before = f"{' '.join(words[:cut])} {whole}"
            shown = before if chance.random() < 0.5 else f"{whole} {' '.join(words[-cut:])}"
            yield Pair(shown, claim.text, claim.label)


def unrelated_pairs(language: str | None = None) -> Iterator[Pair]:
    """Yields every fourth claim with another passage of its style, which leaves it open."""
    for _, claim, other, chance in _beside(language):
        if chance.random() < _UNRELATED:
            yield Pair(" ".join(other.text.split()), claim.text, "N")


_MIXED: Final = 0.6
_UNRELATED: Final = 0.25


def _beside(
    language: str | None,
) -> Iterator[tuple[WrittenPassage, WrittenClaim, WrittenPassage, Random]]:
    """Yields the claims of the training part, each with another passage of its style."""
    chance = Random(7)  # noqa: S311 - no secret
    chosen = [p for p in passages() if p.part == "training" and language in (None, p.language)]
    for passage in chosen:
        near = [p for p in chosen if (p.language, p.style) == (passage.language, passage.style)]
        others = [p for p in near if p.id != passage.id]
        for claim in passage.claims if others else ():
            yield passage, claim, chance.choice(others), chance
