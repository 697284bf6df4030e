"""Open records: the live spans of records that have no state yet, by the key of their job."""

from __future__ import annotations

import threading
import time
from contextvars import Context
from dataclasses import dataclass, field

from opentelemetry.trace import Span

from claimspan_tracing.decide.sampling import Decision
from claimspan_tracing.job import Job, JobKey
from claimspan_tracing.write.spans import OpenSpans

__all__ = ["OpenRecord", "OpenRecords"]


@dataclass(slots=True, eq=False)
class OpenRecord:
    """The part of a record that cannot leave the process: its spans and the request's context."""

    key: JobKey
    """The key of the record's job, known before the job is."""

    root: Span
    """The root span; not recording where it is somebody else's and has ended."""

    ended: int | None
    """True end of the root, nanoseconds since the epoch; None where it was not seen."""

    context: Context
    """Context variables of the request; spans are started and ended in a copy of them."""

    accepted_at: float = field(default_factory=time.monotonic)
    """When the root ended, on the monotonic clock: how long spans are held counts from here."""

    decision: Decision | None = None
    """What the sampler decided; None before it was asked."""

    job: Job | None = None
    """The job that was read from the run tree, as everybody but the judge may see it; None before
    that."""

    spans: OpenSpans | None = None
    """The spans of the query; None before they are built, and where they are somebody else's."""

    safe: threading.Event | None = None
    """Set when the record has its state, or is kept on disk; None where nobody waits for it."""

    def ends(self) -> list[tuple[Span, int | None]]:
        """Return every span of the record with its true end, the root last."""
        return [(self.root, self.ended)] if self.spans is None else self.spans.ends()


class OpenRecords:
    """The records that have no state yet.

    A record is finished by the worker, by the timer that bounds how long spans are held, or by the
    thread that shuts the monitor down. ``take`` decides the race between them: it returns a record
    to the first caller alone, and whoever gets it writes and ends its spans.
    """

    def __init__(self) -> None:
        self._open: dict[JobKey, OpenRecord] = {}

    def add(self, record: OpenRecord) -> bool:
        """Add a record that has no state yet.

        Returns:
            False where another one has the same ids, as an id generator that repeats itself makes.
        """
        return self._open.setdefault(record.key, record) is record  # atomic

    def get(self, key: JobKey) -> OpenRecord | None:
        """Return a record that has no state yet, and leave it here."""
        return self._open.get(key)

    def take(self, key: JobKey) -> OpenRecord | None:
        """Return a record and remove it; None where somebody else has taken it."""
        return self._open.pop(key, None)  # atomic: one caller alone gets it

    def all_keys(self) -> list[JobKey]:
        """Return the keys of all open records, oldest first."""
        return list(self._open)
