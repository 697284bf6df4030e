"""Makes the entry of a report from a job and its outcome, without a trace file.

The entry equals what ``read_trace_file`` reads back from the spans of the same record, apart from
what spans leave out to stay small. So a sink can collect a report where records are evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from claimspan import Chunk, Claim, Evaluation, Label, VerdictMatrix
from claimspan.report import ReportClaim, ReportEntry
from claimspan_tracing.job import Job, Outcome

__all__ = ["entry_of"]


def entry_of(job: Job, outcome: Outcome) -> ReportEntry:
    """Return the entry of a record.

    It differs from the entry that is read back from a trace file in these points:

    * Texts, chunks and claims are whole: no text is cut, no claim is left out, and no chunk up to
      ``MAX_CHUNKS``. Spans hold at most 8 KiB of a query or a response, and 20 chunks of 2 KiB.
    * The status of a late outcome is its own, ``evaluated``. The root span keeps the state that it
      was ended with, such as ``timeout``, and its reason.
    * Where no chunk reached the generator there are none. Spans show those that were retrieved.
    * ``started`` and ``seconds`` are measured at the root run, not at its span: some microseconds
      apart.

    Args:
        job: What was read from the run tree.
        outcome: What evaluating it has led to.
    """
    evaluation = outcome.evaluation or Evaluation()
    chunks = job.record.chunks
    ground_truth = outcome.ground_truth.text if outcome.ground_truth else job.record.ground_truth
    return ReportEntry(
        trace_id=job.trace_id,
        query=job.record.query,
        response=job.record.response,
        ground_truth=ground_truth or None,
        chunks=chunks,
        chunks_left_out=_chunks_left_out(job),
        response_claims=_response_claims(chunks, evaluation),
        ground_truth_claims=_ground_truth_claims(chunks, evaluation),
        scores=dict(evaluation.metrics),
        undefined=dict(evaluation.undefined),
        status=outcome.status.value,
        reason=outcome.reason or None,
        late=outcome.late,
        judge=evaluation.judge_name,
        judge_calls=evaluation.usage.calls,
        cost_usd=None if outcome.evaluation is None else evaluation.usage.cost_usd,
        started=datetime.fromtimestamp(job.started / 1e9, UTC),
        seconds=max(job.ended - job.started, 0) / 1e9,
    )


def _chunks_left_out(job: Job) -> int:
    """Count the chunks beyond ``MAX_CHUNKS``, of one retriever and of all of them together."""
    kept = {(chunk.id, chunk.text) for run in job.retrievers for chunk in run.chunks}
    cut_off = sum(run.found - len(run.chunks) for run in job.retrievers)
    return cut_off + len(kept) - len(job.retrieved)


def _response_claims(chunks: Sequence[Chunk], evaluation: Evaluation) -> tuple[ReportClaim, ...]:
    against_chunks = evaluation.response_vs_chunks
    labels, truths = _merged(against_chunks), _merged(evaluation.response_vs_ground_truth)
    return tuple(
        ReportClaim(
            text=claim.text,
            sentence=_sentence(claim),
            label=_at(labels, index),
            ground_truth_label=_at(truths, index),
            supported_by=_ids(chunks, against_chunks, index, Label.ENTAILED),
            contradicted_by=_ids(chunks, against_chunks, index, Label.CONTRADICTED),
        )
        for index, claim in enumerate(evaluation.response_claims)
    )


def _ground_truth_claims(
    chunks: Sequence[Chunk], evaluation: Evaluation
) -> tuple[ReportClaim, ...]:
    against_chunks = evaluation.ground_truth_vs_chunks
    labels = _merged(evaluation.ground_truth_vs_response)
    return tuple(
        ReportClaim(
            text=claim.text,
            sentence=_sentence(claim),
            label=_at(labels, index),
            supported_by=_ids(chunks, against_chunks, index, Label.ENTAILED),
            contradicted_by=_ids(chunks, against_chunks, index, Label.CONTRADICTED),
        )
        for index, claim in enumerate(evaluation.ground_truth_claims)
    )


def _sentence(claim: Claim) -> str | None:
    """Return the sentence that the claim came from, unless it is the claim."""
    return None if claim.sentence == claim.text else claim.sentence or None


def _ids(
    chunks: Sequence[Chunk], matrix: VerdictMatrix | None, index: int, wanted: Label
) -> tuple[str, ...]:
    """Return the ids of the chunks with a label for one claim; the matrix has a column a chunk."""
    if matrix is None:
        return ()
    pairs = zip(chunks, matrix.labels[index], strict=True)
    return tuple(chunk.id for chunk, label in pairs if label is wanted)


def _merged(matrix: VerdictMatrix | None) -> Sequence[Label | None]:
    return [] if matrix is None else matrix.merged


def _at(labels: Sequence[Label | None], index: int) -> Label | None:
    return labels[index] if index < len(labels) else None
