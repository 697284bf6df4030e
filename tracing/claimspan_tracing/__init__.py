"""Capture RAG queries as OpenTelemetry spans, and write their scores back onto them."""

from __future__ import annotations

from claimspan.cost.budget import Budget
from claimspan_tracing.alert import Alert, AlertEvent, AlertState
from claimspan_tracing.decide.decider import disable_evaluation
from claimspan_tracing.decide.rules import (
    Condition,
    Rule,
    RuleSampler,
    abstained,
    attribute,
    doubtful,
    empty_retrieval,
    failed,
    feedback,
    low_retrieval,
    route,
    slower_than,
)
from claimspan_tracing.decide.sampling import Decision, Facts, RateSampler, Sampler
from claimspan_tracing.decide.status import Status
from claimspan_tracing.decide.thinning import Throttle
from claimspan_tracing.health import Diagnosis, Finding
from claimspan_tracing.job import Job, Outcome
from claimspan_tracing.monitor import CapturedRecord, Monitor
from claimspan_tracing.observed import ObservedRecord, current_record
from claimspan_tracing.observing import observe
from claimspan_tracing.providers.source import configure
from claimspan_tracing.records.table import Stats
from claimspan_tracing.redact.pii import PiiRedactor
from claimspan_tracing.sigterm import install_sigterm
from claimspan_tracing.write.sinks import Finished, Sink

__all__ = [
    "Alert",
    "AlertEvent",
    "AlertState",
    "Budget",
    "CapturedRecord",
    "Condition",
    "Decision",
    "Diagnosis",
    "Facts",
    "Finding",
    "Finished",
    "Job",
    "Monitor",
    "ObservedRecord",
    "Outcome",
    "PiiRedactor",
    "RateSampler",
    "Rule",
    "RuleSampler",
    "Sampler",
    "Sink",
    "Stats",
    "Status",
    "Throttle",
    "abstained",
    "attribute",
    "configure",
    "current_record",
    "disable_evaluation",
    "doubtful",
    "empty_retrieval",
    "failed",
    "feedback",
    "install_sigterm",
    "low_retrieval",
    "observe",
    "route",
    "slower_than",
]
