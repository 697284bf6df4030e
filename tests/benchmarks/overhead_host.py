"""What a subject of ``overhead.py`` is attached to: a provider whose exporter counts.

A subject is one function, which takes a ``Host`` and attaches one way of observing to it. Those of
claimspan are the same for each framework, but for how a monitor is attached, so they stand here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property, partial
from importlib import import_module
from typing import Any, Final, NamedTuple, Protocol

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler

from claimspan.judges import Judge, LexicalJudge, LocalJudge
from claimspan_tracing import Monitor

__all__ = [
    "BARE",
    "JUDGED",
    "OFF",
    "ONE_PERCENT",
    "SAMPLED_OUT",
    "Attach",
    "Counter",
    "Host",
    "Pipeline",
    "Subjects",
    "claimspan_subjects",
    "instrumented",
    "sampled_out",
]

BARE: Final = "bare"
OFF: Final = "claimspan, evaluation off"
ONE_PERCENT: Final = "claimspan, 1 %"
JUDGED: Final = {
    "claimspan, 100 % by words": 8,
    "claimspan, 100 % LocalJudge": 32,
    "claimspan, 100 % LocalJudge, process": 32,
}
"""Subjects that judge every record, and how many times fewer queries they get a round: a record
takes up to a second, of which the judge rests three quarters."""

SAMPLED_OUT: Final = "trace sampled out"
"""What the name of a subject says whose provider keeps no trace."""

FLUSH_SECONDS: Final = 240.0
"""For the records of one round, all judged, on a busy machine."""


class Pipeline(NamedTuple):
    """One pipeline of a framework: each call takes a query and the callbacks of that call."""

    ask: Callable[[str, list[Any]], str]
    aask: Callable[[str, list[Any]], Awaitable[str]]


class Counter(SpanExporter):
    """Builds the OTLP request of every span, as the real exporter does, and sends it nowhere."""

    def __init__(self) -> None:
        self.spans = 0
        self.bytes = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.spans += len(spans)
        self.bytes += len(encode_spans(spans).SerializeToString())
        return SpanExportResult.SUCCESS


class Host:
    """An application that a subject observes."""

    def __init__(self) -> None:
        self.counter: Final = Counter()
        self.sampler: Sampler = ALWAYS_ON
        """Of the provider; to be set before the provider is asked for."""
        self.callbacks: list[Any] = []
        """Given to each call, in frameworks that take callbacks."""
        self.flushes: list[Callable[[], object]] = []
        """What brings everything to the counter, in this order."""
        self.monitor: Monitor | None = None

    @cached_property
    def provider(self) -> TracerProvider:
        """Exports in batches, with the defaults of the SDK."""
        resource = Resource.create({"service.name": "overhead"})
        provider = TracerProvider(sampler=self.sampler, resource=resource)
        provider.add_span_processor(BatchSpanProcessor(self.counter))
        self.flushes.append(partial(provider.force_flush, 60_000))
        return provider

    @property
    def evaluated(self) -> int:
        return 0 if self.monitor is None else self.monitor.stats.evaluated

    def flush(self) -> None:
        for flush in self.flushes:
            flush()


Attach = Callable[[Host], object]
"""Attaches one subject; raises where it is not installed, or refuses the set-up."""

Subjects = dict[str, Attach]
"""By the name that the table shows."""


def sampled_out(attach: Attach) -> Attach:
    """The same subject, on a provider that keeps no trace."""

    def attach_to(host: Host) -> None:
        host.sampler = ALWAYS_OFF
        attach(host)

    return attach_to


class _Instrumentor(Protocol):
    def instrument(self, *, tracer_provider: TracerProvider) -> object: ...


def instrumented(module: str, name: str) -> Attach:
    """An instrumentor of OpenTelemetry's kind, which may not be installed."""

    def attach(host: Host) -> None:
        instrumentor: _Instrumentor = getattr(import_module(module), name)()
        instrumentor.instrument(tracer_provider=host.provider)

    return attach


def claimspan_subjects(observe: Callable[[Host, Monitor], object]) -> Subjects:
    """The set-ups of claimspan.

    Args:
        observe: Attaches a monitor to a pipeline of the framework.
    """

    def watched(
        judge: Callable[[], Judge], sample: float, options: dict[str, Any], host: Host
    ) -> None:
        monitor = Monitor(judge(), sample=sample, tracer_provider=host.provider, **options)
        host.monitor = monitor
        host.flushes.insert(0, partial(monitor.flush, FLUSH_SECONDS))
        observe(host, monitor)

    off: Attach = partial(watched, LexicalJudge, 0.0, {})
    words, local, process = JUDGED
    return {
        OFF: off,
        ONE_PERCENT: partial(watched, LexicalJudge, 0.01, {}),
        words: partial(watched, LexicalJudge, 1.0, {}),
        local: partial(watched, LocalJudge, 1.0, {}),
        process: partial(watched, LocalJudge, 1.0, {"worker": "process"}),
        f"claimspan, {SAMPLED_OUT}": sampled_out(off),
    }
