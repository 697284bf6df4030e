"""A plugin of pytest for the suites of others: notes each outcome, and attaches claimspan if asked.

Runs in the environment of the peer, with the packages of this checkout on its path. Two variables
say what to do: ``PEERS_OUTCOMES`` is the file to write, and ``PEERS_ATTACHED=1`` attaches claimspan
to the whole process, with every query sampled.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from claimspan_tracing import Monitor

OUTCOMES: Final = "PEERS_OUTCOMES"
ATTACHED: Final = "PEERS_ATTACHED"

FLUSH_SECONDS: Final = 120.0
"""The suites make thousands of records, which are judged when they have ended."""

REASON_CHARACTERS: Final = 400

_outcomes: Final[dict[str, str]] = {}
_reasons: Final[dict[str, str]] = {}
_monitors: Final[list[Monitor]] = []


def pytest_configure() -> None:
    """Attach to every framework that is there, after the suite's own conftest was read."""
    if os.environ.get(ATTACHED):
        _attach()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note what became of a test; a set-up or tear-down that fails is a failure of the test."""
    outcome = "xfailed" if hasattr(report, "wasxfail") else str(report.outcome)
    is_final = report.when == "call" or outcome != "passed"
    if is_final and _outcomes.get(report.nodeid) != "failed":
        _outcomes[report.nodeid] = outcome
    if report.failed:
        _reasons[report.nodeid] = _last_line(report.longreprtext)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note a module that cannot be imported as a test that fails."""
    if report.failed:
        _outcomes[report.nodeid] = "failed"
        _reasons[report.nodeid] = _last_line(report.longreprtext)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Write the outcomes, and what was captured meanwhile."""
    found: dict[str, object] = {"outcomes": _outcomes, "reasons": _reasons}
    for monitor in _monitors:
        monitor.flush(FLUSH_SECONDS)
        stats = monitor.stats
        found |= {"records": stats.produced, "faults": stats.faults, "pending": stats.pending}
        found |= {"dropped": dict(stats.dropped)}
    Path(os.environ[OUTCOMES]).write_text(json.dumps(found), encoding="utf-8")


def _attach() -> None:
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import (
        SimpleSpanProcessor,
        SpanExporter,
        SpanExportResult,
    )

    from claimspan_tracing import Monitor

    class Forgetful(SpanExporter):
        """Takes every span and keeps none: a suite makes more of them than a test looks at."""

        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(Forgetful()))
    monitor = Monitor(judge="lexical", sample=1.0, tracer_provider=provider)
    _monitors.append(monitor)
    for instrument in _instruments():
        instrument(monitor)


def _instruments() -> list[Callable[[Monitor], object]]:
    found: list[Callable[[Monitor], object]] = []
    if find_spec("langchain_core"):
        import claimspan_langchain

        found.append(claimspan_langchain.instrument)
    if find_spec("llama_index_instrumentation"):
        import claimspan_llama_index

        found.append(claimspan_llama_index.instrument)
    if find_spec("haystack"):
        import claimspan_haystack

        found.append(claimspan_haystack.instrument)
    return found


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.startswith("E ")] or text.splitlines()[-1:]
    return " ".join(" ".join(line[1:].split()) for line in lines)[:REASON_CHARACTERS]
