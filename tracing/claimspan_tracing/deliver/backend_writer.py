"""A sink that sends the scores of records to the API of a backend."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from claimspan.errors import ConfigError, DeliveryError
from claimspan_tracing import lifecycle
from claimspan_tracing.deliver.delivery import Delivery
from claimspan_tracing.deliver.http import Backend, Connection, NotStoredError
from claimspan_tracing.deliver.scored import ScoredRecord, scored
from claimspan_tracing.guard import Guard
from claimspan_tracing.write.sinks import Finished

__all__ = ["BackendWriter"]

BATCH_SIZE: Final = 50
"""Records sent at once: with 20 scores each a request has 300 KB."""

MAX_WAITING: Final = 5_000
"""Records that wait; with 20 scores each they take 40 MB."""

QUIET_SECONDS: Final = 30.0
"""For which a trace may be on its way before that is logged: the spans of other records are held
for as long, and a batch processor exports every 5 s."""

_Refused = Mapping[int, DeliveryError]


class BackendWriter(ABC):
    """Takes the scores of finished records in, and sends them on a thread of its own.

    A record that was not evaluated writes nothing. What a backend refuses for good, and what it
    does not take in time, is counted in ``lost``, and logged without content and keys. One writer
    may serve any number of monitors; a forked child goes on with a thread of its own.
    """

    def __init__(self, backend: Backend, metrics: Sequence[str] | None = None) -> None:
        """Set the backend; no thread starts yet.

        Args:
            backend: Where scores go.
            metrics: The scores that go there, of those that are measured; None for all. Label and
                summary of a record are those of all its scores.

        Raises:
            ConfigError: ``metrics`` is no list of names.
        """
        if isinstance(metrics, str) or not all(isinstance(name, str) for name in metrics or ()):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
            raise ConfigError(f"metrics is {metrics!r}: give a list of names")
        self._metrics = None if metrics is None else frozenset(metrics)
        self._backend = backend
        self._delivery = Delivery(
            backend.name.lower(), self._send, batch_size=BATCH_SIZE, max_waiting=MAX_WAITING
        )
        self.restart_in_child()
        lifecycle.restart_in_child(self)

    def restart_in_child(self) -> None:
        """Begin to count anew in a forked child."""
        self._guard = Guard()  # its lock may be held by a thread that the child does not have
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
        if record is not None and self._metrics is not None:
            scores = tuple(e for e in record.assessments if e.name in self._metrics)
            record = replace(record, judgement=replace(record.judgement, scores=scores))
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
        if len(errors) == len(records) and all(map(_is_away, errors.values())):
            # Nothing arrived at all: the delivery leaves the backend alone for a while.
            raise errors[0]
        self._log(records, errors)
        self._refused += sum(error.final for error in errors.values())
        return [records[index] for index, error in errors.items() if not error.final]

    def _log(self, records: Sequence[ScoredRecord], errors: _Refused) -> None:
        """Log each kind of error, but none that is to be expected."""
        now = time.monotonic()
        unexpected = {
            str(error): error
            for index, error in errors.items()
            if not isinstance(error, NotStoredError) or now - records[index].taken >= QUIET_SECONDS
        }
        for error in unexpected.values():
            self._guard.swallow(error)


def _is_away(error: DeliveryError) -> bool:
    return not error.final and not isinstance(error, NotStoredError)
