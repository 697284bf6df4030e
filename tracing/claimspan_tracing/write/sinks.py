"""The seam for writers: what a sink is, what it gets to write, and the mask of what it must not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Protocol, runtime_checkable

from pydantic import JsonValue

from claimspan import Chunk, Evaluation
from claimspan.evaluation.judgement import Assessment, Judgement, judgement_of
from claimspan.metrics import CATALOGUE
from claimspan_tracing.job import Job, Outcome
from claimspan_tracing.records.record import OpenSpans
from claimspan_tracing.redact.texts import Texts
from claimspan_tracing.suppression import run_suppressed
from claimspan_tracing.text import clean
from claimspan_tracing.write.limits import WITHHELD

__all__ = [
    "DeliveringSink",
    "Finished",
    "Sink",
    "Write",
    "finished_without_content",
    "without_content",
    "written_by",
]


# As code has names: a sentence, an address or a file's path is none.
_NAME: Final = re.compile(r"[A-Za-z_][\w.:<>-]{0,63}", re.ASCII)

# Numbers and digests, and the words that indexes put before them: an id that tells nothing else.
_ID: Final = re.compile(
    r"(?:[-_:#./ ]?(?:doc(?:ument)?|chunk|node|page|part|passage|text|item|row|id|[a-z])?[-_:#./ ]?"
    r"(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?:sha256:)?[0-9a-f]{16,128}+|\d{1,18}+))++|[a-z]",
    re.ASCII | re.IGNORECASE,
)

OTHER_ERROR: Final = "_OTHER"
"""The name by OpenTelemetry's conventions of a class of errors without one."""


def finished_without_content(finished: Finished) -> Finished:
    """Return a finished record without its texts."""
    held = _Withheld(_held, finished.job)
    outcome = replace(held.outcome(finished.outcome), reason=_reason(finished))
    return replace(finished, job=held.job(finished.job), outcome=outcome)


def without_content(job: Job) -> Job:
    """Return a job without query, response, chunks' texts, prompts, completions and metadata.

    The names of runs, the classes of exceptions and the ids of chunks are the application's, and
    may be made of a text: they stay if they have the form of names in code, and of numbers.
    """
    return _Withheld(_held, job).job(job)


def _held(text: str) -> str:
    return WITHHELD if text else text


def _reason(finished: Finished) -> str:
    """The reason of a state, without what the judge says about its verdicts."""
    outcome, ours = finished.outcome, finished.job.record.context_cut
    reason = outcome.reason
    for quoted in outcome.evaluation.undecided if outcome.evaluation else ():
        reason = reason.replace(quoted, WITHHELD) if quoted not in ("", ours) else reason
    return reason


@dataclass(frozen=True)
class _Withheld(Texts):
    """Withholds the texts of one record, but for what we ourselves say of it."""

    of: Job

    @cached_property
    def _ids(self) -> Mapping[str, str]:
        """What stands for the ids of chunks that may tell something."""
        chunks = [*self.of.record.chunks, *(c for run in self.of.retrievers for c in run.chunks)]
        told = dict.fromkeys(chunk.id for chunk in chunks if not _ID.fullmatch(chunk.id))
        return {id_: f"{WITHHELD} {number}" for number, id_ in enumerate(told, start=1)}

    def _name(self, text: str) -> str:
        return text if not text or _NAME.fullmatch(text) else WITHHELD

    def _error_type(self, text: str) -> str:
        return text if not text or _NAME.fullmatch(text) else OTHER_ERROR

    def _told(self, text: str) -> str:
        return text

    def _word(self, text: str) -> str:
        return text if text == self.of.record.context_cut else WITHHELD

    def _record_id(self, id_: str) -> str | None:
        return id_ if _ID.fullmatch(id_) else None

    def _chunk_id(self, chunk: Chunk, text: str) -> str:
        return self._ids.get(chunk.id, chunk.id)

    def metadata(self, value: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        return {}

    def evaluation(self, evaluation: Evaluation) -> Evaluation:
        # The reasons of our metrics are ours.
        undefined = evaluation.undefined.items()
        whys = {name: why if name in CATALOGUE else WITHHELD for name, why in undefined}
        update = {"explanations": {}, "undefined": whys}
        return super().evaluation(evaluation).model_copy(update=update)


@dataclass(frozen=True)
class Finished:
    """A record with its outcome, ready to be written."""

    job: Job
    """The job that was evaluated."""

    outcome: Outcome
    """What the evaluation led to."""

    spans: OpenSpans | None = None
    """The spans of the query while they are open; None if they have ended, if they are
    made by others, and in another process."""

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
    raises loses its records, and is counted; the other sinks are called all the same.
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
        """Deliver all that was taken in; False if something is left after ``timeout`` seconds."""
        ...

    @property
    def lost(self) -> int:
        """Number of records that could not be delivered."""
        ...


Write = Callable[[Finished], None]
"""Writes finished records to one place, as the method of a sink does."""


def written_by(sinks: Iterable[Sink]) -> list[Write]:
    """Return what has the user's sinks write, in an empty context without instrumentation.

    They must not see the context of whichever request is written, and what they do with a framework
    is no query.
    """

    def suppressed(sink: Sink) -> Write:
        return lambda finished: run_suppressed(sink.write, finished)

    return [suppressed(sink) for sink in sinks]
