"""Every text of a job and of an outcome, in one place: no field may be forgotten elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from pydantic import JsonValue

from claimspan import Chunk, Claim, Evaluation, RagRecord
from claimspan.files.ground_truth import GroundTruthMatch
from claimspan_tracing.job import (
    MAX_MESSAGE_BYTES,
    GeneratorRun,
    Job,
    Message,
    Outcome,
    RetrieverRun,
)
from claimspan_tracing.text import MAX_TEXT_BYTES, cut

__all__ = ["REMOVED", "Swap", "judged_texts", "with_job_texts", "with_outcome_texts"]

Swap = Callable[[str], str]
"""Returns what stands in the place of a text."""

MIN_NUMBER: Final = 10**6
"""Whole numbers from here on are long enough to be a telephone number or a card."""

REMOVED: Final = "[redacted]"
"""Stands for part of a secret in a claim, and for a claim of which nothing is left."""


def with_job_texts(job: Job, swap: Swap) -> Job:
    """Return a job with each of its texts put through ``swap``.

    Ids, times and counts that OpenTelemetry needs stay, and so does the trace state, which others
    have made. A chunk id that is the hash of the chunk's text becomes that of the new text.
    """
    decision = job.decision
    return replace(
        job,
        record=_record(job.record, swap),
        route=swap(job.route),
        error_type=swap(job.error_type),
        reason=swap(job.reason),
        rewritten=swap(job.rewritten),
        runs=tuple(_run(run, swap) for run in job.runs),
        decision=decision and replace(decision, reason=swap(decision.reason)),
    )


def judged_texts(record: RagRecord, match: GroundTruthMatch | None = None) -> list[str]:
    """Return the texts of a record that a judge reads, with its ground truth."""
    ground_truth = [] if match is None else [match.text]
    chunks = (chunk.text for chunk in record.chunks)
    return [record.query, record.response, *chunks, *ground_truth]


def with_outcome_texts(outcome: Outcome, swap: Swap) -> Outcome:
    """Return an outcome with each of its texts put through ``swap``."""
    match, evaluation, decision = outcome.ground_truth, outcome.evaluation, outcome.decision
    return replace(
        outcome,
        reason=swap(outcome.reason),
        # Samplers see raw facts, and may name them in their reason.
        decision=decision and replace(decision, reason=swap(decision.reason)),
        evaluation=evaluation and _evaluation(evaluation, swap),
        ground_truth=match and match.model_copy(update={"text": swap(match.text)}),
    )


def _record(record: RagRecord, swap: Swap) -> RagRecord:
    return record.model_copy(
        update={
            "query": swap(record.query),
            "response": swap(record.response),
            "chunks": tuple(_chunk(chunk, swap) for chunk in record.chunks),
            "ground_truth": _optional(record.ground_truth, swap),
            "id": _optional(record.id, swap),
            "metadata": _object(record.metadata, swap),
        }
    )


def _chunk(chunk: Chunk, swap: Swap) -> Chunk:
    text = swap(chunk.text)
    # A short text can be guessed from its hash.
    is_hash = chunk.id == Chunk.content_id(cut(chunk.text, MAX_TEXT_BYTES))
    id_ = Chunk.content_id(text) if is_hash else swap(chunk.id)
    update = {"id": id_, "text": text, "metadata": _object(chunk.metadata, swap)}
    return chunk.model_copy(update=update)


def _run(run: RetrieverRun | GeneratorRun, swap: Swap) -> RetrieverRun | GeneratorRun:
    if isinstance(run, RetrieverRun):
        return replace(
            run,
            query=swap(run.query),
            chunks=tuple(_chunk(chunk, swap) for chunk in run.chunks),
            source=swap(run.source),
            error_type=swap(run.error_type),
        )
    return replace(
        run,
        prompt=swap(run.prompt),
        completion=swap(run.completion),
        model=swap(run.model),
        provider=swap(run.provider),
        error_type=swap(run.error_type),
        messages=tuple(_message(message, swap) for message in run.messages),
    )


def _message(message: Message, swap: Swap) -> Message:
    # Read whole where a redactor is to see it, and cut here: what it finds may lie across the cut.
    # The role is one of four words.
    return replace(message, text=cut(swap(message.text), MAX_MESSAGE_BYTES))


def _evaluation(evaluation: Evaluation, swap: Swap) -> Evaluation:
    claim = partial(_claim, swap=swap)
    return evaluation.model_copy(
        update={
            "response_claims": tuple(map(claim, evaluation.response_claims)),
            "ground_truth_claims": tuple(map(claim, evaluation.ground_truth_claims)),
            # The reasons are the judge's own words, and may quote.
            "undefined": {name: swap(why) for name, why in evaluation.undefined.items()},
            "explanations": {name: swap(why) for name, why in evaluation.explanations.items()},
            "undecided": _counts(evaluation.undecided, swap),
            "notes": _counts(evaluation.notes, swap),
            "error": _optional(evaluation.error, swap),
        }
    )


def _claim(claim: Claim, swap: Swap) -> Claim:
    update = {"text": swap(claim.text) or REMOVED, "sentence": _optional(claim.sentence, swap)}
    return claim.model_copy(update=update)


def _counts(counts: Mapping[str, int], swap: Swap) -> dict[str, int]:
    summed: dict[str, int] = {}
    for name, count in counts.items():
        new = swap(name)
        summed[new] = summed.get(new, 0) + count
    return summed


def _optional(text: str | None, swap: Swap) -> str | None:
    return None if text is None else swap(text)


def _object(value: Mapping[str, JsonValue], swap: Swap) -> dict[str, JsonValue]:
    return {swap(key): _value(item, swap) for key, item in value.items()}


def _value(value: JsonValue, swap: Swap) -> JsonValue:
    match value:
        case str():
            return swap(value)
        case bool():
            return value
        case int() if abs(value) >= MIN_NUMBER:
            text = str(value)
            new = swap(text)
            return value if new == text else new
        case list():
            return [_value(item, swap) for item in value]
        case dict():
            return _object(value, swap)
        case _:
            return value
