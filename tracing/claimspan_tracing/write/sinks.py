"""The seam for writers: what a sink is, and what it gets to write."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, runtime_checkable

from claimspan.evaluation.judgement import Assessment, Judgement, judgement_of
from claimspan_tracing.job import Job, Outcome
from claimspan_tracing.records.record import OpenSpans
from claimspan_tracing.suppression import run_suppressed
from claimspan_tracing.text import clean
from claimspan_tracing.write.limits import WITHHELD

__all__ = ["DeliveringSink", "Finished", "Sink", "SuppressedSink"]


@dataclass(frozen=True)
class Finished:
    """A record with its outcome, ready to be written."""

    job: Job
    """What was evaluated."""

    outcome: Outcome
    """What the evaluation led to."""

    spans: OpenSpans | None = None
    """The spans of the query while they are open; None where they have ended, where they are
    somebody else's, and in another process."""

    @cached_property
    def judgement(self) -> Judgement:
        """What the scores say of the answer; made once, for all sinks."""
        evaluation = self.outcome.evaluation
        if evaluation is None:
            return Judgement()
        ids = [chunk.id for chunk in self.job.record.chunks]
        claims = (*evaluation.response_claims, *evaluation.ground_truth_claims)
        found = judgement_of(
            evaluation, chunk_ids=ids, quotes=all(c.text != WITHHELD for c in claims)
        )
        # A judge's claims were not cleaned at capture, as the texts were.
        scores = tuple(replace(e, explanation=clean(e.explanation)) for e in found.scores)
        return replace(found, scores=scores, summary=clean(found.summary))

    @property
    def assessments(self) -> tuple[Assessment, ...]:
        """The scores, each with its label and its reason, the most telling first."""
        return self.judgement.scores


@runtime_checkable
class Sink(Protocol):
    """Writes finished records to one place.

    Sinks are called in their order, on the worker's thread, never on the application's. A sink that
    raises loses what it was to write, and is counted; the other sinks are called all the same.
    """

    def write(self, finished: Finished) -> None:
        """Write one finished record. Blocking here delays the spans of other records."""
        ...


@runtime_checkable
class DeliveringSink(Sink, Protocol):
    """A sink that only takes records in, and delivers them on a thread of its own."""

    def start(self) -> None:
        """Start the thread, ahead of the first record; safe to call again.

        Raises:
            RuntimeError: The interpreter is shutting down.
        """
        ...

    def flush(self, timeout: float) -> bool:
        """Deliver what was taken in; False where something is left after ``timeout`` seconds."""
        ...

    @property
    def lost(self) -> int:
        """Number of records that could not be delivered."""
        ...


class SuppressedSink:
    """A sink of the user's, called in an empty context with instrumentation suppressed.

    It must not see the context of whichever request is written, and what it does with a framework
    is no query.
    """

    def __init__(self, sink: Sink) -> None:
        """Wrap a sink."""
        self._sink = sink

    def write(self, finished: Finished) -> None:
        """Have the sink write a record."""
        run_suppressed(self._sink.write, finished)
