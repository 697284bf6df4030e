"""The check of Haystack's slot for a tracer, for ``Monitor.check`` and ``claimspan doctor``."""

from __future__ import annotations

from collections.abc import Iterator

from haystack.tracing.tracer import tracer

from claimspan_haystack._slot import has_captured, is_capturing
from claimspan_tracing import Finding

__all__ = ["check_slot"]


def check_slot() -> Iterator[Finding]:
    """Says whether our tracer is in the slot, which another one may have taken."""
    if is_capturing():
        yield Finding("haystack", "ok", "our tracer is in Haystack's slot")
    elif has_captured():
        yield Finding(
            "haystack",
            "failed",
            f"{type(tracer.actual_tracer).__name__} has taken Haystack's slot for a tracer, so "
            "pipelines are no longer captured",
            "call claimspan_haystack.instrument() after everything else that enables tracing",
        )
