"""The queue in memory: finished run trees, and jobs that wait for the judge or are with it."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from claimspan_tracing.capture.runs import RunTree
from claimspan_tracing.job import Job, JobKey

__all__ = ["MAX_BYTES", "MAX_RECORDS", "RecordQueue"]

MAX_RECORDS: Final = 2_000
MAX_BYTES: Final = 64 * 1024 * 1024

READING_SHARE: Final = 8
"""One place in so many is kept for trees that were not read yet. So a judge that is slower than
the traffic fills the rest of the queue, and records that are not to be judged get through."""

PRESSED_SHARE: Final = 4
"""Trees that were not read yet press where they take one in so many of the places that are left.
The worker, which otherwise waits to read many together, then begins at once."""

WEIGHED_SHARE: Final = 16
"""One tree in so many is weighed before it gets a place, as long as a quarter of the bytes is not
taken; the others count as much. Weighing takes a quarter of what a query costs on the caller's
thread, and of most records nothing stays in the queue, since they are not evaluated."""

FEW_PLACES: Final = 10
"""With fewer places one record is more than a tenth, so nothing lies between nearly full and full:
such a queue is never called full, and refuses what does not fit."""


class RecordQueue:
    """Bounds by count and by bytes how many records are under way.

    A record takes its place when its root has ended, and keeps it until its evaluation has ended,
    also where its spans were ended before that. A full queue refuses the newest record. Trees are
    read in their order. Of the jobs that wait, the judge gets the newest first: where it is slower
    than the traffic, these are the only ones whose scores still come in time.
    """

    def __init__(
        self,
        max_records: int = MAX_RECORDS,
        max_bytes: int = MAX_BYTES,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Set the bounds.

        Args:
            max_records: Records under way at once.
            max_bytes: Approximate bytes that they keep alive.
            clock: Returns seconds that never go back.
        """
        self._clock = clock
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._trees: deque[RunTree] = deque()
        # What each record was accepted with: a thread of the application may still add to its tree.
        self._sizes: dict[JobKey, int] = {}
        self._bytes = 0
        # The tree that was weighed last, and the number of those that came after it.
        self._usual, self._since_weighed = 0, WEIGHED_SHARE
        self._jobs: dict[JobKey, tuple[Job, float]] = {}
        self._judged: dict[JobKey, int] = {}
        self._judged_bytes = 0
        # Re-entrant: the garbage collector may end a user's stream, and so call ``put``.
        self._lock = threading.RLock()

    def __len__(self) -> int:
        """Number of records that have a place."""
        return len(self._sizes)

    @property
    def waiting(self) -> int:
        """Number of jobs that wait for the judge."""
        return len(self._jobs)

    @property
    def n_bytes(self) -> int:
        """Approximate bytes that these records keep alive."""
        return self._bytes

    @property
    def fullness(self) -> float:
        """How full the judge's share of the queue is, 0 to 1, by the bound that is nearer.

        Trees that were not read yet do not count: to evaluate less does not help against those.
        """
        # Less the one that is being read. Without the lock: a number that is one off does no harm.
        read = len(self._sizes) - len(self._trees) - 1
        places = _share(self._max_records)
        records = max(len(self._judged), read) / places if places >= FEW_PLACES else 0.0
        return max(records, self._judged_bytes / _share(self._max_bytes))

    @property
    def is_pressed(self) -> bool:
        """Whether the trees that were not read yet take much of what the judge leaves free."""
        # Without the lock: a number that is one off does no harm.
        unread, unread_bytes = len(self._trees), self._bytes - self._judged_bytes
        places, room = len(self._judged), self._judged_bytes
        return (
            unread * PRESSED_SHARE >= self._max_records - places
            or unread_bytes * PRESSED_SHARE >= self._max_bytes - room
        )

    @property
    def must_weigh(self) -> bool:
        """Whether the next tree has to be weighed before it gets a place."""
        is_due = self._since_weighed >= WEIGHED_SHARE - 1
        return is_due or 4 * (self._bytes + self._usual) > self._max_bytes

    def put(self, key: JobKey, tree: RunTree) -> bool:
        """Give a record a place; False where a bound would be passed."""
        with self._lock:
            size = max(tree.size, self._usual) if tree.unweighed else tree.size
            if len(self._sizes) >= self._max_records or self._bytes + size > self._max_bytes:
                return False
            if tree.unweighed:
                self._since_weighed += 1
            else:
                self._since_weighed, self._usual = 0, size
            self._sizes[key] = size
            self._bytes += size
            self._trees.append(tree)
            return True

    def reweigh(self, key: JobKey, size: int) -> bool:
        """Count a record with the bytes of its tree as they are known now.

        Returns:
            False where that passes the bound; the record keeps its place until it is released.
        """
        with self._lock:
            if key not in self._sizes:  # a shutdown has finished it
                return True
            self._bytes += size - self._sizes[key]
            self._sizes[key] = size
            return self._bytes <= self._max_bytes

    def take(self) -> RunTree | None:
        """Return the oldest tree that was not read; None where there is none."""
        # Without the lock: ``popleft`` is atomic, and one worker takes.
        try:
            return self._trees.popleft()
        except IndexError:
            return None

    def put_job(self, job: Job) -> bool:
        """Let a record wait for the judge, on its place; False where too many are waiting."""
        with self._lock:
            size = self._sizes.get(job.key, 0)
            if len(self._judged) >= _share(self._max_records):
                return False
            if self._judged_bytes + size > _share(self._max_bytes):
                return False
            self._judged[job.key] = size
            self._judged_bytes += size
            self._jobs[job.key] = (job, self._clock())
            return True

    def take_job(self, max_wait: float) -> tuple[Job, float] | None:
        """Return the newest job that waits for the judge, and how long it has waited, in seconds.

        Args:
            max_wait: Seconds after which a job whose spans are held is left where it is; where
                the newest has waited for longer, so have all others.

        Returns:
            None where no job is left.
        """
        with self._lock:
            if not self._jobs:
                return None
            # Not ``reversed``, which passes over the places of all that were taken before.
            key, (job, since) = self._jobs.popitem()
            waited = self._clock() - since
            if waited > max_wait and not job.root_ended:
                self._jobs[key] = (job, since)
                return None
        return job, waited

    def withdraw(self, key: JobKey) -> bool:
        """Remove a job that waits; False where the judge has it, or has had it."""
        with self._lock:
            return self._jobs.pop(key, None) is not None

    def clear(self) -> None:
        """Forget every record, after a shutdown has finished them."""
        with self._lock:
            while (tree := self.take()) is not None:
                tree.release()
            for key in list(self._sizes):
                self.release(key)

    def release(self, key: JobKey) -> None:
        """Give back the place of a record; no effect where it has none."""
        with self._lock:
            self._bytes -= self._sizes.pop(key, 0)
            self._judged_bytes -= self._judged.pop(key, 0)
            self._jobs.pop(key, None)


def _share(bound: int) -> int:
    return bound - bound // READING_SHARE
