"""What a trace gives that is judged when it is over, beside what it gave live."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from opentelemetry.sdk.trace import ReadableSpan

from claimspan_openinference import records_of_trace
from claimspan_tracing.adapters import Key, submit_ended
from claimspan_tracing.job import Job, JobKey
from claimspan_tracing.testing import InMemoryMonitor

from support import ids

__all__ = ["jobs_afterwards", "jobs_live"]


def jobs_live(monitor: InMemoryMonitor) -> dict[JobKey, Job]:
    """What was captured while the pipeline ran."""
    return {record.job.key: _captured(record.job) for record in monitor.records()}


def jobs_afterwards(
    monitor: InMemoryMonitor, query_key: Key | None = None, response_key: Key | None = None
) -> dict[JobKey, Job]:
    """What the spans give that the monitor's provider has exported, without their order."""
    traces: dict[int, list[ReadableSpan]] = defaultdict(list)
    for span in sorted(monitor.spans(), key=lambda span: ids(span).span_id):
        traces[ids(span).trace_id].append(span)
    with InMemoryMonitor() as again:
        for spans in traces.values():
            for tree in records_of_trace(spans, query_key=query_key, response_key=response_key):
                submit_ended(again, tree)
        return {record.job.key: _captured(record.job) for record in again.records()}


def _captured(job: Job) -> Job:
    """A job without what a sampler has decided, and without the look-up's ids."""
    return replace(job, decision=None, feedback=None)
