"""An export that fails is known, counted, and made up for. Row F5 of the reliability matrix."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor

from lc_pipelines import rag_chain
from spool_jobs import rows
from support import MonitorFactory, ScriptedJudge, Spans, ids, score_names

OURS = 4
"""Spans of one evaluated query: root, retriever, generator, claims."""


class Backend(SpanExporter):
    """An exporter whose backend is down, or refuses, for as long as a test says."""

    def __init__(self) -> None:
        self.is_down = True
        self.raises = False
        self.kept = InMemorySpanExporter()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        if self.is_down and self.raises:
            raise ConnectionError("refused")
        return SpanExportResult.FAILURE if self.is_down else self.kept.export(spans)


@pytest.fixture
def backend() -> Backend:
    return Backend()


@pytest.fixture
def provider(backend: Backend) -> Iterator[TracerProvider]:
    """The application's, with a batch processor."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(backend, schedule_delay_millis=50))
    yield provider
    provider.shutdown()


def ask(monitor: Monitor, query: str = "q") -> None:
    rag_chain().invoke(query, {"callbacks": [ClaimspanCallbackHandler(monitor)]})


@pytest.mark.parametrize("raises", [False, True])
def test_an_exporter_that_fails_is_counted_and_flush_says_so_once(
    make_monitor: MonitorFactory, backend: Backend, raises: bool
) -> None:
    backend.raises = raises
    monitor = make_monitor()
    ask(monitor)

    assert not monitor.flush()
    assert monitor.stats.export_failures == OURS
    assert monitor.stats.evaluated == 1
    backend.is_down = False
    ask(monitor)
    assert monitor.flush()
    assert monitor.stats.export_failures == OURS


def test_spans_of_others_are_not_counted(
    make_monitor: MonitorFactory, backend: Backend, provider: TracerProvider
) -> None:
    backend.is_down = False
    monitor = make_monitor()
    ask(monitor)
    assert monitor.flush()
    backend.is_down = True
    provider.get_tracer("theirs").start_span("a span").end()

    assert monitor.flush()
    assert monitor.stats.export_failures == 0


def test_an_observed_exporter_returns_and_raises_what_it_did_before(
    make_monitor: MonitorFactory, backend: Backend
) -> None:
    ask(make_monitor())

    assert backend.export([]) is SpanExportResult.FAILURE
    backend.raises = True
    with pytest.raises(ConnectionError, match="refused"):
        backend.export([])
    backend.is_down = False
    assert backend.export([]) is SpanExportResult.SUCCESS


def test_monitors_that_are_gone_leave_nothing_behind_on_an_exporter(
    provider: TracerProvider, backend: Backend
) -> None:
    export = type(backend).export
    for _ in range(5):
        monitor = Monitor(ScriptedJudge(), sample=1.0, tracer_provider=provider)
        ask(monitor)
        monitor.shutdown(1.0)

    observed = vars(backend)["export"]
    # One observer stands on the exporter's own method, not one on the other.
    assert observed._export.__func__ is export


def test_with_a_spool_what_a_dead_backend_did_not_take_is_sent_again_when_it_is_back(
    make_monitor: MonitorFactory,
    backend: Backend,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("claimspan_tracing.records.table.EXPORT_RETRY_SECONDS", 0.2)
    monkeypatch.setattr("claimspan_tracing.spool.spool.LEASE_SECONDS", 0.6)
    monitor = make_monitor(spool=tmp_path / "spool.db")
    for number in range(5):
        ask(monitor, f"q{number}")

    assert not monitor.flush()
    assert len(rows(tmp_path / "spool.db")) == 5
    backend.is_down = False
    deadline = time.monotonic() + 20
    while rows(tmp_path / "spool.db") and time.monotonic() < deadline:
        time.sleep(0.05)
        monitor.flush()

    spans = Spans(backend.kept)
    assert rows(tmp_path / "spool.db") == []
    assert len(spans.roots) == len({ids(root).span_id for root in spans.roots}) == 5
    assert all("faithfulness" in score_names(root) for root in spans.roots)
    assert len(spans.all) == 5 * OURS
    assert monitor.stats.evaluated == monitor.stats.produced == 5


@pytest.mark.parametrize("name", ["claimspan.evaluate", "claimspan.annotations"])
def test_a_late_record_is_written_again_as_the_same_spans_until_both_were_exported(
    make_monitor: MonitorFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr("claimspan_tracing.records.table.EXPORT_RETRY_SECONDS", 0.2)
    monkeypatch.setattr("claimspan_tracing.spool.spool.LEASE_SECONDS", 0.6)
    refusing = Refusing(name)
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(refusing))
    path = tmp_path / "spool.db"
    monitor = make_monitor(
        judge=ScriptedJudge(delay=0.4), spool=path, hold_seconds=0.1, tracer_provider=provider
    )
    ask(monitor)

    deadline = time.monotonic() + 30
    while len(refusing.refused) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
        monitor.flush()
    assert rows(path) == [("unexported",)]
    refusing.name = ""
    while rows(path) and time.monotonic() < deadline:
        time.sleep(0.05)
        monitor.flush()

    assert rows(path) == []
    spans = Spans(refusing.kept)
    for written in (spans.evaluations, spans.annotations):
        assert len({ids(span).span_id for span in (*written, *refusing.named(written))}) == 1
    assert len(spans.roots) == 1
    assert (monitor.stats.late, monitor.stats.dropped) == (1, {"timeout": 1})
    provider.shutdown()


class Refusing(SpanExporter):
    """An exporter whose backend refuses the spans with one name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.kept = InMemorySpanExporter()
        self.refused: list[ReadableSpan] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        refused = [span for span in spans if span.name == self.name]
        self.refused += refused
        return SpanExportResult.FAILURE if refused else self.kept.export(spans)

    def named(self, like: Sequence[ReadableSpan]) -> list[ReadableSpan]:
        """The refused spans with the name of others."""
        return [span for span in self.refused if span.name == like[0].name]


def test_a_row_is_kept_until_every_exporter_has_its_spans(
    make_monitor: MonitorFactory, backend: Backend, provider: TracerProvider, tmp_path: Path
) -> None:
    fine = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(fine))
    monitor = make_monitor(spool=tmp_path / "spool.db")
    ask(monitor)
    monitor.flush()

    assert len(fine.get_finished_spans()) == OURS
    assert rows(tmp_path / "spool.db") == [("unexported",)]


def test_where_no_exporter_can_be_asked_a_written_record_counts_as_exported(
    tmp_path: Path,
) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SpanProcessor())  # it may export by itself, and does not say so
    monitor = Monitor(
        ScriptedJudge(), sample=1.0, tracer_provider=provider, spool=tmp_path / "spool.db"
    )
    ask(monitor)

    assert monitor.flush()
    assert rows(tmp_path / "spool.db") == []
    monitor.shutdown()
