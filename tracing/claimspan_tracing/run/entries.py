"""Makes the entry of a report where a record is evaluated, without a trace file."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from claimspan import Evaluation
from claimspan.files.ground_truth import GroundTruthMatch
from claimspan.report import ReportEntry
from claimspan.report.evaluated import entry_of_evaluation
from claimspan.results.rows import ResultRow
from claimspan_tracing.decide.status import Status
from claimspan_tracing.job import Job, Outcome
from claimspan_tracing.write.sinks import Finished

__all__ = ["entry_of", "entry_of_row"]


def entry_of(job: Job, outcome: Outcome) -> ReportEntry:
    """Return the entry of a record, as ``read_trace_file`` reads it back from its spans.

    It differs from that one in these points:

    * Texts, chunks and claims are whole: no text is cut, no claim is left out, and no chunk up to
      ``MAX_CHUNKS``. Spans hold at most 8 KiB of a query or a response, and 20 chunks of 2 KiB
      each: the first ones, and on the evaluation span those that decide a claim.
    * Each low score has its reason. Spans have that of the first one, in their summary, and those
      of criteria.
    * The status of a late outcome is its own, ``evaluated``. The root span keeps the state that it
      was ended with, such as ``timeout``, and its reason.
    * If no chunk reached the generator there are none. Spans show those that were retrieved.
    * ``metadata`` is what the application attached, under its own names. Spans hold 2 KiB of it,
      and session and user under OpenInference's names.
    * ``started`` and ``seconds`` are measured at the root run, not at its span: some microseconds
      apart.
    """
    record, judged = job.record, outcome.evaluation
    truth = outcome.ground_truth.text if outcome.ground_truth else record.ground_truth
    made = entry_of_evaluation(
        record.model_copy(update={"id": None, "ground_truth": truth}), judged or Evaluation()
    )
    return made.model_copy(
        update={
            "trace_id": job.trace_id,
            "span_id": job.span_id,
            "chunks_left_out": max(0, job.chunks_found - len(record.chunks)),
            # None, not 0: without an evaluation nothing was decided, and nothing is known to cost.
            "claims_undecided": judged.undecided_claims if judged else None,
            "cost_usd": judged.usage.cost_usd if judged else None,
            "status": outcome.status.value,
            "reason": outcome.reason or None,
            "late": outcome.late,
            "started": datetime.fromtimestamp(job.started / 1e9, UTC),
            "seconds": max(job.ended - job.started, 0) / 1e9,
        }
    )


def entry_of_row(row: ResultRow, finished: Finished | None) -> ReportEntry:
    """Return the entry of a row of results, with the capture of this run, if there is one."""
    truth = row.record.ground_truth
    outcome = Outcome(
        status=Status.APP_ERROR if row.error is not None else Status.EVALUATED,
        reason=row.error or "",
        evaluation=None if row.error is not None else row.evaluation,
        ground_truth=None if truth is None else GroundTruthMatch(text=truth, matched_by="id"),
    )
    if finished is not None:
        return entry_of(finished.job, outcome)
    trace_id = row.record.metadata.get("trace_id")
    # The page needs times, and those of an earlier run are in its traces alone.
    now = time.time_ns()
    job = Job(
        record=row.record,
        trace_id=trace_id if isinstance(trace_id, str) and len(trace_id) == 32 else "0" * 32,
        span_id="0" * 16,
        trace_flags=0,
        route="",
        started=now,
        ended=now,
    )
    return entry_of(job, outcome)
