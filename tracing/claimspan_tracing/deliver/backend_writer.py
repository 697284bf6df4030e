"""A sink that sends the scores of records to the API of a backend."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Final

from claimspan.errors import DeliveryError
from claimspan_tracing import lifecycle
from claimspan_tracing.deliver.delivery import Delivery
from claimspan_tracing.deliver.http import Backend, Connection
from claimspan_tracing.deliver.scored import ScoredRecord, scored
from claimspan_tracing.guard import Guard
from claimspan_tracing.write.sinks import Finished

__all__ = ["BackendWriter"]

BATCH_SIZE: Final = 50
"""Records sent at once: with 20 scores each a request has 300 KB."""

MAX_WAITING: Final = 5_000
"""Records that wait; with 20 scores each they take 40 MB."""

_Refused = Mapping[int, DeliveryError]


class BackendWriter(ABC):
    """Takes the scores of finished records in, and sends them on a thread of its own.

    A record that was not evaluated writes nothing. What a backend refuses for good, and what it
    does not take in time, is counted in ``lost``, and logged without content and keys. One writer
    may serve any number of monitors; a forked child goes on with a thread of its own.
    """

    def __init__(self, backend: Backend) -> None:
        """Set the backend; no thread starts yet."""
        self._backend = backend
        self._guard = Guard()
        self._delivery = Delivery(
            backend.name.lower(), self._send, batch_size=BATCH_SIZE, max_waiting=MAX_WAITING
        )
        self.restart_in_child()
        lifecycle.restart_in_child(self)

    def restart_in_child(self) -> None:
        """Begin to count anew in a forked child."""
        self._refused = 0

    def start(self) -> None:
        """Start the thread, ahead of the first record; safe to call again.

        Raises:
            RuntimeError: The interpreter is shutting down.
        """
        self._delivery.start()

    def write(self, finished: Finished) -> None:
        """Take the scores of a record in; never waits for the backend."""
        record = scored(finished)
        if record is not None:
            self._delivery.put(record)

    def flush(self, timeout: float) -> bool:
        """Send what was taken in; False where something is left after ``timeout`` seconds."""
        return self._delivery.flush(timeout)

    @property
    def lost(self) -> int:
        """Number of records whose scores did not all arrive."""
        return self._delivery.lost + self._refused

    @abstractmethod
    async def _write(self, connection: Connection, records: Sequence[ScoredRecord]) -> _Refused:
        """Write records; returns the error of each that was not written, by its index."""

    def _send(self, records: Sequence[ScoredRecord]) -> Sequence[ScoredRecord]:
        """Write records; returns those to be written again later."""

        async def write(connection: Connection) -> _Refused:
            return await self._write(connection, records)

        errors = self._backend.run(write)
        for error in {str(error): error for error in errors.values()}.values():
            self._guard.swallow(error)
        self._refused += sum(error.final for error in errors.values())
        return [records[index] for index, error in errors.items() if not error.final]
