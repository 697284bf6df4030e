"""The span processor: collects the spans of a trace, and submits them when its root ends."""

from __future__ import annotations

import logging
import sys
import threading
import time
from typing import Final, Unpack

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import NonRecordingSpan, SpanContext

from claimspan_openinference._reader import SpanReader
from claimspan_openinference._traces import OpenTrace, is_root
from claimspan_tracing import semconv
from claimspan_tracing.adapters import (
    EXIT_TIMEOUT,
    Key,
    Monitor,
    MonitorOptions,
    Run,
    RunKind,
    RunTree,
    default_monitor,
    exports,
    guard_of,
    is_suppressed,
    is_suppressed_by_us,
    processors_of,
    request_context,
    submit_ended,
    wait_until_idle,
    warn_of_no_exporter,
    write_beside,
)

__all__ = ["ClaimspanSpanProcessor"]

_logger: Final = logging.getLogger("claimspan")

MAX_TRACES: Final = 10_000
"""Traces kept while their root is open; the oldest are dropped beyond it."""

MAX_AGE_SECONDS: Final = 3600.0
"""How long a trace waits for its root. A root that is never exported would be kept for ever."""

_KINDS: Final = {
    semconv.KIND_RETRIEVER: RunKind.RETRIEVER,
    semconv.KIND_LLM: RunKind.GENERATOR,
    semconv.OPERATION_RETRIEVAL: RunKind.RETRIEVER,
    semconv.OPERATION_CHAT: RunKind.GENERATOR,
}


class ClaimspanSpanProcessor(SpanProcessor):
    """Evaluates the traces that pass through a tracer provider.

    A trace is complete when a span without a parent in this process ends. The scores go to
    EVALUATOR spans in the same trace: children of the root, with one link each, to the root. Spans
    that end while instrumentation is suppressed, such as those of a judge, are ignored, and so are
    claimspan's own.

    ``instrument`` attaches one to any provider. ``provider.add_span_processor`` does so too, but
    with the provider of Phoenix's ``register()`` it removes Phoenix's exporter.
    """

    exports_spans: Final = False
    """Not what brings spans out of the process: a provider with nothing else exports nothing."""

    def __init__(
        self,
        monitor: Monitor | None = None,
        *,
        query_key: Key | None = None,
        response_key: Key | None = None,
        **options: Unpack[MonitorOptions],
    ) -> None:
        """Create a processor that submits to a monitor.

        Args:
            monitor: Evaluates the records and writes the scores; None uses the monitor that the
                process shares.
            query_key: Where the question is in the root's input, if that is JSON: a key, a dotted
                path, or a callable that takes the parsed input. None tries the usual shapes.
            response_key: Where the answer is in the root's output, in the same forms.
            options: Options of ``Monitor``; whoever gives equal ones shares a monitor.

        Raises:
            ConfigError: Both a monitor and options are given, or an option is invalid.
        """
        self.monitor = default_monitor(monitor, options)
        self._reader = SpanReader(query_key, response_key)
        self._traces: dict[int, OpenTrace] = {}
        self._lock = threading.RLock()
        self._chain: object = None
        self._is_wrapped = False
        self._has_looked = False
        self._attached = 1

    @property
    def is_detached(self) -> bool:
        """Whether nothing is evaluated any more."""
        return not self._attached

    def stands_for(self, other: ClaimspanSpanProcessor) -> bool:
        """Whether another processor on the same provider would do no more than this one.

        One that is detached stands for those alone that read the same keys.
        """
        if self.monitor is not other.monitor:
            return False
        return not self.is_detached or self._reader.keys == other._reader.keys

    def attach(self) -> None:
        """Evaluate until ``release`` was called once more, also where it was called before."""
        with self._lock:
            self._attached += 1

    def release(self) -> None:
        """End one attachment; with the last one, ``detach``."""
        with self._lock:
            if self._attached > 1:
                self._attached -= 1
                return
        self.detach()

    def detach(self) -> None:
        """Evaluate nothing that has not ended yet; safe to call twice.

        The processor stays where it is: a provider of the SDK cannot remove one.
        """
        with self._lock:
            self._attached = 0
            self._traces.clear()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Note the query that the span belongs to; it has its attributes when it ends."""
        if self.is_detached:
            return
        with guard_of(self.monitor):
            if self._chain is None:
                self._look_around(span)
            context = span.get_span_context()
            if not _is_ours(span):
                with self._lock:
                    self._open(context.trace_id).start(context.span_id, span.parent)

    def on_end(self, span: ReadableSpan) -> None:
        """Keep the span; when it is the root, submit the trace."""
        if self.is_detached:
            return
        with guard_of(self.monitor):
            context = span.get_span_context()
            if context is None or self._is_ignored(span):
                return
            if not self._has_looked:
                self._look_for_exporter()
            family = self._gather(context, span)
            # A provider carries spans of everything: HTTP requests, database calls, tasks.
            if any(_kind(member) is RunKind.RETRIEVER for member in family):
                submit_ended(self.monitor, _tree(span, context, family, self._reader))

    def shutdown(self) -> None:
        """Wait for open records: the exporters behind this processor are shut down next."""
        wait_until_idle(self.monitor, EXIT_TIMEOUT)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Wait for open records; the other processors flush what they have written."""
        return wait_until_idle(self.monitor, timeout_millis / 1e3)

    def _look_around(self, span: Span) -> None:
        """Find the provider that this processor was added to, which no method tells it."""
        self._chain = getattr(span, "_span_processor", None)
        self._is_wrapped = all(each is not self for each in processors_of(self._chain))
        if not write_beside(self.monitor, span):
            _logger.warning(
                "the scores of a ClaimspanSpanProcessor go to another tracer provider than the one "
                "that it was added to: make a monitor for each provider"
            )

    def _look_for_exporter(self) -> None:
        """Warn where this processor has taken the place of the provider's exporter."""
        # Once, as the first span ends: the provider is set up by then.
        self._has_looked = True
        if not exports(self._chain):
            warn_of_no_exporter()

    def _is_ignored(self, span: ReadableSpan) -> bool:
        """Whether a span is claimspan's own, or ended where instrumentation is suppressed.

        Most instrumentations make no span there, but some do: OpenInference's asynchronous
        wrappers of Haystack do not look at the switch, and neither does a tracer used by hand.
        """
        # Whoever wraps this processor may suppress instrumentation around it, as Logfire does, and
        # has then looked at the switch itself.
        is_off = is_suppressed_by_us() if self._is_wrapped else is_suppressed()
        return is_off or _is_ours(span)

    def _gather(self, context: SpanContext, span: ReadableSpan) -> list[ReadableSpan]:
        """Keep a span; returns all spans of a query whose root has ended, else none."""
        with self._lock:
            trace = self._open(context.trace_id)
            if not is_root(span.parent):
                trace.end(context.span_id, span)
                return []
            family = trace.take(context.span_id, span)
            if trace.is_over:
                del self._traces[context.trace_id]
            return family

    def _open(self, trace_id: int) -> OpenTrace:
        """Return what is known of a trace; called with the lock held."""
        trace = self._traces.get(trace_id)
        if trace is None:
            trace = self._traces[trace_id] = OpenTrace()
            self._evict()
        return trace

    def _evict(self) -> None:
        """Drop the oldest traces beyond the bounds; called with the lock held."""
        too_old = time.monotonic() - MAX_AGE_SECONDS
        while self._traces:
            # A dict keeps the order of insertion, so the first trace is the oldest.
            trace_id, trace = next(iter(self._traces.items()))
            if len(self._traces) <= MAX_TRACES and trace.began > too_old:
                return
            del self._traces[trace_id]


def _is_ours(span: ReadableSpan) -> bool:
    scope = span.instrumentation_scope
    return scope is not None and scope.name == semconv.SCOPE


def _tree(
    root: ReadableSpan, context: SpanContext, family: list[ReadableSpan], reader: SpanReader
) -> RunTree:
    """Return the spans as runs, the root first. A span whose parent is missing is put below it."""
    # The root has ended: a span that does not record stands for it, and carries its ids.
    tree = RunTree(NonRecordingSpan(context), reader, request_context())
    ordered = sorted(family, key=lambda member: (member is not root, member.start_time or 0))
    by_id: dict[int, Run] = {}
    for member in ordered:
        member_context = member.get_span_context()
        if member_context is None:
            continue
        parent = by_id.get(member.parent.span_id) if member.parent else None
        run = _run(member, tree, None if member is root else parent or tree.root)
        by_id[member_context.span_id] = run
        tree.runs.append(run)
        tree.size += _size(member)
    return tree


def _size(span: ReadableSpan) -> int:
    """Approximate bytes that the attributes of a span take; the SDK bounds their number."""
    return sum(map(sys.getsizeof, (span.attributes or {}).values()))


def _run(span: ReadableSpan, tree: RunTree, parent: Run | None) -> Run:
    return Run(
        id=span,
        tree=tree,
        parent=parent,
        kind=_kind(span),
        name=span.name,
        start=span.start_time or 0,
        inputs=span.attributes or {},
        metadata={} if parent else SpanReader.metadata(span.attributes or {}),
        end=span.end_time,
        outputs=span.attributes or {},
        # The exception itself is gone; only that the run failed is still known.
        error=None if span.status.is_ok else RuntimeError,
        span_id=context.span_id if (context := span.get_span_context()) else 0,
    )


def _kind(span: ReadableSpan) -> RunKind:
    attributes = span.attributes or {}
    kind = attributes.get(semconv.OPENINFERENCE_SPAN_KIND)
    operation = attributes.get(semconv.GEN_AI_OPERATION_NAME)
    return _KINDS.get(str(kind), _KINDS.get(str(operation), RunKind.CHAIN))
