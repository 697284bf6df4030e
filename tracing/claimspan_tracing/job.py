"""Job and outcome: the two values that a record consists of after it was read.

A job is made from a run tree, an outcome by evaluating the job. Both are frozen, versioned and
survive JSON exactly. Together they are enough to write everything about a record, in another
process as well: neither refers to a span, a framework's object or a judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Annotated, Final, Literal, TypeVar

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from claimspan import Chunk, Evaluation, RagRecord
from claimspan.errors import ConfigError
from claimspan.files.ground_truth import GroundTruthMatch
from claimspan_tracing.decide.sampling import Decision, Facts
from claimspan_tracing.decide.status import Status
from claimspan_tracing.text import MAX_CHARACTER_BYTES, MAX_TEXT_BYTES, byte_length

__all__ = [
    "MAX_CHUNKS",
    "MAX_MESSAGES",
    "MAX_MESSAGES_BYTES",
    "MAX_MESSAGE_BYTES",
    "GeneratorRun",
    "Job",
    "JobKey",
    "KeptSpan",
    "Message",
    "Outcome",
    "RetrieverRun",
    "context_cut_of",
    "union_of",
]

MAX_CHUNKS: Final = 100
"""Chunks kept of one record; the others are counted."""

MAX_MESSAGES: Final = 10
"""Messages kept of one prompt, whose whole text is beside them: two attributes each on a span."""

MAX_MESSAGE_BYTES: Final = 8 * 1024
"""Bytes kept of one message, as of a prompt on a span."""

MAX_MESSAGES_BYTES: Final = 16 * 1024
"""Bytes kept of the messages of one prompt: room for two long ones."""

STRICT: Final = ConfigDict(extra="forbid")
"""How all parts of a job are read from JSON: a field that is not known is an error."""

# What OpenTelemetry's protocol can carry. They hold for what is read from JSON: an exporter would
# refuse a span beyond them with everything that is in the same batch, each time it is tried.
Nanoseconds = Annotated[int, Field(ge=0, lt=2**64)]
"""A time since the epoch."""

TraceIdHex = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
"""Id of a trace."""

SpanIdHex = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
"""Id of a span."""

Index = Annotated[int, Field(ge=0)]
"""Place in a list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a chat with a model."""

    __pydantic_config__ = STRICT

    role: str
    """``system``, ``user``, ``assistant`` or ``tool``; empty if unknown."""

    text: str
    """The text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _RunBelow:
    """What all runs below the root have."""

    __pydantic_config__ = STRICT

    started: Nanoseconds
    """Nanoseconds since the epoch."""

    ended: Nanoseconds
    """Nanoseconds since the epoch; the end of the root if the run's own was not seen."""

    parent: Index | None = None
    """Index in ``Job.runs`` of the nearest run that encloses this one; None for the root."""

    error_type: str = ""
    """Class of the exception that ended the run; empty if there was none."""

    completed: bool = True
    """Whether it ended by itself: False if it was cancelled, or its end was not seen."""

    span_id: SpanIdHex | Literal[""] = ""
    """Of the run's own span, 16 hex digits; empty before there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieverRun(_RunBelow):
    """One outermost retriever run."""

    query: str
    """The retriever's question."""

    chunks: tuple[Chunk, ...]
    """What it returned, in its order, cut to a bounded number."""

    id_sources: tuple[str, ...]
    """``document`` or ``content_hash``, one for each chunk."""

    found: int
    """Number of documents before any was cut off."""

    source: str = ""
    """Name of the store; empty if unknown."""

    kind: Literal["retriever"] = "retriever"
    """Tells the kinds of runs apart in JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorRun(_RunBelow):
    """One outermost generator run."""

    prompt: str = ""
    """Everything that the model read, cut to a bounded length."""

    completion: str = ""
    """What the model answered."""

    model: str = ""
    """Name of the model; empty if unknown."""

    provider: str = ""
    """Name of the model's provider by OpenTelemetry's registry; empty if unknown."""

    operation: Literal["chat", "text_completion"] = "chat"
    """The kind of call, as ``gen_ai.operation.name``."""

    input_tokens: int | None = None
    """Tokens of the prompt; None if unknown."""

    output_tokens: int | None = None
    """Tokens of the completion; None if unknown."""

    response_id: str = ""
    """The provider's id of the response; empty if unknown."""

    response_model: str = ""
    """Name of the model that answered; empty if unknown."""

    finish_reason: str = ""
    """Why the model ended, in the provider's words; empty if unknown."""

    temperature: float | None = None
    """As requested; None if unknown, as the next two."""

    top_p: float | None = None
    """The share of probability that tokens were chosen from."""

    max_tokens: int | None = None
    """Most tokens of the completion."""

    messages: tuple[Message, ...] = ()
    """The last messages of ``prompt`` and its system message; empty for a prompt without any."""

    kind: Literal["generator"] = "generator"
    """Tells the kinds of runs apart in JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSpan:
    """The fields of a span that a job lacks, and that are needed to make the span once more."""

    __pydantic_config__ = STRICT

    span_id: SpanIdHex
    """16 hex digits."""

    attributes: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """Attributes that others set, such as a span processor that stamps the tenant."""


def union_of(retrievers: Iterable[RetrieverRun]) -> tuple[Chunk, ...]:
    """Return what several retrievers returned, in order, each chunk once, cut to ``MAX_CHUNKS``."""
    union: dict[tuple[str, str], Chunk] = {}
    for chunk in (chunk for run in retrievers for chunk in run.chunks):
        union.setdefault((chunk.id, chunk.text), chunk)
    return tuple(union.values())[:MAX_CHUNKS]


def context_cut_of(
    chunks: Sequence[Chunk], found: int, dropped: int = 0, cut: str = ""
) -> str | None:
    """Return why chunks are not all that was read, as ``RagRecord.context_cut``; None if they are.

    Args:
        chunks: Those that are kept.
        found: Number of those that were read, before any was cut off.
        dropped: Runs that are not kept, each of which may have been a search.
        cut: Why more may have been read than was found; empty if that is not so.
    """
    # A text that is cut lacks less than one character of its bound.
    n_cut = sum(
        byte_length(chunk.text) > MAX_TEXT_BYTES - MAX_CHARACTER_BYTES
        for chunk in chunks
        if len(chunk.text) * MAX_CHARACTER_BYTES > MAX_TEXT_BYTES - MAX_CHARACTER_BYTES
    )
    bounds = {
        f"{len(chunks)} of {found} chunks are kept": found - len(chunks),
        f"{MAX_TEXT_BYTES // 1024} KiB are kept of {n_cut} long chunks": n_cut,
        f"{dropped} runs are not kept": dropped,
        cut: len(cut),
    }
    return "; ".join(reason for reason, beyond in bounds.items() if beyond > 0) or None


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
    """Of the root span; 1 if it is exported."""

    trace_state: str = ""
    """Of the root span, as in the W3C header ``tracestate``."""

    root_ended: bool = False
    """Whether the root span had ended when the job was made, because another package owns it."""

    route: str
    """Name of the root run, as the framework shows it."""

    started: Nanoseconds
    """Start of the root, nanoseconds since the epoch."""

    ended: Nanoseconds
    """End of the root, nanoseconds since the epoch."""

    error_type: str = ""
    """Class of the exception that ended the root; empty if there was none."""

    runs: tuple[Annotated[RetrieverRun | GeneratorRun, Field(discriminator="kind")], ...] = ()
    """The outermost retriever and generator runs, in the order of their start."""

    context_source: Literal["prompt", "last_documents", "retriever", ""] = ""
    """How the read chunks are known, as ``claimspan.context.source``; empty without chunks."""

    chunks_found: int = 0
    """Number of chunks that the generator read, before any was cut off; 0 if not counted."""

    rewritten: str = ""
    """The question of the retriever whose chunks were read; empty if that is the query."""

    runs_dropped: int = 0
    """Runs beyond the bounds of one query, which are not recorded."""

    abstained: bool = False
    """Whether the response declines to answer."""

    status: Status | None = None
    """The state that the pipeline's own result leads to; None if the record can be evaluated."""

    reason: str = ""
    """More about ``status``; empty if there is nothing to add."""

    feedback: float | None = None
    """A user's feedback on the response when the job was read; None if there was none."""

    decision: Decision | None = None
    """What the sampler decided; None before it was asked."""

    redaction_failed: int = 0
    """Texts that were left out because the redactor failed on them."""

    parent_span_id: SpanIdHex | Literal[""] = ""
    """Of the root's parent, 16 hex digits; empty if it has none, or none is known."""

    kept_spans: tuple[KeptSpan, ...] = ()
    """The root's span and those of ``runs``, in the same order; empty if they are not held."""

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
        job = _parsed("a job", _job_format(), text)
        record = job.record
        if record.context_cut is not None:
            return job
        # A job of an older version has the counts alone.
        why = context_cut_of(record.chunks, job.chunks_found)
        return replace(job, record=record.model_copy(update={"context_cut": why})) if why else job


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of evaluating a job."""

    __pydantic_config__ = STRICT

    status: Status
    """The state that the record ends in."""

    reason: str = ""
    """More about the state; empty if it says all."""

    evaluation: Evaluation | None = None
    """Claims, verdicts and metrics; None if there are no scores."""

    ground_truth: GroundTruthMatch | None = None
    """The ground truth of the response; None if there was none."""

    decision: Decision | None = None
    """What the sampler decided after its first judge; takes the place of ``Job.decision``. None if
    that stands."""

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


# Built at first use: it takes milliseconds, and most processes never need it.
@cache
def _job_format() -> TypeAdapter[Job]:
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
