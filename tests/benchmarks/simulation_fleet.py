"""Processes of a simulated day, with the product's own parts behind the end of each query.

Of a process these are real: table of records, worker, decider with sampler and overload,
evaluations with their holds, dispatcher, evaluator, budget and writer. Left out are capture, the
reading of run trees, and spans: ``Process.arrive`` and ``_process`` stand for ``Engine.submit`` and
``Reading.process``, and the writer's only sink notes what would have been on the root span.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Final

from growth_tracing import PlainReader
from opentelemetry.trace import (
    INVALID_SPAN,
    NonRecordingSpan,
    SpanContext,
    format_span_id,
    format_trace_id,
)
from simulation_judge import Traffic, VirtualLoop

from claimspan import Chunk, RagRecord
from claimspan.cost.budget import Budget
from claimspan.judges import Judge
from claimspan_tracing.adapters import RunTree
from claimspan_tracing.commands.stats import SampledRecord
from claimspan_tracing.decide.decider import Decider
from claimspan_tracing.decide.sampling import Decision, Facts, Sampler
from claimspan_tracing.decide.status import Status
from claimspan_tracing.decide.thinning import Overload
from claimspan_tracing.dispatch.evaluator import Evaluator
from claimspan_tracing.dispatch.judging import LocalDispatcher
from claimspan_tracing.dispatch.loop_thread import Worker
from claimspan_tracing.engine.evaluations import Evaluations
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import Job, JobKey, Outcome
from claimspan_tracing.records import Event, Exports, Record, Records
from claimspan_tracing.spool import Spool
from claimspan_tracing.write.remade import RemadeSpans
from claimspan_tracing.write.signals import Signals
from claimspan_tracing.write.sinks import Finished
from claimspan_tracing.write.writer import Writer

__all__ = ["HOLD_SECONDS", "Drawn", "Process", "poisson", "run_traffic"]

HOLD_SECONDS: Final = 30.0
RECORD_BYTES: Final = 20_000
"""What a record with ten chunks keeps alive, about."""

BOOTED: Final = 3600.0
"""Seconds for which the machine has been on when a day begins."""

_CHUNKS: Final = (Chunk(id="a", text="A chunk."),)
_READER: Final = PlainReader()
_EMPTY: Final = Context()


@dataclass(frozen=True)
class Drawn:
    """A rate sampler that sees only the queries that the rate has taken already.

    ``RateSampler`` decides by a hash of random ids, so what it takes of a Poisson stream is a
    Poisson stream at the rate's share: this is drawn instead, and what stands behind the sampler is
    the same code. The queries that it leaves out are drawn as a number.
    """

    rate: float

    def decide(self, facts: Facts) -> Decision:
        """Take the query."""
        return Decision(sampled=True, rate=self.rate, reason="rate")


class _Notes:
    """A sink that keeps of each record what ``claimspan stats`` reads from its spans."""

    def __init__(self, width: float) -> None:
        self.records: list[SampledRecord] = []
        self._width = width
        self._open: dict[JobKey, SampledRecord] = {}

    def sampled(self, job: Job, decision: Decision, second: float) -> None:
        """Note a record that is to be evaluated; its group is the window in which it came."""
        note = SampledRecord(
            trace_id=job.trace_id,
            group=f"{second // self._width:05.0f}",
            reason=decision.reason,
            rate=decision.rate,
            weight=decision.weight,
        )
        self._open[job.key] = note
        self.records.append(note)

    def write(self, finished: Finished) -> None:
        """Note the state of a record, or scores that came after it had one."""
        note = self._open.get(finished.job.key)
        if note is None:
            return
        note.status = note.status or finished.outcome.status.value
        if finished.outcome.evaluation is not None:
            note.scores = finished.outcome.evaluation.metrics


def _nowhere(_: Finished) -> None:
    """Write nothing."""


class Process:
    """One process of the application, with the monitor's parts behind the end of its queries."""

    def __init__(
        self,
        loop: VirtualLoop,
        judge: Judge,
        sampler: Sampler,
        budget: Budget | None,
        traffic: Traffic,
        seed: int,
        spool: Path | None = None,
        width: float = 600.0,
    ) -> None:
        """Connect the parts as ``engine.parts.Parts`` does.

        Args:
            loop: Keeps the time.
            judge: Evaluates.
            sampler: Decides.
            budget: Of all processes; None for no limit.
            traffic: Knows how good answers are.
            seed: Of ids and answers.
            spool: The file of a spool; None for none.
            width: Seconds of the windows that records are grouped by.
        """
        self._loop = loop
        self._traffic = traffic
        self._drawn = Random(seed)
        self._guard = Guard()
        self._spool = None
        if spool is not None:
            self._spool = Spool(spool, clock=lambda: int((loop.time() + BOOTED) * 1e9))
        self.records: Final = Records(spool=self._spool, clock=loop.time)
        self._notes = _Notes(width)
        overload = Overload(loop.time)
        self._decider = Decider(sampler, lambda: self.records.fullness, self._guard, overload)
        self._writer = Writer(
            self.records, self._guard, _nowhere, _nowhere, [self._notes.write], Signals()
        )
        self._worker = Worker(self.records.next_unread, self._process, self._guard)
        self._evaluations = self._make_evaluations(judge, budget)
        self._evaluations.start()

    @property
    def notes(self) -> list[SampledRecord]:
        """Every record that was to be evaluated."""
        return self._notes.records

    @property
    def faults(self) -> int:
        """Exceptions that were swallowed."""
        return self._guard.faults

    def arrive(self, number: int) -> None:
        """A query has ended, as ``Engine.submit`` is told.

        Args:
            number: Another one for every query.
        """
        ids = SpanContext(self._drawn.getrandbits(128) or 1, number, is_remote=False)
        tree = RunTree(NonRecordingSpan(ids), _READER, _EMPTY, size=RECORD_BYTES)
        key = format_trace_id(ids.trace_id), format_span_id(ids.span_id)
        record = Record(key, INVALID_SPAN, None, _EMPTY, tree=tree)
        self.records.count("produced")
        self.records.add(record)
        if self.records.give_place(record, tree):
            self._worker.wake()
            return
        decision = self._decider.decide_unread(ids.trace_id, ids.span_id, {}, _EMPTY)
        if decision is not None and decision.sampled:
            job = self._job(record.key, decision)
            self._notes.sampled(job, decision, self._loop.now)
            self._notes.write(Finished(job, Outcome(status=Status.QUEUE_FULL)))
        self._writer.refuse(record, Status.QUEUE_FULL)
        self.records.move(record, Event.ABANDONED)

    def close(self) -> None:
        """Close the spool's file."""
        if self._spool is not None:
            self._spool.close()

    def _make_evaluations(self, judge: Judge, budget: Budget | None) -> Evaluations:
        guard, records = self._guard, self.records
        return Evaluations(
            records,
            Exports(records, lambda: None, lambda: None, guard),
            LocalDispatcher(
                records, Evaluator(judge, None, guard, budget=budget), HOLD_SECONDS, guard
            ),
            self._worker,
            self._writer,
            RemadeSpans(lambda: None, lambda _key, _span: None, lambda job: job),
            guard,
            HOLD_SECONDS,
            clock=self._loop.time,
        )

    def _process(self, record: Record) -> None:
        """Decide about a query, as ``Reading.process`` does, and have it judged or finish it."""
        trace_id, span_id = (int(each, 16) for each in record.key)
        decision = self._decider.decide(Facts(trace_id=trace_id, span_id=span_id), _EMPTY)
        if record.is_open and (decision.sampled or decision.status is not None):
            record.decision, record.job = decision, self._job(record.key, decision)
            self._notes.sampled(record.job, decision, self._loop.now)
        if record.is_open and record.job is not None and decision.sampled:
            self._evaluations.dispatch(record, record.job, record.job)
            return
        self._writer.finish(record, Outcome(status=decision.status or Status.NOT_SAMPLED))
        self.records.move(record, Event.SETTLED)
        self.records.move(record, Event.EXPORTED)

    def _job(self, key: JobKey, decision: Decision) -> Job:
        answer = self._traffic.answer(self._loop.now, self._drawn)
        return Job(
            record=RagRecord(query="?", response=answer, chunks=_CHUNKS),
            trace_id=key[0],
            span_id=key[1],
            trace_flags=1,
            route="rag",
            started=0,
            ended=1,
            decision=decision,
        )


async def run_traffic(
    traffic: Traffic,
    processes: Sequence[Process],
    rate: float,
    span: tuple[int, int],
    seed: int,
    tell: Callable[[int], None],
) -> tuple[int, int]:
    """Have queries come, second by second, each at a random moment of its second.

    Args:
        traffic: How many come to one process.
        processes: Where they come.
        rate: Share of the queries that come to the samplers; the others are drawn as a number.
        span: From and to, in seconds.
        seed: Another one gives another day.
        tell: Called at the beginning of each second.

    Returns:
        How many queries ended in a process, and how many were drawn as a number.
    """
    drawn, number, not_run, loop = Random(seed), 0, 0, asyncio.get_running_loop()
    for second in range(*span):
        tell(second)
        expected = traffic.rate(second) * len(processes)
        not_run += poisson(expected * (1 - rate), drawn)
        for _ in range(poisson(expected * rate, drawn)):
            number += 1
            arrive = partial(drawn.choice(processes).arrive, number)
            loop.call_at(second + drawn.random(), arrive)
        await asyncio.sleep(second + 1 - loop.time())
    return number, not_run


def poisson(mean: float, drawn: Random) -> int:
    """Draws how many arrive where so many are expected."""
    if mean <= 0:
        return 0
    if mean > 50:  # a normal distribution is as good, and takes one step
        return max(0, round(drawn.gauss(mean, mean**0.5)))
    count, left = 0, drawn.expovariate(1.0)
    while left < mean:
        count, left = count + 1, left + drawn.expovariate(1.0)
    return count
