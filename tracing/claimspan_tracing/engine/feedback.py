"""Feedback: what users say about responses, as a fact for the sampler and as an event."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass, replace
from typing import Final

from opentelemetry.trace import SpanContext

from claimspan.errors import ConfigError
from claimspan_tracing.decide.decider import BY_REQUEST, Decider
from claimspan_tracing.decide.sampling import is_share, wants_feedback
from claimspan_tracing.engine.evaluations import Evaluations
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import GeneratorRun, Job, JobKey
from claimspan_tracing.options import Settings
from claimspan_tracing.write.signals import Signals

__all__ = ["Feedback", "FeedbackDesk", "checked_feedback"]

MAX_JOBS: Final = 1_000
"""Records kept for feedback that may still come."""

MAX_CHARACTERS: Final = 16 * 1024 * 1024
"""Approximate characters of text that these keep alive: a quarter of what the queue may."""

MAX_SECONDS: Final = 3_600.0
"""How long a record is kept, and feedback about a record that is not known yet. Most people press a
button while they read the response."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a user said about a response."""

    trace_id: str
    """Trace of the record, 32 hex digits."""

    span_id: str
    """Root span of the record, 16 hex digits; empty for every record of the trace."""

    value: float
    """0 (bad) to 1 (good)."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """A record that was not sampled, with everything that a late evaluation needs."""

    job: Job
    shown: Job
    context: Context
    characters: int
    since: float


@dataclass(eq=False)
class FeedbackDesk:
    """Brings feedback and records together, on the worker's thread alone.

    Feedback that comes before its record was read is a fact for the sampler. Feedback that comes
    later, about a record that was not sampled, has the sampler asked once more; so such records are
    kept for a while. Without a rule about feedback nothing is kept.
    """

    settings: Settings
    decider: Decider
    evaluations: Evaluations
    """Takes the records that are evaluated late."""
    signals: Signals
    guard: Guard
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._keeps = wants_feedback(self.settings.sampler)
        # Both from the oldest to the newest.
        self._jobs: OrderedDict[JobKey, _Kept] = OrderedDict()
        self._early: OrderedDict[JobKey, tuple[float, float]] = OrderedDict()
        self._characters = 0

    def receive(self, feedback: Feedback) -> None:
        """Write feedback as an event, and have its records decided about once more."""
        self.emit(feedback)
        if not self._keeps:
            return
        self._forget_old()
        found = [key for key in self._jobs if _is_about(feedback, key)]
        for key in found:
            self._decide_again(key, feedback.value)
        # Of a whole trace, another query may still be under way.
        if not found or not feedback.span_id:
            about = feedback.trace_id, feedback.span_id
            self._early[about] = (feedback.value, self.clock())
            self._early.move_to_end(about)  # a second opinion takes the place of the first

    def emit(self, feedback: Feedback) -> None:
        """Write feedback as an event and as a metric; on any thread."""
        self.signals.write_feedback(feedback.trace_id, feedback.span_id, feedback.value, self.guard)

    def value_for(self, key: JobKey) -> float | None:
        """Return the feedback that came before its record was read; None if none did."""
        self._forget_old()
        trace_id, _ = key
        early = self._early.pop(key, None) or self._early.get((trace_id, ""))
        return None if early is None else early[0]

    def keep(self, job: Job, shown: Job, context: Context) -> None:
        """Keep a record that was not sampled, if feedback about it may change that."""
        # Evaluation that was switched off stays off.
        by_request = job.decision is not None and job.decision.reason in BY_REQUEST
        if not self._keeps or by_request:
            return
        kept = _Kept(job, shown, context, _characters(job), self.clock())
        self._jobs[job.key] = kept
        self._characters += kept.characters
        self._forget_old()

    def _decide_again(self, key: JobKey, value: float) -> None:
        kept = self._jobs[key]
        # The root was ended as ``not_sampled``, so that scores can only go to a carrier.
        job = replace(kept.job, feedback=value, root_ended=True)
        decision = self.decider.decide_late(job.facts)
        if not decision.sampled:
            return  # another opinion may still come
        self._drop(key)
        if self.settings.redaction is not None:
            decision = self.settings.redaction.apply_to_decision(decision, self.guard)
        job = replace(job, decision=decision)
        shown = replace(kept.shown, feedback=value, root_ended=True, decision=decision)
        self.evaluations.dispatch_ended(job, shown, kept.context)

    def _forget_old(self) -> None:
        """Hold the bounds; the oldest goes first."""
        oldest = self.clock() - MAX_SECONDS
        while self._early and (
            len(self._early) > MAX_JOBS or next(iter(self._early.values()))[1] < oldest
        ):
            self._early.popitem(last=False)
        while self._jobs and (
            len(self._jobs) > MAX_JOBS
            or self._characters > MAX_CHARACTERS
            or next(iter(self._jobs.values())).since < oldest
        ):
            self._drop(next(iter(self._jobs)))

    def _drop(self, key: JobKey) -> None:
        self._characters -= self._jobs.pop(key).characters


def checked_feedback(
    value: object, trace_id: str | int | SpanContext, span_id: str | int
) -> Feedback:
    """Return what a user said about a response, as ``Monitor.feedback`` takes it.

    Raises:
        ConfigError: The value is out of its range, or an id is none.
    """
    if isinstance(trace_id, SpanContext):
        return checked_feedback(value, trace_id.trace_id, trace_id.span_id)
    if isinstance(value, bool) or not isinstance(value, int | float) or not is_share(value):
        raise ConfigError("the value of feedback is out of range: give a number from 0.0 to 1.0")
    of_span = "" if span_id == "" else _id("span_id", span_id, digits=16)
    return Feedback(_id("trace_id", trace_id, digits=32), of_span, float(value))


def _id(name: str, value: object, *, digits: int) -> str:
    try:
        number = int(value, 16) if isinstance(value, str) else value
    except ValueError:
        number = 0
    if isinstance(number, bool) or not isinstance(number, int) or not 0 < number < 16**digits:
        raise ConfigError(f"{name} is no id: give {digits} hex digits, or a number")
    return f"{number:0{digits}x}"


def _is_about(feedback: Feedback, key: JobKey) -> bool:
    return feedback.trace_id == key[0] and feedback.span_id in ("", key[1])


def _characters(job: Job) -> int:
    """The characters of a job's texts; a chunk that two runs share counts twice."""
    record = job.record
    chunks = [*record.chunks, *(chunk for run in job.retrievers for chunk in run.chunks)]
    generators = [run for run in job.runs if isinstance(run, GeneratorRun)]
    return (
        len(record.query)
        + len(record.response)
        + sum(len(chunk.text) for chunk in chunks)
        + sum(len(run.prompt) + len(run.completion) for run in generators)
    )
