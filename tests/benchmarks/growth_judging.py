"""How the cost of judging grows: chunks, claims, answers, documents, metrics, reservations."""

from __future__ import annotations

import asyncio
import pydoc_data.topics
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle, islice
from typing import Final

from growth_curves import Curve, cpu, measure

from claimspan import Chunk, RagRecord, Verdict, VerdictMatrix, evaluate
from claimspan.cost.budget import Budget
from claimspan.cost.usage import Usage
from claimspan.evaluation.evaluate import MAX_CLAIMS
from claimspan.judges import Judge, LexicalJudge
from claimspan.metrics import measure as measure_metrics
from claimspan.verdicts import Label, VerdictMatrices

__all__ = ["judging_curves", "local_curves", "text_of"]

_WORDS: Final = re.compile(r"[A-Za-z]{2,12}")
_TOPICS: Final = tuple(
    word.lower()
    for topic in sorted(pydoc_data.topics.topics)
    for word in _WORDS.findall(pydoc_data.topics.topics[topic])
)
"""English words in the order of running text; every Python has them."""

WORDS_A_SENTENCE: Final = 12
CLAIMS: Final = 5
CHUNKS: Final = 10
CHUNK_WORDS: Final = 130
"""About 800 characters, as in the other benchmarks."""


def text_of(words: int, start: int = 0) -> str:
    """Sentences of running words; another start gives other sentences."""
    found = list(islice(cycle(_TOPICS), start, start + words))
    sentences = (found[i : i + WORDS_A_SENTENCE] for i in range(0, words, WORDS_A_SENTENCE))
    return " ".join(f"{' '.join(each).capitalize()}." for each in sentences)


def record_of(words: int, chunks: int, chunk_words: int = CHUNK_WORDS) -> RagRecord:
    """A record whose chunks hold the answer in parts, as retrieved texts do."""
    return RagRecord(
        query="What do these topics say about the language?",
        response=text_of(words),
        chunks=tuple(
            Chunk(id=str(i), text=text_of(chunk_words, start=i * chunk_words // 2))
            for i in range(chunks)
        ),
    )


def _judged(judge: Judge, record: RagRecord, max_claims: int) -> Callable[[], float]:
    return partial(cpu, partial(evaluate, record, judge=judge, max_claims=max_claims))


def judging_curves(most: int, rounds: int) -> Iterator[Curve]:
    """Yield the curves of judging by words, of metrics and of a budget.

    Args:
        most: Chunks of the largest record; other sizes go with it.
        rounds: Measurements of each point.
    """
    judge, answer = LexicalJudge(), CLAIMS * WORDS_A_SENTENCE

    def by_chunks(n: int) -> Callable[[], float]:
        return _judged(judge, record_of(answer, n), CLAIMS)

    def by_claims(n: int) -> Callable[[], float]:
        return _judged(judge, record_of(n * WORDS_A_SENTENCE, CHUNKS), n)

    def by_words(n: int) -> Callable[[], float]:
        return _judged(judge, record_of(n, CHUNKS), MAX_CLAIMS)

    def by_all_words(n: int) -> Callable[[], float]:
        return _judged(judge, record_of(n, CHUNKS), n)

    def by_document(n: int) -> Callable[[], float]:
        return _judged(judge, record_of(answer, 1, n * 1000 // 6), CLAIMS)

    words = "evaluate by words"
    yield measure(Curve(words, "chunks", "chunks", "ms"), _sizes(1, most), by_chunks, rounds)
    yield measure(
        Curve(words, "claims", "claims", "ms"), _sizes(1, max(10, most // 10)), by_claims, rounds
    )
    for name, work in ((words, by_words), (f"{words}, no bound of claims", by_all_words)):
        curve = Curve(name, "words", "words of the answer", "ms")
        yield measure(curve, _sizes(10, most * 10), work, rounds)
    yield measure(
        Curve(words, "documents", "kB of one chunk", "ms"), _sizes(1, most), by_document, rounds
    )
    yield measure(
        Curve("metrics of given verdicts", "chunks", "chunks", "ms"),
        _sizes(1, most),
        _measured,
        rounds,
    )
    yield measure(
        Curve("reserve on a budget, calls open at once", "calls", "calls", "ms"),
        _sizes(10, most),
        lambda n: partial(cpu, partial(_reserve, n)),
        rounds,
    )


def local_curves(most: int) -> Iterator[Curve]:
    """Yield few points of the local judge, which takes about a second for a record.

    Args:
        most: Pairs of the largest record.
    """
    from claimspan.judges import LocalJudge

    judge = LocalJudge()

    def by_chunks(n: int) -> Callable[[], float]:
        return _judged(judge, record_of(2 * WORDS_A_SENTENCE, n), 2)

    curve = Curve("evaluate by the local model", "chunks", "chunks", "ms")
    yield measure(curve, _sizes(1, most), by_chunks, 1)


def _measured(chunks: int) -> Callable[[], float]:
    labels = list(islice(cycle(Label), CLAIMS * chunks))
    cells = [Verdict(label=label) for label in labels]
    rows = [cells[i * chunks : (i + 1) * chunks] for i in range(CLAIMS)]
    one = VerdictMatrix.of([row[:1] for row in rows], 1)
    whole = VerdictMatrix.of(rows, chunks)
    matrices = VerdictMatrices(
        response_vs_chunks=whole,
        ground_truth_vs_chunks=whole,
        response_vs_ground_truth=one,
        ground_truth_vs_response=one,
    )
    return partial(cpu, partial(measure_metrics, matrices))


def _reserve(n: int) -> None:
    asyncio.run(_reserve_at_once(Budget(per_day=1e6), n))


async def _reserve_at_once(budget: Budget, n: int) -> None:
    """Open so many calls, and end them when all are open, as many evaluations at once do."""
    opened = asyncio.Semaphore(0)
    all_open = asyncio.Event()

    async def call() -> None:
        async with budget.reserve(Usage(calls=1, input_tokens=1000, cost_usd=0.001)):
            opened.release()
            await all_open.wait()

    calls = [asyncio.ensure_future(call()) for _ in range(n)]
    for _ in range(n):
        await opened.acquire()
    all_open.set()
    await asyncio.gather(*calls)


def _sizes(least: int, most: int) -> list[int]:
    """About three sizes a decade, from the least to the most."""
    steps = [least * factor * 10**power for power in range(7) for factor in (1, 3)]
    return [size for size in steps if size < most] + [most]
