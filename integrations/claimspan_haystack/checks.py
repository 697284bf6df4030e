"""The check of Haystack's tracer, for ``Monitor.check`` and ``claimspan doctor``."""

from __future__ import annotations

from collections.abc import Iterator

from claimspan_haystack._instrument import is_attached, is_called
from claimspan_tracing import Finding

__all__ = ["check_slot"]


def check_slot() -> Iterator[Finding]:
    """Says whether Haystack calls our tracer, whose place another package may have taken."""
    if is_called():
        yield Finding("haystack", "ok", "Haystack calls our tracer")
    elif is_attached():
        yield Finding(
            "haystack",
            "failed",
            "another package has replaced the methods of Haystack's tracer, so pipelines may no "
            "longer be captured",
            "call claimspan_haystack.instrument() after what patches Haystack's tracer",
        )
