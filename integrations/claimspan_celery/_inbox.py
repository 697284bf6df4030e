"""What a worker finds in its queue that is no task of its own: thrown away, and no reason to end.

Celery would write the body of such a message, which has texts, into the log; and one that is no
JSON at all ends its loop, and the worker with it.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from celery import Celery

__all__ = ["Refuse", "guard_inbox"]

Refuse = Callable[[str, object], None]
"""Takes why a message is refused, and its text as far as it is known."""


def guard_inbox(app: Celery, refuse: Refuse, *, is_redis: bool) -> None:
    """Have a worker refuse messages that are no jobs, and go on.

    ``refuse`` is called in the worker's main process for each message, and must not raise. Only in
    a Redis may anything be in the list of a queue.
    """
    app.conf.worker_consumer = _consumer(refuse)
    if is_redis:
        app.conf.broker_transport = _transport(refuse)


def _consumer(refuse: Refuse) -> type:
    from celery.utils.log import get_logger
    from celery.worker.consumer import Consumer

    logger = get_logger(__name__)

    def throw_away(consumer: Any, message: Any, reason: str) -> None:
        refuse(reason, message.body)
        message.reject_log_error(logger, consumer.connection_errors)

    class Inbox(Consumer):
        """Celery's, which says of what it refuses why alone."""

        def update_strategies(self: Any) -> None:
            super().update_strategies()
            # Celery brings tasks of its own, and would run them for any sender.
            taken = self.strategies.items()
            self.strategies = {n: run for n, run in taken if not n.startswith("celery.")}

        def on_unknown_message(self, body: object, message: Any) -> None:
            throw_away(self, message, "it is no task")

        def on_unknown_task(self, body: object, message: Any, exc: BaseException) -> None:
            throw_away(self, message, "it is for a task that this worker does not have")

        def on_invalid_task(self, body: object, message: Any, exc: BaseException) -> None:
            throw_away(self, message, f"it is refused: {type(exc).__name__}")

        def on_decode_error(self, message: Any, exc: BaseException) -> None:
            throw_away(self, message, f"it cannot be read: {type(exc).__name__}")

    return Inbox


def _transport(refuse: Refuse) -> type:
    from kombu.transport import redis

    class Tolerant(redis.Channel):
        """Kombu's, for which an element that is no message is not the end."""

        def _brpop_read(self, **options: object) -> object:
            kombus: Any = super()
            try:
                return kombus._brpop_read(**options)
            # No JSON, no UTF-8, too deep, or of another shape. Redis has given it away already.
            except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
                text = getattr(error, "doc", getattr(error, "object", None))
                refuse(f"it is no message: {type(error).__name__}", text)
                raise Empty from None

    class Named(type):
        """Of a class that Celery shows as the scheme of the broker's URL."""

        def __str__(cls) -> str:
            return "redis"

    class Transport(redis.Transport, metaclass=Named):
        """Kombu's, with such channels."""

        Channel = Tolerant

    return Transport
