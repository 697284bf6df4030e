"""Confirmation: which spans of ours were exported, by what the exporters say.

The SDK's processors swallow the failure of an exporter, and ``force_flush`` returns True with
everything lost. So the result of each ``export`` is looked at where the exporter returns it.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from opentelemetry.trace import format_span_id, format_trace_id

from claimspan_tracing import semconv
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import JobKey
from claimspan_tracing.providers.chains import chain_of, processors_of

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider

__all__ = ["Confirmations"]

UNREPORTED_SECONDS: Final = 120.0
"""After this time without a result a span counts as lost: batch processors drop the oldest spans
without a word. Twelve exports that time out after ten seconds each fit in. If other spans of its
record were exported, it counts as exported: a processor of the application's may filter spans, and
what it keeps back will never be reported."""


@dataclass(slots=True)
class _Record:
    """Spans of one record that were not exported yet."""

    reports: dict[str, int] = field(default_factory=dict[str, int])
    """Id of a span to the number of exporters that have had it."""

    since: float = field(default_factory=time.monotonic)
    is_complete: bool = False
    has_failed: bool = False
    was_reported: bool = False


class Confirmations:
    """Follows the spans of records to their export; safe to use from any thread.

    If nothing can be observed, because the provider is not the SDK's or has no exporter, every
    span counts as exported: more is not known.
    """

    def __init__(
        self,
        provider: Callable[[], SdkTracerProvider | None],
        changed: Callable[[], None],
        guard: Guard,
    ) -> None:
        """Set what to observe.

        Args:
            provider: Returns the provider whose exporters are observed; None if there is none.
            changed: Called on an exporter's thread when ``take`` may have something.
            guard: Counts what fails.
        """
        self._provider = provider
        self._changed = changed
        self._guard = guard
        # Re-entrant: a simple processor exports within the end of a span, on the same thread.
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._exporters = 0
        self._records: dict[JobKey, _Record] = {}
        self._owners: dict[JobKey, JobKey] = {}
        """Trace and span id of each span that is followed, to its record."""
        self.failures = 0
        """Number of spans of ours whose export has failed so far."""

    @property
    def observes(self) -> bool:
        """Whether there is an exporter whose results are seen."""
        return self._exporters > 0

    def __len__(self) -> int:
        """Number of records that wait for an export."""
        return len(self._records)

    def watch(self) -> None:
        """Observe the exporters that the provider has now; those added later at the next call."""
        with self._guard:  # if no provider can be made, there is nothing to observe
            processors = processors_of(chain_of(self._provider()))
            found: list[object] = [getattr(each, "span_exporter", None) for each in processors]
            self._exporters = sum(_observe(each, self) for each in found if each is not None)

    def expect(self, key: JobKey, span_ids: Iterable[str]) -> None:
        """Follow spans of a record, before they are ended.

        Args:
            key: The record.
            span_ids: In hex; of the record's trace.
        """
        self.watch()
        with self._lock:
            record = self._records.setdefault(key, _Record())
            record.is_complete = False
            for span_id in span_ids if self._exporters else ():
                record.reports[span_id] = 0
                self._owners[key[0], span_id] = key

    def complete(self, key: JobKey) -> None:
        """All spans of a record that are to be followed have been ended."""
        with self._lock:
            record = self._records.get(key)
            if record is not None:
                record.is_complete = True
                record.since = time.monotonic()

    def is_expected(self, key: JobKey) -> bool:
        """Whether spans of a record are still to be exported."""
        with self._lock:
            return key in self._records

    def take(self) -> tuple[list[JobKey], list[JobKey], list[JobKey]]:
        """Return the records that are not followed any more.

        Returns:
            Those whose spans were exported, those of which an export failed, and those of which no
            exporter has said anything.
        """
        oldest = time.monotonic() - UNREPORTED_SECONDS
        done: list[JobKey] = []
        failed: list[JobKey] = []
        silent: list[JobKey] = []
        with self._lock:
            for key, record in list(self._records.items()):
                if not record.is_complete:
                    continue
                if record.has_failed:
                    failed.append(key)
                elif record.reports and record.since >= oldest:
                    continue
                else:
                    (silent if record.reports and not record.was_reported else done).append(key)
                del self._records[key]
                for span_id in record.reports:
                    self._owners.pop((key[0], span_id), None)
        return done, failed, silent

    def report(self, spans: Sequence[ReadableSpan], *, exported: bool) -> None:
        """Take the result of one export; called by exporters on their threads, does not raise."""
        # In a forked child the lock may be held for ever, by a thread that stayed with the parent.
        if os.getpid() != self._process:
            return
        with self._guard:
            scopes = ((span, span.instrumentation_scope) for span in spans)
            ours = [span for span, scope in scopes if scope and scope.name == semconv.SCOPE]
            if not ours:
                return
            with self._lock:
                self.failures += 0 if exported else len(ours)
                for span in ours:
                    self._note(span, exported=exported)
            self._changed()

    def _note(self, span: ReadableSpan, *, exported: bool) -> None:
        context = span.get_span_context()
        if context is None:
            return
        place = format_trace_id(context.trace_id), format_span_id(context.span_id)
        record = self._records.get(self._owners.get(place, place))
        if record is None or place[1] not in record.reports:
            return
        record.was_reported = True
        record.has_failed |= not exported
        record.reports[place[1]] += 1
        # A provider may have several exporters, and all of them are to have the span.
        if record.reports[place[1]] >= self._exporters:
            del record.reports[place[1]]
            self._owners.pop(place, None)


class _Observed:
    """Stands for the method ``export`` of one exporter, passes everything on, and reports."""

    def __init__(self, export: Callable[..., object]) -> None:
        self._export = export
        # Weakly: an exporter may outlive the monitors that have used it.
        self.observers: weakref.WeakSet[Confirmations] = weakref.WeakSet()

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


def _observe(exporter: object, observer: Confirmations) -> bool:
    """Observe an exporter; False if it cannot be observed."""
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
