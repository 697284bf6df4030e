"""Marks in a chunk the sentences that are closest to the claims it supports or contradicts.

A verdict says which chunk decided, and not which sentence. The sentence with the most words of the
claim is the best guess without a judge, and the page calls it the closest one. A chunk that
contradicts a claim often has another number for it: its words count first there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from claimspan.text.closest import SearchedSentences
from claimspan.verdicts import Label

__all__ = ["Passage", "Sought", "passages"]

MAX_KEPT: Final = 20_000
"""Characters of a chunk whose words are kept; 2,000 long ones would take gigabytes."""


@dataclass(frozen=True, slots=True)
class Sought:
    """A claim whose sentence is looked for."""

    key: str
    """The claim's key on the page."""

    text: str
    """The claim."""

    contradicts: bool
    """Whether the chunk contradicts the claim, rather than supporting it."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a chunk with the claims that it is closest to. All parts joined are the chunk."""

    text: str
    """Never empty."""

    keys: tuple[str, ...] = ()
    """Keys of the claims."""

    label: Label | None = None
    """``contradicted`` where it contradicts one of them; None for a part without claims."""


def passages(text: str, sought: Sequence[Sought]) -> list[Passage]:
    """Split the text of a chunk at the sentences that are closest to its claims.

    Args:
        text: The text.
        sought: The claims that the chunk supports or contradicts.

    Returns:
        The parts in the order of the text.
    """
    if not sought:
        return [Passage(text)] if text else []
    sentences = _searched(text)
    found = [(each, sentences.closest(each.text, denied=each.contradicts)) for each in sought]
    places = [(each, place) for each, place in found if place]
    # Sentences do not overlap, so that between two cuts there is one sentence, or none at all.
    cuts = sorted({0, len(text), *(end for _, place in places for end in place)})
    return [
        _passage(text[start:end], [each for each, place in places if place == (start, end)])
        for start, end in pairwise(cuts)
    ]


def _searched(text: str) -> SearchedSentences:
    return _kept(text) if len(text) <= MAX_KEPT else SearchedSentences(text)


# Questions of one topic retrieve the same chunks, which are split once. The bound keeps the words
# of about 2,000 chunks, some ten megabytes.
@lru_cache(maxsize=2_000)
def _kept(text: str) -> SearchedSentences:
    return SearchedSentences(text)


def _passage(text: str, claims: Sequence[Sought]) -> Passage:
    if not claims:
        return Passage(text)
    # One sentence may support a claim and contradict another: the worse news has the colour.
    denies = any(claim.contradicts for claim in claims)
    keys = tuple(claim.key for claim in claims)
    return Passage(text, keys, Label.CONTRADICTED if denies else Label.ENTAILED)
