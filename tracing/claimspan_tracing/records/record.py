"""A record: the one row that a process keeps of a query, and the table of its states."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping
from contextvars import Context
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

from opentelemetry.trace import Span, format_span_id, format_trace_id

from claimspan_tracing.capture.runs import RunTree
from claimspan_tracing.decide.sampling import Decision
from claimspan_tracing.job import GeneratorRun, Job, JobKey, RetrieverRun
from claimspan_tracing.spool import Lease, Row

__all__ = ["STEPS", "Event", "OpenSpans", "Record", "Stage", "key_of"]


class Stage(Enum):
    """How far the evaluation of a record is, for this process."""

    UNREAD = auto()
    """Its root has ended, and its run tree waits for the worker."""

    WAITING = auto()
    """Its job waits for a judge, or is with a dispatcher elsewhere."""

    JUDGING = auto()
    """A judge of this process has its job."""

    LATE = auto()
    """A judge has its job still, and its hold is over: the scores go to a carrier."""

    PARKED = auto()
    """Its judge cannot be reached. The job waits in the spool, and the spans are held."""

    WRITTEN = auto()
    """What it has led to is in the spool, and on its way to the spans and their exporter."""

    DONE = auto()
    """Nothing is left to do: all is written, or the spool has it for the next process."""


class Event(Enum):
    """What happens to a record. Each moves it as ``STEPS`` says, and to no other stage."""

    DISPATCHED = auto()
    """It was read, and is to be evaluated."""

    TAKEN = auto()
    """A judge of this process has taken its job."""

    OVERDUE = auto()
    """Its hold is over while a judge has it."""

    PARKED = auto()
    """The judge could not be reached."""

    TAKEN_UP = auto()
    """This process has taken its row up from the spool."""

    PUT_BACK = auto()
    """It waits in the spool, for this process or another one."""

    SETTLED = auto()
    """Its outcome is known."""

    EXPORTED = auto()
    """Every exporter has its spans, or it was never in the spool."""

    UNEXPORTED = auto()
    """An exporter has failed, or has said nothing."""

    LOST = auto()
    """Another process has taken its row over, and the spans with it."""

    ABANDONED = auto()
    """The monitor was shut down."""


_WITH_A_JUDGE: Final = (Stage.WAITING, Stage.JUDGING, Stage.LATE)
_UNDER_WAY: Final = (*_WITH_A_JUDGE, Stage.UNREAD, Stage.PARKED)

STEPS: Final[Mapping[tuple[Stage, Event], Stage]] = {
    (Stage.UNREAD, Event.DISPATCHED): Stage.WAITING,
    (Stage.WAITING, Event.TAKEN): Stage.JUDGING,
    (Stage.JUDGING, Event.OVERDUE): Stage.LATE,
    (Stage.PARKED, Event.TAKEN_UP): Stage.WAITING,
    (Stage.DONE, Event.TAKEN_UP): Stage.WAITING,
    (Stage.WRITTEN, Event.EXPORTED): Stage.DONE,
    (Stage.WRITTEN, Event.UNEXPORTED): Stage.DONE,
    **{(stage, Event.PARKED): Stage.PARKED for stage in _WITH_A_JUDGE},
    **{(stage, Event.PUT_BACK): Stage.DONE for stage in (*_WITH_A_JUDGE, Stage.PARKED)},
    **{(stage, Event.SETTLED): Stage.WRITTEN for stage in (*_WITH_A_JUDGE, Stage.UNREAD)},
    **{(stage, Event.LOST): Stage.DONE for stage in (*_UNDER_WAY, Stage.WRITTEN)},
    **{(stage, Event.ABANDONED): Stage.DONE for stage in _UNDER_WAY},
}
"""From where an event leads where; what is not in the table does not happen.
``docs/architecture.md`` says beside each step what the spool is told, and what is counted."""

HOLDS_PLACE: Final = frozenset(_UNDER_WAY)
"""Stages in which a record has its place in the queue."""

RUNS: Final = frozenset(_WITH_A_JUDGE)
"""Stages that a flush waits for: an evaluation may outlast the state of its record."""


@dataclass(frozen=True, slots=True)
class OpenSpans:
    """The spans of one query, held open until its state is known."""

    job: Job
    """The job that the spans were built from."""

    root: Span
    """The span of the root run."""

    runs: tuple[Span, ...]
    """The spans of ``job.runs``, in the same order."""

    @property
    def retrievers(self) -> list[tuple[Span, RetrieverRun]]:
        """The retriever spans with their runs."""
        pairs = zip(self.runs, self.job.runs, strict=True)
        return [(span, run) for span, run in pairs if isinstance(run, RetrieverRun)]

    @property
    def answering(self) -> Span | None:
        """The span of the last generator run; None if there is none."""
        pairs = zip(self.runs, self.job.runs, strict=True)
        return next((s for s, run in reversed(list(pairs)) if isinstance(run, GeneratorRun)), None)

    def ends(self) -> list[tuple[Span, int | None]]:
        """Return every span with the time at which its run ended, the root last."""
        runs = zip(self.runs, self.job.runs, strict=True)
        return [*((span, run.ended) for span, run in runs), (self.root, self.job.ended)]


@dataclass(slots=True, eq=False)
class Record:
    """One row: everything that this process knows of a record, and must not lose.

    ``stage`` is how far its evaluation is, ``is_open`` whether its visible state is still to come:
    an evaluation may outlast the state, and a state may come without an evaluation. The spans, the
    context and the timer cannot leave the process; all else is in the spool as well, if there is
    one.
    """

    key: JobKey
    """Trace id and span id of the root, known before the job is."""

    root: Span
    """The root span; not recording if others made it and it has ended."""

    ended: int | None
    """True end of the root, nanoseconds since the epoch; None if it was not seen."""

    context: Context
    """Context variables of the request; spans are started and ended in a copy of them."""

    accepted_at: float = field(default_factory=time.monotonic)
    """When the root ended, on the monotonic clock: how long spans are held counts from here."""

    stage: Stage = Stage.UNREAD
    """Moved by ``Records.move`` alone."""

    is_open: bool = True
    """Whether it has no visible state yet; set by ``Records.end`` alone."""

    is_counted: bool = True
    """Whether it is in the books: a row of a dead process is not before its outcome is known."""

    tree: RunTree | None = None
    """Its runs, with objects of the framework; None once they were read."""

    size: int | None = None
    """Approximate bytes that its place counts for; None if it has no place in the queue."""

    decision: Decision | None = None
    """What the sampler decided; None before it was asked."""

    job: Job | None = None
    """What was read from the run tree, as everybody but the judge may see it; None before that."""

    judged: Job | None = None
    """What the judge gets; None before it was dispatched."""

    spans: OpenSpans | None = None
    """The spans of the query; None before they are built, and if others made them."""

    since: float = 0.0
    """When the job began to wait for a judge, on the clock of the table."""

    timer: asyncio.TimerHandle | None = None
    """Ends its hold."""

    safe: threading.Event | None = None
    """Set when the record has its state, or is kept on disk; None if no call waits for it."""

    lease: Lease | None = None
    """The right to work on its row in the spool; None if the spool does not have it, or has it for
    others."""

    row: Row | None = None
    """The row as it was taken up from the spool; None if the job is of this process's own run."""

    unexported: dict[str, int] = field(default_factory=dict[str, int])
    """Ids of its ended spans whose export is still to be confirmed, each with how many exporters
    have confirmed it."""

    is_followed: bool = False
    """Whether the export of its spans is not over yet."""

    is_complete: bool = False
    """Whether all of its spans that are followed have been ended."""

    complete_since: float = 0.0
    """Since when, on the monotonic clock."""

    export_failed: bool = False
    """Whether an exporter could not deliver one of its spans."""

    was_reported: bool = False
    """Whether an exporter has said anything of them."""

    is_on_its_way: bool = False
    """Whether this process has ended its spans, and their export was not over when it was taken up
    again."""

    n_silent: int = 0
    """How often it was written without a word of any exporter."""

    def ends(self) -> list[tuple[Span, int | None]]:
        """Return every span of the record with its true end, the root last."""
        return [(self.root, self.ended)] if self.spans is None else self.spans.ends()

    @classmethod
    def of(cls, tree: RunTree) -> Record:
        """Return the record of a tree whose root has ended, or that was given up."""
        # Of a run that was given up no end was seen; the wall clock may have been set since.
        ended = tree.root.end or tree.now()
        return cls(key_of(tree), tree.span, ended, tree.context, tree=tree)


def key_of(tree: RunTree) -> JobKey:
    """Return the key of the job that a tree will be read into."""
    span = tree.span.get_span_context()
    return format_trace_id(span.trace_id), format_span_id(span.span_id)
