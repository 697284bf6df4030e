"""The combinations of an item's chunks: all of them, or a sample where there are too many."""

from __future__ import annotations

import random
from itertools import combinations
from typing import Final

__all__ = ["MAX_CHUNKS", "all_combinations", "chunk_combinations", "is_sampled"]

MAX_CHUNKS: Final = 12
"""Chunks of an item up to which all combinations are looked at. They double with every chunk."""

_SMALLEST: Final = 2
"""One chunk is no combination: it has a score of its own."""

Members = tuple[int, ...]
"""Indices of the chunks of a combination, in ascending order."""


def all_combinations(n_chunks: int) -> int:
    """The number of combinations of two and more chunks: 2^n - 1 - n, which is 120 for 7."""
    return (1 << n_chunks) - 1 - n_chunks


def is_sampled(n_chunks: int) -> bool:
    """Whether an item has too many chunks for all of its combinations."""
    return n_chunks > MAX_CHUNKS


def chunk_combinations(n_chunks: int, *, seed: str = "") -> list[Members]:
    """The combinations of two and more chunks.

    With more than ``MAX_CHUNKS`` chunks it is a sample, as many as 12 chunks have, drawn without
    replacement, each with the same probability.

    Args:
        n_chunks: Number of chunks.
        seed: Draws the sample; the same seed gives the same one.

    Returns:
        The combinations, small ones first.
    """
    if is_sampled(n_chunks):
        return _sampled(n_chunks, all_combinations(MAX_CHUNKS), random.Random(seed))  # noqa: S311 - no secret
    sizes = range(_SMALLEST, n_chunks + 1)
    return [members for size in sizes for members in combinations(range(n_chunks), size)]


def _sampled(n_chunks: int, wanted: int, generator: random.Random) -> list[Members]:
    drawn: set[Members] = set()
    while len(drawn) < wanted:  # at most half of all: the chance of a new one is never small
        bits = generator.getrandbits(n_chunks)
        members = tuple(j for j in range(n_chunks) if bits >> j & 1)
        if len(members) >= _SMALLEST:
            drawn.add(members)
    return sorted(drawn, key=lambda members: (len(members), members))
