"""Contexts of spans that are written about after they have ended, here or in another process."""

from __future__ import annotations

from opentelemetry.context import Context
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    TraceFlags,
    TraceState,
    set_span_in_context,
)

from claimspan_tracing.job import Job

__all__ = ["context_of", "root_context"]


def root_context(job: Job) -> SpanContext:
    """Return the context of a job's root span, which may have been in another process."""
    # Not marked as remote: a head sampler may treat remote parents differently, and whether the
    # trace is exported was decided where the root was started.
    return SpanContext(
        trace_id=int(job.trace_id, 16),
        span_id=int(job.span_id, 16),
        is_remote=False,
        trace_flags=TraceFlags(job.trace_flags),
        trace_state=TraceState.from_header([job.trace_state] if job.trace_state else []),
    )


def context_of(job: Job) -> Context:
    """Return the current context with a job's root as its span.

    It gives events and exemplars the ids of the root, and processors the baggage of the request.
    """
    return set_span_in_context(NonRecordingSpan(root_context(job)))
