"""A sink that sends the scores of records to the API of a backend."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from claimspan import Chunk, Evaluation, Label
from claimspan.errors import ConfigError, DeliveryError
from claimspan.evaluation.judgement import Assessment, Judgement
from claimspan_tracing import lifecycle
from claimspan_tracing.deliver.delivery import Delivery
from claimspan_tracing.deliver.http import Backend, Connection, NotStoredError
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import Job
from claimspan_tracing.write.sinks import Finished
from claimspan_tracing.write.spans import MAX_DOCUMENTS

__all__ = ["BackendWriter", "ScoredChunk", "ScoredRecord", "scored"]

BATCH_SIZE: Final = 50
"""Records sent at once: with 20 scores each a request has 300 KB."""

MAX_WAITING: Final = 5_000
"""Records that wait; with 20 scores each they take 40 MB."""

QUIET_SECONDS: Final = 30.0
"""For which a trace may be on its way before that is logged: the spans of other records are held
for as long, and a batch processor exports every 5 s."""

_SAMPLED = 1
"""The flag of a trace that is exported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredChunk:
    """Whether one chunk that a retriever returned was worth retrieving."""

    span_id: str
    """Of the retriever's span, 16 hex digits."""

    position: int
    """Place among the documents of that span, from 0."""

    is_relevant: bool
    """Whether the chunk entails any claim of the ground truth."""

    score: float
    """Share of the ground truth's claims that the chunk entails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRecord:
    """The scores of one record.

    It holds no text but the explanations, so that thousands of them can wait for a backend.
    """

    trace_id: str
    """Of the root span, 32 hex digits."""

    span_id: str
    """Of the root span, 16 hex digits."""

    judge_name: str
    """Name of the judge."""

    judge_version: str
    """Version of the judge; empty if it has none."""

    is_by_model: bool
    """Whether the judge called a model; otherwise it is a program."""

    judgement: Judgement
    """The label of the record, and its scores, each with its label and its explanation."""

    chunks: tuple[ScoredChunk, ...] = ()
    """The chunks on the spans of the retrievers; empty without a ground truth."""

    taken: float = field(default_factory=time.monotonic, compare=False)
    """When the scores were taken in, on the monotonic clock."""

    @property
    def assessments(self) -> tuple[Assessment, ...]:
        """The scores, the most telling first."""
        return self.judgement.scores

    @property
    def judge(self) -> str:
        """Name and version of the judge: a score of another version is another score."""
        return f"{self.judge_name}@{self.judge_version}" if self.judge_version else self.judge_name


def scored(finished: Finished) -> ScoredRecord | None:
    """Return the scores of a finished record.

    Returns:
        None if the record was not evaluated, and if its trace is not exported: a backend
        would wait for the span in vain.
    """
    job, evaluation = finished.job, finished.outcome.evaluation
    if evaluation is None or not job.trace_flags & _SAMPLED:
        return None
    # All of them are finite: an Evaluation takes no NaN, which JSON does not have.
    judgement = finished.judgement
    if not judgement.scores:
        return None
    return ScoredRecord(
        trace_id=job.trace_id,
        span_id=job.span_id,
        judge_name=evaluation.judge_name,
        judge_version=evaluation.judge_version,
        # The rule of the evaluation span: a judge that made no call is a program.
        is_by_model=bool(evaluation.usage.calls),
        judgement=judgement,
        chunks=tuple(_chunks(job, evaluation)),
    )


def _chunks(job: Job, evaluation: Evaluation) -> Iterator[ScoredChunk]:
    matrix = evaluation.ground_truth_vs_chunks
    if matrix is None or not len(matrix):
        return
    columns = zip(*matrix.labels, strict=True)
    judged = {_key(chunk): column for chunk, column in zip(job.record.chunks, columns, strict=True)}
    for run in job.retrievers:
        # No more than the span has: Phoenix drops the annotation of a document that is not there.
        for position, chunk in enumerate(run.chunks[:MAX_DOCUMENTS] if run.span_id else ()):
            column = judged.get(_key(chunk), ())
            # Undefined is not 0: a chunk that was not judged to the end has no score.
            if column and None not in column:
                share = column.count(Label.ENTAILED) / len(column)
                yield ScoredChunk(
                    span_id=run.span_id, position=position, is_relevant=share > 0, score=share
                )


def _key(chunk: Chunk) -> tuple[str, str]:
    return chunk.id, chunk.text


_Refused = Mapping[int, DeliveryError]


class BackendWriter(ABC):
    """Takes the scores of finished records in, and sends them on a thread of its own.

    A record that was not evaluated writes nothing. What a backend refuses for good, and what it
    does not take in time, is counted in ``lost``, and logged without content and keys. One writer
    may serve any number of monitors; a forked child goes on with a thread of its own.
    """

    def __init__(self, backend: Backend, metrics: Sequence[str] | None = None) -> None:
        """Set the backend; no thread starts yet.

        Args:
            backend: Where scores go.
            metrics: The scores that go there, of those that are measured; None for all. Label and
                summary of a record are those of all its scores.

        Raises:
            ConfigError: ``metrics`` is no list of names.
        """
        if isinstance(metrics, str) or not all(isinstance(name, str) for name in metrics or ()):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
            raise ConfigError(f"metrics is {metrics!r}: give a list of names")
        self._metrics = None if metrics is None else frozenset(metrics)
        self.backend: Final = backend
        """Where scores go, and where their traces can be read."""
        self._delivery = Delivery(
            backend.name.lower(), self._send, batch_size=BATCH_SIZE, max_waiting=MAX_WAITING
        )
        self.restart_in_child()
        lifecycle.restart_in_child(self)

    def restart_in_child(self) -> None:
        """Begin to count anew in a forked child."""
        self._guard = Guard()  # its lock may be held by a thread that the child does not have
        self._refused = 0

    def start(self) -> None:
        """Start the thread, ahead of the first record; safe to call again.

        Raises:
            RuntimeError: The interpreter is shutting down.
        """
        self._delivery.start()

    def write(self, finished: Finished) -> None:
        """Take the scores of a record in; never waits for the backend."""
        record = scored(finished)
        if record is not None and self._metrics is not None:
            scores = tuple(e for e in record.assessments if e.name in self._metrics)
            record = replace(record, judgement=replace(record.judgement, scores=scores))
        if record is not None:
            self._delivery.put(record)

    def flush(self, timeout: float) -> bool:
        """Send all that was taken in; False if something is left after ``timeout`` seconds."""
        return self._delivery.flush(timeout)

    @property
    def lost(self) -> int:
        """Number of records whose scores did not all arrive."""
        return self._delivery.lost + self._refused

    @abstractmethod
    async def _write(self, connection: Connection, records: Sequence[ScoredRecord]) -> _Refused:
        """Write records; returns the error of each that was not written, by its index."""

    def _send(self, records: Sequence[ScoredRecord]) -> Sequence[ScoredRecord]:
        """Write records; returns those to be written again later."""
        errors = self.backend.run(lambda connection: self._write(connection, records))
        if len(errors) == len(records) and all(map(_is_away, errors.values())):
            # Nothing arrived at all: the delivery leaves the backend alone for a while.
            raise errors[0]
        # Each kind of error is logged, but none that is to be expected.
        now = time.monotonic()
        unexpected = {
            str(error): error
            for index, error in errors.items()
            if not isinstance(error, NotStoredError) or now - records[index].taken >= QUIET_SECONDS
        }
        for error in unexpected.values():
            self._guard.swallow(error)
        self._refused += sum(error.final for error in errors.values())
        return [records[index] for index, error in errors.items() if not error.final]


def _is_away(error: DeliveryError) -> bool:
    return not error.final and not isinstance(error, NotStoredError)
