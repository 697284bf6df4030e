"""The process that judges: it reads what was put down, joins traces, and has their records scored.

It is a process of its own so that no judge and no decoding takes the interpreter from the process
that answers requests.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, NamedTuple

from opentelemetry import _logs as logs  # the API's only path so far
from opentelemetry import metrics
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Span, SpanProcessor, TracerProvider

from claimspan.errors import ClaimspanError
from claimspan_openinference import records_of_trace
from claimspan_serve._journal import (
    MAX_ATTEMPTS,
    RECORDS,
    Entry,
    Judged,
    Segments,
    set_aside,
)
from claimspan_serve._options import ServeOptions, options_from
from claimspan_serve._receiver import RefusedError, read_body
from claimspan_serve._traces import Outcome, Trace, WaitingTraces
from claimspan_tracing import Decision, Facts, Monitor, RateSampler, Sampler, configure, semconv
from claimspan_tracing.adapters import (
    MonitorOptions,
    guard_of,
    is_under_way,
    meter,
    release_leases,
    sampler_of,
    shut_down_at_exit,
    submit_ended,
    unread_traces,
)
from claimspan_tracing.otlp.decoding import read_resource

MAX_UNREAD: Final = 200
"""Traces whose records the monitor may have to read. Further ones stay in the files."""

MAX_UNREAD_BYTES: Final = 8 * 1024 * 1024
"""Bytes of these, well below what a monitor keeps alive."""

TICK_SECONDS: Final = 0.1
"""How often is looked whether a trace is whole, and told how far we are."""

NICENESS: Final = 5
"""How far this process stands back, so that requests are answered first."""

_OOM_SCORE: Final = Path("/proc/self/oom_score_adj")
"""Where Linux is told which process to end first if the machine has no memory left."""

_SERVICE: Final = "claimspan-serve"
"""What made a score whose trace names no service."""

_logger: Final = logging.getLogger("claimspan")

_SAMPLE_REQUEST: Final = semconv.SAMPLE_REQUEST.encode()


class Heard(NamedTuple):
    """What the process that takes requests says, each time that it is told how far we are."""

    requests: Mapping[str, int]
    """What became of requests there."""

    is_pressed: bool
    """Whether half of the room for requests is taken."""

    seconds: float | None
    """In how many seconds we have to end; None as long as we need not."""


def judge_in(folder: Path, given: Mapping[str, object], link: Connection, *, is_kept: bool) -> None:
    """Judge what is put down in a folder, until told to end or the other process has ended.

    Args:
        folder: Where requests and records are.
        given: The options of service and monitor.
        link: To the process that takes requests.
        is_kept: Whether what waits is left for the next start.
    """
    # Who stops the service often stops each of its processes: the other one tells us in its time.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    with suppress(OSError):
        _OOM_SCORE.write_text("500")
    try:
        judging = _Judging(folder, given, is_kept=is_kept)
    except ClaimspanError as error:
        link.send({"failed": str(error)})
        return
    link.send(judging.state())
    judging.end(judging.run(link))
    if judging.is_alone and not is_kept:  # it was killed, and its folder is left to us
        shutil.rmtree(folder, ignore_errors=True)


class _ServiceOfTrace(SpanProcessor):
    """Gives each score the service of its trace.

    Backends sort spans into projects and services by their resource, so that a score with the
    resource of this service would stand in another project than what it is about.
    """

    def __init__(self, judged: Judged) -> None:
        self._judged = judged

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Set the resource of a score."""
        known = self._judged.get(span.get_span_context().trace_id)
        if known is not None and known.resource:
            found = read_resource(resource_pb2.Resource.FromString(known.resource))
            span._resource = found  # pyright: ignore[reportPrivateUsage] - no public name; in the list of what we lean on


class _Judging:
    """Everything that the process consists of."""

    def __init__(self, folder: Path, given: Mapping[str, object], *, is_kept: bool) -> None:
        options, of_monitor = options_from(given)
        self._options = options
        self._is_kept = is_kept
        self._folder = folder
        # First: it waits until the process before has ended.
        self._judged = Judged(folder)
        release_leases(folder / RECORDS)
        self._segments = Segments(folder)
        self._traces = WaitingTraces(
            options.quiet, options.max_age, options.max_bytes, self._judged
        )
        provider = _provider_for(options)
        provider.add_span_processor(_ServiceOfTrace(self._judged))
        sampler = sampler_of(of_monitor.get("sample"))
        self._by_ids = sampler if isinstance(sampler, RateSampler) else None
        self._sampler = AfterHead(of_monitor.get("sample"))
        own: MonitorOptions = {
            "tracer_provider": provider,
            "spool": folder / RECORDS,
            "sample": self._sampler,
        }
        # No application is beside it in this process, to which a share of the core would belong.
        usual: MonitorOptions = {"max_cpu_share": 1.0}
        self._monitor = Monitor(**usual | of_monitor | own)
        self._counts = Counter[str](not_judged=0, unreadable_spans=0, set_aside=0)
        self._requests = Counter[str]()
        """Counted by the other process."""

        self._under_way: list[Trace] = []
        """Those whose records the monitor may have to read."""

        self._suspects: list[Trace] = []
        """Those to be looked through by themselves: processes have ended at them."""

        self._held: Entry | None = None
        """A request to be read by itself."""

        self._is_pressed = False
        self.is_alone = False
        """Whether the other process has ended."""

        counted = (
            (semconv.SERVE_SPANS, lambda: self._traces.counts, "{span}"),
            (semconv.SERVE_REQUESTS, lambda: self._requests + self._counts, "{request}"),
        )
        for name, counts, unit in counted:
            meter().create_observable_counter(name, [_observed(counts)], unit=unit)

    def run(self, link: Connection) -> float:
        """Judge until the other process says so, or has ended; returns the seconds for the end."""
        while True:
            until = time.monotonic() + TICK_SECONDS
            while time.monotonic() < until and self._read_one():
                pass
            self._look()
            time.sleep(max(0.0, until - time.monotonic()))
            try:
                link.send(self.state())
                heard = Heard(*link.recv())
            except (EOFError, OSError):
                self.is_alone = True
                return self._options.exit_timeout
            self._requests = Counter(heard.requests)
            self._is_pressed = heard.is_pressed
            if heard.seconds is not None:
                return heard.seconds

    def end(self, seconds: float) -> None:
        """Judge what is whole, or all that has its root if it is not kept for the next start."""
        deadline = time.monotonic() + seconds
        half = time.monotonic() + seconds / 2
        while time.monotonic() < half and self._read_one():
            pass
        for trace in () if self._is_kept else (*self._suspects, *self._traces.end()):
            while self._is_busy and time.monotonic() < half:
                time.sleep(TICK_SECONDS / 10)
                self._look_back()
            self._submit(trace)
        self._look()
        if not self._is_kept:  # else what waits is judged after the next start
            self._monitor.flush(max(0.0, deadline - time.monotonic()))
        self._monitor.shutdown(max(0.0, deadline - time.monotonic()))

    def state(self) -> Mapping[str, Mapping[str, int]]:
        """How far it is, for ``/healthz``."""
        return {
            "requests": dict(self._counts),
            "spans": dict(self._traces.counts),
            "waiting": self._traces.waiting,
            "records": asdict(self._monitor.stats),
        }

    def _read_one(self) -> bool:
        """Read a request, if there is one and room for it."""
        entry, self._held = self._held, None
        if entry is None and self._traces.has_room:
            entry = self._segments.next()
        if entry is None:
            return False
        id_ = entry.position.to_bytes(8)
        attempts = self._judged.attempts(id_)
        if attempts >= MAX_ATTEMPTS:
            kind = f"{'json' if entry.is_json else 'protobuf'}{'.gz' if entry.is_packed else ''}"
            self._counts["set_aside"] += 1
            self._say_aside("a request", f"{entry.position}.{kind}", entry.body)
            self._judged.end(id_)
            return True
        if attempts == MAX_ATTEMPTS - 1 and self._under_way:
            self._held = entry
            return False
        self._judged.begin(id_)
        with guard_of(self._monitor):
            try:
                limit = self._options.max_request_bytes
                read = read_body(entry.body, entry.is_packed, entry.is_json, limit)
                self._counts["unreadable_spans"] += read.rejected
                self._traces.add(read.sent, entry.position)
            except RefusedError:  # forwarded as it was
                self._counts["not_judged"] += 1
        self._judged.end(id_)
        return True

    def _say_aside(self, what: str, name: str, body: bytes) -> None:
        _logger.warning(
            "claimspan serve leaves %s unjudged, at which the judging process has ended %d times; "
            "it is set aside in %s",
            what,
            MAX_ATTEMPTS,
            set_aside(self._folder, name, body),
        )

    def _look(self) -> None:
        """Hand on the traces that are whole, and let go of what is safe elsewhere."""
        self._look_back()
        for trace in () if self._is_busy else self._traces.due(is_pressed=self._is_pressed):
            trace.is_suspect = self._judged.attempts(trace.key) >= MAX_ATTEMPTS - 1
            if trace.is_suspect:
                self._suspects.append(trace)
            else:
                self._submit(trace)
            if self._is_busy:
                break
        if self._suspects and not self._under_way:
            self._submit(self._suspects.pop())
        self._traces.keep()
        self._segments.delete(self._traces.needed)

    def _look_back(self) -> None:
        unread, under_way = unread_traces(self._monitor), self._under_way
        self._under_way = [each for each in under_way if each.id in unread]
        for each in under_way:
            if each.id not in unread:
                self._sampler.rates.pop(each.id, None)
                self._traces.release(each)

    @property
    def _is_busy(self) -> bool:
        """Whether the monitor has to read enough, and further traces stay in their files."""
        under_way = self._under_way
        return (
            len(under_way) >= MAX_UNREAD
            or sum(each.n_bytes for each in under_way) > MAX_UNREAD_BYTES
            or (len(under_way) == 1 and under_way[0].is_suspect)
        )

    def _submit(self, trace: Trace) -> None:
        if not self._may_be_sampled(trace):
            self._traces.release(trace, Outcome.NOT_SAMPLED)
            return
        if self._judged.attempts(trace.key) >= MAX_ATTEMPTS:
            self._say_aside("a trace", f"{trace.id:032x}.protobuf", trace.sent)
            self._traces.release(trace, Outcome.SET_ASIDE)
            return
        self._judged.begin(trace.key)
        with guard_of(self._monitor):
            self._sampler.rates[trace.id] = head_rate(trace.top.message.trace_state)
            keys = {
                "query_key": self._options.query_key,
                "response_key": self._options.response_key,
            }
            for record in records_of_trace(self._traces.read(trace), **keys):
                # Read once more after a kill, it may be in the spool of the process before.
                if not is_under_way(self._monitor, record):
                    submit_ended(self._monitor, record)
        self._under_way.append(trace)

    def _may_be_sampled(self, trace: Trace) -> bool:
        """Whether a share takes a record of a trace: it is decided by the ids of the record's root.

        A request that says itself whether it is judged is read in any case.
        """
        by_ids = self._by_ids
        return by_ids is None or any(
            by_ids.decide(Facts(trace_id=each.trace_id, span_id=each.span_id)).sampled
            or _SAMPLE_REQUEST in each.body
            for each in trace.spans.values()
        )


def _provider_for(options: ServeOptions) -> TracerProvider:
    """Return the tracer provider of the scores, and set those of log events and metrics.

    Without ``export``, scores of forwarded spans go to the backend of these, and others to where
    OpenTelemetry's variables say, or else to a file.

    Raises:
        ConfigError: A file cannot be written, or a variable has a value that is unknown.
    """
    base = (options.export or options.forward_to("http") or "").rstrip("/")
    base = base.removesuffix("/v1/traces")

    def endpoint(signal: str) -> str | None:
        return f"{base}/v1/{signal}" if base else None

    resource = Resource.create({"service.name": _SERVICE})
    if "logs" in options.export_signals:
        logger_provider = LoggerProvider(resource, shutdown_on_exit=False)
        logger_provider.add_log_record_processor(
            BatchLogRecordProcessor(OTLPLogExporter(endpoint("logs")))
        )
        logs.set_logger_provider(logger_provider)
        shut_down_at_exit(logger_provider)
    if "metrics" in options.export_signals:
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(endpoint("metrics")))
        meter_provider = MeterProvider([reader], resource, shutdown_on_exit=False)
        metrics.set_meter_provider(meter_provider)
        shut_down_at_exit(meter_provider)
    if "traces" not in options.export_signals:
        return TracerProvider(resource=resource, shutdown_on_exit=False)
    return configure(endpoint=endpoint("traces"), service_name=_SERVICE)


def _observed(counts: Callable[[], Mapping[str, int]]) -> Callable[..., Iterable[Observation]]:
    """What a counter of OpenTelemetry shows of counts that are kept here."""

    def observe(_: CallbackOptions) -> Iterable[Observation]:
        outcome = semconv.SERVE_OUTCOME
        return [Observation(number, {outcome: kind}) for kind, number in counts().items()]

    return observe


# --- what was decided at the head of a trace, before its spans were sent --------------------------

_BITS: Final = 56
_OT_MEMBER: Final = re.compile(r"(?:^|,)\s*ot=([^,]{1,256})")
_THRESHOLD: Final = re.compile(r"(?:^|;)th:([0-9a-f]{1,14})\s*(?:;|$)")

_MIN_RATE: Final = 1e-12
"""Smaller rates have no weight that could be used."""


def head_rate(trace_state: str) -> float:
    """Share of the traces like this one that the application has sampled, above 0 up to 1.

    OpenTelemetry's consistent probability sampling says it in ``tracestate`` as ``ot=th:``, the
    threshold in hex, without its trailing zeros, below which a trace is left out.
    """
    member = _OT_MEMBER.search(trace_state)
    found = member and _THRESHOLD.search(member[1])
    threshold = int(found[1].ljust(_BITS // 4, "0"), 16) if found else 0
    return 1 - threshold / (1 << _BITS)


class AfterHead:
    """Decides as another sampler does, with the rate of the head as a part of each rate.

    Every weight that follows from a rate then counts the traces that were never sent as well.
    """

    def __init__(self, given: float | Sampler | None) -> None:
        self._sampler = sampler = sampler_of(given)
        self.wrapped: Final[object] = given
        self.first_judge: Final[object] = getattr(sampler, "first_judge", None)
        self.needs_feedback: Final[object] = getattr(sampler, "needs_feedback", False)
        self.rates: Final = dict[int, float]()
        """Trace id to the rate of its head, of the traces whose records are to be decided on."""

    def decide(self, facts: Facts) -> Decision:
        """Decide about a record."""
        decision = self._sampler.decide(facts)
        # The scores of a first judge come after a decision that has the rate of the head already.
        head = 1.0 if facts.first_scores is not None else self.rates.get(facts.trace_id, 1.0)
        least = _MIN_RATE if decision.sampled else 0.0
        return decision if head == 1.0 else replace(decision, rate=max(decision.rate * head, least))
