"""Spooling: what the spool is told of the records whose spans this process holds."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from opentelemetry.trace import TraceFlags, format_span_id

from claimspan_tracing.decide.ledger import Ledger
from claimspan_tracing.decide.status import Status
from claimspan_tracing.job import Job, JobKey, KeptSpan, Outcome
from claimspan_tracing.providers.confirmation import Confirmations
from claimspan_tracing.spool import Lease, Row, Spool
from claimspan_tracing.write.open_records import OpenRecord, OpenRecords
from claimspan_tracing.write.remade import with_kept_spans

__all__ = ["EXPORT_RETRY_SECONDS", "Spooling"]

EXPORT_RETRY_SECONDS: Final = 15.0
"""How long a record whose spans were not exported waits to be written again."""

MAX_UNREPORTED: Final = 3
"""How often a record is written of which no exporter ever says anything, before it is a dead
letter: the application's own span processor may keep our spans back."""

UNREPORTED: Final = "no exporter has taken its spans: is there a span processor that filters them?"


@dataclass(slots=True)
class _Kept:
    """A row that this process works on."""

    lease: Lease
    is_written: bool = False
    has_failed: bool = False
    is_on_its_way: bool = False


class Spooling:
    """Keeps the rows of this process in step with its records.

    An outcome is in the spool before it is on a span, and a row is deleted after the spans were
    exported. So whenever the process is killed, another one can tell what is left to do. Without a
    spool, and for records that the spool did not take, nothing here has any effect.
    """

    def __init__(
        self,
        spool: Spool | None,
        confirmations: Confirmations,
        records: OpenRecords,
        ledger: Ledger,
        redact: Callable[[Sequence[KeptSpan]], tuple[KeptSpan, ...]] | None = None,
    ) -> None:
        """Connect the parts.

        Args:
            spool: Keeps the rows; None without one.
            confirmations: Tells which spans were exported.
            records: The records whose spans are held.
            ledger: Counts.
            redact: Takes out of what others have set on spans what no file may hold.
        """
        self._redact = redact
        self._spool = spool
        self._confirmations = confirmations
        self._records = records
        self._ledger = ledger
        self._kept: dict[JobKey, _Kept] = {}
        # Rows that wait in the spool while their spans are held.
        self._parked: dict[JobKey, Lease] = {}
        # How often a record was written without an exporter's word.
        self._unreported: Counter[JobKey] = Counter()
        self._settling = threading.RLock()

    def acknowledge(self, record: OpenRecord, job: Job) -> None:
        """Put a job into the spool. Where that works, it is judged whatever happens to us."""
        if self._spool is None:
            return
        job = with_kept_spans(job, record)
        if self._redact is not None:
            job = replace(job, kept_spans=self._redact(job.kept_spans))
        lease = self._spool.add(job)
        if lease is not None:
            self._kept[lease.key] = _Kept(lease)
            self._ledger.spooled()

    def take_up(self, row: Row) -> None:
        """Note a row that was taken up again."""
        self._parked.pop(row.lease.key, None)
        on_its_way = self._confirmations.is_expected(row.lease.key)
        is_written = row.outcome is not None
        self._kept[row.lease.key] = _Kept(row.lease, is_written, is_on_its_way=on_its_way)

    def has(self, key: JobKey) -> bool:
        """Whether the spool has the record, and this process its lease."""
        return key in self._kept

    @property
    def beat_seconds(self) -> float | None:
        """How often this process says that it is alive; None without a spool."""
        return None if self._spool is None else self._spool.lease_seconds / 3

    def renew(self) -> None:
        """Say that this process is alive."""
        if self._spool is not None:
            self._spool.renew()

    def close(self) -> None:
        """Give the rows back that are left, for another process."""
        if self._spool is not None:
            self._spool.close()
            self._kept.clear()

    @property
    def is_full(self) -> bool:
        """Whether there is a spool, and it refuses jobs because it is full."""
        return self._spool is not None and self._spool.is_full

    def end_root(self, key: JobKey, outcome: Outcome) -> bool:
        """Note that the held spans of a record are about to be ended without scores.

        Returns:
            False where another process has taken the record over, and its spans with it: they must
            not be ended here.
        """
        lease = self._lease(key)
        if lease is None or self._spool is None:
            return True
        if not self._spool.end_root([lease], outcome):
            self.forget(key)
            return False
        self.expect(self._records.get(key))
        return True

    def end_all(self, outcome: Outcome) -> None:
        """As ``end_root``, for every record whose spans are held."""
        if self._spool is None:
            return
        leases = map(self._lease, self._records.all_keys())
        waiting = [lease for lease in leases if lease is not None]
        held = self._spool.end_root(waiting, outcome)
        for lease in waiting:
            if lease in held:
                self.expect(self._records.get(lease.key))
                self._confirmations.complete(lease.key)
            else:
                self.forget(lease.key)

    def _lease(self, key: JobKey) -> Lease | None:
        """The lease of a record whose outcome is not known yet."""
        kept = self._kept.get(key)
        if kept is None:
            return self._parked.pop(key, None)
        return None if kept.is_written else kept.lease

    def write(self, key: JobKey, outcome: Outcome) -> bool:
        """Keep an outcome that is about to be written; False as with ``end_root``."""
        kept = self._kept.get(key)
        if kept is None or self._spool is None:
            return True
        if not self._spool.write(kept.lease, outcome):
            self.forget(key)
            return False
        kept.is_written = True
        self.expect(self._records.get(key))
        # Without held spans there may be none at all: late, and not evaluated.
        self._confirmations.expect(key, ())
        return True

    def complete(self, key: JobKey) -> None:
        """All spans of a record have been ended; what is left is their export."""
        self._confirmations.complete(key)

    def expect(self, record: OpenRecord | None) -> None:
        """Follow the spans of a record, which are about to be ended."""
        if record is None or record.spans is None:
            return
        contexts = [span.get_span_context() for span, _ in record.ends()]
        sampled = [c for c in contexts if c.trace_flags & TraceFlags.SAMPLED]
        self._confirmations.expect(record.key, [format_span_id(c.span_id) for c in sampled])

    def is_on_its_way(self, key: JobKey) -> bool:
        """Whether the root of a record was ended by this process, and its export is not over."""
        kept = self._kept.get(key)
        return kept is not None and kept.is_on_its_way

    def evaluation_span_started(self, key: JobKey, span_id: str) -> None:
        """Follow an evaluation span too, which carries claims or late scores."""
        if key in self._kept:
            self._confirmations.expect(key, [span_id])

    def put_back(self, key: JobKey, delay: float, *, counted: bool) -> None:
        """Let a record wait in the spool, for ``delay`` seconds at least."""
        kept = self._kept.pop(key, None)
        if kept is not None and self._spool is not None:
            self._spool.put_back(kept.lease, delay, counted=counted)

    def park(self, key: JobKey) -> None:
        """Let a record wait in the spool whose spans are held all the same."""
        kept = self._kept.get(key)
        self.put_back(key, 0.0, counted=False)
        if kept is not None:
            self._parked[key] = Lease(key, kept.lease.attempts - 1)

    def forget(self, key: JobKey) -> None:
        """Let go of a record that another process has taken over; its spans are never ended."""
        self._kept.pop(key, None)
        self._unreported.pop(key, None)
        if self._records.take(key) is not None:
            self._ledger.finished(Status.TIMEOUT)

    def settle_exports(self) -> None:
        """Delete the rows whose spans were exported, and have the others written again."""
        if self._spool is None:
            return
        # A flush, which settles on the application's thread, must find the worker's work done.
        with self._settling:
            self._settle(*self._confirmations.take(), self._spool)

    def _settle(
        self,
        done: Iterable[JobKey],
        lost: Iterable[JobKey],
        silent: Iterable[JobKey],
        spool: Spool,
    ) -> None:
        finished: list[Lease] = []
        for key in done:
            kept = self._kept.get(key)
            if kept is not None and kept.is_written and not kept.has_failed:
                finished.append(self._kept.pop(key).lease)
                self._unreported.pop(key, None)
        if finished:
            spool.delete(finished)
        gone = {lease.key for lease in finished}
        failed = {k for k in done if (kept := self._kept.get(k)) is not None and kept.has_failed}
        spool.root_exported(key for key in done if key not in gone | failed)
        self._unreported.update(silent)
        for key in (*failed, *lost, *silent):
            self._write_again(key, spool)

    def _write_again(self, key: JobKey, spool: Spool) -> None:
        """Have the spans of a record written again, of which one was not exported."""
        kept = self._kept.get(key)
        if kept is None:
            self._unreported.pop(key, None)
            return
        # Where scores are still to come, everything is written again together with them.
        kept.has_failed = True
        if not kept.is_written:
            return
        del self._kept[key]
        if self._unreported[key] >= MAX_UNREPORTED:
            del self._unreported[key]
            spool.kill(kept.lease, UNREPORTED)
        else:
            spool.export_again(kept.lease, EXPORT_RETRY_SECONDS)
