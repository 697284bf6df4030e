"""Finished records for tests of what writes scores, evaluated for real with scripted verdicts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

from claimspan import evaluate
from claimspan.evaluation.judgement import Assessment, Judgement
from claimspan_tracing import Job, Outcome, Status
from claimspan_tracing.job import RetrieverRun
from claimspan_tracing.write.sinks import Finished

from scripted import ScriptedJudge, make_record

__all__ = ["LOW", "Assessed", "finished", "low", "not_evaluated"]

LOW = Assessment(
    name="faithfulness",
    value=0.5,
    label="low",
    explanation="1 of 2 claims is in no chunk: beta",
)


@dataclass(frozen=True)
class Assessed(Finished):
    """A record whose assessments a test has set."""

    given: tuple[Assessment, ...] = field(default=())

    @cached_property
    def judgement(self) -> Judgement:
        low = [each for each in self.given if each.label == "low"]
        return Judgement(
            label="low" if low else "good",
            scores=self.given,
            summary=str(low[0]) if low else "",
        )


def finished(number: int = 1, *, trace: int | None = None, judge_version: str = "") -> Finished:
    """A record with a ground truth, two chunks and their retriever.

    Args:
        number: Makes the ids of trace and span.
        trace: Makes the id of the trace, where it is another one's as well.
        judge_version: In place of the judge's own.
    """
    record = make_record()
    evaluation = evaluate(record, judge=ScriptedJudge())
    if judge_version:
        evaluation = evaluation.model_copy(update={"judge_version": judge_version})
    run = RetrieverRun(
        started=1,
        ended=2,
        query="q",
        chunks=record.chunks,
        id_sources=("document", "document"),
        found=2,
        span_id=f"{number:08x}aaaaaaaa",
    )
    job = Job(
        record=record,
        trace_id=f"{trace or number:032x}",
        span_id=f"{number:016x}",
        trace_flags=1,
        route="chain",
        started=1,
        ended=2,
        runs=(run,),
    )
    return Finished(job, Outcome(status=Status.EVALUATED, evaluation=evaluation))


def low(number: int = 1) -> Finished:
    """A record with one score, which is low and says why."""
    whole = finished(number)
    return Assessed(whole.job, whole.outcome, given=(LOW,))


def not_evaluated(number: int = 1) -> Finished:
    """A record that the sampler has passed over."""
    return replace(finished(number), outcome=Outcome(status=Status.NOT_SAMPLED))
