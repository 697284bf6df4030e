"""The table of records: who has which record, what moves it, and the books over all of them."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass
from typing import Final, Literal, get_args

from opentelemetry.trace import INVALID_SPAN

from claimspan_tracing.capture.runs import RunTree
from claimspan_tracing.decide.status import DROPPED, Status
from claimspan_tracing.job import JobKey, Outcome
from claimspan_tracing.records.record import HOLDS_PLACE, RUNS, STEPS, Event, Record, Stage
from claimspan_tracing.spool import Lease, Row, Spool

__all__ = ["MAX_BYTES", "MAX_RECORDS", "WEIGHED_SHARE", "Records", "Stats"]

MAX_RECORDS: Final = 2_000
MAX_BYTES: Final = 64 * 1024 * 1024

READING_SHARE: Final = 8
"""One place in so many is kept for trees that were not read yet. So a judge that is slower than
the traffic fills the rest of the queue, and records that are not to be judged get through."""

PRESSED_SHARE: Final = 4
"""Trees that were not read yet press if they take one in so many of the places that are left.
The worker, which otherwise waits to read many together, then begins at once."""

WEIGHED_SHARE: Final = 16
"""One tree in so many is weighed before it gets a place, as long as a quarter of the bytes is not
taken; the others count as much. Weighing takes a quarter of what a query costs on the caller's
thread, and of most records nothing stays in the queue, since they are not evaluated."""

FEW_PLACES: Final = 10
"""With fewer places one record is more than a tenth, so nothing lies between nearly full and full:
such a queue is never called full, and refuses records that do not fit."""

EXPORT_RETRY_SECONDS: Final = 15.0
"""How long a record whose spans were not exported waits to be written again."""

MAX_SILENT: Final = 3
"""How often a record is written of which no exporter ever says anything, before it is a dead
letter: the application's own span processor may keep our spans back."""

SILENT: Final = "no exporter has taken its spans: is there a span processor that filters them?"


Counted = Literal[
    "produced",
    "late",
    "spans_lost",
    "spooled",
    "recovered",
    "export_failures",
    "with_ground_truth",
    "unasked",
]
"""The counts beside the states."""


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of records: ``produced = evaluated + skipped + dropped + pending``."""

    produced: int
    """Records whose root has ended. A run that asked nothing is one until it was read."""

    evaluated: int
    """Records whose scores are written."""

    skipped: Mapping[str, int]
    """By status: records that were not to be evaluated."""

    dropped: Mapping[str, int]
    """By status: records that should have been evaluated and were not."""

    pending: int
    """Records that have no state yet: they wait, or are under evaluation."""

    late: int
    """Records that had ended, by ``timeout`` or unsampled, and whose scores then went to a carrier
    span."""

    faults: int
    """Exceptions inside claimspan, or in code given to it, that were swallowed."""

    spans_lost: int = 0
    """Spans that a span processor, sampler or provider did not let start or end: exporters behind
    it have not seen them. Of an evaluated record whose provider has no exporter, the root."""

    queued: int = 0
    """Records that have a place in the queue, from the end of their root to that of their
    evaluation."""

    queued_bytes: int = 0
    """Approximate bytes that these keep alive."""

    spooled: int = 0
    """Records that the spool has taken: they are judged even if this process is killed."""

    recovered: int = 0
    """Records of ``produced`` that were taken over from a process that is dead."""

    given_up: int = 0
    """Records of the spool that are dead letters now: three attempts ended without an outcome."""

    export_failures: int = 0
    """Spans of ours that an exporter could not deliver; what is in the spool is sent again."""

    with_ground_truth: int = 0
    """Records of ``evaluated`` that had a ground truth."""

    unasked: int = 0
    """Runs that asked nothing, and are no records: they built an index, retrieved and did no more,
    or judged an answer. Their spans have no state."""

    undelivered: int = 0
    """Results that a sink with deliveries of its own, ``on_result``, ``alerts`` or ``on_alert``
    did not get delivered. A sink that several monitors share is counted by each."""


class Records:
    """One row a record, from the end of its root until nothing is left to do; for any thread.

    ``move`` alone changes how far a row is, as ``STEPS`` allows it, after the spool was told.
    ``end`` gives the visible state of a record to one caller alone: worker, timer or shutdown, the
    first of them. The queue is the rows that have a place, bounded by count and by bytes. Trees are
    read in their order, and of the jobs that wait a judge gets the newest first: if it is slower
    than the traffic, these are the only ones whose scores still come in time.
    """

    def __init__(
        self,
        max_records: int = MAX_RECORDS,
        max_bytes: int = MAX_BYTES,
        spool: Spool | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin with an empty table, whose rows of evaluations a spool keeps on disk as well."""
        self.spool: Final = spool
        """The rows on disk; None without."""
        self._clock = clock
        self._max_records = max_records
        self._max_bytes = max_bytes
        # Re-entrant: the garbage collector may end a user's stream, and so bring a record.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._rows: dict[JobKey, Record] = {}
        # Indexes over the rows: those that were not read, and those that wait for a judge.
        self._unread: deque[Record] = deque()
        self._waiting: dict[JobKey, Record] = {}
        # Sums over the rows with a place, and over those of them that were read.
        self._places, self._bytes = 0, 0
        self._read_places, self._read_bytes = 0, 0
        self._n_running, self._n_tasks = 0, 0
        self.n_taken_up = 0
        """Number of rows under evaluation that were taken up from the spool."""
        # The tree that was weighed last, and the number of those that came after it.
        self._usual, self._since_weighed = 0, WEIGHED_SHARE
        self._finished: Counter[Status] = Counter()
        # The rest of the books, by the names that ``Stats`` has for them.
        self._counts: Counter[Counted] = Counter()

    # --- rows ---

    def get(self, key: JobKey) -> Record | None:
        """Return a row; None if there is none any more."""
        return self._rows.get(key)

    def rows(self) -> list[Record]:
        """Return all rows, the oldest first."""
        return list(self._rows.values())  # in one step

    def open_rows(self) -> list[Record]:
        """Return the rows that have no visible state yet, the oldest first."""
        return [record for record in self.rows() if record.is_open and record.is_counted]

    def add(self, record: Record) -> bool:
        """Add the row of a record that was counted.

        Returns:
            False if another one has the same ids, as an id generator that repeats itself makes.
        """
        with self._lock:
            if record.key in self._rows:
                return False
            self._rows[record.key] = record
            return True

    def give_place(self, record: Record, tree: RunTree) -> bool:
        """Let a record wait to be read; False if a bound would be passed."""
        with self._lock:
            size = max(tree.size, self._usual) if tree.unweighed else tree.size
            if self._places >= self._max_records or self._bytes + size > self._max_bytes:
                return False
            if tree.unweighed:
                self._since_weighed += 1
            else:
                self._since_weighed, self._usual = 0, size
            record.size = size  # a thread of the application may still add to the tree
            self._places += 1
            self._bytes += size
            self._unread.append(record)
            return True

    def reweigh(self, record: Record, size: int) -> bool:
        """Count a record with the bytes of its tree as they are known now.

        Returns:
            False if that passes the bound; the record keeps its place until it moves on.
        """
        with self._lock:
            if record.size is not None:  # else a shutdown has finished it
                self._bytes += size - record.size
                record.size = size
            return self._bytes <= self._max_bytes

    def next_unread(self) -> Record | None:
        """Return the oldest record that was not read; None if there is none."""
        # Without the lock: ``popleft`` is atomic, and one worker takes.
        try:
            return self._unread.popleft()
        except IndexError:
            return None

    # --- what moves them ---

    def move(
        self,
        record: Record,
        event: Event,
        *,
        outcome: Outcome | None = None,
        delay: float = 0.0,
        counted: bool = True,
        row: Row | None = None,
    ) -> bool:
        """Move a record as ``STEPS`` says, after the spool was told if it has the row.

        Args:
            record: One row.
            event: What has happened.
            outcome: What is about to be written, of ``SETTLED``.
            delay: Seconds for which a row that is ``PUT_BACK`` rests at least.
            counted: Whether a row that is ``PUT_BACK`` has used up one of its attempts.
            row: What was ``TAKEN_UP``.

        Returns:
            False if the table has no such step: another event was first. So too if another process
            has the row, and with it the spans, which are never ended here then.
        """
        if (record.stage, event) not in STEPS:
            return False
        if not self._tell(record, event, outcome, delay, counted=counted):
            event = Event.LOST
        with self._changed:
            to = STEPS.get((record.stage, event))
            if to is None:
                return False
            self._leave(record)
            if event is Event.TAKEN_UP and row is not None:
                record.row, record.lease, record.export_failed = row, row.lease, False
                record.is_on_its_way = record.is_followed
                self._rows[record.key] = record
            record.stage = to
            self._enter(record)
            if event is Event.PARKED:
                record.row = None
            elif event in (Event.LOST, Event.PUT_BACK):
                record.lease = None
            if event is Event.LOST and record.is_open:
                record.is_open = False
                self._finished[Status.TIMEOUT] += 1
            self.forget(record)
            self._changed.notify_all()
        return event is not Event.LOST

    def _tell(
        self, record: Record, event: Event, outcome: Outcome | None, delay: float, *, counted: bool
    ) -> bool:
        """Tell the spool; False if it says that this process has lost the row."""
        spool, lease = self.spool, record.lease
        if spool is None or lease is None:
            return True
        match event:
            case Event.PARKED:
                spool.put_back(lease, 0.0, counted=False)
                # For the end of its spans alone: no evaluation has the row.
                record.lease = Lease(record.key, lease.attempts - 1)
            case Event.PUT_BACK if record.stage is not Stage.PARKED:
                spool.put_back(lease, delay, counted=counted)
            case Event.SETTLED if outcome is not None:
                return spool.write(lease, outcome)
            case Event.UNEXPORTED if record.n_silent >= MAX_SILENT:
                spool.kill(lease, SILENT)
                record.n_silent = 0  # nothing is left to be known of it
            case Event.UNEXPORTED:
                spool.export_again(lease, EXPORT_RETRY_SECONDS)
            case _:
                pass
        return True

    def _leave(self, record: Record) -> None:
        self._n_running -= record.stage in RUNS
        self.n_taken_up -= record.stage in RUNS and record.row is not None
        self._waiting.pop(record.key, None)
        if record.size is not None and record.stage is not Stage.UNREAD:
            self._read_places -= 1
            self._read_bytes -= record.size

    def _enter(self, record: Record) -> None:
        self._n_running += record.stage in RUNS
        self.n_taken_up += record.stage in RUNS and record.row is not None
        if record.size is None:
            return
        if record.stage not in HOLDS_PLACE:
            self._places -= 1
            self._bytes -= record.size
            record.size = None
        elif record.stage is not Stage.UNREAD:
            self._read_places += 1
            self._read_bytes += record.size

    def forget(self, record: Record) -> None:
        """Remove a row for which nothing is left to do."""
        with self._lock:
            is_over = record.stage is Stage.DONE and not (record.is_open or record.is_followed)
            if not is_over:
                return
            record.job = record.judged = record.spans = record.row = None
            if record.n_silent:  # to be known when it is written again; nothing else of it is
                record.root, record.context = INVALID_SPAN, Context()
            elif self._rows.get(record.key) is record:
                del self._rows[record.key]

    def exported(self, records: Sequence[Record]) -> None:
        """Move records whose spans every exporter has, and delete their rows in the spool."""
        if self.spool is not None and records:
            self.spool.delete([r.lease for r in records if r.lease is not None])
        for record in records:
            record.lease = None
            self.move(record, Event.EXPORTED)

    def root_exported(self, records: Sequence[Record]) -> None:
        """Tell the spool that spans were exported that had ended without scores."""
        if self.spool is not None:
            self.spool.root_exported([record.key for record in records])

    def acknowledged(self, record: Record, lease: Lease) -> None:
        """Note that the spool has the row of a record."""
        with self._lock:
            record.lease = lease
            self._counts["spooled"] += 1

    def end_root(self, records: Iterable[Record], outcome: Outcome) -> list[Record]:
        """Tell the spool that held spans are about to be ended without scores.

        Returns:
            The records whose spans this process may end. The others are ``LOST``.
        """
        found = list(records)
        leases = [r.lease for r in found if r.lease is not None and r.stage is not Stage.WRITTEN]
        if self.spool is None or not leases:
            return found
        held = {lease.key for lease in self.spool.end_root(leases, outcome)}
        lost = [r for r in found if r.lease in leases and r.key not in held]
        for record in lost:
            self.move(record, Event.LOST)
        return [record for record in found if record not in lost]

    def end(self, record: Record) -> bool:
        """Whether the caller is the one to give a record its visible state, and end its spans."""
        with self._lock:
            was_open, record.is_open = record.is_open, False
            return was_open

    # --- for judges ---

    def wait_for_judge(self, record: Record) -> bool:
        """Let a record wait for a judge of this process; False if too many are waiting."""
        with self._lock:
            # Its own place is counted already.
            is_full = self._read_places > share(self._max_records)
            if is_full or self._read_bytes > share(self._max_bytes):
                return False
            record.since = self._clock()
            self._waiting[record.key] = record
            return True

    def take(self, max_wait: float) -> tuple[Record, float] | None:
        """Return the newest record that waits for a judge, and how long it has waited, in seconds.

        Args:
            max_wait: Seconds after which a record whose spans are held is left where it is; if the
                newest has waited for longer, so have all others.

        Returns:
            None if none is left.
        """
        with self._lock:
            if not self._waiting:
                return None
            # Not ``reversed``, which passes over the places of all that were taken before.
            key, record = self._waiting.popitem()
            waited = self._clock() - record.since
            if waited > max_wait and record.judged and not record.judged.root_ended:
                self._waiting[key] = record
                return None
        self.move(record, Event.TAKEN)
        return record, waited

    def withdraw(self, key: JobKey) -> bool:
        """Take back a record that waits; False if a judge has it, or has had it."""
        with self._lock:
            return self._waiting.pop(key, None) is not None

    # --- how full it is ---

    def __len__(self) -> int:
        """Number of records that have a place."""
        return self._places

    @property
    def n_unread(self) -> int:
        """Number of records that were not read yet."""
        return len(self._unread)

    @property
    def n_waiting(self) -> int:
        """Number of records that wait for a judge of this process."""
        return len(self._waiting)

    @property
    def fullness(self) -> float:
        """How full the judges' share of the queue is, 0 to 1, by the bound that is nearer.

        Trees that were not read yet do not count: to evaluate less does not help against those.
        """
        # Without the lock: a number that is one off does no harm.
        places = share(self._max_records)
        full = self._read_places / places if places >= FEW_PLACES else 0.0
        return max(full, self._read_bytes / share(self._max_bytes))

    @property
    def is_pressed(self) -> bool:
        """Whether the trees that were not read yet take much of what the judges leave free."""
        # Without the lock: a number that is one off does no harm.
        unread_bytes = self._bytes - self._read_bytes
        return (
            len(self._unread) * PRESSED_SHARE >= self._max_records - self._read_places
            or unread_bytes * PRESSED_SHARE >= self._max_bytes - self._read_bytes
        )

    @property
    def must_weigh(self) -> bool:
        """Whether the next tree has to be weighed before it gets a place."""
        is_due = self._since_weighed >= WEIGHED_SHARE - 1
        return is_due or 4 * (self._bytes + self._usual) > self._max_bytes

    # --- the books ---

    def unasked(self) -> None:
        """Count a run that turned out to be no record; it no longer counts as one."""
        with self._changed:
            self._counts.update({"produced": -1, "unasked": 1})
            self._changed.notify_all()

    def recovered(self, record: Record) -> None:
        """Count a record that was taken over from a process that is dead."""
        with self._lock:
            record.is_counted = True
            self._counts.update(("produced", "recovered"))

    def finished(self, status: Status, *, with_ground_truth: bool = False) -> None:
        """Count a record that has reached its visible state."""
        with self._changed:
            self._finished[status] += 1
            self._counts["with_ground_truth"] += with_ground_truth and status is Status.EVALUATED
            self._changed.notify_all()

    def count(self, what: Counted, number: int = 1) -> None:
        """Count something else, such as a record ``produced``, whose root has ended."""
        with self._lock:
            self._counts[what] += number

    def begin_task(self) -> None:
        """Have a flush wait for something else than an evaluation, such as feedback."""
        with self._lock:
            self._n_tasks += 1

    def end_task(self) -> None:
        """End what ``begin_task`` began."""
        with self._changed:
            self._n_tasks -= 1
            self._changed.notify_all()

    @property
    def lost(self) -> int:
        """Number of records that were dropped, and of spans that were lost or not exported."""
        dropped = sum([self._finished[status] for status in DROPPED])
        return dropped + self._counts["spans_lost"] + self._counts["export_failures"]

    @property
    def pending(self) -> int:
        """Number of records without a visible state."""
        return self._counts["produced"] - self._finished.total()

    def wait_until_idle(self, timeout: float) -> bool:
        """Wait until nothing is pending or under evaluation; False after ``timeout`` seconds."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while self.pending or self._n_running or self._n_tasks:
                left = max(0.0, deadline - time.monotonic())
                # A wait without an end is given as infinity, which a lock refuses.
                if not self._changed.wait(min(left, threading.TIMEOUT_MAX)):
                    return not (self.pending or self._n_running or self._n_tasks)
            return True

    def stats(self, *, faults: int, undelivered: int = 0) -> Stats:
        """Return the counts at this moment."""
        with self._lock:
            rest = {s: n for s, n in self._finished.items() if s is not Status.EVALUATED}
            return Stats(
                evaluated=self._finished[Status.EVALUATED],
                skipped={s.value: n for s, n in rest.items() if s not in DROPPED},
                dropped={s.value: n for s, n in rest.items() if s in DROPPED},
                pending=self.pending,
                faults=faults,
                queued=self._places,
                queued_bytes=self._bytes,
                undelivered=undelivered,
                given_up=0 if self.spool is None else self.spool.given_up,
                **{name: self._counts[name] for name in get_args(Counted)},
            )


def share(bound: int) -> int:
    """The part of a bound that records may take once they were read."""
    return bound - bound // READING_SHARE
