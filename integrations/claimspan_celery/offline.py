"""Evaluates the records of a file on the workers, for ``claimspan evaluate --celery``."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from claimspan import Evaluation, RagRecord
from claimspan.errors import ConfigError, JudgeError
from claimspan_celery._message import EVALUATE_RECORD, HIDDEN
from claimspan_celery._worker import make_worker_app
from claimspan_tracing import Outcome

__all__ = ["evaluate_on_workers"]

_logger: Final = logging.getLogger("claimspan")

IN_FLIGHT: Final = 200
"""Records that wait in the broker at once: enough for many workers, little to clean up after."""

POLL_SECONDS: Final = 0.1
"""Pause between two looks for results."""

EXPIRES_SECONDS: Final = 3_600
"""Age at which a worker throws a record away, should this process have ended without a word."""


def evaluate_on_workers(
    records: Mapping[int, RagRecord],
    done: Callable[[int, Evaluation], None],
    *,
    broker: str | None,
    queue: str,
    patience_seconds: float,
) -> None:
    """Evaluate records on the workers of a queue.

    Args:
        records: The records by their place.
        done: Called with place and evaluation of each, in the order in which they come.
        broker: URL of the broker, which has to be a Redis; as for ``make_worker_app``.
        queue: Name of the queue.
        patience_seconds: Seconds without any result after which waiting ends.

    Raises:
        ConfigError: The broker is no Redis, or cannot be reached.
        JudgeError: No worker has answered for ``patience_seconds``.
    """
    app: Any = make_worker_app(broker=broker, queue=queue)
    if app.conf.result_backend is None:
        raise ConfigError("--celery needs a Redis as broker, which also brings the results back")
    waiting = iter(records.items())
    flying: dict[int, Any] = {}
    heard = time.monotonic()
    try:
        while True:
            for index, record in waiting:
                flying[index] = _sent(app, queue, record)
                if len(flying) >= IN_FLIGHT:
                    break
            if not flying:
                return
            landed = [index for index, result in flying.items() if result.ready()]
            for index in landed:
                done(index, _evaluation_of(flying.pop(index)))
            if landed:
                heard = time.monotonic()
            elif time.monotonic() - heard > patience_seconds:
                raise JudgeError(
                    f"no worker has answered for {patience_seconds:g} s: start `claimspan worker` "
                    "with the same broker and queue, and run the same command again"
                )
            else:
                time.sleep(POLL_SECONDS)
    except _connection_errors() as error:
        raise ConfigError(
            f"the broker cannot be reached ({type(error).__name__}): check --broker"
        ) from None
    finally:
        _revoke(app, flying)


def _sent(app: Any, queue: str, record: RagRecord) -> Any:
    return app.send_task(
        EVALUATE_RECORD,
        args=[record.model_dump_json()],
        queue=queue,
        serializer="json",
        ignore_result=False,
        expires=EXPIRES_SECONDS,
        argsrepr=HIDDEN,
    )


def _evaluation_of(result: Any) -> Evaluation:
    """The evaluation that a worker has returned, or the reason why there is none."""
    try:
        text: object = result.get(timeout=POLL_SECONDS)
        outcome = Outcome.from_json(text if isinstance(text, str) else "")
    except Exception as error:  # noqa: BLE001 - one record that fails stops no other
        # Celery makes an exception of what a failed task has left; its class says enough.
        return Evaluation(error=f"the worker failed with {type(error).__name__}: see its log")
    finally:
        result.forget()
    if outcome.evaluation is not None:
        return outcome.evaluation
    return Evaluation(error=outcome.reason or outcome.status.value)


def _revoke(app: Any, flying: Mapping[int, Any]) -> None:
    """Have workers skip what nobody waits for any more."""
    if flying:
        try:
            app.control.revoke([result.id for result in flying.values()])
        except Exception as error:  # noqa: BLE001 - they expire by themselves
            _logger.debug("claimspan could not revoke tasks: %s", type(error).__name__)


def _connection_errors() -> tuple[type[Exception], ...]:
    """What broker and result backend raise where they cannot be reached."""
    from kombu.exceptions import OperationalError
    from redis.exceptions import RedisError

    return (OperationalError, RedisError)
