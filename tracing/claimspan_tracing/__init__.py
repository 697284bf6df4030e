"""Capture RAG queries as OpenTelemetry spans, and write their scores back onto them."""

from __future__ import annotations

from claimspan.cost.budget import Budget
from claimspan_tracing.decide.facts import Facts
from claimspan_tracing.decide.ledger import Stats
from claimspan_tracing.decide.sampling import Decision, RateSampler, Sampler
from claimspan_tracing.decide.status import Status
from claimspan_tracing.export.providers import configure
from claimspan_tracing.job import Job, Outcome
from claimspan_tracing.monitor import Monitor
from claimspan_tracing.sigterm import install_sigterm
from claimspan_tracing.write.sinks import Finished, Sink

__all__ = [
    "Budget",
    "Decision",
    "Facts",
    "Finished",
    "Job",
    "Monitor",
    "Outcome",
    "RateSampler",
    "Sampler",
    "Sink",
    "Stats",
    "Status",
    "configure",
    "install_sigterm",
]
