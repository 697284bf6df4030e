"""Hands the records of whole traces to a monitor, and has its scores stand beside these traces."""

from __future__ import annotations

import threading
from typing import Final

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Span, SpanProcessor

from claimspan_openinference import records_of_trace
from claimspan_serve._traces import WaitingTraces, WholeTrace
from claimspan_tracing import Monitor
from claimspan_tracing.adapters import Key, guard_of, submit_ended

__all__ = ["Judging", "ResourceOfTrace"]

MAX_RESOURCES: Final = 50_000
"""Traces whose service is remembered until their scores are written, the last ones."""

TICK_SECONDS: Final = 0.1
"""How often is looked whether a trace is whole."""


class ResourceOfTrace(SpanProcessor):
    """Gives each score the service of its trace.

    Backends sort spans into projects and services by their resource, so that a score with the
    resource of this service would stand in another project than what it is about.
    """

    def __init__(self) -> None:
        """Know no trace yet."""
        self._resources: dict[int, Resource] = {}

    def note(self, trace: WholeTrace) -> None:
        """Remember the resource of a trace: that of its root, or else of its first span."""
        top = next((each for each in trace.spans if each.parent is None), trace.spans[0])
        context = top.get_span_context()
        if context is not None:
            self._resources[context.trace_id] = top.resource
            if len(self._resources) > MAX_RESOURCES:
                del self._resources[next(iter(self._resources))]

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Set the resource of a score."""
        found = self._resources.get(span.get_span_context().trace_id)
        if found is not None:
            span._resource = found  # pyright: ignore[reportPrivateUsage] - no public name; in the list of what we lean on


class Judging:
    """A thread that takes whole traces and submits their records to a monitor.

    What the monitor cannot take, it counts itself, as ``queue_full``.
    """

    def __init__(
        self,
        monitor: Monitor,
        traces: WaitingTraces,
        resources: ResourceOfTrace,
        *,
        query_key: Key | None = None,
        response_key: Key | None = None,
    ) -> None:
        """Set who judges.

        Args:
            monitor: Takes the records.
            traces: Where whole traces come from.
            resources: Told of each trace before its scores are written.
            query_key: Where the question is; as in ``ClaimspanSpanProcessor``.
            response_key: Where the answer is.
        """
        self._monitor = monitor
        self._traces = traces
        self._resources = resources
        self._query_key = query_key
        self._response_key = response_key
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="claimspan-serve", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def end(self, timeout: float) -> bool:
        """Judge the traces whose root has come, and wait for scores.

        Args:
            timeout: Seconds that all of it may take.

        Returns:
            Whether everything was written.
        """
        self._has_ended.set()
        self._thread.join(timeout / 2)
        return self._monitor.shutdown(timeout / 2)

    def _run(self) -> None:
        while not self._has_ended.wait(TICK_SECONDS):
            for trace in self._traces.due():
                self._submit(trace)
        for trace in self._traces.end():
            self._submit(trace)

    def _submit(self, trace: WholeTrace) -> None:
        with guard_of(self._monitor):
            self._resources.note(trace)
            keys = {"query_key": self._query_key, "response_key": self._response_key}
            for record in records_of_trace(trace.spans, **keys):
                submit_ended(self._monitor, record)
        self._traces.release(trace)
