"""The writer: ends every record in exactly one state, and hands it to the sinks in order."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from opentelemetry.trace import Span

from claimspan_tracing import semconv
from claimspan_tracing.decide.status import Status
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import Job, Outcome
from claimspan_tracing.records.record import Record
from claimspan_tracing.records.table import Records
from claimspan_tracing.suppression import run_unsuppressed
from claimspan_tracing.text import clean, cut
from claimspan_tracing.write.attributes import sample_of
from claimspan_tracing.write.limits import Attributes
from claimspan_tracing.write.signals import Signals
from claimspan_tracing.write.sinks import Finished, Write, finished_without_content
from claimspan_tracing.write.spans import BARE_ROOT, UnstartedSpan

__all__ = ["Writer"]

MAX_REASON_BYTES: Final = 256
"""Bytes of a reason on a span."""


@dataclass(frozen=True, slots=True, eq=False)
class Writer:
    """Writes records whose state is known.

    The order is: scores, state, claims, end of the spans, the other sinks, the books. So
    ``evaluated`` on a span or in the books means that the scores are there. The span of the claims
    ends before its root does: MLflow's and Langfuse's processors take a trace for over with it.
    """

    records: Records
    """Gives each state to one caller alone, and counts it."""
    guard: Guard
    """Counts what a sink or a span processor raises."""
    scores: Write
    """Comes first; the state depends on it."""
    claims: Write
    """Comes second, while the root is open."""
    sinks: Sequence[Write]
    """Come last, in order; none of them changes the state."""
    signals: Signals
    """Counts the states."""
    capture_content: bool = True
    """Whether sinks get texts, beside ids, counts, labels and scores."""
    is_shut_down: Callable[[], bool] = lambda: False
    """Whether the tracer provider was shut down, and exports nothing any more."""
    exports: Callable[[], bool] = lambda: True
    """Whether the tracer provider has anything that exports spans."""
    announce: Callable[[Status, Outcome], None] = lambda _status, _outcome: None
    """Called with every state and its outcome, after it was written."""

    def finish(self, record: Record, outcome: Outcome) -> bool:
        """Write the outcome of an open record and end its spans.

        Returns:
            False if the record has reached a state before.
        """
        is_ours = self.records.end(record)
        if is_ours:
            self._settle(record, outcome, self.sinks)
        return is_ours

    def withdraw(self, record: Record, reason: str) -> None:
        """End the spans of a run that turned out to be no record: it has no state, and no sink."""
        if not self.records.end(record):  # a shutdown has finished it
            return
        try:
            with self.guard:
                record.root.set_attribute(semconv.EVALUATION_REASON, reason)
            for span, ended in record.ends():
                run_unsuppressed(record.context, self._end, span, ended)
        finally:
            self.records.unasked()
            if record.safe is not None:
                record.safe.set()

    def refuse(self, record: Record, status: Status, reason: str = "") -> None:
        """Finish an open record on the application's thread: no sink is called."""
        outcome = Outcome(status=status, reason=reason)
        if not self.records.end(record):  # a shutdown has finished it
            return
        if record.root.is_recording():
            self._settle(record, outcome, ())
        else:  # a trace that is not kept, and the application waits
            self._count(record, status, outcome)

    def finish_all(self, outcome: Outcome, records: Sequence[Record]) -> None:
        """Finish those of these records that are open; no sink is called."""
        for record in records:
            if self.records.end(record):
                self._settle(record, outcome, ())

    def write_again(self, record: Record, outcome: Outcome) -> None:
        """Write a record whose state was counted before, because its spans were not exported."""
        with self.guard:
            run_unsuppressed(record.context, self._write, record, outcome, ())

    def write_late(self, job: Job, outcome: Outcome) -> bool:
        """Write scores that came after the record had reached another state.

        Returns:
            Whether the scores were written to where something exports them.
        """
        late = replace(outcome, late=True)
        finished = self._shown(Finished(_decided(job, outcome), late))
        written = self._try(self.scores, finished)
        if written and (self.is_shut_down() or not self.exports()):
            self.records.count("spans_lost")
            written = False
        for sink in self.sinks:
            self._try(sink, finished)
        return written

    def write_scores_again(self, job: Job, outcome: Outcome) -> None:
        """Write scores to a carrier that were written before, because it was not exported."""
        late = replace(outcome, late=True)
        self._try(self.scores, self._shown(Finished(_decided(job, outcome), late)))

    def _settle(self, record: Record, outcome: Outcome, sinks: Sequence[Write]) -> None:
        """Write a record in a copy of its request's context, and count the state written."""
        status = Status.JUDGE_ERROR  # should writing fail altogether, the record is counted still
        try:
            status = run_unsuppressed(record.context, self._write, record, outcome, sinks)
        finally:
            self._count(record, status, outcome)

    def _count(self, record: Record, status: Status, outcome: Outcome) -> None:
        with self.guard:
            self.announce(status, outcome)
        with self.guard:
            self.signals.count(status, time.monotonic() - record.accepted_at)
        known = outcome.ground_truth is not None
        self.records.finished(status, with_ground_truth=known)
        if record.safe is not None:
            record.safe.set()

    def _write(self, record: Record, outcome: Outcome, sinks: Sequence[Write]) -> Status:
        if outcome.status is Status.EVALUATED and self.is_shut_down():
            outcome = Outcome(status=Status.SHUTDOWN, reason="the tracer provider was shut down")
        finished = None
        if record.job is not None:
            job = _decided(record.job, outcome)
            finished = self._with_scores(self._shown(Finished(job, outcome, record.spans)))
            outcome = finished.outcome
        bare = BARE_ROOT if record.spans is None else {}
        decision = outcome.decision or record.decision
        sample = {} if decision is None else sample_of(decision)
        with self.guard:
            record.root.set_attributes(bare | sample | _state_of(outcome))
        if finished is not None and outcome.evaluation is not None:
            self._try(self.claims, finished)
        for span, ended in record.ends():
            self._end(span, ended)
        if not self.exports() and outcome.status is Status.EVALUATED:
            self.records.count("spans_lost")
        if finished is not None:
            for sink in sinks:
                self._try(sink, finished)
        return outcome.status

    def _shown(self, finished: Finished) -> Finished:
        """The record as it may be written; its application may have forbidden its texts."""
        if self.capture_content and finished.job.capture_content:
            return finished
        return finished_without_content(finished)

    def _with_scores(self, finished: Finished) -> Finished:
        """Write the scores first; without them the record is not evaluated."""
        if finished.outcome.evaluation is None or self._try(self.scores, finished):
            return finished
        failed = Outcome(
            status=Status.JUDGE_ERROR,
            reason="the scores could not be written",
            decision=finished.outcome.decision,
        )
        return replace(finished, outcome=failed)

    def _end(self, span: Span, ended: int | None) -> None:
        """End one span; what a span processor raises must not keep the next one open.

        The SDK calls no processor after one that has raised, so exporters may not get the span.
        """
        try:
            span.end(end_time=ended)
        except BaseException as error:  # noqa: BLE001 - also SystemExit: the root still has to end
            self.guard.swallow(error)
            self.records.count("spans_lost")
        if isinstance(span, UnstartedSpan):
            self.records.count("spans_lost")

    def _try(self, write: Write, finished: Finished) -> bool:
        try:
            write(finished)
        except BaseException as error:  # noqa: BLE001 - on our own thread no other code can receive it
            self.guard.swallow(error)
            return False
        return True


def _decided(job: Job, outcome: Outcome) -> Job:
    """The job with the decision that holds: the one after the first judge, if there is one."""
    return job if outcome.decision is None else replace(job, decision=outcome.decision)


def _state_of(outcome: Outcome) -> Attributes:
    reason = cut(clean(outcome.reason), MAX_REASON_BYTES)
    named: Attributes = {semconv.EVALUATION_REASON: reason} if reason else {}
    return named | {semconv.EVALUATION_STATUS: outcome.status.value}
