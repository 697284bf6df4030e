"""Recovery: rows that wait in the spool, of this process or of one that is dead."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from claimspan_tracing.decide.ledger import Ledger
from claimspan_tracing.decide.status import Status
from claimspan_tracing.engine.spooling import Spooling
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import JobKey, Outcome
from claimspan_tracing.providers.confirmation import Confirmations
from claimspan_tracing.redact import Redaction
from claimspan_tracing.spool import Root, Row, Spool
from claimspan_tracing.write.open_records import OpenRecord, OpenRecords
from claimspan_tracing.write.remade import RemadeSpans
from claimspan_tracing.write.writer import Writer

__all__ = ["MAX_TAKEN_UP", "Recovery"]

MAX_TAKEN_UP: Final = 16
"""Rows taken up at once: as many as a judge works on, so that those of a process that is killed
again have not used up an attempt for nothing."""

MAX_UNCONFIRMED: Final = 256
"""Records that wait for their export, beyond which no more are taken up: a batch processor holds
2,048 spans, and drops the oldest beyond."""

FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 30.0
"""Seconds for which an unreachable judge is left alone; each time twice as long."""

NOT_REMADE: Final = "the spans of a process that ended could not be made again"
"""The tracer provider is not the SDK's, or one of its span processors has raised."""


class Recovery:
    """Takes up rows and writes their outcomes, on the worker's thread.

    A root whose spans were never ended is made again, with its ids, and gets its scores. One that
    was ended without scores stays as it was; the scores go to a carrier.
    """

    def __init__(
        self,
        spool: Spool | None,
        spooling: Spooling,
        remade: RemadeSpans,
        confirmations: Confirmations,
        records: OpenRecords,
        writer: Writer,
        ledger: Ledger,
        guard: Guard,
        redaction: Redaction | None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Connect the parts.

        Args:
            spool: Where rows wait; None without one.
            spooling: Follows the rows that are taken up.
            remade: Makes spans again.
            confirmations: Tells how many records wait for their export.
            records: Where a record is open while it is written.
            writer: Writes records.
            ledger: Counts.
            guard: Counts what fails.
            redaction: What is taken out of texts.
            clock: Returns seconds that never go back.
        """
        self._clock = clock
        self._redaction = redaction
        self._spool = spool
        self._spooling = spooling
        self._remade = remade
        self._confirmations = confirmations
        self._records = records
        self._writer = writer
        self._ledger = ledger
        self._guard = guard
        # Rows of other processes that no state was counted for yet.
        self._uncounted: set[JobKey] = set()
        self._pause = 0.0
        self._not_before = 0.0

    def claim(self, most: int) -> list[Row]:
        """Take up at most so many rows; none while the judge cannot be reached."""
        if self._spool is None or self._clock() < self._not_before:
            return []
        if len(self._confirmations) >= MAX_UNCONFIRMED:
            return []
        # One finds out whether a judge that was not there is back.
        is_alone = most >= MAX_TAKEN_UP
        rows = self._spool.claim(1 if self._pause else most, is_alone=is_alone)
        # Another process, or an earlier one, may have redacted nothing.
        rows = [self._redact(row) if row.is_foreign else row for row in rows]
        for row in rows:
            self._spooling.take_up(row)
            if row.is_foreign:
                self._uncounted.add(row.lease.key)
        return rows

    def _redact(self, row: Row) -> Row:
        """Take out of a row what its process may have left in it."""
        redaction, guard = self._redaction, self._guard
        if redaction is None:
            return row
        job = redaction.apply(row.job, guard)
        job = replace(job, kept_spans=redaction.apply_to_spans(job.kept_spans, guard))
        outcome = row.outcome
        if outcome is not None:
            outcome = redaction.apply_to_outcome(row.job, outcome, guard)
        elif job.status is not None:  # the judge may not read what could not be redacted
            outcome = Outcome(status=job.status, reason=job.reason)
        return replace(row, job=job, outcome=outcome)

    def judge_is_away(self) -> None:
        """Leave the judge alone for a while: it could not be reached."""
        if self._clock() < self._not_before:  # this is known already
            return
        self._pause = min(LONGEST_PAUSE, max(FIRST_PAUSE, 2 * self._pause))
        self._not_before = self._clock() + self._pause

    def judge_is_there(self) -> None:
        """Go on: the judge has answered."""
        self._pause = self._not_before = 0.0

    def write(self, row: Row, outcome: Outcome) -> bool:
        """Write the outcome of a row whose spans this process does not hold.

        Returns:
            Whether scores of a record counted before went to a carrier.
        """
        key = row.lease.key
        is_new = key in self._uncounted
        self._uncounted.discard(key)
        if is_new:
            self._ledger.recovered()
        if row.root is Root.HELD and self._write_root(row, outcome, is_new=is_new):
            return False
        if row.root is Root.HELD:
            outcome = replace(outcome, reason=outcome.reason or NOT_REMADE)
        self._write_late(row, outcome, is_new=is_new)
        if is_new:
            self._ledger.finished(
                outcome.status, with_ground_truth=outcome.ground_truth is not None
            )
        return not is_new and outcome.status is Status.EVALUATED

    def _write_root(self, row: Row, outcome: Outcome, *, is_new: bool) -> bool:
        """Make the spans of a row again, with its scores; False where they cannot be made."""
        record = self._made_again(row)
        if record is None:
            return False
        self._spooling.expect(record)
        if is_new:
            self._records.add(record)
            self._writer.finish(record.key, outcome)
        else:
            self._writer.write_again(record, outcome)
        return True

    def _made_again(self, row: Row) -> OpenRecord | None:
        record: OpenRecord | None = None
        with self._guard:  # a span processor of the application's may raise anything
            record = self._remade.record(row.job, self._guard)
        return record

    def _write_late(self, row: Row, outcome: Outcome, *, is_new: bool) -> None:
        # Ended and on its way to the exporter of this very process, the root is not made again.
        is_lost = row.root is Root.ENDED and not self._spooling.is_on_its_way(row.lease.key)
        if is_lost and row.root_outcome is not None:
            record = self._made_again(row)
            if record is not None:
                self._spooling.expect(record)
                self._writer.write_again(record, row.root_outcome)
        if outcome.evaluation is None:
            return
        if row.outcome is None or is_new:
            self._writer.write_late(row.job, outcome)
        else:  # the other sinks had it when it was written first
            self._writer.write_scores_again(row.job, outcome)
