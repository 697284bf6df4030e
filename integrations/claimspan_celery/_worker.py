"""The Celery app of the workers: its settings, and its task."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.trace import TracerProvider

from claimspan.cost.budget import Budget
from claimspan.evaluation.selection import MetricsLike, Selection, Thresholds
from claimspan.judges import Judge
from claimspan_celery._broker import EVALUATE, HIDDEN, QUEUE
from claimspan_celery._inbox import guard_inbox
from claimspan_celery._processing import (
    Disposal,
    JobStore,
    Processing,
    RedisStore,
    Result,
    WorkerLimits,
)
from claimspan_tracing import Sink
from claimspan_tracing.adapters import GroundTruthLike, Redactor, RemoteEvaluation, safe_text

if TYPE_CHECKING:
    from celery import Celery

__all__ = ["BROKER_VARIABLE", "make_worker_app"]

_logger: Final = logging.getLogger("claimspan")

BROKER_VARIABLE: Final = "CLAIMSPAN_BROKER_URL"

DEFAULT_BROKER: Final = "redis://localhost:6379/0"

JUDGES = Judge | str | Callable[[], Judge] | None


def make_worker_app(
    *,
    judge: JUDGES = None,
    metrics: MetricsLike | Selection | None = None,
    thresholds: Thresholds | None = None,
    ground_truth: GroundTruthLike | None = None,
    tracer_provider: TracerProvider | None = None,
    sinks: Sequence[Sink] = (),
    redact: Redactor | str | None = None,
    budget: Budget | None = None,
    broker: str | None = None,
    queue: str = QUEUE,
    redis_url: str | None = None,
    limits: WorkerLimits | None = None,
) -> Celery:
    """Make the Celery app of a worker. Nothing is connected to, and no judge is made yet.

    Each process of the worker makes its own judge, tracer provider and event loop with its first
    job, after the fork. The tasks are acknowledged after the carrier was exported: a job whose
    worker dies is delivered again, and its scores are written once.

    Args:
        judge: As for ``Monitor``, or a function that makes one, which each process calls; a judge
            that holds connections or a model does not survive a fork. None takes the judge that
            ``CLAIMSPAN_JUDGE`` names.
        metrics: As for ``Monitor``.
        thresholds: As for ``Monitor``.
        ground_truth: As for ``Monitor``.
        tracer_provider: Where carriers go. None sends them where ``configure`` would: to
            ``OTEL_EXPORTER_OTLP_ENDPOINT``, else to a local file.
        sinks: Write finished records to further places. What waits to be delivered when a process
            of the worker ends gets 5 s; it is lost if the process is killed.
        redact: Takes out of ground truths and of what the judge says what nobody may see, as for
            ``Monitor``; the application redacts the records.
        budget: What judging may cost. ``Budget(..., store=RedisBudgetStore(url))`` is shared by
            all workers; without a store each process counts for itself.
        broker: URL of the broker; ``CLAIMSPAN_BROKER_URL`` if None, else a Redis on this
            machine.
        queue: Name of the queue.
        redis_url: Redis in which workers share what they know about jobs; the broker if that
            is a Redis. Without any, a job that kills its worker is delivered for as long as the
            broker delivers it, and a job that is delivered twice may be scored twice.
        limits: Times, deliveries, and how long results are remembered; the defaults if None.
    """
    from celery import Celery

    broker = broker or os.environ.get(BROKER_VARIABLE) or DEFAULT_BROKER
    is_redis = broker.startswith(("redis://", "rediss://"))
    redis_url = redis_url or (broker if is_redis else None)
    limits = limits or WorkerLimits()
    # Not the current app: the process may have an application's own.
    app = Celery("claimspan", broker=broker, set_as_current=False)
    app.conf.update(_settings(queue, limits))

    def new_remote() -> RemoteEvaluation:
        decides = judge
        # A class has the methods of a judge, but is a function that makes one.
        if isinstance(decides, type) or (callable(decides) and not isinstance(decides, Judge)):
            decides = decides()
        return RemoteEvaluation(
            decides,
            metrics=metrics,
            thresholds=thresholds,
            ground_truth=ground_truth,
            tracer_provider=tracer_provider,
            sinks=sinks,
            redact=redact,
            budget=budget,
        )

    store = JobStore() if redis_url is None else RedisStore(redis_url, limits.done_seconds)
    guard_inbox(app, partial(_refuse, store), is_redis=is_redis)
    _Tasks(app, queue, new_remote, store, limits).register()
    return app


def _settings(queue: str, limits: WorkerLimits) -> dict[str, Any]:
    return {
        "task_serializer": "json",
        # Nothing else is even parsed: a pickled message would run code of its sender's.
        "accept_content": ["json"],
        "task_default_queue": queue,
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        # A task that is killed at its hard limit goes back, and is counted as delivered.
        "task_acks_on_failure_or_timeout": False,
        "task_ignore_result": True,
        "task_time_limit": limits.hard_seconds,
        "task_soft_time_limit": limits.soft_seconds,
        "worker_prefetch_multiplier": 1,
        "broker_connection_retry_on_startup": True,
        # Of the broker's client. Each transport ignores the options of the others.
        "broker_transport_options": {
            "visibility_timeout": limits.visibility,
            # Names of our own: with the default ones, our workers would give back the
            # unacknowledged tasks of other Celery apps on this Redis, whose timeout may be longer
            # than ours.
            "unacked_key": "claimspan:unacked",
            "unacked_index_key": "claimspan:unacked_index",
            "unacked_mutex_key": "claimspan:unacked_mutex",
            # kombu looks for jobs of dead workers every 100 s by default (10 s, each tenth time).
            "unacked_restore_interval": max(1, min(10, int(limits.visibility / 3))),
            "unacked_restore_throttle": 1,
        },
    }


class _Tasks:
    """The task, and what each process of the worker makes for it."""

    def __init__(
        self,
        app: Celery,
        queue: str,
        new_remote: Callable[[], RemoteEvaluation],
        store: JobStore,
        limits: WorkerLimits,
    ) -> None:
        self._app = app
        self._queue = queue
        self._new_remote = new_remote
        # Its connections notice a fork by themselves.
        self._store = store
        self._limits = limits
        self._made: tuple[int, Processing] | None = None
        self._making = threading.Lock()  # held by tasks alone, of which none runs where it forks

    def register(self) -> None:
        from celery import signals

        signals.task_revoked.connect(_count_expired(self._app, self._store), weak=False)
        # The one in a process of the pool, the other if there are none: solo, or threads.
        signals.worker_process_shutdown.connect(self.close, weak=False)
        signals.worker_shutdown.connect(self.close, weak=False)

        # Not shared: they would go to every other app of the process, and be called in its name.
        @self._app.task(name=EVALUATE, bind=True, shared=False)
        def evaluate(task: Any, *args: Any, **kwargs: Any) -> None:
            self._evaluate(task, *args)

    def close(self, **of_signal: object) -> None:
        """Have the sinks deliver what waits, if this process has evaluated anything."""
        made, self._made = self._made, None
        if made is None or made[0] != os.getpid():
            return
        remote = made[1].remote
        if not remote.close() or remote.lost:
            _logger.warning(
                "claimspan: a worker ends, and sinks have not delivered all of its results; "
                "%d are lost for sure",
                remote.lost,
            )

    def _processing(self) -> Processing:
        """What this process evaluates with: made with its first job, and never inherited."""
        with self._making:
            if self._made is None or self._made[0] != os.getpid():
                self._made = os.getpid(), Processing(self._new_remote(), self._store, self._limits)
            return self._made[1]

    def _evaluate(self, task: Any, *args: object) -> None:
        from celery.exceptions import Reject

        try:
            disposal = self._processing().process(*args[:2] if args else (None,))
        # Such as: Redis cannot be reached, no judge can be made. The job is not to blame.
        except Exception as error:  # noqa: BLE001 - the message goes back, whatever it was
            _logger.warning("claimspan: a job goes back to the queue: %s", safe_text(error))
            time.sleep(1.0)  # it is delivered again at once
            raise Reject(type(error).__name__, requeue=True) from None
        if disposal.result is Result.REJECTED:
            raise Reject(disposal.result.value, requeue=False)
        if disposal.result is Result.AGAIN:
            time.sleep(disposal.pause)
            self._send_again(task, str(args[0]), disposal)

    def _send_again(self, task: Any, text: str, disposal: Disposal) -> None:
        """Put the job at the end of the queue, so that a failing one delays no other."""
        from celery.exceptions import Reject

        try:
            task.apply_async(
                args=[text] if disposal.outcome is None else [text, disposal.outcome],
                task_id=task.request.id,
                queue=self._queue,
                expires=_expiry(task.request.expires),
                retry=False,
                argsrepr=HIDDEN,
            )
        except Exception as error:  # noqa: BLE001 - no answer: the broker has the job still
            raise Reject(type(error).__name__, requeue=True) from None


def _expiry(text: str | None) -> datetime | None:
    """When a job expires, as Celery writes it into a message."""
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None


def _refuse(store: JobStore, reason: str, message: object) -> None:
    """Throw away a message that is no task: it must not end the worker, nor go uncounted."""
    try:
        store.refuse(reason, message)
        store.count(Result.REJECTED.value)
    except Exception as error:  # noqa: BLE001 - the store is away, and the next message is none of its
        _logger.warning("claimspan: a dead letter is lost: %s", safe_text(error))


def _count_expired(app: Celery, store: JobStore) -> Callable[..., None]:
    """Celery throws an expired job away before any task runs; it must not go uncounted."""

    def revoked(sender: Any = None, expired: bool = False, **kwargs: Any) -> None:
        if expired and getattr(sender, "app", None) is app:
            _logger.warning("claimspan: a job has expired before a worker came to it")
            store.count(Result.EXPIRED.value)

    return revoked
