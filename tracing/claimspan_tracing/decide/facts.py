"""Facts: what is known about a record when its root has ended, for samplers to decide on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

__all__ = ["Facts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a sampler may decide on. Read from the finished record, before any judge is asked."""

    trace_id: int
    """Trace id of the root span, 128 bits."""

    span_id: int
    """Span id of the root span, 64 bits."""

    route: str = ""
    """Name of the root run, as the framework shows it: which chain or pipeline answered."""

    latency_seconds: float = 0.0
    """From the start of the root to its end, or to the end of its stream."""

    has_answer: bool = True
    """Whether there is a response that is not blank."""

    has_context: bool = True
    """Whether at least one chunk was retrieved or read."""

    abstained: bool = False
    """Whether the response declines to answer."""

    failed: bool = False
    """Whether the pipeline itself raised an exception."""

    retrieval_scores: tuple[float, ...] = ()
    """The scores of the chunks on the retriever's own scale, without those that have none."""

    attributes: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """What the application attached to the run (``metadata``), as JSON values."""
