"""Capture RAG queries as OpenTelemetry spans, and write their scores back onto them."""

from __future__ import annotations

from claimspan.cost.budget import Budget
from claimspan_tracing.capture import Capture
from claimspan_tracing.ledger import Stats
from claimspan_tracing.monitor import Monitor, default_monitor
from claimspan_tracing.providers import configure
from claimspan_tracing.reading import Document, Generation, Reader, Retrieval
from claimspan_tracing.runs import Run, RunKind
from claimspan_tracing.sampling import Decision, RateSampler, Sampler
from claimspan_tracing.status import Status

__all__ = [
    "Budget",
    "Capture",
    "Decision",
    "Document",
    "Generation",
    "Monitor",
    "RateSampler",
    "Reader",
    "Retrieval",
    "Run",
    "RunKind",
    "Sampler",
    "Stats",
    "Status",
    "configure",
    "default_monitor",
]
