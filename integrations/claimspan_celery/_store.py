"""What workers share about jobs: how often each was delivered, which are done, which were given up.

Redis keeps it. Without Redis only the fixed span id of a carrier, and the limits of the broker
itself, stand between a job and a second evaluation.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from claimspan.errors import ConfigError
from claimspan_celery._broker import why

__all__ = ["JobStore", "RedisStore"]

PREFIX: Final = "claimspan"

DAY_SECONDS: Final = 86_400

WRITING_SECONDS: Final = 60
"""How long a worker may take to write scores; after it another may try. An exporter gives up after
10 s by default, and is asked three times."""

REPLY_SECONDS: Final = 3_600

DEAD_LETTERS: Final = 1_000
"""Dead letters kept; the oldest makes way."""

Turn = Literal["mine", "taken", "done"]
"""``mine``, where this worker may write the scores; ``taken``, where another is at it; ``done``."""


class JobStore:
    """Remembers nothing: what workers have without a Redis."""

    def delivered(self, key: str) -> int:
        """Count a delivery of a job; returns the number so far.

        Raises:
            Exception: What the client of a store raises, as every method here may.
        """
        return 1

    def uncount(self, key: str) -> None:
        """Take back one delivery, which was in vain through no fault of the job."""

    def is_done(self, key: str) -> bool:
        """Whether the scores were written."""
        return False

    def begin(self, key: str) -> Turn:
        """Ask for the turn to write the scores; one worker at a time has it."""
        return "mine"

    def end(self, key: str, *, written: bool) -> None:
        """Give back the turn, and remember whether the scores were written."""

    def bury(self, letter: str) -> None:
        """Keep a job that is given up, as JSON with its reason, which the log has anyway."""

    def count(self, result: str) -> None:
        """Count what became of a job, which the metric counts anyway."""

    def reply(self, name: str, text: str) -> None:
        """Put a text on the list of somebody who waits for it.

        Raises:
            ConfigError: There is no list.
        """
        raise ConfigError("a record of a file came, and there is no Redis to answer on")


class RedisStore(JobStore):
    """Keeps it in Redis, under keys that begin with ``claimspan:``."""

    def __init__(self, url: str, done_seconds: int, letter_seconds: int = 7 * DAY_SECONDS) -> None:
        """Set the server; it is connected to with the first call.

        Args:
            url: As ``redis://host:6379/0``.
            done_seconds: How long a job counts as done.
            letter_seconds: How long dead letters are kept after the last one came.

        Raises:
            ConfigError: The URL cannot be read.
        """
        import redis

        client: Any = redis.Redis  # its methods are partly untyped
        # A server that does not answer must not keep a worker from its other duties.
        try:
            self._redis: Any = client.from_url(url, socket_timeout=5, socket_connect_timeout=5)
        except ValueError:
            # Without the error's own text, which may quote a part of the password.
            raise ConfigError(
                "the URL of the Redis cannot be read: give one like redis://localhost:6379/0, "
                "with every sign of a password encoded that has a meaning in URLs"
            ) from None
        self._done_seconds = done_seconds
        self._letter_seconds = letter_seconds

    def check(self, place: str, remedy: str) -> None:
        """Connect to the server once.

        Args:
            place: Where it is, for the message.
            remedy: What to do where it cannot be reached.

        Raises:
            ConfigError: It cannot be reached.
        """
        try:
            self._redis.ping()
        except Exception as error:  # noqa: BLE001 - whatever it is, jobs would meet it too
            raise ConfigError(
                f"the Redis{place} of the workers cannot be reached ({why(error)}): {remedy}"
            ) from None

    def delivered(self, key: str) -> int:
        """Count a delivery, in a counter that is kept for as long as done jobs are."""
        pipe = self._redis.pipeline()
        pipe.incr(f"{PREFIX}:deliveries:{key}")
        pipe.expire(f"{PREFIX}:deliveries:{key}", self._done_seconds)
        return int(pipe.execute()[0])

    def uncount(self, key: str) -> None:
        """Take back one delivery."""
        pipe = self._redis.pipeline()
        pipe.decr(f"{PREFIX}:deliveries:{key}")
        # Another worker may have done the job meanwhile, and removed the counter: this makes it.
        pipe.expire(f"{PREFIX}:deliveries:{key}", self._done_seconds)
        pipe.execute()

    def is_done(self, key: str) -> bool:
        """Whether the scores were written."""
        return bool(self._redis.get(f"{PREFIX}:done:{key}") == b"done")

    def begin(self, key: str) -> Turn:
        """Ask for the turn, which ends by itself where its worker dies."""
        name = f"{PREFIX}:done:{key}"
        if self._redis.set(name, "writing", nx=True, ex=WRITING_SECONDS):
            return "mine"
        return "done" if self._redis.get(name) == b"done" else "taken"

    def end(self, key: str, *, written: bool) -> None:
        """Give back the turn."""
        if written:
            pipe = self._redis.pipeline()
            pipe.set(f"{PREFIX}:done:{key}", "done", ex=self._done_seconds)
            pipe.delete(f"{PREFIX}:deliveries:{key}")
            pipe.execute()
        else:
            self._redis.delete(f"{PREFIX}:done:{key}")

    def bury(self, letter: str) -> None:
        """Put a letter at the head of the list ``claimspan:dead``."""
        pipe = self._redis.pipeline()
        pipe.lpush(f"{PREFIX}:dead", letter)
        pipe.ltrim(f"{PREFIX}:dead", 0, DEAD_LETTERS - 1)
        pipe.expire(f"{PREFIX}:dead", self._letter_seconds)
        pipe.execute()

    def count(self, result: str) -> None:
        """Count in the hash ``claimspan:jobs``."""
        self._redis.hincrby(f"{PREFIX}:jobs", result, 1)

    def reply(self, name: str, text: str) -> None:
        """Put a text on a list, which goes away where nobody has taken it within an hour."""
        pipe = self._redis.pipeline()
        pipe.rpush(name, text)
        pipe.expire(name, REPLY_SECONDS)
        pipe.execute()
