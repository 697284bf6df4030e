"""Makes the entry of a report from a job and its outcome, without a trace file.

The entry equals what ``read_trace_file`` reads back from the spans of the same record, apart from
what spans leave out to stay small. So a sink can collect a report where records are evaluated.
"""

from __future__ import annotations

from datetime import UTC, datetime

from claimspan import Evaluation
from claimspan.report import ReportEntry
from claimspan.report.evaluated import entry_of_evaluation
from claimspan_tracing.job import Job, Outcome

__all__ = ["entry_of"]


def entry_of(job: Job, outcome: Outcome) -> ReportEntry:
    """Return the entry of a record.

    It differs from the entry that is read back from a trace file in these points:

    * Texts, chunks and claims are whole: no text is cut, no claim is left out, and no chunk up to
      ``MAX_CHUNKS``. Spans hold at most 8 KiB of a query or a response, and 20 chunks of 2 KiB.
    * Each low score has its reason. Spans have that of the first one, in their summary, and those
      of criteria.
    * The status of a late outcome is its own, ``evaluated``. The root span keeps the state that it
      was ended with, such as ``timeout``, and its reason.
    * Where no chunk reached the generator there are none. Spans show those that were retrieved.
    * ``metadata`` is what the application attached, under its own names. Spans hold 2 KiB of it,
      and session and user under OpenInference's names.
    * ``started`` and ``seconds`` are measured at the root run, not at its span: some microseconds
      apart.

    Args:
        job: What was read from the run tree.
        outcome: What evaluating it has led to.
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
