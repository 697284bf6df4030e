"""Facts: what is known about a record when its root has ended, for samplers to decide on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

__all__ = ["Facts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a sampler may decide on. Read from the finished record."""

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

    had_error: bool = False
    """Whether the pipeline, or a retriever or generator in it, raised; also where the pipeline
    recovered and answered all the same."""

    empty_retrieval: bool = False
    """Whether a retriever came back without a chunk; another one may have found some."""

    can_be_evaluated: bool = True
    """Whether the pipeline's own result allows an evaluation. Where it does not, such as after an
    exception, the decision is noted on the span and has no other effect."""

    retrieval_scores: tuple[float, ...] = ()
    """The scores of the chunks on the retriever's own scale, without those that have none."""

    attributes: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """What the application attached to the run (``metadata``), as JSON values."""

    feedback: float | None = None
    """What a user said about the response, 0 (bad) to 1 (good); None where nobody has yet."""

    first_scores: Mapping[str, float] | None = None
    """The metrics by the sampler's first judge; None before it was asked, empty where it could
    decide nothing."""
