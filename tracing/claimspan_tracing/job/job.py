"""Job and outcome: the two values that a record consists of after it was read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from claimspan import Chunk, Evaluation, RagRecord
from claimspan.errors import ConfigError
from claimspan.files.ground_truth import GroundTruthMatch
from claimspan_tracing.decide.sampling import Decision, Facts
from claimspan_tracing.decide.status import Status
from claimspan_tracing.job.runs import (
    STRICT,
    GeneratorRun,
    KeptSpan,
    Nanoseconds,
    RetrieverRun,
    SpanIdHex,
    TraceIdHex,
    union_of,
)

__all__ = ["Job", "JobKey", "Outcome"]

JobKey = tuple[str, str]
"""Trace id and span id of the root span, in hex."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Everything that is known about one record before it is evaluated."""

    __pydantic_config__ = STRICT

    record: RagRecord
    """Query, chunks that the generator read, response and the application's metadata."""

    trace_id: TraceIdHex
    """Of the root span, 32 hex digits."""

    span_id: SpanIdHex
    """Of the root span, 16 hex digits."""

    trace_flags: Annotated[int, Field(ge=0, le=255)]
    """Of the root span; 1 where it is exported."""

    trace_state: str = ""
    """Of the root span, as in the W3C header ``tracestate``."""

    root_ended: bool = False
    """Whether the root span had ended when the job was made, because somebody else owns it."""

    route: str
    """Name of the root run, as the framework shows it."""

    started: Nanoseconds
    """Start of the root, nanoseconds since the epoch."""

    ended: Nanoseconds
    """End of the root, nanoseconds since the epoch."""

    error_type: str = ""
    """Class of the exception that ended the root; empty where there was none."""

    runs: tuple[Annotated[RetrieverRun | GeneratorRun, Field(discriminator="kind")], ...] = ()
    """The outermost retriever and generator runs, in the order of their start."""

    context_source: Literal["prompt", "last_documents", "retriever", ""] = ""
    """How it is known what was read, as ``claimspan.context.source``; empty without chunks."""

    chunks_found: int = 0
    """Number of chunks that the generator read, before any was cut off; 0 where nobody counted."""

    rewritten: str = ""
    """What the retriever was asked whose chunks were read; empty where that is the query."""

    runs_dropped: int = 0
    """Runs beyond the bounds of one query, which are not recorded."""

    abstained: bool = False
    """Whether the response declines to answer."""

    status: Status | None = None
    """The state that the pipeline's own result leads to; None where the record can be evaluated."""

    reason: str = ""
    """More about ``status``; empty where there is nothing to add."""

    feedback: float | None = None
    """What a user had said about the response when the job was read; None where nobody had."""

    decision: Decision | None = None
    """What the sampler decided; None before it was asked."""

    redaction_failed: int = 0
    """Texts that were left out because the redactor failed on them."""

    parent_span_id: SpanIdHex | Literal[""] = ""
    """Of the root's parent, 16 hex digits; empty where it has none, or none is known."""

    kept_spans: tuple[KeptSpan, ...] = ()
    """The root's span and those of ``runs``, in the same order; empty where they are not held."""

    capture_content: bool = True
    """Whether texts of the record may be written, wherever it is evaluated."""

    whole_values: bool = False
    """Whether input and output of each run's span repeat the texts that documents and messages
    have: MLflow and Langfuse show them in this form alone."""

    version: Literal[1] = 1
    """Version of this format."""

    @property
    def key(self) -> JobKey:
        """Identifies the record: trace id and span id of its root span."""
        return self.trace_id, self.span_id

    @property
    def retrievers(self) -> list[RetrieverRun]:
        """The retriever runs."""
        return [run for run in self.runs if isinstance(run, RetrieverRun)]

    @property
    def retrieved(self) -> tuple[Chunk, ...]:
        """The union of what the retrievers returned, in order, each chunk once."""
        return union_of(self.retrievers)

    @property
    def facts(self) -> Facts:
        """What a sampler may decide on."""
        chunks = self.record.chunks
        return Facts(
            trace_id=int(self.trace_id, 16),
            span_id=int(self.span_id, 16),
            route=self.route,
            latency_seconds=max(0, self.ended - self.started) / 1e9,
            has_answer=bool(self.record.response.strip()),
            has_context=bool(chunks),
            abstained=self.abstained,
            failed=bool(self.error_type),
            had_error=bool(self.error_type) or any(run.error_type for run in self.runs),
            empty_retrieval=any(not run.found for run in self.retrievers),
            can_be_evaluated=self.status is None,
            retrieval_scores=tuple(c.score for c in chunks if c.score is not None),
            attributes=self.record.metadata,
            feedback=self.feedback,
        )

    def to_json(self) -> str:
        """Return the job as JSON text."""
        return _job_format().dump_json(self).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Job:
        """Return the job that ``to_json`` wrote.

        Raises:
            ConfigError: The text is not a job of this version.
        """
        return _parsed("a job", _job_format(), text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What evaluating a job has led to."""

    __pydantic_config__ = STRICT

    status: Status
    """The state that the record ends in."""

    reason: str = ""
    """More about the state; empty where it says all."""

    evaluation: Evaluation | None = None
    """Claims, verdicts and metrics; None where there are no scores."""

    ground_truth: GroundTruthMatch | None = None
    """What the response was compared with; None where there was no ground truth."""

    decision: Decision | None = None
    """What the sampler decided after its first judge; takes the place of ``Job.decision``. None
    where that stands."""

    late: bool = False
    """Whether the record's spans had been ended, with another state, before the scores came."""

    redaction_failed: int = 0
    """Texts of this value that were left out because the redactor failed on them."""

    unavailable: bool = False
    """Whether the judge could not be reached, so that the same job may be judged later."""

    version: Literal[1] = 1
    """Version of this format."""

    def to_json(self) -> str:
        """Return the outcome as JSON text."""
        return _outcome_format().dump_json(self).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Outcome:
        """Return the outcome that ``to_json`` wrote.

        Raises:
            ConfigError: The text is not an outcome of this version.
        """
        return _parsed("an outcome", _outcome_format(), text)


@cache
def _job_format() -> TypeAdapter[Job]:
    # Built at first use: it takes milliseconds, and most processes never need it.
    return TypeAdapter(Job)


@cache
def _outcome_format() -> TypeAdapter[Outcome]:
    return TypeAdapter(Outcome)


def _parsed(name: str, format_: TypeAdapter[_T], text: str | bytes) -> _T:
    try:
        return format_.validate_json(text)
    except ValidationError as error:
        # The input stays out of the message: it holds questions and answers.
        problem = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, problem["loc"])) or "the text"
        raise ConfigError(f"this is not {name} of version 1: {place}: {problem['msg']}") from None
