"""Intake: how a record of the application comes into the queue, or is refused."""

from __future__ import annotations

from claimspan_tracing.capture.runs import RunTree
from claimspan_tracing.capture.weight import weigh_tree
from claimspan_tracing.decide.status import Status
from claimspan_tracing.engine.parts import Parts
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import Outcome
from claimspan_tracing.write.open_records import OpenRecord

__all__ = ["Intake"]


class Intake:
    """Takes records until it is closed, on whichever thread of the application a record ends.

    A record that comes while an engine ends is finished by one of the two: by the engine where it
    sees the record, or by the thread that adds it.
    """

    def __init__(self, parts: Parts, guard: Guard) -> None:
        """Take into the parts' queue.

        Args:
            parts: What the records pass through.
            guard: Counts what fails while a tree is weighed.
        """
        self._parts = parts
        self._guard = guard
        self._is_closed, self._is_stopped = False, False

    @property
    def is_closed(self) -> bool:
        """Whether no record is taken any more."""
        return self._is_closed

    def close(self) -> None:
        """Refuse every record from now on."""
        self._is_closed = True

    def stop(self) -> None:
        """Have every thread that is about to add a record finish it: nobody else reads it."""
        self._is_stopped = True

    def accept(self, record: OpenRecord, tree: RunTree) -> None:
        """Queue a tree whose record has been counted; its record is open until it has a state."""
        try:
            self._take_in(record, tree)
        except BaseException:  # also Ctrl-C, which may come at any line
            is_open = self._parts.records.get(record.key) is record
            if is_open and self._parts.records.take(record.key) is record:
                self._parts.writer.refuse(record, Status.JUDGE_ERROR, "claimspan failed inside")
            self._parts.queue.release(record.key)
            raise

    def _take_in(self, record: OpenRecord, tree: RunTree) -> None:
        if self._is_closed:
            self.refuse(record, tree, Status.SHUTDOWN)
            return
        # Open before it is queued: the worker may take the tree while ``put`` still returns.
        if not self._parts.records.add(record):
            self._parts.writer.refuse(record, Status.JUDGE_ERROR, "another record has the same ids")
            tree.release()
            return
        if self._parts.queue.must_weigh:
            weigh_tree(tree, self._guard)
        if not self._parts.queue.put(record.key, tree):
            if self._parts.records.take(record.key) is not None:  # else a shutdown has finished it
                self.refuse(record, tree, Status.QUEUE_FULL)
            return
        try:
            if not self._parts.is_started:
                self._parts.start()
            self._parts.worker.wake()
            if self._parts.queue.is_pressed:
                self._parts.worker.hurry()
        except RuntimeError:  # no thread can be started: the interpreter is shutting down
            self.abandon_all()
        if self._is_stopped:  # a shutdown came in between, and may not have seen this record
            self.abandon_all()

    def abandon_all(self) -> None:
        """Finish every open record with ``shutdown``, on the application's thread."""
        self._parts.spooling.end_all(Outcome(status=Status.SHUTDOWN))
        self._parts.writer.finish_all(Outcome(status=Status.SHUTDOWN))
        self._parts.queue.clear()
        self._parts.evaluations.abandon()

    def refuse(self, record: OpenRecord, tree: RunTree, status: Status) -> None:
        """Finish a record without reading it, on the application's thread."""
        span = tree.span.get_span_context()
        decided = self._parts.decider.decide_unread(
            span.trace_id, span.span_id, tree.root.metadata, record.context
        )
        record.decision = decided
        if decided is not None and not decided.sampled:
            status = decided.status or Status.NOT_SAMPLED
        self._parts.writer.refuse(record, status)
        tree.release()
