"""The seam for writers: what a sink is, what it gets to write, and the mask of what it must not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Final, Protocol, runtime_checkable

from claimspan import Chunk, Claim, Evaluation
from claimspan.evaluation.judgement import Assessment, Judgement, judgement_of
from claimspan.metrics import CATALOGUE
from claimspan_tracing.job import GeneratorRun, Job, Outcome, RetrieverRun
from claimspan_tracing.records.record import OpenSpans
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


def finished_without_content(finished: Finished) -> Finished:
    """Return a finished record without its texts."""
    outcome = _outcome(finished.outcome, finished.job.record.context_cut)
    return replace(finished, job=without_content(finished.job), outcome=outcome)


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


def without_content(job: Job) -> Job:
    """Return a job without query, response, chunks' texts, prompts, completions and metadata.

    The names of runs, the classes of exceptions and the ids of chunks are the application's, and
    may be made of a text: they stay if they have the form of names in code, and of numbers.
    """
    record = job.record
    chunks = [*record.chunks]
    for run in job.runs:
        chunks += run.chunks if isinstance(run, RetrieverRun) else ()
    told = dict.fromkeys(chunk.id for chunk in chunks if not _ID.fullmatch(chunk.id))
    ids = {id_: f"{WITHHELD} {number}" for number, id_ in enumerate(told, start=1)}
    update: dict[str, object] = {
        "query": _held(record.query),
        "response": _held(record.response),
        "chunks": _chunks(record.chunks, ids),
        "ground_truth": None,
        "id": record.id if _ID.fullmatch(record.id or "") else None,
        "metadata": {},
    }
    return replace(
        job,
        record=record.model_copy(update=update),
        route=_name(job.route),
        error_type=_name(job.error_type, OTHER_ERROR),
        runs=tuple(map(partial(_run, ids=ids), job.runs)),
        rewritten=_held(job.rewritten),
    )


def _held(text: str) -> str:
    return WITHHELD if text else text


def _name(name: str, other: str = WITHHELD) -> str:
    return name if not name or _NAME.fullmatch(name) else other


def _chunks(chunks: tuple[Chunk, ...], ids: Mapping[str, str]) -> tuple[Chunk, ...]:
    return tuple(
        chunk.model_copy(
            update={"id": ids.get(chunk.id, chunk.id), "text": _held(chunk.text), "metadata": {}}
        )
        for chunk in chunks
    )


def _run(run: RetrieverRun | GeneratorRun, ids: Mapping[str, str]) -> RetrieverRun | GeneratorRun:
    error_type = _name(run.error_type, OTHER_ERROR)
    if isinstance(run, RetrieverRun):
        return replace(
            run,
            query=_held(run.query),
            chunks=_chunks(run.chunks, ids),
            source=_name(run.source),
            error_type=error_type,
        )
    return replace(
        run,
        prompt=_held(run.prompt),
        completion=_held(run.completion),
        messages=tuple(replace(message, text=_held(message.text)) for message in run.messages),
        error_type=error_type,
    )


def _outcome(outcome: Outcome, ours: str | None) -> Outcome:
    match, evaluation = outcome.ground_truth, outcome.evaluation
    return replace(
        outcome,
        reason=_reason(outcome, ours),
        evaluation=evaluation and _evaluation(evaluation, ours),
        ground_truth=match and match.model_copy(update={"text": _held(match.text)}),
    )


def _reason(outcome: Outcome, ours: str | None) -> str:
    """The reason of a state, without what the judge says about its verdicts."""
    reason = outcome.reason
    for quoted in outcome.evaluation.undecided if outcome.evaluation else ():
        reason = reason.replace(quoted, WITHHELD) if quoted not in ("", ours) else reason
    return reason


def _evaluation(evaluation: Evaluation, ours: str | None) -> Evaluation:
    # The reasons of grades and of undecided verdicts and the notes are the judge's own words, and
    # may quote; those of our metrics are ours.
    undefined = evaluation.undefined.items()
    return evaluation.model_copy(
        update={
            "response_claims": _claims(evaluation.response_claims),
            "ground_truth_claims": _claims(evaluation.ground_truth_claims),
            "explanations": {},
            "undefined": {name: why if name in CATALOGUE else WITHHELD for name, why in undefined},
            "undecided": _sum(evaluation.undecided, ours),
            "notes": _sum(evaluation.notes),
        }
    )


def _claims(claims: tuple[Claim, ...]) -> tuple[Claim, ...]:
    return tuple(Claim(text=WITHHELD) for _ in claims)


def _sum(counts: Mapping[str, int], ours: str | None = None) -> dict[str, int]:
    """The counts without their names, but for one that is no word of the judge."""
    found = Counter[str]()
    for name, count in counts.items():
        found[name if name == ours else WITHHELD] += count
    return dict(found)


@dataclass(frozen=True)
class Finished:
    """A record with its outcome, ready to be written."""

    job: Job
    """What was evaluated."""

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
        """Deliver what was taken in; False if something is left after ``timeout`` seconds."""
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
