"""Evaluates records in another process than the application's: jobs of a broker, or a whole spool.

It is what a worker consists of, whatever brings the jobs: a broker, a file, a queue of one's own.
"""

from __future__ import annotations

import hashlib
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from contextlib import suppress as ignore
from contextvars import Context
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from opentelemetry.trace import TracerProvider

from claimspan.cost.budget import Budget
from claimspan.errors import DeliveryError
from claimspan.evaluation.selection import MetricsLike, Selection, Thresholds
from claimspan.judges import Judge
from claimspan.judges.choice import JudgeLike
from claimspan_tracing import semconv
from claimspan_tracing.decide.status import Status
from claimspan_tracing.deliver.delivery import DeliveringSinks
from claimspan_tracing.dispatch.daemon_executor import DaemonExecutor
from claimspan_tracing.dispatch.evaluator import Evaluator
from claimspan_tracing.dispatch.judging import MAX_THREADS
from claimspan_tracing.dispatch.loop_thread import LoopThread
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import Job, Outcome
from claimspan_tracing.monitor import Monitor
from claimspan_tracing.options import GroundTruthLike, MonitorOptions, may_capture, settings_of
from claimspan_tracing.providers.chains import flush
from claimspan_tracing.redact.redaction import Redactor
from claimspan_tracing.scope import tracer_of
from claimspan_tracing.write.scores import write_scores
from claimspan_tracing.write.signals import Signals
from claimspan_tracing.write.sinks import Finished, Sink, finished_without_content, written_by

if TYPE_CHECKING:
    from claimspan_tracing.providers.sdk import CarrierProvider

__all__ = ["RemoteEvaluation", "carrier_span_id", "judge_spool"]

GRACE_SECONDS: Final = 2.0
"""How long a judge may take to heed the end of its time before its thread is given up."""

CLOSE_SECONDS: Final = 5.0
"""How long sinks may deliver at the end: as long as a monitor's ``exit_timeout``. What stops a
worker commonly waits 10 s before it is killed."""

LOOK_SECONDS: Final = 0.2
"""How often a process that judges a spool looks whether it is to go on."""

TELL_SECONDS: Final = 10.0
"""How often it counts the rest on a terminal."""


_CARRIERS: Final = {semconv.SPAN_EVALUATE: "carrier", semconv.SPAN_ANNOTATIONS: "annotations"}
"""The carriers of a job in the order in which they are started, to what their ids are made with."""


class RemoteEvaluation:
    """Evaluates jobs that another process has made, and writes their scores to carrier spans.

    Make it in the process that uses it: its thread does not survive a fork. ``evaluate`` and
    ``write`` may be called from several threads at once.
    """

    def __init__(
        self,
        judge: JudgeLike | None = None,
        *,
        metrics: MetricsLike | Selection | None = None,
        thresholds: Thresholds | None = None,
        ground_truth: GroundTruthLike | None = None,
        tracer_provider: TracerProvider | None = None,
        carriers: CarrierProvider | None = None,
        sinks: Sequence[Sink] = (),
        redact: Redactor | str | None = None,
        budget: Budget | None = None,
    ) -> None:
        """Set who decides, and where scores go.

        Args:
            judge: As for ``Monitor``.
            metrics: As for ``Monitor``.
            thresholds: As for ``Monitor``.
            ground_truth: As for ``Monitor``.
            tracer_provider: Where carriers go. None makes a provider that exports where that of
                ``configure`` would, confirms each export, and gives the carriers of a job the same
                span ids however often they are written. A provider of your own gives random ids,
                and can only be asked to flush.
            carriers: One made as None makes it, which sends the carriers elsewhere.
            sinks: Write finished records to further places, in order, after our own. Those that
                deliver on threads of their own are started here, and flushed by ``close``.
            redact: Takes out of ground truths and of what the judge says what must not be seen. The
                jobs themselves come redacted if the application does so.
            budget: What judging may cost. With a store it is shared by all workers.

        Raises:
            ConfigError: An argument cannot work.
            GroundTruthError: The ground-truth file cannot be read.
        """
        options: MonitorOptions = {
            "judge": judge,
            "metrics": metrics,
            "thresholds": thresholds,
            "ground_truth": ground_truth,
            "tracer_provider": tracer_provider,
            "sinks": sinks,
            "redact": redact,
            "budget": budget,
            "worker": "thread",
        }
        settings = settings_of(options)
        self._judge = settings.judge
        self.guard: Final = Guard()
        """Swallows and counts errors of ours and of the sinks."""
        self._evaluator = Evaluator(
            settings.judge,
            settings.ground_truth,
            self.guard,
            redaction=settings.redaction,
            budget=settings.budget,
            selection=settings.selection,
        )
        self._evaluator.prepare()
        self._carriers: CarrierProvider | None = None
        if tracer_provider is None:
            # Imported here: an application with a provider of its own does not load the SDK for us.
            from claimspan_tracing.providers.sdk import CarrierProvider

            self._carriers = carriers or CarrierProvider()
            tracer_provider = self._carriers.provider
        self._provider: Final = tracer_provider
        self._sinks = (*Signals().of_a_record, *written_by(settings.sinks))
        self._deliveries = DeliveringSinks(settings.sinks, self.guard)
        self._deliveries.start()
        self._thread = self._new_thread()
        self._n_threads = 1

    @property
    def lost(self) -> int:
        """Number of results that the sinks could not deliver."""
        return self._deliveries.lost

    def evaluate(self, job: Job, seconds: float) -> Outcome:
        """Evaluate a job, with instrumentation suppressed; returns when it is done.

        Args:
            job: What to evaluate.
            seconds: Time that the evaluation may take.
        """
        if self._n_threads > MAX_THREADS:
            reason = f"the judge blocks {MAX_THREADS} threads: restart the worker"
            return Outcome(status=Status.JUDGE_ERROR, reason=reason)
        thread = self._thread
        outcome = thread.submit(self._evaluator.conclude(job, seconds))
        try:
            return outcome.result(seconds + GRACE_SECONDS)
        except TimeoutError:
            self._replace(thread)
            reason = f"the judge blocked its thread for {seconds:g} s"
            return Outcome(status=Status.TIMEOUT, reason=reason)
        except BaseException:  # a limit of the worker's own: the job no longer waits for the judge
            outcome.cancel()
            raise

    def write(self, job: Job, outcome: Outcome) -> bool:
        """Write the scores of a job to carriers, to events, metrics and the user's sinks.

        An outcome without scores goes to the user's sinks, and to an event if the judge failed.

        Returns:
            False if a carrier could not be exported: call it again, or let another worker do
            so. The other sinks have not been called then.
        """
        # An empty context: what is current around the call is no part of the query's trace.
        finished = Finished(job, replace(outcome, late=True))
        # Both may forbid it: the application and the worker.
        if not may_capture(allowed=job.capture_content):
            finished = finished_without_content(finished)
        return Context().run(self._write, finished)

    def close(self, timeout: float = CLOSE_SECONDS) -> bool:
        """End the threads, have the sinks deliver, and end the provider if it is ours.

        Args:
            timeout: Seconds that the sinks may take.

        Returns:
            False if a sink has something left that will not be delivered.
        """
        self._thread.stop(GRACE_SECONDS)
        self._evaluator.close()
        is_delivered = self._deliveries.flush(time.monotonic() + timeout)
        if not is_delivered:
            self.guard.swallow(DeliveryError(f"{timeout:g} s were not enough for all results"))
        if self._carriers is not None:
            self._carriers.provider.shutdown()
        return is_delivered

    def _write(self, finished: Finished) -> bool:
        known_ids: AbstractContextManager[None] = nullcontext()
        try:
            if self._carriers is not None:
                ids = [carrier_span_id(finished.job, self._judge, name) for name in _CARRIERS]
                known_ids = self._carriers.span_ids(ids)
            with known_ids:
                write_scores(partial(tracer_of, self._provider), finished)
            # A provider of the application's has not exported yet; ours has.
            if self._carriers is None and not flush(self._provider):
                return False
        except BaseException as error:  # noqa: BLE001 - a processor may raise anything; the caller tries again
            self.guard.swallow(error)
            return False
        for write in self._sinks:
            try:
                write(finished)
            except BaseException as error:  # noqa: BLE001 - one sink that fails stops no other
                self.guard.swallow(error)
        return True

    def _replace(self, blocked: LoopThread) -> None:
        """Go on with a new thread; the blocked one ends when the judge's call returns."""
        blocked.stop(timeout=0.0)
        if self._thread is blocked:
            self._n_threads += 1
            self._thread = self._new_thread()

    def _new_thread(self) -> LoopThread:
        return LoopThread("claimspan-judge", self.guard, DaemonExecutor)


def carrier_span_id(job: Job, judge: Judge, name: str = semconv.SPAN_EVALUATE) -> int:
    """Return the span id of a carrier with the scores that a judge gives a job.

    Every worker that writes the scores of this judge, in this version, uses the same id. A backend
    that keeps one span per id shows them once, also if a job is evaluated twice.
    """
    version = getattr(judge, "version", "")
    text = "\0".join((_CARRIERS[name], *job.key, judge.name, str(version)))
    # Eight bytes, as wide as a span id. Zero is no valid id.
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) or 1


def judge_spool(
    file: Path,
    judge: JudgeLike | None = None,
    *,
    metrics: Selection | None = None,
    ground_truth: GroundTruthLike | None = None,
    until_empty: bool = False,
) -> dict[str, int]:
    """Judge what waits in a spool, in this process and for whichever process has put it there.

    Scores go where those of ``Monitor`` go without a provider: to OTEL_EXPORTER_OTLP_ENDPOINT, or
    to a trace file. SIGTERM and Ctrl-C end it, and rows under way are given back.

    Args:
        file: The spool.
        judge: As for ``Monitor``.
        metrics: The metrics to measure.
        ground_truth: As for ``Monitor``.
        until_empty: Whether it ends when nothing is left that no other process has.

    Returns:
        Status to the number of records that ended in it.

    Raises:
        ConfigError: An argument cannot work.
    """
    monitor = Monitor(
        judge, metrics=metrics, ground_truth=ground_truth, spool=file, max_cpu_share=1.0
    )
    stopped = threading.Event()

    def stop(_number: int, _frame: object) -> None:
        stopped.set()

    handlers = {
        number: signal.signal(number, stop)
        for number in (signal.SIGINT, signal.SIGTERM)
        if threading.current_thread() is threading.main_thread()
    }
    rows = monitor.engine.records.spool
    told_at = had_some_at = time.monotonic()
    try:
        monitor.engine.take_over()
        while rows is not None and not stopped.wait(LOOK_SECONDS):
            (left, ours), moment = rows.left, time.monotonic()
            is_idle = monitor.flush(LOOK_SECONDS) and not ours
            had_some_at = had_some_at if is_idle else moment
            # What another process has is its own, unless it says nothing for the time of a lease.
            if (
                until_empty
                and is_idle
                and (not left or moment - had_some_at > rows.lease_seconds + LOOK_SECONDS)
            ):
                break
            if left and sys.stderr.isatty() and moment - told_at > TELL_SECONDS:
                told_at = moment
                print(f"claimspan: {left} records of {file.name} are left", file=sys.stderr)
    finally:
        monitor.shutdown()
        for number, handler in handlers.items():
            with ignore(TypeError):  # it was not Python's
                signal.signal(number, handler)
    stats = monitor.stats
    counts = {"evaluated": stats.evaluated, **stats.skipped, **stats.dropped}
    return {status: count for status, count in counts.items() if count}
