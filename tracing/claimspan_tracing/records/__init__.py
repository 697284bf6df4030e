"""The records of a process: one table of rows, and the one function that moves them.

record   a row, its stages, the events that move it, and which event leads where
table    the rows, their places in the queue, and the books as counts over them
exports  which spans of a row were exported, by what the exporters say
"""

from __future__ import annotations

from claimspan_tracing.records.exports import Exports
from claimspan_tracing.records.record import Event, OpenSpans, Record, Stage
from claimspan_tracing.records.table import Records, Stats
from claimspan_tracing.spool import release_leases

__all__ = ["Event", "Exports", "OpenSpans", "Record", "Records", "Stage", "Stats", "release_leases"]
