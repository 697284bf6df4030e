"""Makes the entry of a report from a row of a run, also from one of an earlier run."""

from __future__ import annotations

import time

from claimspan.files.ground_truth import GroundTruthMatch
from claimspan.report import ReportEntry
from claimspan.results.rows import ResultRow
from claimspan_tracing.decide.status import Status
from claimspan_tracing.export.report_entries import entry_of
from claimspan_tracing.job import Job, Outcome
from claimspan_tracing.write.sinks import Finished

__all__ = ["entry_of_row"]

_NO_TRACE = "0" * 32


def entry_of_row(row: ResultRow, finished: Finished | None) -> ReportEntry:
    """Return the entry of a row.

    Args:
        row: The record with its scores.
        finished: What was captured; None where the row is of an earlier run, whose times are
            not known any more, or where nothing was captured.
    """
    truth = row.record.ground_truth
    outcome = Outcome(
        status=Status.APP_ERROR if row.error is not None else Status.EVALUATED,
        reason=row.error or "",
        evaluation=None if row.error is not None else row.evaluation,
        ground_truth=None if truth is None else GroundTruthMatch(text=truth, matched_by="id"),
    )
    if finished is not None:
        return entry_of(finished.job, outcome)
    given = row.record.metadata.get("trace_id")
    # The page needs times, and those of an earlier run are in its traces alone.
    now = time.time_ns()
    job = Job(
        record=row.record,
        trace_id=given if isinstance(given, str) and len(given) == 32 else _NO_TRACE,
        span_id="0" * 16,
        trace_flags=0,
        route="",
        started=now,
        ended=now,
    )
    return entry_of(job, outcome)
