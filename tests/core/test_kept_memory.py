"""What the judge by words keeps between records stays within a few MiB, whatever the texts are."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import count, islice
from random import Random

import pytest

from claimspan import Chunk, RagRecord, aevaluate
from claimspan.judges import LexicalJudge

# The tracer of the lines would be measured with them.
pytestmark = pytest.mark.no_cover

MOST_BYTES = 4.5 * 2**20
"""Four MiB, and what the record read last may take."""

WORDS = 120
"""In a chunk."""

Words = Callable[[Random], Iterator[str]]


def _short_words(chance: Random) -> Iterator[str]:
    return ("".join(chance.choices("abcdefghijklmnoprstuvz", k=5)) for _ in count())


def _long_words(chance: Random) -> Iterator[str]:
    return ("".join(chance.choices("aäčéłßяжщ", k=32)) for _ in count())


def _words_of_parts(chance: Random) -> Iterator[str]:
    short = _short_words(chance)
    return ("-".join(islice(short, 4)) for _ in count())


def _values(chance: Random) -> Iterator[str]:
    return (f"{chance.randrange(10**6)}.{chance.randrange(100)} km," for _ in count())


def _record(words: Iterator[str]) -> RagRecord:
    texts = [" ".join(islice(words, WORDS)).capitalize() + "." for _ in range(10)]
    said = [" ".join(text.split()[:12]) + "." for text in texts[:3]]
    return RagRecord(
        query="What is known of it?",
        chunks=tuple(Chunk(id=str(i), text=text) for i, text in enumerate(texts)),
        response=" ".join(said[:2]),
        ground_truth=" ".join(said[1:]),
    )


@pytest.mark.parametrize("kind", [_short_words, _long_words, _words_of_parts, _values])
async def test_records_of_words_that_never_repeat_leave_a_few_mib_behind(kind: Words) -> None:
    judge, words = LexicalJudge(), kind(Random(3))
    await aevaluate(_record(words), judge=judge)  # reads the tables
    tracemalloc.start()
    try:
        peak = 0
        for _ in range(6):
            await aevaluate(_record(words), judge=judge)
            gc.collect()
            peak = max(peak, tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert peak <= MOST_BYTES
