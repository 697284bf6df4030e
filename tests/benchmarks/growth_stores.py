"""How the cost of one item grows with the others in a spool, a budget's file, or a ground truth."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from growth_curves import Curve, cpu, measure

from claimspan import Chunk, RagRecord, Usage
from claimspan.cost import SqliteBudgetStore
from claimspan.cost.stores import Limits
from claimspan.files.ground_truth import GroundTruth
from claimspan_tracing.job import Job
from claimspan_tracing.spool import Spool

__all__ = ["store_curves"]

MAXIMUM: Final = Usage(calls=1, input_tokens=1000, cost_usd=0.001)
LIMITS: Final = Limits(1e9, None, None)
DAY: Final = 10**6
"""A day that is not over, so that no store forgets it."""

Prepare = Callable[[Path, int], Callable[[], object]]


def store_curves(most: int, rounds: int) -> Iterator[Curve]:
    """Yield the curves of what is kept in files and looked up.

    Args:
        most: Rows of a spool and reservations of a budget; a ground truth has ten times as many.
        rounds: Measurements of each point.
    """
    sizes = [n for n in (10, 100, 1000, 10_000) if n < most] + [most]
    truths = [*sizes, most * 10]
    kinds: tuple[tuple[str, str, list[int], Prepare, bool], ...] = (
        ("spool: add and delete a job", "rows that wait", sizes, _added, True),
        ("spool: take up a job and put it back", "rows that wait", sizes, _claimed, True),
        ("budget in SQLite: reserve and settle", "calls that are open", sizes, _reserved, True),
        ("ground truth: look up a query", "rows", truths, _looked_up, True),
        ("ground truth: read the file", "rows", truths, _loaded, False),
    )
    for name, label, of, prepare, is_per_item in kinds:
        group = "stores" if is_per_item else "truths"
        with tempfile.TemporaryDirectory() as folder:
            curve = Curve(name, group, label, "ms", is_per_item=is_per_item)
            few = rounds if is_per_item else 1
            yield measure(curve, of, partial(_prepared, prepare, Path(folder)), few)


def _prepared(prepare: Prepare, folder: Path, n: int) -> Callable[[], float]:
    return partial(cpu, prepare(folder, n))


def _filled(folder: Path, n: int) -> Spool:
    spool = Spool(folder / f"{n}.spool", max_bytes=1 << 34)
    for number in range(n):
        lease = spool.add(_job(number))
        if lease is None:
            raise RuntimeError(f"the spool refused job {number} of {n}")
        spool.put_back(lease, 0.0, counted=False)
    return spool


def _job(number: int) -> Job:
    chunks = tuple(Chunk(id=str(place), text="x" * 100) for place in range(3))
    return Job(
        record=RagRecord(query=f"query {number}", response="r" * 200, chunks=chunks),
        trace_id=f"{number + 1:032x}",
        span_id=f"{number + 1:016x}",
        trace_flags=1,
        route="chain",
        started=1,
        ended=2,
    )


def _added(folder: Path, n: int) -> Callable[[], object]:
    spool, job = _filled(folder, n), _job(n)

    def add() -> None:
        lease = spool.add(job)
        if lease is None:
            raise RuntimeError("the spool refused a job")
        spool.delete([lease])

    return add


def _claimed(folder: Path, n: int) -> Callable[[], object]:
    spool = _filled(folder, n)

    def claim() -> None:
        for row in spool.claim(1):
            spool.put_back(row.lease, 0.0, counted=False)
            return
        raise RuntimeError("no row could be taken up")

    return claim


def _reserved(folder: Path, n: int) -> Callable[[], object]:
    store = SqliteBudgetStore(folder / f"{n}.budget")
    for number in range(n):
        store.reserve(DAY, f"open {number}", MAXIMUM, LIMITS)

    def reserve() -> None:
        store.reserve(DAY, "one more", MAXIMUM, LIMITS)
        store.settle(DAY, "one more", MAXIMUM)

    return reserve


def _written(folder: Path, n: int) -> Path:
    path = folder / f"{n}.truths.jsonl"
    rows = (
        {"query": f"What does rule {i} say?", "ground_truth": f"Rule {i} says {i * 7}."}
        for i in range(n)
    )
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return path


def _loaded(folder: Path, n: int) -> Callable[[], object]:
    return partial(GroundTruth, _written(folder, n))


def _looked_up(folder: Path, n: int) -> Callable[[], object]:
    truths = GroundTruth(_written(folder, n))
    # The exact query, the query in another form, and one that is not there.
    queries = (f"What does rule {n // 2} say?", f"what does RULE {n // 2} say", "Who says so?")
    return lambda: [truths.find_known(query) for query in queries]
