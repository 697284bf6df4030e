"""The dispatcher that hands jobs to Celery workers through the application's broker."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from claimspan.errors import ConfigError
from claimspan_celery._broker import (
    EVALUATE,
    HIDDEN,
    MAX_BYTES,
    QUEUE,
    broker_url,
    check_broker,
    connect,
    place_of,
    why,
)
from claimspan_tracing import Job, Outcome, Status
from claimspan_tracing.adapters import Deliver, JobKey, restart_in_child, run_suppressed

if TYPE_CHECKING:
    from celery import Celery

__all__ = ["CeleryDispatcher"]

_logger: Final = logging.getLogger("claimspan")

LOG_INTERVAL: Final = 60.0

FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 2.0
"""Seconds between two attempts to publish; the pause doubles from the first to the longest."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    job: Job
    text: str
    deadline: float


class CeleryDispatcher:
    """Publishes jobs to a queue of Celery's, whose workers evaluate them.

    A thread of its own publishes, so a broker that is down or slow delays nothing else. Once the
    broker has a job, the record's state is ``dispatched`` and its spans are held no longer; the
    worker writes the scores to a carrier span. A job that the broker does not take in time ends as
    ``judge_error``; what finds no room meanwhile as ``queue_full``. With ``Monitor(spool=...)``
    both wait in the spool, and are published later.

    Give each monitor a dispatcher of its own. A forked child goes on with a thread and a connection
    of its own; what waited in the parent is the parent's to publish.
    """

    def __init__(
        self,
        app: Celery,
        *,
        queue: str = QUEUE,
        expires_seconds: float = 86_400.0,
        publish_seconds: float = 20.0,
        max_waiting: int = 1_000,
        max_waiting_bytes: int = 64 * 1024 * 1024,
    ) -> None:
        """Prepare the dispatcher; its thread starts with the first record.

        Args:
            app: The application's Celery app; its broker is used, its tasks and results are not.
            queue: Name of the queue that the workers consume.
            expires_seconds: Age at which a worker throws a job away, unevaluated.
            publish_seconds: How long publishing one job is tried. Keep it below the monitor's
                ``hold_seconds``, so that the reason for a lost job is known.
            max_waiting: Jobs that may wait for the broker.
            max_waiting_bytes: Characters of JSON that these may have together.

        Raises:
            ConfigError: A number is not positive, or ``app`` is no Celery app.
        """
        if not callable(getattr(app, "send_task", None)):
            raise ConfigError(
                f"app is of type {type(app).__name__}: give the application's Celery app"
            )
        numbers = (expires_seconds, publish_seconds, max_waiting, max_waiting_bytes)
        if not all(number > 0 for number in numbers):
            raise ConfigError("a number given to CeleryDispatcher is not positive")
        self._app = app
        self._queue = queue
        self._expires_seconds = expires_seconds
        self._publish_seconds = publish_seconds
        self._max_waiting = max_waiting
        self._max_bytes = max_waiting_bytes
        self._next_log = 0.0
        self._inherited: list[object] = []
        self._connection: Any = None
        self.restart_in_child()
        restart_in_child(self)

    def restart_in_child(self) -> None:
        """Go on in a forked child, which must not speak on its parent's connection.

        The connection is kept, unused: closing it would say goodbye in the parent's name.
        """
        self._inherited.append(self._connection)
        self._connection = None
        self._changed = threading.Condition(threading.RLock())
        self._waiting: OrderedDict[JobKey, _Waiting] = OrderedDict()
        self._bytes = 0
        self._stop_at: float | None = None
        self._thread: threading.Thread | None = None
        self._deliver: Deliver = _nowhere

    # --- on the threads of the monitor ---

    def start(self, deliver: Deliver) -> None:
        """Start the thread, and set the receiver of outcomes."""
        with self._changed:
            self._deliver = deliver
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="claimspan-publish", daemon=True)
                thread.start()
                self._thread = thread

    def dispatch(self, job: Job) -> bool:
        """Take a job; False if too many wait for the broker.

        Raises:
            RuntimeError: The dispatcher was stopped.
        """
        # What others have set on the spans serves to make them again, which is not for workers.
        text = replace(job, kept_spans=()).to_json()
        if len(text) > MAX_BYTES:
            reason = f"the record has more than {MAX_BYTES:,} characters, too many for the broker"
            self._deliver(job, Outcome(status=Status.JUDGE_ERROR, reason=reason))
            return True
        with self._changed:
            if self._stop_at is not None:
                raise RuntimeError("the dispatcher was stopped")
            if len(self._waiting) >= self._max_waiting or self._bytes + len(text) > self._max_bytes:
                return False
            deadline = time.monotonic() + self._publish_seconds
            self._waiting[job.key] = _Waiting(job, text, deadline)
            self._bytes += len(text)
            self._changed.notify()
        return True

    def withdraw(self, key: JobKey) -> bool:
        """Take back a job that waits; False if it is being published, or was."""
        with self._changed:
            found = self._waiting.pop(key, None)
            if found is not None:
                self._bytes -= len(found.text)
        return found is not None

    def stop(self, timeout: float) -> None:
        """Publish what waits, for at most ``timeout`` seconds, and end the thread."""
        with self._changed:
            if self._stop_at is None:
                self._stop_at = time.monotonic() + timeout
            self._changed.notify()
            thread = self._thread
        if thread is not None:
            thread.join(timeout)

    def check(self) -> None:
        """Connect to the broker once, for ``claimspan doctor`` and ``Monitor.check``."""
        check_broker(self._app, "check the URL of the app's broker, and that it runs")

    # --- on the publishing thread ---

    def _run(self) -> None:
        while (waiting := self._next()) is not None:
            try:
                outcome = self._publish(waiting)
            except BaseException as error:  # noqa: BLE001 - the thread has to outlive everything
                reason = f"publishing the record raised {type(error).__name__}"
                outcome = Outcome(status=Status.JUDGE_ERROR, reason=reason)
            if outcome is not None:
                self._deliver(waiting.job, outcome)
        self._disconnect()

    def _next(self) -> _Waiting | None:
        """Wait for the next job; None if the thread has to end."""
        with self._changed:
            while not self._waiting and self._stop_at is None:
                self._changed.wait()
            if not self._waiting or self._is_over():
                return None
            _, waiting = self._waiting.popitem(last=False)
            self._bytes -= len(waiting.text)
            return waiting

    def _publish(self, waiting: _Waiting) -> Outcome | None:
        """Publish a job, trying again until its deadline; None if a stop came in between."""
        pause = FIRST_PAUSE
        problem = "none of its turns came in time"
        while time.monotonic() < waiting.deadline:
            try:
                run_suppressed(self._send, waiting)
                return Outcome(status=Status.DISPATCHED)
            except Exception as error:  # noqa: BLE001 - each transport has errors of its own
                problem = type(error).__name__
                self._disconnect()
                self._warn(why(error))
            with self._changed:
                self._changed.wait_for(self._is_over, pause)
                if self._is_over():
                    return None  # the shutdown gives the record its state
            pause = min(2 * pause, LONGEST_PAUSE)
        reason = f"the broker took no job within {self._publish_seconds:g} s ({problem})"
        # So that with a spool the record waits there for the broker.
        return Outcome(status=Status.JUDGE_ERROR, reason=reason, unavailable=True)

    def _send(self, waiting: _Waiting) -> None:
        if self._connection is None:
            self._connection = connect(self._app)
        job = waiting.job
        with self._app.amqp.Producer(self._connection, auto_declare=False) as producer:
            self._app.send_task(
                EVALUATE,
                args=[waiting.text],
                task_id=f"{job.trace_id}-{job.span_id}",
                queue=self._queue,
                producer=producer,
                serializer="json",
                ignore_result=True,
                expires=self._expires_seconds,
                # The loop around this call tries again, and heeds the deadline.
                retry=False,
                argsrepr=HIDDEN,
            )

    def _is_over(self) -> bool:
        """Whether the time that a stop leaves for publishing has passed."""
        return self._stop_at is not None and time.monotonic() >= self._stop_at

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.collapse()
            except Exception:  # noqa: BLE001 - it is broken already, or broken by this; a new one is made
                _logger.debug("claimspan could not close the connection to the broker")

    def _warn(self, problem: str) -> None:
        now = time.monotonic()
        if now >= self._next_log:
            self._next_log = now + LOG_INTERVAL
            _logger.warning(
                "claimspan: the Celery broker%s takes no job (%s): check the URL of the app's "
                "broker; each job is tried for %g s, and then waits in the spool, or without one "
                "is counted as judge_error",
                place_of(broker_url(self._app)),
                problem,
                self._publish_seconds,
            )


def _nowhere(job: Job, outcome: Outcome) -> None:
    """Take no outcome: no job is dispatched before ``start``."""
