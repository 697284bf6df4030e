"""Extracts the facts of each item, and has a judge check every fact against every chunk."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeGuard, cast

from pydantic import BaseModel, ConfigDict, Field

from claimspan.concurrency import gather_or_cancel
from claimspan.cost.usage import Usage, metered
from claimspan.errors import ConfigError, JudgeError
from claimspan.evaluation.evaluate import run_to_end
from claimspan.evaluation.matrices import ALL_MATRICES, guarded, judge_matrices
from claimspan.judges import Judge, LexicalJudge, LocalJudge, default_judge
from claimspan.records import Chunk, RagRecord
from claimspan.verdicts import Claim, VerdictMatrix
from claimspan_bench.context_coverage.items import CoverageItem
from claimspan_bench.resumed import KeptLines, version_of

__all__ = [
    "CONCURRENCY",
    "ITEM_SECONDS",
    "MAX_FACTS",
    "JudgedItem",
    "ajudge_items",
    "digest",
    "judge_items",
    "judge_of",
    "judged_file",
]


MAX_FACTS: Final = 50
"""Facts checked per item: a book must not cost 10,000 checks."""

CONCURRENCY: Final = 4
"""Items under way at once."""

ITEM_SECONDS: Final = 600.0
"""Deadline of one item, for a judge that hangs; 50 facts against 12 chunks take 100 calls at most
where they are batched, and 600 where they are not."""


class JudgedItem(BaseModel):
    """The facts of an item, and the verdict on each of them by each chunk."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    index: int = Field(ge=0)
    """Place of the item in its file, from 0."""

    id: str

    digest: str
    """Of the item, so that results of another file, or of a changed one, are noticed."""

    judge: str

    facts: tuple[Claim, ...] | None = None
    """Facts of the text; None while they are not known."""

    facts_dropped: int = 0
    """How many more facts the text has."""

    verdicts: VerdictMatrix | None = None
    """Shape ``(n_facts, n_chunks)``; None while the facts are not checked."""

    error: str | None = None
    """Why there are no verdicts; None where there are."""

    usage: Usage = Usage()
    """Calls, tokens, price and time of judging it, in all runs together."""


def digest(item: CoverageItem) -> str:
    """Return 16 hexadecimal digits that tell one item from another."""
    return hashlib.sha256(item.model_dump_json().encode()).hexdigest()[:16]


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
    for name, value in (
        ("max_facts", max_facts),
        ("concurrency", concurrency),
        ("deadline_seconds", deadline_seconds),
    ):
        if not value > 0:
            raise ConfigError(f"{name} is {value!r}: give more than 0")
    judge = _decides_all(judge or default_judge())
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


def _decides_all(judge: Judge) -> Judge:
    """A free judge that decides each verdict: a coverage by probability needs all of them."""
    if not isinstance(judge, LexicalJudge | LocalJudge):
        return judge
    made = cast("Callable[..., Judge]", type(judge))
    return made(**judge.arguments() | {"sure_from": 0.5})


def judge_of(judge: Judge) -> str:
    """Name and version of a judge: results of another one do not belong in the same file."""
    return f"{judge.name} {version_of(judge)}".rstrip()


def _fits(judged: JudgedItem, max_facts: int) -> bool:
    """Whether an earlier run would have kept the same facts."""
    n_facts = len(judged.facts or ())
    return n_facts == max_facts or (n_facts < max_facts and not judged.facts_dropped)


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


def judged_file(
    path: Path, items: Sequence[CoverageItem], judge: str
) -> KeptLines[int, JudgedItem]:
    """Open a file that grows by a line when the facts of an item are known, and when it is judged.

    Args:
        path: The file; it is made where it is not there.
        items: All items of the data set.
        judge: Name and version of the judge.

    Returns:
        The file, which knows the index of an item to what is known of it.

    Raises:
        ConfigError: The file cannot be written, or holds results of other items or of another
            judge.
        FileError: The file cannot be read.
    """
    digests = [digest(item) for item in items]

    def accept(row: JudgedItem) -> JudgedItem | None:
        reason = None
        if row.index >= len(items) or row.digest != digests[row.index]:
            reason = "is the result of another item: the data set has changed"
        elif row.judge != judge:
            reason = "is the result of another judge, or of another prompt"
        if reason is not None:
            raise ValueError(f"{reason}; give another path with -o")
        # Facts cost a call, so they are kept even where the verdicts have failed.
        return None if row.facts is None else row.model_copy(update={"error": None})

    return KeptLines(
        path,
        JudgedItem,
        key=lambda row: row.index,
        accept=accept,
        foreign="is no result; give another path with -o",
        what="the results",
    )
