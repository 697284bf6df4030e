"""The specification of capture: every scenario, in every framework.

Each scenario is checked on the exported spans and on what the judge was given.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import Span, SpanProcessor, TracerProvider
from opentelemetry.trace import StatusCode

from claimspan_tracing import Monitor

from hs_driver import HaystackDriver
from lc_driver import LangChainDriver
from li_driver import LlamaIndexDriver
from pipelines import AppError, Driver, Passage, Recipe, answer_to
from support import MonitorFactory, ScriptedJudge, Spans, attributes, ids, score_names

QUERY = "the question"
RUNS = 300

DRIVERS: list[Callable[[], Driver]] = [LangChainDriver, LlamaIndexDriver, HaystackDriver]


class StartedSpans(SpanProcessor):
    """Knows which of the spans that were started are still there."""

    def __init__(self) -> None:
        self._seen: list[weakref.ref[Span]] = []

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        self._seen.append(weakref.ref(span))

    def alive(self) -> list[Span]:
        assert self._seen
        return [span for seen in self._seen if (span := seen()) is not None]


@pytest.fixture
def judge() -> ScriptedJudge:
    return ScriptedJudge()


@pytest.fixture
def monitor(make_monitor: MonitorFactory, judge: ScriptedJudge) -> Monitor:
    # Hundreds of evaluations take a while where lines are counted, and none may be given up.
    return make_monitor(judge=judge, hold_seconds=300.0)


@pytest.fixture(params=DRIVERS, ids=lambda make: make().name)
def driver(request: pytest.FixtureRequest, monitor: Monitor) -> Iterator[Driver]:
    make: Callable[[], Driver] = request.param
    driver = make()
    detach = driver.attach(monitor)
    yield driver
    detach()


def status(spans: Spans) -> object:
    return attributes(spans.root)["claimspan.evaluation.status"]


def whole(spans: Spans) -> tuple[object, object, object]:
    """Query, response and status on the one root."""
    root = attributes(spans.root)
    return root["input.value"], str(root["output.value"]).strip(), status(spans)


def check_chunks(spans: Spans) -> None:
    """One retriever span under the root, with both chunks whole and in order."""
    retriever = spans.one("RETRIEVER")
    found = attributes(retriever)
    query = attributes(spans.root)["input.value"]
    assert retriever.parent is not None
    assert ids(retriever).trace_id == ids(spans.root).trace_id
    assert found["gen_ai.retrieval.query.text"] == query
    assert found["retrieval.documents.0.document.id"] == f"doc-{query}"
    assert found["retrieval.documents.0.document.score"] == 0.75
    assert found["retrieval.documents.0.document.content"] == f"Answer to {query}. More on {query}"
    assert found["retrieval.documents.1.document.content"] == f"Something else about {query}"
    assert found["claimspan.chunks.count"] == 2


async def test_a_plain_call(driver: Driver, monitor: Monitor, spans: Spans) -> None:
    assert driver.build(Recipe()).run(QUERY) == answer_to(QUERY)
    assert monitor.flush()

    assert whole(spans) == (QUERY, answer_to(QUERY), "evaluated")
    assert attributes(spans.root)["claimspan.score.faithfulness"] == 0.5
    check_chunks(spans)
    assert len(spans.of_kind("LLM")) == 1


def test_a_query_that_was_written_is_gone_without_the_garbage_collector(
    driver: Driver, monitor: Monitor, provider: TracerProvider
) -> None:
    started = StartedSpans()
    provider.add_span_processor(started)
    gc.disable()
    try:
        driver.build(Recipe()).run(QUERY)
        assert monitor.flush()

        # The worker's thread may still be about to let go of the last one.
        deadline = time.monotonic() + 10.0
        while started.alive() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert started.alive() == []
    finally:
        gc.enable()


async def test_an_asynchronous_call(driver: Driver, monitor: Monitor, spans: Spans) -> None:
    assert await driver.build(Recipe()).arun(QUERY) == answer_to(QUERY)
    assert await monitor.aflush()

    assert whole(spans) == (QUERY, answer_to(QUERY), "evaluated")
    check_chunks(spans)


async def test_a_stream_that_is_read(driver: Driver, monitor: Monitor, spans: Spans) -> None:
    parts = list(driver.build(Recipe()).stream(QUERY))
    assert monitor.flush()

    assert "".join(parts).strip() == answer_to(QUERY)
    assert whole(spans) == (QUERY, answer_to(QUERY), "evaluated")
    check_chunks(spans)


async def test_an_asynchronous_stream_that_is_read(
    driver: Driver, monitor: Monitor, spans: Spans
) -> None:
    parts = [part async for part in driver.build(Recipe()).astream(QUERY)]
    assert await monitor.aflush()

    assert "".join(parts).strip() == answer_to(QUERY)
    assert whole(spans) == (QUERY, answer_to(QUERY), "evaluated")
    check_chunks(spans)


async def test_a_stream_that_is_left_after_one_part(
    driver: Driver, monitor: Monitor, spans: Spans, judge: ScriptedJudge
) -> None:
    stream = driver.build(Recipe()).stream(QUERY)
    next(stream)
    getattr(stream, "close", lambda: None)()
    del stream
    assert await monitor.aflush()

    assert status(spans) == "abandoned"
    assert judge.checked == []
    assert attributes(spans.root)["input.value"] == QUERY


async def test_a_cancelled_task(driver: Driver, monitor: Monitor, spans: Spans) -> None:
    pipeline = driver.build(Recipe(retriever_seconds=60))
    task = asyncio.create_task(pipeline.arun(QUERY))
    await asyncio.sleep(0.2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await monitor.aflush()

    assert status(spans) == "interrupted"
    assert score_names(spans.root) == set()


ERROR = AppError("quotes sk-canary")


@pytest.mark.parametrize(
    "recipe", [Recipe(retriever_error=ERROR), Recipe(generator_error=ERROR)], ids=str
)
@pytest.mark.parametrize("mode", ["run", "arun"])
async def test_a_part_that_raises(
    driver: Driver, monitor: Monitor, spans: Spans, recipe: Recipe, mode: str
) -> None:
    pipeline = driver.build(recipe)

    with pytest.raises(Exception) as caught:  # noqa: PT011 - frameworks may wrap it
        pipeline.run(QUERY) if mode == "run" else await pipeline.arun(QUERY)
    driver.build(Recipe()).run("next")
    assert await monitor.aflush()

    chain = [caught.value, caught.value.__cause__, caught.value.__context__]
    assert ERROR in chain
    failed, clean = sorted(spans.roots, key=lambda span: span.start_time or 0)
    assert attributes(failed)["claimspan.evaluation.status"] == "app_error"
    assert failed.status.status_code is StatusCode.ERROR
    assert attributes(clean)["claimspan.evaluation.status"] == "evaluated"
    assert "sk-canary" not in "".join(span.to_json() for span in spans.all)


class StoppedByHost(BaseException):
    """As Streamlit raises in a script whose user has gone on; no ``Exception``."""


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), SystemExit(), StoppedByHost()], ids=repr)
def test_a_run_that_is_stopped_on_purpose_is_no_error_of_the_application(
    driver: Driver, monitor: Monitor, spans: Spans, stop: BaseException
) -> None:
    with pytest.raises(type(stop)):
        driver.build(Recipe(generator_error=stop)).run(QUERY)
    assert monitor.flush()

    assert status(spans) == "interrupted"
    assert spans.root.status.status_code is StatusCode.UNSET


async def test_threads_that_share_the_attachment(
    driver: Driver, monitor: Monitor, spans: Spans
) -> None:
    pipeline = driver.build(Recipe())
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(pipeline.run, (f"q{i}" for i in range(RUNS))))
    assert monitor.flush(120)

    assert answers == [answer_to(f"q{i}") for i in range(RUNS)]
    check_each_has_its_own(spans, RUNS)


async def test_tasks_that_share_the_attachment(
    driver: Driver, monitor: Monitor, spans: Spans
) -> None:
    pipeline = driver.build(Recipe())
    gate = asyncio.Semaphore(64)

    async def one(query: str) -> str:
        async with gate:
            return await pipeline.arun(query)

    answers = await asyncio.gather(*(one(f"q{i}") for i in range(RUNS)))
    assert await monitor.aflush(120)

    assert list(answers) == [answer_to(f"q{i}") for i in range(RUNS)]
    check_each_has_its_own(spans, RUNS)


def check_each_has_its_own(spans: Spans, n: int) -> None:
    """As many traces as queries, each with its own chunks and answer, and nothing left over."""
    by_trace = {ids(root).trace_id: attributes(root) for root in spans.roots}
    assert len(by_trace) == len(spans.roots) == n
    assert len(spans.of_kind("RETRIEVER")) == n
    for retriever in spans.of_kind("RETRIEVER"):
        root = by_trace[ids(retriever).trace_id]
        query = root["input.value"]
        assert attributes(retriever)["retrieval.documents.0.document.id"] == f"doc-{query}"
        assert str(root["output.value"]).strip() == answer_to(str(query))


@pytest.mark.parametrize(
    ("recipe", "expected"),
    [
        (Recipe(passages=[]), "no_context"),
        (Recipe(answer=""), "no_answer"),
        (Recipe(answer="  \n"), "no_answer"),
    ],
)
async def test_nothing_retrieved_or_nothing_said(
    driver: Driver, monitor: Monitor, spans: Spans, recipe: Recipe, expected: str
) -> None:
    driver.build(recipe).run(QUERY)
    assert monitor.flush()

    assert status(spans) == expected
    assert score_names(spans.root) == set()


async def test_a_users_own_span_around_the_pipeline(
    driver: Driver, monitor: Monitor, spans: Spans, provider: TracerProvider
) -> None:
    with provider.get_tracer("app").start_as_current_span("request") as request:
        driver.build(Recipe()).run(QUERY)
        assert trace.get_current_span() is request
    assert monitor.flush()

    assert spans.root.parent is not None
    assert spans.root.parent.span_id == request.get_span_context().span_id
    assert trace.get_current_span() is trace.INVALID_SPAN


async def test_texts_as_they_come(driver: Driver, monitor: Monitor, spans: Spans) -> None:
    odd = [
        Passage("lone \ud800 surrogate and \x00 NUL", "odd"),
        Passage("z" * 10_000_000),
        Passage(f"Answer to {QUERY}", "good"),
    ]
    driver.build(Recipe(passages=odd, answer=answer_to(QUERY))).run(QUERY)
    assert monitor.flush(30)

    assert whole(spans) == (QUERY, answer_to(QUERY), "evaluated")
    content = attributes(spans.one("RETRIEVER"))["retrieval.documents.0.document.content"]
    assert content == "lone \ufffd surrogate and \ufffd NUL"


async def test_ten_thousand_chunks_cost_neither_the_query_nor_the_scores(
    driver: Driver, monitor: Monitor, spans: Spans, caplog: pytest.LogCaptureFixture
) -> None:
    passages = [Passage(f"Answer to {QUERY}", "first")]
    passages += [Passage(f"passage {i}", f"id-{i}") for i in range(9_999)]
    driver.build(Recipe(passages=passages, answer=answer_to(QUERY))).run(QUERY)
    assert monitor.flush(60)

    assert whole(spans) == (QUERY, answer_to(QUERY), "evaluated")
    # The other claim is in none of the chunks that were kept: it may be in one of the 9,900 others.
    assert attributes(spans.root)["claimspan.score.faithfulness"] == 1.0
    assert attributes(spans.root)["claimspan.claims.unknown.count"] == 1
    found = attributes(spans.one("RETRIEVER"))
    assert found["claimspan.chunks.count"] == 10_000
    assert found["claimspan.chunks.recorded"] == 20
    assert found["gen_ai.retrieval.query.text"] == QUERY
    assert len([r for r in caplog.records if r.levelno >= logging.WARNING]) <= 1


ON_EVERY_ROOT = {
    "claimspan.chunks.count": int,
    "claimspan.chunks.recorded": int,
    "claimspan.evaluation.status": str,
    "claimspan.evaluation.undefined": tuple,
    "claimspan.judge.name": str,
    "claimspan.sample.rate": float,
    "claimspan.sample.weight": float,
    "claimspan.score.faithfulness": float,
    "gen_ai.operation.name": str,
    "gen_ai.workflow.name": str,
    "input.value": str,
    "openinference.span.kind": str,
    "output.value": str,
}
ON_EVERY_RETRIEVER = {
    "claimspan.chunk.id_source": tuple,
    "claimspan.chunks.count": int,
    "claimspan.chunks.recorded": int,
    "gen_ai.operation.name": str,
    "gen_ai.retrieval.documents": str,
    "gen_ai.retrieval.query.text": str,
    "input.value": str,
    "openinference.span.kind": str,
    "retrieval.documents.0.document.content": str,
    "retrieval.documents.0.document.id": str,
    "retrieval.documents.0.document.score": float,
}
ON_EVERY_GENERATOR = {
    "gen_ai.operation.name": str,
    "input.value": str,
    "openinference.span.kind": str,
    "output.value": str,
    "claimspan.score.faithfulness": float,
}


async def test_one_schema_holds_for_the_spans_of_every_framework(
    driver: Driver, monitor: Monitor, spans: Spans
) -> None:
    driver.build(Recipe()).run(QUERY)
    assert monitor.flush()

    schemas = {
        "CHAIN": ON_EVERY_ROOT,
        "RETRIEVER": ON_EVERY_RETRIEVER,
        "LLM": ON_EVERY_GENERATOR,
    }
    for kind, schema in schemas.items():
        found = attributes(spans.one(kind))
        assert {name: type(found[name]) for name in schema if name in found} == schema
    begins = {span.name.split()[0] for span in spans.all}
    assert len(begins & {"chat", "text_completion"}) == 1  # the model of LlamaIndex's is no chat
    assert begins - {"chat", "text_completion"} == {
        "invoke_workflow",
        "retrieval",
        "claimspan.evaluate",
    }


async def test_a_detached_driver_captures_nothing(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    for make in DRIVERS:
        driver, monitor = make(), make_monitor()
        driver.attach(monitor)()
        driver.build(Recipe()).run(QUERY)

        assert monitor.flush()
        assert monitor.stats.produced == 0
    assert list(spans.all) == []
