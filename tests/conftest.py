"""What every test stands on: no phone-home, spans in memory, monitors that are put away."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Generator, Iterator
from pathlib import Path

import hypothesis
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from claimspan_tracing import lifecycle
from claimspan_tracing.deliver.delivery import Delivery

from support import MonitorFactory, Spans

ABSENT_DATA = "shared data"
"""The one reason to skip that a continuous integration may have: data that stays outside."""

BACKENDS = Path(__file__).parent / "backends"
"""Tests that install servers of hundreds of megabytes; they run where somebody names them."""

MAX_RERUN_TESTS = 10
"""Tests that may need a second run where ``--reruns`` allows one. On a busy machine a handful of
those that wait for processes and deadlines do; more of them mean that something is broken."""

# How long an example takes is no promise of these tests, and depends on the machine. What the
# profile of a continuous integration sets besides stays. --hypothesis-profile=thorough looks at
# many more examples, and at others each time.
hypothesis.settings.register_profile(
    "unhurried", hypothesis.settings(), deadline=None, max_examples=50
)
hypothesis.settings.register_profile(
    "thorough", hypothesis.settings(), deadline=None, max_examples=1_000, derandomize=False
)
hypothesis.settings.load_profile("unhurried")

# After the first asynchronous test, asyncio.get_event_loop raises. Before, it makes a loop that is
# never closed, and whichever test drops it fails. So it raises from the beginning.
asyncio.set_event_loop(None)

_skipped: list[str] = []
_rerun: set[str] = set()

# LangSmith looks at its switches with every run, Haystack when it is imported; nothing here may
# leave the machine.
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"
os.environ["LANGSMITH_TRACING"] = "false"
os.environ["LANGCHAIN_TRACING_V2"] = "false"
# A test that does not say which judge it means has words: they are quick, and the same everywhere.
os.environ["CLAIMSPAN_JUDGE"] = "lexical"
for variable in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
    os.environ.pop(variable, None)


@pytest.fixture(autouse=True)
def _deliveries_end_with_their_test() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]  # pytest uses it
    """What a test leaves undelivered must not be logged as lost in the middle of a later one."""
    before = _deliveries()
    yield
    for delivery in _deliveries() - before:
        delivery.stop()


def _deliveries() -> set[Delivery[object]]:
    # They are known to nobody but the list of what a forked child begins anew.
    known = list(lifecycle._restarting)  # pyright: ignore[reportPrivateUsage]
    return {each for each in known if isinstance(each, Delivery)}


@pytest.fixture
def spans() -> Spans:
    """The spans that were exported, in memory."""
    return Spans(InMemorySpanExporter())


@pytest.fixture
def provider(spans: Spans) -> Iterator[TracerProvider]:
    """A tracer provider of the application, as its authors would set one up."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spans.exporter))
    yield provider
    provider.shutdown()


@pytest.fixture
def make_monitor(provider: TracerProvider) -> Iterator[MonitorFactory]:
    """Makes monitors that evaluate everything; no fault of ours may go unnoticed."""
    factory = MonitorFactory(provider)
    yield factory
    for monitor in factory.made:
        monitor.shutdown(timeout=2.0)
        assert monitor.stats.faults == factory.expected_faults


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    named = any("backends" in argument for argument in config.args)
    return True if collection_path == BACKENDS and not named else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Looks for no garbage while thousands of tests are collected: it takes a sixth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leaves what thousands of collected tests hold out of every later collection of garbage.

    Each would take half a second, and some tests ask for ten.
    """
    gc.collect()
    gc.freeze()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    # The outcome that pytest-rerunfailures gives to a failure that it runs again.
    if str(report.outcome) == "rerun":
        _rerun.add(report.nodeid)
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        if ABSENT_DATA not in reason:
            _skipped.append(f"{report.nodeid}: {reason}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """On a continuous integration a skipped test is a failed one, and few may need a second run."""
    if len(_rerun) > MAX_RERUN_TESTS:
        print(
            f"\n{len(_rerun)} tests needed a second run, above {MAX_RERUN_TESTS}:",
            *sorted(_rerun),
            sep="\n  ",
        )
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if os.environ.get("CI") and _skipped:
        print("\nskipped, which fails here:", *_skipped, sep="\n  ")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
