"""Exports: which spans of ours were exported, by what the exporters say.

The SDK's processors swallow the failure of an exporter, and ``force_flush`` returns True with
everything lost. So the result of each ``export`` is looked at where the exporter returns it.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from opentelemetry.trace import TraceFlags, format_span_id, format_trace_id

from claimspan_tracing import semconv
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import JobKey
from claimspan_tracing.records.record import Event, Record, Stage
from claimspan_tracing.records.table import Records

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider

__all__ = ["Exports"]

UNREPORTED_SECONDS: Final = 120.0
"""After this time without a result a span counts as lost: batch processors drop the oldest spans
without a word. Twelve exports that time out after ten seconds each fit in. If other spans of its
record were exported, it counts as exported: a processor of the application's may filter spans, and
what it keeps back will never be reported."""


@dataclass(eq=False)
class Exports:
    """Follows the spans of spooled records to their export; safe to use from any thread.

    If nothing can be observed, because the provider is not the SDK's or has no exporter, every span
    counts as exported: more is not known.
    """

    records: Records
    """The rows whose spans are followed."""
    provider: Callable[[], SdkTracerProvider | None]
    """Returns the provider whose exporters are observed; None if there is none."""
    changed: Callable[[], None]
    """Called on an exporter's thread when ``settle`` may have something to do."""
    guard: Guard

    def __post_init__(self) -> None:
        # Re-entrant: a simple processor exports within the end of a span, on the same thread.
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._n_exporters = 0
        # Indexes over the rows: those that are followed, and whose each span is.
        self._followed: dict[JobKey, Record] = {}
        self._whose: dict[JobKey, Record] = {}

    @property
    def observes(self) -> bool:
        """Whether there is an exporter whose results are seen."""
        return self._n_exporters > 0

    def __len__(self) -> int:
        return len(self._followed)

    def watch(self) -> None:
        """Observe the exporters that the provider has now; those added later at the next call."""
        with self.guard:  # if no provider can be made, there is nothing to observe
            provider = self.provider()
            exporters = [] if provider is None else list(_exporters_of(provider))
            self._n_exporters = sum([_observe(exporter, self) for exporter in exporters])

    def follow(self, record: Record, live: Record | None = None) -> None:
        """Follow the spans of a spooled record, or of ``live``, which are about to be ended."""
        live = live or record
        spans = [] if live.spans is None else [span for span, _ in live.ends()]
        contexts = [span.get_span_context() for span in spans]
        sampled = [c for c in contexts if c.trace_flags & TraceFlags.SAMPLED]
        self.follow_ids(record, [format_span_id(c.span_id) for c in sampled])

    def follow_ids(self, record: Record, span_ids: Iterable[str]) -> None:
        """As ``follow``, by ids in hex, such as those of an evaluation span."""
        self.watch()
        with self._lock:
            if not record.is_followed:
                record.unexported, record.was_reported = {}, False
                record.is_followed = True
                self._followed[record.key] = record
            record.is_complete = False
            for span_id in span_ids if self._n_exporters else ():
                record.unexported[span_id] = 0
                self._whose[record.key[0], span_id] = record

    def complete(self, record: Record) -> None:
        """All spans of a record that are to be followed have been ended."""
        with self._lock:
            record.is_complete, record.complete_since = True, time.monotonic()

    def take(self) -> tuple[list[Record], list[Record], list[Record]]:
        """Return the records that are not followed any more.

        Returns:
            Those whose spans were exported, those of which an export failed, and those of which no
            exporter has said anything.
        """
        oldest = time.monotonic() - UNREPORTED_SECONDS
        done, failed, silent = list[Record](), list[Record](), list[Record]()
        with self._lock:
            for record in list(self._followed.values()):
                is_over = not record.unexported or record.complete_since < oldest
                if not record.is_complete or not (record.export_failed or is_over):
                    continue
                del self._followed[record.key]
                record.is_followed = False
                for span_id in record.unexported:
                    self._whose.pop((record.key[0], span_id), None)
                if record.export_failed:
                    failed.append(record)
                elif record.unexported and not record.was_reported:
                    silent.append(record)
                else:
                    done.append(record)
        return done, failed, silent

    def settle(self) -> None:
        """Delete the rows whose spans were exported, and have the others written again."""
        if self.records.spool is None:
            return
        # A flush, which settles on the application's thread, must find the worker's work done.
        with self._lock:
            done, failed, silent = self.take()
            written = [record for record in done if record.stage is Stage.WRITTEN]
            self.records.exported(written)
            self.records.root_exported([record for record in done if record not in written])
            for record in silent:
                record.n_silent += record.lease is not None
            for record in (*failed, *silent):
                # If scores are still to come, everything is written again together with them.
                record.export_failed = True
                self.records.move(record, Event.UNEXPORTED)
                self.records.forget(record)
            for record in done:
                self.records.forget(record)

    def report(self, spans: Sequence[ReadableSpan], *, exported: bool) -> None:
        """Take the result of one export; called by exporters on their threads, does not raise."""
        # In a forked child the lock may be held for ever, by a thread that stayed with the parent.
        if os.getpid() != self._process or (exported and not self._whose):
            return
        with self.guard:
            ours = [span for span in spans if _is_ours(span)]
            if not ours:
                return
            with self._lock:
                self.records.count("export_failures", 0 if exported else len(ours))
                for span in ours:
                    self._note(span, exported=exported)
            self.changed()

    def _note(self, span: ReadableSpan, *, exported: bool) -> None:
        context = span.get_span_context()
        if context is None:
            return
        place = format_trace_id(context.trace_id), format_span_id(context.span_id)
        record = self._whose.get(place)
        if record is None or place[1] not in record.unexported:
            return
        record.was_reported = True
        record.export_failed = record.export_failed or not exported
        record.unexported[place[1]] += 1
        # A provider may have several exporters, and all of them are to have the span.
        if record.unexported[place[1]] >= self._n_exporters:
            del record.unexported[place[1]]
            del self._whose[place]


class _Observed:
    """Stands for the method ``export`` of one exporter, passes everything on, and reports."""

    def __init__(self, export: Callable[..., object]) -> None:
        self._export = export
        # Weakly: an exporter may outlive the monitors that have used it.
        self.observers: weakref.WeakSet[Exports] = weakref.WeakSet()

    def __call__(self, spans: Sequence[ReadableSpan], *args: object, **options: object) -> object:
        exported = False
        try:
            result = self._export(spans, *args, **options)
            # An exporter that returns nothing has not said that it failed.
            exported = getattr(result, "name", "") != "FAILURE"
            return result
        finally:
            for observer in list(self.observers):
                observer.report(spans, exported=exported)


def _observe(exporter: object, observer: Exports) -> bool:
    try:
        own = vars(exporter)
    except TypeError:  # it has slots
        return False
    observed: object = own.get("export")
    if not isinstance(observed, _Observed):
        export: object = getattr(exporter, "export", None)
        if not callable(export):
            return False
        observed = own["export"] = _Observed(export)
    observed.observers.add(observer)
    return True


def _exporters_of(provider: SdkTracerProvider) -> Iterable[object]:
    multi = provider._active_span_processor  # pyright: ignore[reportPrivateUsage] - no public name; in the list of what we lean on
    processors: tuple[object, ...] = getattr(multi, "_span_processors", ())
    for processor in processors:
        exporter: object = getattr(processor, "span_exporter", None)
        if exporter is not None:
            yield exporter


def _is_ours(span: ReadableSpan) -> bool:
    scope = span.instrumentation_scope
    return scope is not None and scope.name == semconv.SCOPE
