"""Evaluates the records of a file on the workers, for ``claimspan evaluate --celery``."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final
from uuid import uuid4

from claimspan import Evaluation, RagRecord
from claimspan.errors import ConfigError, JudgeError
from claimspan_celery._broker import EVALUATE_RECORD, HIDDEN, REPLIES, place_of, why
from claimspan_celery._worker import BROKER_VARIABLE, is_redis, make_worker_app
from claimspan_tracing import Outcome

__all__ = ["evaluate_on_workers"]

_logger: Final = logging.getLogger("claimspan")

IN_FLIGHT: Final = 200
"""Records that wait in the broker at once: enough for many workers, little to clean up after."""

WAIT_SECONDS: Final = 1
"""How long one look for results waits; Redis takes whole seconds."""

EXPIRES_SECONDS: Final = 3_600
"""Age at which a worker throws a record away, should this process have ended without a word."""


def evaluate_on_workers(
    records: Iterable[tuple[int, RagRecord]],
    done: Callable[[int, Evaluation], None],
    *,
    broker: str | None,
    queue: str,
    patience_seconds: float,
) -> None:
    """Evaluate records on the workers of a queue, and call ``done`` with each as it comes.

    Raises:
        ConfigError: The broker is no Redis, or cannot be reached.
        JudgeError: No worker has answered for ``patience_seconds``.
    """
    app = make_worker_app(broker=broker, queue=queue)
    url = str(app.conf.broker_write_url)
    if not is_redis(url):
        raise ConfigError("--celery needs a Redis as broker, which also brings the results back")
    sender = _Sender(app, queue, url)
    waiting = iter(records)
    heard = time.monotonic()
    try:
        while True:
            # Only as many as there is room for, so a file of a million records does not fill the
            # memory of Redis.
            for index, record in islice(waiting, IN_FLIGHT - len(sender.flying)):
                sender.send(index, record)
            if not sender.flying:
                return
            found = sender.receive()
            if found is not None:
                heard = time.monotonic()
                done(*found)
            # Counted from the last result, not from the start: a long file may take hours while
            # workers are well.
            elif time.monotonic() - heard > patience_seconds:
                raise JudgeError(
                    f"no worker has answered for {patience_seconds:g} s: start `claimspan worker` "
                    "with the same broker and queue, and run the same command again"
                )
    except _connection_errors() as error:
        raise ConfigError(
            f"the broker{place_of(url)} cannot be reached ({why(error)}): check --broker or "
            f"{BROKER_VARIABLE}"
        ) from None
    finally:
        sender.close()


class _Sender:
    """Sends records to workers, and takes their outcomes from a list of this run's own.

    Celery's results are not used: a process that asks for them keeps a subscription for each, and
    stays for 20 s if the server is gone.
    """

    def __init__(self, app: Any, queue: str, url: str) -> None:
        import redis

        # The read limit has to exceed the second for which blpop waits, or an idle wait would look
        # like a lost server.
        client: Any = redis.Redis  # its methods are partly untyped
        self._redis: Any = client.from_url(url, socket_connect_timeout=5, socket_timeout=10)
        self._app = app
        self._queue = queue
        self._replies = f"{REPLIES}{uuid4().hex}"
        self.flying: dict[int, str] = {}
        """Places of the records that workers have, and the ids of their tasks."""

    def send(self, index: int, record: RagRecord) -> None:
        """Send a record."""
        if not self.flying:
            # Celery would try for a while before it says that nobody is there.
            self._redis.ping()
        result = self._app.send_task(
            EVALUATE_RECORD,
            args=[record.model_dump_json(), self._replies, index],
            queue=self._queue,
            serializer="json",
            ignore_result=True,
            expires=EXPIRES_SECONDS,
            argsrepr=HIDDEN,
        )
        self.flying[index] = str(result.id)

    def receive(self) -> tuple[int, Evaluation] | None:
        """Wait a second at most for a record's evaluation; None if none has come."""
        reply = self._redis.blpop([self._replies], timeout=WAIT_SECONDS)
        if reply is None:
            return None
        index, text = json.loads(reply[1])
        if self.flying.pop(index, None) is None:
            return None  # a record that was delivered twice
        outcome = Outcome.from_json(text)
        reason = outcome.reason or outcome.status.value
        return index, outcome.evaluation or Evaluation(error=reason)

    def close(self) -> None:
        """Have workers skip records that no caller waits for any more."""
        try:
            if self.flying:
                # Workers hear of it by broadcast; what no worker hears expires by itself.
                self._app.control.revoke(list(self.flying.values()))
            self._redis.delete(self._replies)
        except Exception as error:  # noqa: BLE001 - all of it expires by itself
            _logger.debug("claimspan could not clean up: %s", type(error).__name__)
        self._redis.close()


def _connection_errors() -> tuple[type[Exception], ...]:
    """What Celery and Redis raise if the server cannot be reached."""
    from kombu.exceptions import OperationalError
    from redis.exceptions import RedisError

    return (OperationalError, RedisError)
