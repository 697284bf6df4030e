"""The one object that an application makes: what to evaluate, with whom, and what became of it."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypedDict

from opentelemetry.trace import Span, SpanKind, TracerProvider

from claimspan import GroundTruth
from claimspan.errors import ConfigError
from claimspan.files.ground_truth import Lookup
from claimspan.judges import Judge, default_judge
from claimspan_tracing import semconv
from claimspan_tracing.capture import Capture
from claimspan_tracing.evaluator import Evaluator
from claimspan_tracing.guard import Guard
from claimspan_tracing.ledger import Ledger, Stats
from claimspan_tracing.providers import TracerSource
from claimspan_tracing.reading import Reader
from claimspan_tracing.runs import RunTable, RunTree
from claimspan_tracing.sampling import Decision, RateSampler, Sampler
from claimspan_tracing.status import Status
from claimspan_tracing.waiting import MAX_BYTES, MAX_RECORDS, RecordQueue
from claimspan_tracing.worker import Worker
from claimspan_tracing.writer import Writer

__all__ = ["Monitor", "MonitorOptions", "default_monitor"]

GroundTruthLike = str | Path | Mapping[str, str] | Lookup | GroundTruth

EXIT_TIMEOUT: Final = 5.0
"""Seconds that the end of the process may wait for evaluations."""


class MonitorOptions(TypedDict, total=False):
    """The keyword options of ``Monitor``, as an integration takes them."""

    judge: Judge | None
    ground_truth: GroundTruthLike | None
    sample: float | Sampler
    hold_seconds: float
    tracer_provider: TracerProvider | None
    max_queue_records: int
    max_queue_bytes: int


class Monitor:
    """Captures every query of a pipeline, and evaluates a sample of them off the request path.

    Make one for the whole process and give it to the integrations. It uses the tracer provider
    given to it, else the global one that the application has set, else one of its own made by
    ``configure()``; it never sets or replaces a global provider. Its thread starts with the
    first query.
    """

    def __init__(
        self,
        judge: Judge | None = None,
        *,
        ground_truth: GroundTruthLike | None = None,
        sample: float | Sampler = 0.05,
        hold_seconds: float = 30.0,
        tracer_provider: TracerProvider | None = None,
        max_queue_records: int = MAX_RECORDS,
        max_queue_bytes: int = MAX_BYTES,
    ) -> None:
        """Check everything that can be checked before any traffic.

        Args:
            judge: Who decides; None takes ``default_judge()``.
            ground_truth: Answers known to be right: path of a JSONL or CSV file, mapping,
                ``callable(query, metadata)``, or ``GroundTruth``. None evaluates what needs none.
            sample: Share of the records to evaluate, 0.0 to 1.0, or a sampler.
            hold_seconds: How long the spans of a query wait for its scores, from the end of its
                root. Scores that come later go to a carrier span.
            tracer_provider: Where the spans go.
            max_queue_records: Records waiting or under evaluation at once; more are refused with
                ``queue_full``.
            max_queue_bytes: Approximate bytes of text that these may keep alive.

        Raises:
            ConfigError: An argument cannot work.
            GroundTruthError: The ground-truth file cannot be read.
        """
        self._judge = _checked_judge(judge)
        self._ground_truth = None if ground_truth is None else GroundTruth.of(ground_truth)
        self._sampler = sample if isinstance(sample, Sampler) else RateSampler(_number(sample))
        self._hold_seconds = _positive("hold_seconds", hold_seconds)
        self._max_records = int(_positive("max_queue_records", max_queue_records))
        self._max_bytes = int(_positive("max_queue_bytes", max_queue_bytes))
        self._source = TracerSource(tracer_provider)
        self._exit_hook: Callable[[], None] | None = None
        self._reset()
        _survive_fork(self)

    def _reset(self) -> None:
        """Start with empty books: at first, and in a forked child."""
        self._guard = Guard()
        self._ledger = Ledger()
        self._queue = RecordQueue(self._max_records, self._max_bytes)
        self._table = RunTable()
        self._writer = Writer(self._queue, self._ledger, self._guard, self._source.tracer)
        self._worker = Worker(self._queue.take, self._processor, self._guard)
        self._closed = False
        self._lost_before_flush = 0

    def capture(self, reader: Reader) -> Capture:
        """The hooks for one framework; called by an integration.

        Args:
            reader: Knows how to read the framework's inputs and outputs.
        """
        return Capture(
            reader, lambda: self._table, lambda: self._guard, self._start_root, self._submit
        )

    @property
    def stats(self) -> Stats:
        """What became of the records so far."""
        return self._ledger.stats(self._guard.faults)

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until every record so far has its state, and its spans are exported.

        Args:
            timeout: Seconds to wait at most.

        Returns:
            False when something is left, or was dropped since the last flush.
        """
        deadline = time.monotonic() + timeout
        idle = self._ledger.wait_until_idle(timeout)
        exported = _within(deadline, self._source.force_flush)
        lost, self._lost_before_flush = self._lost_before_flush, self._ledger.dropped()
        return idle and exported and self._lost_before_flush == lost

    def wait(self, timeout: float = 10.0) -> bool:
        """As ``flush``, without asking anybody to export: for a span processor of this provider."""
        return self._ledger.wait_until_idle(timeout)

    async def aflush(self, timeout: float = 10.0) -> bool:
        """As ``flush``, without blocking the event loop."""
        return await asyncio.to_thread(self.flush, timeout)

    def shutdown(self, timeout: float = 5.0) -> bool:
        """Wait for what is under way, then end every span that is left with ``shutdown``.

        Traffic after it is still traced, with status ``shutdown``. Safe to call twice.

        Args:
            timeout: Seconds to wait at most.

        Returns:
            As ``flush``.
        """
        if self._closed:
            return True
        self._closed = True
        deadline = time.monotonic() + timeout
        self._ledger.wait_until_idle(timeout)
        self._worker.stop(max(0.1, deadline - time.monotonic()))
        self._writer.finish_all(Status.SHUTDOWN)
        if self._exit_hook is not None:
            atexit.unregister(self._exit_hook)
        return self.flush(max(0.1, deadline - time.monotonic()))

    def submit(self, tree: RunTree) -> None:
        """Take a tree whose spans are somebody else's and have ended; scores go to a carrier.

        Args:
            tree: Its span stands for the ended root, and need not record.
        """
        with self._guard:
            self._enqueue(tree)

    @property
    def guard(self) -> Guard:
        """Where errors of an integration's own stop, and are counted."""
        return self._guard

    def _start_root(self) -> Span:
        """Under the application's current span, if it has one; not made current itself."""
        return self._source.tracer().start_span(semconv.SPAN_ROOT, kind=SpanKind.INTERNAL)

    def _submit(self, tree: RunTree) -> None:
        """A root has ended: decide, and leave the rest to the worker. On the caller's thread."""
        if tree.span.is_recording():
            self._enqueue(tree)
        else:
            self._writer.refuse(tree, Status.NOT_SAMPLED)

    def _enqueue(self, tree: RunTree) -> None:
        tree.decision = self._decide(tree.span.get_span_context().trace_id)
        if self._closed:
            self._writer.refuse(tree, Status.SHUTDOWN)
            return
        if not self._writer.accept(tree):
            return
        if self._exit_hook is None:
            self._drain_at_exit()
        try:
            self._worker.wake()
        except RuntimeError:
            self._writer.finish(tree, Status.SHUTDOWN, "the interpreter is shutting down")

    def _decide(self, trace_id: int) -> Decision:
        with self._guard:
            return self._sampler.decide(trace_id)
        return Decision(sampled=False, rate=0.0, reason="the sampler raised an exception")

    def _processor(self) -> Callable[[RunTree], None]:
        """Runs on the worker's thread, once."""
        return Evaluator(
            judge=self._judge,
            ground_truth=self._ground_truth,
            hold_seconds=self._hold_seconds,
            writer=self._writer,
            ledger=self._ledger,
            guard=self._guard,
            tracer=self._source.tracer,
        ).process

    def _drain_at_exit(self) -> None:
        """Registered with the first record: the provider's own exit hook then runs after ours."""
        me = weakref.ref(self)

        def drain() -> None:
            monitor = me()
            if monitor is not None:
                monitor.shutdown(EXIT_TIMEOUT)

        self._exit_hook = drain
        atexit.register(drain)


_shared: list[Monitor] = []
_shared_lock: Final = threading.RLock()


def default_monitor(monitor: Monitor | None, options: MonitorOptions) -> Monitor:
    """The monitor an integration works with.

    Args:
        monitor: One that the application made; wins.
        options: For a monitor of the integration's own. Without any, the process shares one.

    Raises:
        ConfigError: Both are given, or an option cannot work.
    """
    if monitor is not None:
        if options:
            given = ", ".join(sorted(options))
            raise ConfigError(f"monitor and {given} are both given: put the options on the monitor")
        return monitor
    if options:
        return Monitor(**options)
    with _shared_lock:
        if not _shared:
            _shared.append(Monitor())
        return _shared[0]


def _survive_fork(monitor: Monitor) -> None:
    """A forked child has no worker thread, and the spans under way are its parent's to end."""
    if not hasattr(os, "register_at_fork"):
        return
    me = weakref.ref(monitor)

    def after_in_child() -> None:
        child = me()
        if child is not None:
            child._reset()  # pyright: ignore[reportPrivateUsage] - of this module

    os.register_at_fork(after_in_child=after_in_child)


def _within(deadline: float, call: Callable[[], bool]) -> bool:
    """Run a call that may not heed its own timeout; False when it has not come back in time."""
    outcome: list[bool] = []
    thread = threading.Thread(
        target=lambda: outcome.append(call()), name="claimspan-flush", daemon=True
    )
    try:
        thread.start()
    except RuntimeError:  # the interpreter is shutting down: no threads any more
        return call()
    thread.join(max(0.0, deadline - time.monotonic()))
    return outcome == [True]


def _checked_judge(judge: Judge | None) -> Judge:
    if judge is None:
        return default_judge()
    if not isinstance(judge, Judge):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
        raise ConfigError(
            f"judge is a {type(judge).__name__}: give an object with name, extract_claims and check"
        )
    return judge


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"sample is {value!r}: give a share between 0.0 and 1.0, or a sampler")
    return float(value)


def _positive(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ConfigError(f"{name} is {value!r}: give a positive number")
    return value
