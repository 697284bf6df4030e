"""The mask of ``capture_content=False``: a record without its texts.

Laid over what is written, not over attributes: where spans, events and sinks get no text, none of
them can show any. Ids of spans and chunks, names, times, counts, labels, scores and states stay.
What the application attached goes, with the ids of session and user: these are often addresses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from claimspan import Chunk, Claim, Evaluation
from claimspan.metrics import CATALOGUE
from claimspan_tracing.job import GeneratorRun, Job, Outcome, RetrieverRun
from claimspan_tracing.write.limits import WITHHELD
from claimspan_tracing.write.sinks import Finished

__all__ = ["finished_without_content", "without_content"]


def finished_without_content(finished: Finished) -> Finished:
    """Return a finished record without its texts."""
    outcome = _outcome(finished.outcome)
    return replace(finished, job=without_content(finished.job), outcome=outcome)


def without_content(job: Job) -> Job:
    """Return a job without query, response, chunks' texts, prompts, completions and metadata."""
    record = job.record
    update: dict[str, object] = {
        "query": _held(record.query),
        "response": _held(record.response),
        "chunks": _chunks(record.chunks),
        "ground_truth": None,
        "metadata": {},
    }
    runs = tuple(_run(run) for run in job.runs)
    rewritten = _held(job.rewritten)
    return replace(job, record=record.model_copy(update=update), runs=runs, rewritten=rewritten)


def _held(text: str) -> str:
    return WITHHELD if text else text


def _chunks(chunks: tuple[Chunk, ...]) -> tuple[Chunk, ...]:
    return tuple(c.model_copy(update={"text": _held(c.text), "metadata": {}}) for c in chunks)


def _run(run: RetrieverRun | GeneratorRun) -> RetrieverRun | GeneratorRun:
    if isinstance(run, RetrieverRun):
        return replace(run, query=_held(run.query), chunks=_chunks(run.chunks))
    messages = tuple(replace(message, text=_held(message.text)) for message in run.messages)
    prompt, completion = _held(run.prompt), _held(run.completion)
    return replace(run, prompt=prompt, completion=completion, messages=messages)


def _outcome(outcome: Outcome) -> Outcome:
    match, evaluation = outcome.ground_truth, outcome.evaluation
    return replace(
        outcome,
        reason=_reason(outcome),
        evaluation=evaluation and _evaluation(evaluation),
        ground_truth=match and match.model_copy(update={"text": _held(match.text)}),
    )


def _reason(outcome: Outcome) -> str:
    """The reason of a state, without what the judge says about its verdicts."""
    reason = outcome.reason
    for quoted in outcome.evaluation.undecided if outcome.evaluation else ():
        reason = reason.replace(quoted, WITHHELD) if quoted else reason
    return reason


def _evaluation(evaluation: Evaluation) -> Evaluation:
    # The reasons of grades and of undecided verdicts and the notes are the judge's own words, and
    # may quote; those of our metrics are ours.
    undefined = evaluation.undefined.items()
    return evaluation.model_copy(
        update={
            "response_claims": _claims(evaluation.response_claims),
            "ground_truth_claims": _claims(evaluation.ground_truth_claims),
            "explanations": {},
            "undefined": {name: why if name in CATALOGUE else WITHHELD for name, why in undefined},
            "undecided": _sum(evaluation.undecided),
            "notes": _sum(evaluation.notes),
        }
    )


def _claims(claims: tuple[Claim, ...]) -> tuple[Claim, ...]:
    return tuple(Claim(text=WITHHELD) for _ in claims)


def _sum(counts: Mapping[str, int]) -> dict[str, int]:
    return {WITHHELD: sum(counts.values())} if counts else {}
