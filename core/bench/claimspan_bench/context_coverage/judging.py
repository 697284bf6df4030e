"""Extracts the facts of each item, and has a judge check every fact against every chunk."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeGuard

from claimspan.concurrency import gather_or_cancel
from claimspan.cost.usage import Usage, metered
from claimspan.errors import ConfigError, JudgeError
from claimspan.evaluation.evaluate import run_to_end
from claimspan.evaluation.matrices import ALL_MATRICES, guarded, judge_matrices
from claimspan.judges import Judge, default_judge
from claimspan.records import Chunk, RagRecord
from claimspan.verdicts import Claim, VerdictMatrix
from claimspan_bench.context_coverage.items import CoverageItem
from claimspan_bench.context_coverage.judged import JudgedItem, digest

__all__ = ["CONCURRENCY", "ITEM_SECONDS", "MAX_FACTS", "ajudge_items", "judge_items", "judge_of"]

MAX_FACTS: Final = 50
"""Facts checked per item: a book must not cost 10,000 checks."""

CONCURRENCY: Final = 4
"""Items under way at once."""

ITEM_SECONDS: Final = 600.0
"""Deadline of one item, for a judge that hangs; 50 facts against 12 chunks take 100 calls at most
where they are batched, and 600 where they are not."""


class _Settings(NamedTuple):
    """How items are judged."""

    judge: Judge
    batched: bool
    max_facts: int
    seconds: float
    keep: Callable[[JudgedItem], None]


async def ajudge_items(
    items: Sequence[CoverageItem],
    judge: Judge | None = None,
    *,
    batched: bool = True,
    max_facts: int = MAX_FACTS,
    concurrency: int = CONCURRENCY,
    deadline_seconds: float = ITEM_SECONDS,
    known: Mapping[int, JudgedItem] | None = None,
    keep: Callable[[JudgedItem], None] = lambda _: None,
) -> list[JudgedItem]:
    """Judge items: facts of the text, then each fact against each chunk.

    A judge that fails on an item does not stop the others; the item has the error.

    Args:
        items: The items.
        judge: The judge; None takes ``default_judge()``.
        batched: Lets the judge check many facts and chunks in a call. False asks for each pair in
            a call of its own, which makes facts x chunks calls beside the extraction.
        max_facts: Facts checked per item, the first ones of the text.
        concurrency: Items under way at once.
        deadline_seconds: Seconds after which the judge is stopped on an item.
        known: Index of an item to what an earlier run has found; a complete one is not judged
            again, and facts that are there are not extracted again, unless they were cut by
            another ``max_facts``.
        keep: Called with an item when its facts are known, and again when it is judged.

    Returns:
        The judged items, in order.

    Raises:
        ConfigError: A number is not positive.
    """
    _check_positive(max_facts=max_facts, concurrency=concurrency, deadline_seconds=deadline_seconds)
    judge = judge or default_judge()
    settings = _Settings(judge, batched, max_facts, deadline_seconds, keep)
    known = {i: each for i, each in (known or {}).items() if _fits(each, max_facts)}
    found = {index: each for index, each in known.items() if each.verdicts is not None}
    waiting = iter([(i, item) for i, item in enumerate(items) if i not in found])

    async def judge_next() -> None:
        # Few tasks take from one iterator, so that a big file is not as many tasks at once.
        for index, item in waiting:
            found[index] = await _judge_item(index, item, known.get(index), settings)

    # A disk that is full ends the run: `keep` raises, and judging what cannot be kept would cost
    # money.
    await gather_or_cancel([judge_next() for _ in range(concurrency)])
    return [found[index] for index in range(len(items))]


def judge_items(
    items: Sequence[CoverageItem],
    judge: Judge | None = None,
    *,
    batched: bool = True,
    max_facts: int = MAX_FACTS,
    concurrency: int = CONCURRENCY,
) -> list[JudgedItem]:
    """As ``ajudge_items``, for code that does not run on an event loop, or blocks the one it has.

    Raises:
        ConfigError: A number is not positive.
    """
    return run_to_end(
        lambda: ajudge_items(
            items, judge, batched=batched, max_facts=max_facts, concurrency=concurrency
        )
    )


def judge_of(judge: Judge) -> str:
    """Name and version of a judge: results of another one do not belong in the same file."""
    return f"{judge.name} {getattr(judge, 'version', '')}".rstrip()


def _fits(judged: JudgedItem, max_facts: int) -> bool:
    """Whether an earlier run would have kept the same facts."""
    n_facts = len(judged.facts or ())
    return n_facts == max_facts or (n_facts < max_facts and not judged.facts_dropped)


def _check_positive(**settings: float) -> None:
    for name, value in settings.items():
        if not value > 0:
            raise ConfigError(f"{name} is {value!r}: give more than 0")


async def _judge_item(
    index: int, item: CoverageItem, known: JudgedItem | None, settings: _Settings
) -> JudgedItem:
    started = time.perf_counter()
    judged = known or JudgedItem(
        index=index, id=item.id, digest=digest(item), judge=judge_of(settings.judge)
    )
    before = judged.usage
    with metered() as meter:

        def at_now(**update: object) -> JudgedItem:
            # What an earlier run has spent on the item counts as well.
            usage = before + meter.usage + Usage(seconds=time.perf_counter() - started)
            return judged.model_copy(update={"usage": usage, "error": None, **update})

        try:
            async with asyncio.timeout(settings.seconds):
                if judged.facts is None:
                    facts, dropped = await _facts(item, settings)
                    judged = at_now(facts=facts, facts_dropped=dropped)
                    settings.keep(judged)
                verdicts = await _verdicts(item, judged.facts or (), settings)
            judged = at_now(verdicts=verdicts)
        except TimeoutError:
            judged = at_now(error=f"no verdicts within {settings.seconds:g} s")
        except JudgeError as error:
            judged = at_now(error=str(error))
    settings.keep(judged)
    return judged


async def _facts(item: CoverageItem, settings: _Settings) -> tuple[tuple[Claim, ...], int]:
    """The facts of an item, and how many more it has."""
    facts: object = item.facts
    if facts is None:
        judge = settings.judge
        facts = await guarded(
            judge, lambda: judge.extract_claims(item.text, question=item.question or None)
        )
    if not _are_facts(facts):
        raise JudgeError(
            f"judge {settings.judge.name!r} returned something else than a list of Claim: "
            "return one from extract_claims"
        )
    if not facts:
        raise JudgeError("the text has no facts: give the item facts, or another text")
    return tuple(facts[: settings.max_facts]), max(0, len(facts) - settings.max_facts)


def _are_facts(value: object) -> TypeGuard[Sequence[Claim]]:
    return isinstance(value, list | tuple) and all(isinstance(item, Claim) for item in value)  # pyright: ignore[reportUnknownVariableType] - the items are what is checked


async def _verdicts(
    item: CoverageItem, facts: Sequence[Claim], settings: _Settings
) -> VerdictMatrix:
    judge, chunks = settings.judge, item.chunks
    if settings.batched:
        return await _matrix(judge, item, facts, chunks)
    cells = await gather_or_cancel(
        # Pair by pair: the published protocol makes one call for each fact and context.
        [_matrix(judge, item, [fact], [chunk]) for fact in facts for chunk in chunks]
    )
    flat = [cell[0][0] for cell in cells]
    rows = [flat[start : start + len(chunks)] for start in range(0, len(flat), len(chunks))]
    return VerdictMatrix.of(rows, len(chunks))


async def _matrix(
    judge: Judge, item: CoverageItem, facts: Sequence[Claim], chunks: Sequence[Chunk]
) -> VerdictMatrix:
    record = RagRecord(query=item.question, response=item.text, chunks=tuple(chunks))
    matrices = await judge_matrices(
        judge, record, facts, [], wanted=ALL_MATRICES - {"response_vs_context"}
    )
    if matrices.response_vs_chunks is None:
        raise JudgeError(f"judge {judge.name!r} gave no verdicts")
    return matrices.response_vs_chunks
