"""Ends the spans of every record, in exactly one state, whoever comes first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from opentelemetry.trace import Span, Tracer

from claimspan import Evaluation
from claimspan_tracing import semconv
from claimspan_tracing.guard import Guard
from claimspan_tracing.ledger import Ledger
from claimspan_tracing.runs import RunTree
from claimspan_tracing.scores import write_carrier, write_scores
from claimspan_tracing.signals import Signals
from claimspan_tracing.spans import BARE_ROOT, CapturedSpans
from claimspan_tracing.status import Status
from claimspan_tracing.text import clean, cut
from claimspan_tracing.waiting import RecordQueue

__all__ = ["Writer"]

MAX_REASON_BYTES: Final = 256


class Writer:
    """Holds the records that have no state yet.

    A record is finished by the worker, by the clock that bounds how long spans are held, or by
    the thread that shuts the monitor down. Deleting a key decides the race: the first one writes
    and ends the spans, the others find nothing left to do.
    """

    def __init__(
        self, queue: RecordQueue, ledger: Ledger, guard: Guard, tracer: Callable[[], Tracer]
    ) -> None:
        self._queue = queue
        self._ledger = ledger
        self._guard = guard
        self._tracer = tracer
        self._signals = Signals()
        self._held: dict[RunTree, None] = {}
        # Apart from what is held: noting spans must not bring a finished record back.
        self._spans: dict[RunTree, CapturedSpans] = {}

    def accept(self, tree: RunTree) -> bool:
        """Take a record into the books; False, and finished, where the queue has no room."""
        self._ledger.produced()
        # Held before it is queued: the worker may take it while ``put`` is still returning.
        self._held[tree] = None
        if self._queue.put(tree):
            return True
        try:
            del self._held[tree]
        except KeyError:  # a shutdown has finished it meanwhile
            return False
        self._end_root(tree, Status.QUEUE_FULL)
        return False

    def refuse(self, tree: RunTree, status: Status) -> None:
        """Take a record into the books and finish it in the same breath."""
        self._ledger.produced()
        self._end_root(tree, status)

    def hold(self, tree: RunTree, spans: CapturedSpans) -> bool:
        """Note the spans of a record; False where it has been finished meanwhile."""
        self._spans[tree] = spans
        if tree in self._held:
            return True
        self._spans.pop(tree, None)
        return False

    def finish(
        self,
        tree: RunTree,
        status: Status,
        reason: str = "",
        evaluation: Evaluation | None = None,
    ) -> bool:
        """Write the state, then the scores, and end the spans; False where another one did."""
        try:
            del self._held[tree]
        except KeyError:
            return False
        try:
            self._write(tree, self._spans.pop(tree, None), status, reason, evaluation)
        finally:
            self._queue.release(tree)
            self._settle(status)
        return True

    def finish_all(self, status: Status) -> None:
        """Finish whatever has no state yet."""
        for tree in list(self._held):
            self.finish(tree, status)

    def write_late(self, spans: CapturedSpans, evaluation: Evaluation) -> None:
        """Give the scores of a record whose spans have ended to a carrier span."""
        with self._guard:
            write_carrier(spans, evaluation, self._tracer())
            self._signals.emit(evaluation, spans.root)

    def _write(
        self,
        tree: RunTree,
        spans: CapturedSpans | None,
        status: Status,
        reason: str,
        evaluation: Evaluation | None,
    ) -> None:
        with self._guard:
            _write_state(tree.span, tree, status, reason)
            if spans is None:
                tree.span.set_attributes(BARE_ROOT)
            elif evaluation is not None:
                # Spans of somebody else's have ended on their own: their scores need a carrier.
                write = write_scores if tree.span.is_recording() else write_carrier
                write(spans, evaluation, self._tracer())
                self._signals.emit(evaluation, tree.span)
        with self._guard:
            if spans is None:
                tree.span.end(end_time=tree.root.end)
            else:
                spans.end()

    def _end_root(self, tree: RunTree, status: Status) -> None:
        self._write(tree, None, status, "", None)
        self._settle(status)

    def _settle(self, status: Status) -> None:
        with self._guard:
            self._signals.count(status)
        self._ledger.finished(status)


def _write_state(span: Span, tree: RunTree, status: Status, reason: str) -> None:
    decision = tree.decision
    if decision is not None:
        span.set_attribute(semconv.SAMPLE_RATE, decision.rate)
        span.set_attribute(semconv.SAMPLE_WEIGHT, decision.weight)
        span.set_attribute(semconv.SAMPLE_REASON, decision.reason)
    if reason:
        span.set_attribute(semconv.EVALUATION_REASON, cut(clean(reason), MAX_REASON_BYTES))
    span.set_attribute(semconv.EVALUATION_STATUS, status.value)
