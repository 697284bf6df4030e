"""What application and worker agree on, and why a broker cannot be reached.

It is named by host and port, and never by its password.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from claimspan.errors import ConfigError

if TYPE_CHECKING:
    from celery import Celery

__all__ = [
    "EVALUATE",
    "HIDDEN",
    "MAX_BYTES",
    "QUEUE",
    "broker_url",
    "check_broker",
    "connect",
    "place_of",
    "why",
]

EVALUATE: Final = "claimspan.evaluate"
"""Task that evaluates a job and writes its scores to a carrier."""
QUEUE: Final = "claimspan"
"""Queue of the task, unless another is given."""

MAX_BYTES: Final = 8 * 1024 * 1024
"""Characters of one job as JSON. A job with 100 chunks of 64 KiB has 6.4 million; RabbitMQ refuses
messages over 16 MiB by default."""

HIDDEN: Final = "(...)"
"""Shown in place of the arguments. Celery would put their beginning, which is content,
into a header that monitoring tools show."""

# Without them a broker that accepts no connection keeps the thread for minutes. Of AMQP, only a
# confirmed message is accepted. Each transport ignores the options of the others.
_TRANSPORT: Final = {"confirm_publish": True, "socket_connect_timeout": 5, "socket_timeout": 5}


def place_of(url: object) -> str:
    """Host and port of a URL, such as ``" at broker:6379"``; empty if they are not sure."""
    try:
        parts = urlsplit(str(url).partition(";")[0])
        host, port = parts.hostname, parts.port
    except ValueError:
        return ""
    # Behind the host, the sign shows a password that was cut at a slash: the host is part of it.
    if not host or "@" in f"{parts.path}{parts.query}{parts.fragment}":
        return ""
    shown = f"[{host}]" if ":" in host else host
    return f" at {shown}" if port is None else f" at {shown}:{port}"


def why(error: BaseException) -> str:
    """Return why a connection failed: in words of the operating system, else by a class's name.

    The error text of a client may quote a URL with a password.
    """
    causes: list[BaseException] = []
    found: BaseException | None = error
    while found is not None and found not in causes:
        causes.append(found)
        found = found.__cause__ or found.__context__
    for each in causes:
        if isinstance(each, OSError) and each.errno is not None and each.strerror:
            return each.strerror
    return type(causes[-1]).__name__


def broker_url(app: Celery) -> object:
    """Return the address of an app's broker, as it was configured."""
    return app.conf.broker_write_url or app.conf.broker_url


def connect(app: Celery) -> Any:
    """A new connection to the broker of an app, whose calls are given up in time."""
    options = _TRANSPORT | dict(app.conf.broker_transport_options or {})
    connection: Any = app.connection_for_write(transport_options=options)
    try:
        # Once: left to itself, kombu tries for many seconds before it says so.
        connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0)
    except BaseException:
        with suppress(Exception):
            connection.collapse()
        raise
    return connection


def check_broker(app: Celery, remedy: str) -> None:
    """Connect to the broker of an app once.

    Raises:
        ConfigError: It cannot be reached; says the remedy.
    """
    try:
        connect(app).release()
    except Exception as error:  # noqa: BLE001 - each transport has errors of its own
        url = broker_url(app)
        place = place_of(url)
        if not place and "@" in str(url):
            remedy = f"encode the signs of its password that have a meaning in URLs; {remedy}"
        raise ConfigError(
            f"the Celery broker{place} cannot be reached ({why(error)}): {remedy}"
        ) from None
