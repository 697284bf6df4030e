"""Chooses candidates: the doubtful, the low, those unlike all others, and a random share.

A set of bad answers alone says nothing about all of them, which is what the random share is for.
Candidates are compared by the words of their queries, so no model is needed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, cast, get_args

from claimspan.errors import ConfigError
from claimspan_tracing.curate.candidates import Candidate

__all__ = ["REASONS", "Pick", "Reason", "checked_reasons", "pick"]

Reason = Literal["uncertain", "low", "diverse", "random"]
"""Why a candidate was picked."""

REASONS: Final[tuple[Reason, ...]] = get_args(Reason)

NEAR: Final = 0.8
"""Share of words in common from which two queries are near-duplicates: of ten words one differs."""


@dataclass(frozen=True, slots=True)
class Pick:
    """A candidate that was picked."""

    candidate: Candidate
    """The record."""

    reason: Reason
    """What it was picked for."""

    weight: float | None = None
    """How many records of the files it stands for; None where it was not drawn at random."""


def checked_reasons(given: str) -> tuple[Reason, ...]:
    """Return the reasons in a list with commas.

    Raises:
        ConfigError: One of them is unknown, or there is none.
    """
    names = [name.strip() for name in given.split(",") if name.strip()]
    unknown = [name for name in names if name not in REASONS]
    if unknown or not names:
        raise ConfigError(f"--by {given!r} is unknown: give one or more of {', '.join(REASONS)}")
    return cast("tuple[Reason, ...]", tuple(dict.fromkeys(names)))


def pick(
    candidates: Sequence[Candidate],
    n: int,
    reasons: Sequence[Reason],
    *,
    known: Iterable[str] = (),
    seed: int = 0,
) -> list[Pick]:
    """Pick candidates, the same ones for the same seed.

    Each reason gets an equal share. What one has no candidates for goes to the others.

    Args:
        candidates: All of them.
        n: Number to pick.
        reasons: What to pick for.
        known: Queries that have a ground truth, or wait for one: nothing near them is picked.
        seed: Of the random share.
    """
    chosen = _Chosen(Candidate(query=query) for query in known)
    free = [each for each in candidates if not chosen.is_near(each)]
    shares = _shares(n, reasons)
    # First, from all of them: what other reasons take away would no longer be drawn.
    drawn = _draw(free, shares.pop("random", 0), random.Random(seed))  # noqa: S311 - no secret
    picks = [Pick(each, "random", weight) for each, weight in drawn]
    for one in picks:
        chosen.add(one.candidate)
    for reason, share in shares.items():
        picks += _take(_ordered(free, reason, chosen), reason, share, chosen)
    # Once more, for what the shares have left over: a reason may have too few candidates.
    for reason in shares:
        picks += _take(_ordered(free, reason, chosen), reason, n - len(picks), chosen)
    return picks


def _shares(n: int, reasons: Sequence[Reason]) -> dict[Reason, int]:
    """An equal share for each reason; the first ones get what is left over."""
    each, over = divmod(n, len(reasons))
    return {reason: each + (place < over) for place, reason in enumerate(reasons)}


class _Chosen:
    """What was chosen so far, by the words of its queries."""

    def __init__(self, known: Iterable[Candidate]) -> None:
        self._words = [each.words for each in known]

    def add(self, candidate: Candidate) -> None:
        self._words.append(candidate.words)

    def is_near(self, candidate: Candidate) -> bool:
        return self.nearest(candidate) >= NEAR

    def nearest(self, candidate: Candidate) -> float:
        """The similarity to the most similar one, 0 to 1."""
        words = candidate.words
        return max((_overlap(words, others) for others in self._words), default=0.0)


def _draw(
    candidates: Sequence[Candidate], n: int, chance: random.Random
) -> list[tuple[Candidate, float]]:
    """Draw evenly, each with the number of records that it stands for."""
    drawn = chance.sample(candidates, min(n, len(candidates)))
    share = len(candidates) / len(drawn) if drawn else 0.0
    return [(each, share * each.copies) for each in drawn]


def _take(ordered: Iterable[Candidate], reason: Reason, n: int, chosen: _Chosen) -> Iterator[Pick]:
    taken = 0
    for candidate in ordered:
        if taken >= n:
            return
        if not chosen.is_near(candidate):
            chosen.add(candidate)
            taken += 1
            yield Pick(candidate, reason)


def _ordered(
    candidates: Sequence[Candidate], reason: Reason, chosen: _Chosen
) -> Iterable[Candidate]:
    """The candidates for a reason, the best first."""
    match reason:
        case "uncertain":
            return _sorted((each for each in candidates if each.doubt > 0), lambda c: -c.doubt)
        case "low":
            scored = (each for each in candidates if each.lowest is not None and each.lowest < 1)
            return _sorted(scored, lambda c: 1.0 if c.lowest is None else c.lowest)
        case _:
            return _farthest_first(candidates, chosen)


def _sorted(
    candidates: Iterable[Candidate], key: Callable[[Candidate], float]
) -> Iterable[Candidate]:
    # Stable: equal ones stay in the order of the files.
    return sorted(candidates, key=key)


def _farthest_first(candidates: Sequence[Candidate], chosen: _Chosen) -> Iterator[Candidate]:
    """Each time the candidate whose nearest chosen one is farthest away (max-min distance).

    The distance to what was chosen before is kept for each candidate, and only the last chosen one
    is compared anew: picking 50 of 10,000 makes half a million comparisons.
    """
    words = [each.words for each in candidates]
    nearest = [chosen.nearest(each) for each in candidates]
    left = set(range(len(candidates)))
    while left:
        # Ties go to the first of the file, so that the same files give the same picks.
        best = min(left, key=lambda place: (nearest[place], place))
        left.discard(best)
        yield candidates[best]
        for place in left:
            nearest[place] = max(nearest[place], _overlap(words[best], words[place]))


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of all words of both that both have (Jaccard)."""
    both = len(one & other)
    return both / (len(one) + len(other) - both) if both else 0.0
