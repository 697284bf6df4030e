"""What the tests send to a real backend: queries of all three frameworks with known scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final, Unpack

from openinference.instrumentation import using_session
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from claimspan_tracing import Monitor
from claimspan_tracing.monitor import MonitorOptions

from hs_driver import HaystackDriver
from lc_driver import LangChainDriver
from li_driver import LlamaIndexDriver
from pipelines import AppError, Driver, Passage, Recipe
from support import ScriptedJudge

__all__ = [
    "DRIVERS",
    "PASSAGES",
    "QUERIES",
    "Query",
    "ask_all",
    "monitor_on",
    "provider_to",
]

DRIVERS: Final[Sequence[Callable[[], Driver]]] = (
    LangChainDriver,
    LlamaIndexDriver,
    HaystackDriver,
)

PASSAGES: Final = (
    Passage("Tea grows on hills. Rain is plentiful there", "hills", 0.9),
    Passage("Coffee is roasted in drums", "drums", 0.4),
)


@dataclass(frozen=True)
class Query:
    """A question, what is answered to it, and the faithfulness that follows from the passages."""

    text: str
    answer: str
    faithfulness: float | None
    """None where there is nothing to judge."""

    in_session: bool = False
    ground_truth: str | None = None
    streamed: bool = False
    fails: bool = False

    @property
    def is_bad(self) -> bool:
        """Whether the filter ``faithfulness < 0.5`` lets it through."""
        return self.faithfulness is not None and self.faithfulness < 0.5


QUERIES: Final = (
    Query(
        "Where does tea grow?",
        "Tea grows on hills. Rain is plentiful there.",
        1.0,
        in_session=True,
        ground_truth="Tea grows on hills.",
    ),
    Query("Is tea roasted?", "Tea grows on hills. Tea is roasted in pans.", 0.5, in_session=True),
    Query("Who drinks tea?", "Only sailors drink tea.", 0.0, in_session=True, streamed=True),
    Query("How is coffee roasted?", "Coffee is roasted in drums.", 1.0, streamed=True),
    Query(
        "Where does coffee grow?",
        "Coffee grows at sea. Coffee needs no sun. Tea grows on hills.",
        1 / 3,
    ),
    Query("Does it fail?", "", None, fails=True),
)
"""A talk of three turns; good ones, one at the edge of the filter, bad ones, and a failure."""


def monitor_on(provider: TracerProvider, **options: Unpack[MonitorOptions]) -> Monitor:
    """A monitor that evaluates every query with the judge whose verdicts are known."""
    truths = {query.text: query.ground_truth for query in QUERIES if query.ground_truth}
    defaults: MonitorOptions = {
        "judge": ScriptedJudge(),
        "sample": 1.0,
        "ground_truth": truths,
        "tracer_provider": provider,
        "max_cpu_share": 1.0,
        "hold_seconds": 120.0,
    }
    return Monitor(**(defaults | options))


def provider_to(url: str, **resource: str) -> TracerProvider:
    """A provider as an application sets it up that exports by OTLP over HTTP.

    Args:
        url: Of the endpoint for traces.
        **resource: Attributes of the resource, with ``__`` for each dot.
    """
    attributes = {name.replace("__", "."): value for name, value in resource.items()}
    provider = TracerProvider(resource=Resource.create(attributes), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(url)))
    return provider


def ask_all(driver: Driver, monitor: Monitor, session: str) -> None:
    """Ask every query, each of a pipeline that answers it as it says, and wait for the scores.

    Args:
        driver: Builds the pipelines.
        monitor: Attached meanwhile.
        session: Of the queries that are turns of a talk; a backend takes its name as unique.
    """
    detach = driver.attach(monitor)
    try:
        for query in QUERIES:
            with using_session(session) if query.in_session else nullcontext():
                _ask(driver, query)
        monitor.flush(timeout=60)
    finally:
        detach()
    assert monitor.stats.pending == 0


def _ask(driver: Driver, query: Query) -> None:
    error = AppError("the model is down") if query.fails else None
    recipe = Recipe(passages=PASSAGES, answer=query.answer, generator_error=error)
    pipeline = driver.build(recipe)
    try:
        said = pipeline.stream(query.text) if query.streamed else [pipeline.run(query.text)]
        answer = "".join(said)
    except Exception:  # noqa: BLE001 - frameworks wrap what a model raises in their own errors
        assert query.fails
    else:
        assert answer.strip() == query.answer
