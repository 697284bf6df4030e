"""The span processor: collects the spans of a trace, and submits its records as they end.

It can be attached to a tracer provider, no matter what has made that.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Final, Unpack

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.trace import get_current_span

from claimspan.errors import ConfigError
from claimspan_openinference._reader import SpanReader
from claimspan_openinference._traces import TraceTable, is_ours
from claimspan_openinference._trees import tree_of, tree_of_unfinished
from claimspan_tracing.adapters import (
    EXIT_TIMEOUT,
    Key,
    Monitor,
    MonitorOptions,
    chain_of,
    default_monitor,
    exports,
    guard_of,
    is_suppressed,
    is_suppressed_by_us,
    note_ended_exporters,
    processors_of,
    restart_in_child,
    sdk_provider,
    submit_ended,
    takes_place_of,
    wait_until_idle,
    warn_of_no_exporter,
    warn_of_several,
    write_beside,
    write_to,
)

__all__ = ["ClaimspanSpanProcessor", "instrument"]

_logger: Final = logging.getLogger("claimspan")


class ClaimspanSpanProcessor(SpanProcessor):
    """Evaluates the traces that pass through a tracer provider.

    A record is complete when the topmost span of OpenInference or of OpenTelemetry's conventions
    for generative AI ends, whatever spans stand above it: an HTTP request that is still open, a
    job with several questions, a caller in another process. A retriever and a model that stand side
    by side below such a span are joined when that one ends, where it is certain that they belong
    together. Retrieval without an answer is no record, and neither is an answer without it.

    The scores go to EVALUATOR spans in the same trace: children of the record's root, with one link
    each, to the root. Spans that end while instrumentation is suppressed, such as those of a judge,
    are ignored, and so are claimspan's own, and those that are not sampled: they are never
    exported.

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
            options: Options of ``Monitor``; equal ones share a monitor.

        Raises:
            ConfigError: Both a monitor and options are given, or an option is invalid.
        """
        self.monitor = default_monitor(monitor, options)
        self._reader = SpanReader(query_key, response_key)
        self.restart_in_child()
        self._chain: object = None
        self._is_wrapped = False
        self._has_looked = False
        self._attached = 1
        restart_in_child(self)

    def restart_in_child(self) -> None:
        """Begin anew in a forked child: the spans that are open are those of its parent."""
        self._traces = TraceTable()
        # Another thread may have held the one of the parent, and no thread here lets go of it.
        self._lock = threading.RLock()

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
        return not self.is_detached or vars(self._reader) == vars(other._reader)

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
        """Note what the span stands below; it has its attributes when it ends."""
        if self.is_detached:
            return
        with guard_of(self.monitor):
            if self._chain is None:
                self._look_around(span)
            context = span.get_span_context()
            if context.trace_flags.sampled and not is_ours(span):
                parent = get_current_span(parent_context)
                with self._lock:
                    unfinished = self._traces.start(span, context, parent)
                for lost in unfinished:
                    submit_ended(self.monitor, tree_of_unfinished(lost, self._reader))

    def on_end(self, span: ReadableSpan) -> None:
        """Keep the span, and submit the records that are complete with it."""
        if self.is_detached:
            return
        with guard_of(self.monitor):
            context = span.get_span_context()
            if context is None or not context.trace_flags.sampled or is_ours(span):
                return
            if self._is_suppressed():
                with self._lock:
                    self._traces.forget(span, context)
                return
            if not self._has_looked:
                # Once, as the first span ends: the provider is set up by then.
                self._has_looked = True
                # This processor may have taken the place of the provider's exporter.
                if not exports(self._chain):
                    warn_of_no_exporter()
            with self._lock:
                complete = self._traces.end(span, context)
            for group in complete:
                submit_ended(self.monitor, tree_of(group, self._reader))

    def shutdown(self) -> None:
        """Wait for open records: the exporters behind this processor are shut down next.

        Where they stand in front of it, they have been shut down before, and the scores are counted
        as lost. Flush the provider first.
        """
        in_front, behind = self._others()
        with guard_of(self.monitor):
            # Any may bring spans out of the process: only ours are known not to.
            before, after = (
                any(getattr(each, "exports_spans", True) for each in some)
                for some in (in_front, behind)
            )
            if before and not after:
                note_ended_exporters(self.monitor, self._chain)
        wait_until_idle(self.monitor, EXIT_TIMEOUT)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Wait for open records, and have the processors in front export what was written.

        Those were asked to flush before the scores were there; the others are asked next.
        """
        deadline = time.monotonic() + timeout_millis / 1e3
        is_done = wait_until_idle(self.monitor, timeout_millis / 1e3)
        for each in self._others()[0]:
            left = max(0, int(1e3 * (deadline - time.monotonic())))
            # As the SDK's own: what returns nothing has not said that it failed.
            is_done = each.force_flush(left) is not False and is_done
        return is_done

    def _others(self) -> tuple[list[SpanProcessor], list[SpanProcessor]]:
        """The processors that the provider asks before this one, and after it.

        None where this one is wrapped: its place is not known then.
        """
        found = [e for e in processors_of(self._chain) if isinstance(e, SpanProcessor)]
        place = next((i for i, each in enumerate(found) if each is self), None)
        return ([], []) if place is None else (found[:place], found[place + 1 :])

    def _look_around(self, span: Span) -> None:
        """Find the provider that this processor was added to, which no method tells it."""
        self._chain = getattr(span, "_span_processor", None)
        self._is_wrapped = all(each is not self for each in processors_of(self._chain))
        if not write_beside(self.monitor, span):
            _logger.warning(
                "the scores of a ClaimspanSpanProcessor go to another tracer provider than the one "
                "that it was added to: make a monitor for each provider"
            )

    def _is_suppressed(self) -> bool:
        """Whether instrumentation is suppressed where a span ends, as it is around a judge.

        Most instrumentations make no span there, but some do: OpenInference's asynchronous
        wrappers of Haystack do not look at the switch, and neither does a tracer used by hand.
        """
        # What wraps this processor may suppress instrumentation around it, as Logfire does, and
        # has then looked at the switch itself.
        return is_suppressed_by_us() if self._is_wrapped else is_suppressed()


_lock: Final = threading.RLock()


def instrument(
    monitor: Monitor | None = None,
    *,
    query_key: Key | None = None,
    response_key: Key | None = None,
    **options: Unpack[MonitorOptions],
) -> Callable[[], None]:
    """Evaluate the traces of a tracer provider, and write the scores to that very provider.

    Other than ``provider.add_span_processor(ClaimspanSpanProcessor())`` it never takes the place of
    the provider's exporter, as it would with the provider of Phoenix's ``register()``, and it works
    with Logfire's. Attached twice with the same monitor, it evaluates each trace once, until both
    are undone; question and answer are then where the first of the two says.

    Args:
        monitor: Evaluates the records and writes the scores; None uses a monitor of its own where
            there are options, else the one that the process shares.
        query_key: Where the user's question is; as in ``ClaimspanSpanProcessor``.
        response_key: Where the answer is; as in ``ClaimspanSpanProcessor``.
        options: Options of ``Monitor``; equal ones share a monitor.
            ``tracer_provider`` may be given beside a monitor as well: the provider that the other
            instrumentation uses. None takes the application's global one.

    Returns:
        A callable that ends the evaluation of what has not ended yet, unless another call has
        attached the monitor as well. Calling it twice is safe.

    Raises:
        ConfigError: There is no provider, it is not of the OpenTelemetry SDK, the monitor writes to
            another one, both a monitor and options are given, or an option is invalid.
    """
    given = options.pop("tracer_provider", None)
    provider = sdk_provider(given)
    if monitor is None and (given is not None or options):
        # A monitor of its own: the one that the process shares may serve another provider.
        options["tracer_provider"] = given or provider
    processor = ClaimspanSpanProcessor(
        monitor, query_key=query_key, response_key=response_key, **options
    )
    if given is not None and not write_to(processor.monitor, given):
        raise ConfigError(
            "the monitor writes to another tracer provider than the one given: make a monitor for "
            "each provider, or give the monitor the same one"
        )
    with _lock:  # two threads may attach the same monitor at once
        there = processors_of(chain_of(provider))
        ours = [each for each in there if isinstance(each, ClaimspanSpanProcessor)]
        known = next((each for each in ours if each.stands_for(processor)), None)
        if known is not None:
            known.attach()
        else:
            # The method of the SDK: Phoenix's takes what is added in place of its own exporter.
            for each in ours:
                if takes_place_of(processor.monitor, each.monitor):
                    each.detach()
            TracerProvider.add_span_processor(provider, processor)
            warn_of_several(1 + sum(not each.is_detached for each in ours))
    left = [known or processor]

    def undo() -> None:
        with _lock:
            if left:  # each call ends its own attachment, and only once
                left.pop().release()

    return undo
