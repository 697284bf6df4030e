"""What a job knows of the runs below its root, and the bounds of what it keeps of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field, JsonValue

from claimspan import Chunk

__all__ = [
    "MAX_CHUNKS",
    "MAX_MESSAGES",
    "MAX_MESSAGES_BYTES",
    "MAX_MESSAGE_BYTES",
    "STRICT",
    "GeneratorRun",
    "KeptSpan",
    "Message",
    "Nanoseconds",
    "RetrieverRun",
    "SpanIdHex",
    "TraceIdHex",
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
    """``system``, ``user``, ``assistant`` or ``tool``; empty where unknown."""

    text: str
    """What it says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieverRun:
    """One outermost retriever run."""

    __pydantic_config__ = STRICT

    started: Nanoseconds
    """Nanoseconds since the epoch."""

    ended: Nanoseconds
    """Nanoseconds since the epoch; the end of the root where the run's own was not seen."""

    query: str
    """What the retriever was asked."""

    chunks: tuple[Chunk, ...]
    """What it returned, in its order, cut to a bounded number."""

    id_sources: tuple[str, ...]
    """``document`` or ``content_hash``, one for each chunk."""

    found: int
    """Number of documents before any was cut off."""

    source: str = ""
    """Name of the store; empty where unknown."""

    parent: Index | None = None
    """Index in ``Job.runs`` of the nearest run that encloses this one; None for the root."""

    error_type: str = ""
    """Class of the exception that ended the run; empty where there was none."""

    completed: bool = True
    """Whether it ended by itself: False where it was cancelled, or its end was not seen."""

    span_id: SpanIdHex | Literal[""] = ""
    """Of the run's own span, 16 hex digits; empty before there is one."""

    kind: Literal["retriever"] = "retriever"
    """Tells the kinds of runs apart in JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorRun:
    """One outermost generator run."""

    __pydantic_config__ = STRICT

    started: Nanoseconds
    """Nanoseconds since the epoch."""

    ended: Nanoseconds
    """Nanoseconds since the epoch; the end of the root where the run's own was not seen."""

    prompt: str = ""
    """Everything that the model read, cut to a bounded length."""

    completion: str = ""
    """What the model answered."""

    model: str = ""
    """Name of the model; empty where unknown."""

    provider: str = ""
    """Name of the model's provider; empty where unknown."""

    input_tokens: int | None = None
    """Tokens of the prompt; None where unknown."""

    output_tokens: int | None = None
    """Tokens of the completion; None where unknown."""

    parent: Index | None = None
    """Index in ``Job.runs`` of the nearest run that encloses this one; None for the root."""

    error_type: str = ""
    """Class of the exception that ended the run; empty where there was none."""

    messages: tuple[Message, ...] = ()
    """The last messages of ``prompt`` and its system message; empty for a prompt without any."""

    completed: bool = True
    """Whether it ended by itself: False where it was cancelled, or its end was not seen."""

    span_id: SpanIdHex | Literal[""] = ""
    """Of the run's own span, 16 hex digits; empty before there is one."""

    kind: Literal["generator"] = "generator"
    """Tells the kinds of runs apart in JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptSpan:
    """What a span needs to be made once more, beside what a job knows anyway."""

    __pydantic_config__ = STRICT

    span_id: SpanIdHex
    """16 hex digits."""

    attributes: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """What others have set, such as a span processor that stamps the tenant."""


def union_of(retrievers: Iterable[RetrieverRun]) -> tuple[Chunk, ...]:
    """Return what several retrievers returned, in order, each chunk once, cut to ``MAX_CHUNKS``."""
    union: dict[tuple[str, str], Chunk] = {}
    for chunk in (chunk for run in retrievers for chunk in run.chunks):
        union.setdefault((chunk.id, chunk.text), chunk)
    return tuple(union.values())[:MAX_CHUNKS]
