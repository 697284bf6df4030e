"""The worker and the judge belong to nobody's request, and user code that blocks stops no spans."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig, RunnableLambda
from llama_index.core.llms import MockLLM
from opentelemetry import baggage
from opentelemetry.context import Context, attach, detach
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace import Span as SdkSpan

import claimspan_haystack
import claimspan_langchain
import claimspan_llama_index
from claimspan import Claim, GroundTruth, VerdictMatrix
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Decision, Facts, Finished, Monitor
from claimspan_tracing.monitor import MonitorOptions

from hs_pipelines import rag_pipeline
from lc_pipelines import rag_chain
from support import MonitorFactory, ScriptedJudge, Spans, attributes, ids

tenant: Final[ContextVar[str]] = ContextVar("tenant", default="nobody")


def run(monitor: Monitor, query: str = "q", metadata: dict[str, Any] | None = None) -> None:
    config: RunnableConfig = {
        "callbacks": [ClaimspanCallbackHandler(monitor)],
        "metadata": metadata or {},
    }
    rag_chain().invoke(query, config)


@contextmanager
def attached(undo: Callable[[], object]) -> Generator[None]:
    """Detach at the end of the block what ``instrument`` has attached."""
    try:
        yield
    finally:
        undo()


# --- contexts ---


class StampsTenant(SpanProcessor):
    """Stamps each span with the tenant of the context that it is started in, as services do."""

    def on_start(self, span: SdkSpan, parent_context: Context | None = None) -> None:
        span.set_attribute("tenant", tenant.get())
        span.set_attribute("baggage", str(baggage.get_baggage("tenant", parent_context)))

    def on_end(self, span: ReadableSpan) -> None:
        pass


def ask_as(name: str, monitor: Monitor) -> None:
    tenant.set(name)
    token = attach(baggage.set_baggage("tenant", name))
    run(monitor, name)
    detach(token)


@pytest.mark.parametrize("hold_seconds", [30.0, 0.2])
def test_every_span_is_stamped_with_the_tenant_of_its_own_request(
    make_monitor: MonitorFactory, provider: TracerProvider, spans: Spans, hold_seconds: float
) -> None:
    provider.add_span_processor(StampsTenant())
    # Held shortly, the scores come late and go to carriers, which have a tenant as well.
    monitor = make_monitor(judge=ScriptedJudge(delay=0.2), hold_seconds=hold_seconds)

    threads = [
        threading.Thread(target=ask_as, args=(name, monitor)) for name in ("a", "b", "c", "d")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    monitor.flush()

    by_trace: dict[int, set[tuple[object, object]]] = {}
    for span in spans.all:
        stamps = (attributes(span)["tenant"], attributes(span)["baggage"])
        by_trace.setdefault(ids(span).trace_id, set()).add(stamps)
    assert len(spans.evaluations) == 4
    assert sorted(map(sorted, by_trace.values())) == [[(n, n)] for n in ("a", "b", "c", "d")]


class SeesTenant(ScriptedJudge):
    """A judge that notes the tenant that it is called for."""

    def __init__(self) -> None:
        super().__init__()
        self.tenants: list[str] = []

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        self.tenants.append(tenant.get())
        return await super().extract_claims(text, question=question)


def test_the_judge_runs_in_an_empty_context(make_monitor: MonitorFactory) -> None:
    judge = SeesTenant()
    monitor = make_monitor(judge=judge)

    ask_as("a", monitor)
    assert monitor.flush()

    assert judge.tenants == ["nobody"]


@pytest.mark.parametrize("is_async", [False, True])
def test_a_look_up_runs_in_an_empty_context(make_monitor: MonitorFactory, is_async: bool) -> None:
    tenants: list[str] = []

    def look_up(query: str, metadata: Mapping[str, object]) -> str | None:
        tenants.append(tenant.get())
        return None

    async def look_up_later(query: str, metadata: Mapping[str, object]) -> str | None:
        return look_up(query, metadata)

    monitor = make_monitor(ground_truth=look_up_later if is_async else look_up)

    ask_as("a", monitor)
    assert monitor.flush()

    assert tenants == ["nobody"]


class UsersOwn(BaseCallbackHandler):
    """A callback that the user has on the chain."""

    def __init__(self) -> None:
        self.starts = 0

    def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
        self.starts += 1


class OnLangChain(ScriptedJudge):
    """A judge that is built on a LangChain pipeline, with retrieval and a model."""

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        await rag_chain().ainvoke("what does the judge want to know?")
        rag_chain().batch(["one", "two"])
        return await super().extract_claims(text, question=question)


def test_a_judge_on_langchain_reports_to_nobodys_callbacks(make_monitor: MonitorFactory) -> None:
    users = UsersOwn()
    plain, judged = make_monitor(), make_monitor(judge=OnLangChain())

    run(plain)
    rag_chain().invoke("q", {"callbacks": [users, ClaimspanCallbackHandler(plain)]})
    alone, users.starts = users.starts, 0
    rag_chain().invoke("q", {"callbacks": [users, ClaimspanCallbackHandler(judged)]})
    assert judged.flush()

    assert users.starts == alone


# --- suppression ---


def test_a_judge_on_langchain_is_never_captured_as_a_query(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor(judge=OnLangChain())
    with attached(claimspan_langchain.instrument(monitor)):
        rag_chain().invoke("q")
        assert monitor.flush()

    assert monitor.stats.produced == 1
    assert len(spans.roots) == 1


class OnLlamaIndex(ScriptedJudge):
    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        await MockLLM().acomplete("what does the judge want to know?")
        return await super().extract_claims(text, question=question)


def test_a_judge_on_llama_index_is_never_captured_as_a_query(
    make_monitor: MonitorFactory,
) -> None:
    monitor = make_monitor(judge=OnLlamaIndex())
    with attached(claimspan_llama_index.instrument(monitor)):
        run(monitor)
        assert monitor.flush()

    assert monitor.stats.produced == 1


class OnHaystack(ScriptedJudge):
    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        rag_pipeline().run({"shelf": {"query": "q"}, "prompt": {"question": "q"}})
        return await super().extract_claims(text, question=question)


def test_a_judge_on_haystack_is_never_captured_as_a_query(make_monitor: MonitorFactory) -> None:
    monitor = make_monitor(judge=OnHaystack())
    with attached(claimspan_haystack.instrument(monitor)):
        run(monitor)
        assert monitor.flush()

    assert monitor.stats.evaluated == 1
    assert monitor.stats.produced == 1


class OnAnExecutor(ScriptedJudge):
    """A judge that calls synchronous code the usual way, which copies no context."""

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, rag_chain().invoke, "what does the judge want to know?")
        await asyncio.to_thread(rag_chain().invoke, "and what else?")
        return await super().extract_claims(text, question=question)


def test_a_judge_that_runs_langchain_on_an_executor_is_never_captured(
    make_monitor: MonitorFactory,
) -> None:
    monitor = make_monitor(judge=OnAnExecutor())
    with attached(claimspan_langchain.instrument(monitor)):
        rag_chain().invoke("q")
        assert monitor.flush()

    assert monitor.stats.produced == monitor.stats.evaluated == 1


class SinkOnLangChain:
    def write(self, finished: Finished) -> None:
        rag_chain().invoke("what does the sink want to know?")


class SamplerOnLangChain:
    def decide(self, facts: Facts) -> Decision:
        rag_chain().invoke("what does the sampler want to know?")
        return Decision(sampled=True, rate=1.0, reason="doubt")


@pytest.mark.parametrize(
    "options", [{"sinks": [SinkOnLangChain()]}, {"sample": SamplerOnLangChain()}]
)
def test_sinks_and_samplers_on_langchain_are_never_captured_as_queries(
    make_monitor: MonitorFactory, options: MonitorOptions
) -> None:
    monitor = make_monitor(**options)
    with attached(claimspan_langchain.instrument(monitor)):
        rag_chain().invoke("q")
        assert monitor.flush()

    assert monitor.stats.produced == monitor.stats.evaluated == 1


def test_sinks_and_samplers_run_in_an_empty_context(make_monitor: MonitorFactory) -> None:
    tenants: list[str] = []

    class Sees:
        def write(self, finished: Finished) -> None:
            tenants.append(tenant.get())

        def decide(self, facts: Facts) -> Decision:
            tenants.append(tenant.get())
            return Decision(sampled=True, rate=1.0, reason="all")

    monitor = make_monitor(sinks=[Sees()], sample=Sees())
    ask_as("a", monitor)
    assert monitor.flush()

    assert tenants == ["nobody", "nobody"]


def test_a_look_up_on_langchain_is_never_captured_as_a_query(make_monitor: MonitorFactory) -> None:
    def answer(text: str) -> str:
        return f"Answer to {text}"

    answering = RunnableLambda(answer)

    def look_up(query: str, metadata: Mapping[str, object]) -> str | None:
        return answering.invoke(query)

    monitor = make_monitor(ground_truth=look_up)
    with attached(claimspan_langchain.instrument(monitor)):
        rag_chain().invoke("q")
        assert monitor.flush()

    assert monitor.stats.produced == monitor.stats.evaluated == 1


# --- code that blocks ---


class Blocks(ScriptedJudge):
    """A judge that blocks its event loop, as no judge should."""

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        time.sleep(self.delay)
        return await super().check(claims, references, question=question)


def test_a_judge_that_blocks_delays_neither_timers_nor_spans_of_other_traffic(
    provider: TracerProvider, spans: Spans
) -> None:
    blocked = Monitor(
        judge=Blocks(delay=3.0), sample=1.0, hold_seconds=0.3, tracer_provider=provider
    )
    started = time.monotonic()

    run(blocked, "held")
    while not spans.roots:
        time.sleep(0.01)
    took = time.monotonic() - started
    run(blocked, "next")
    blocked.shutdown(timeout=8)

    assert attributes(spans.roots[0])["claimspan.evaluation.status"] == "timeout"
    assert took < 2.0


class Marked:
    """Takes the records that are marked."""

    def decide(self, facts: Facts) -> Decision:
        return Decision(sampled=facts.attributes["judge"] is True, rate=0.5, reason="marked")


@pytest.mark.parametrize("blocks", ["judge", "look-up"])
def test_while_user_code_blocks_unsampled_records_end_at_once(
    make_monitor: MonitorFactory, spans: Spans, blocks: str
) -> None:
    def look_up(query: str, metadata: Mapping[str, object]) -> str | None:
        time.sleep(2.0)
        return None

    if blocks == "judge":
        monitor = make_monitor(judge=Blocks(delay=2.0), sample=Marked())
    else:
        monitor = make_monitor(ground_truth=look_up, sample=Marked())

    for _ in range(2):
        run(monitor, "judged", metadata={"judge": True})
    started = time.monotonic()
    run(monitor, "not judged", metadata={"judge": False})
    while not spans.roots:
        time.sleep(0.005)

    assert time.monotonic() - started < 1.5
    assert attributes(spans.roots[0])["claimspan.evaluation.status"] == "not_sampled"
    assert monitor.flush(20)
    assert monitor.stats.evaluated == 2


def test_slow_look_ups_run_side_by_side(make_monitor: MonitorFactory) -> None:
    def look_up(query: str, metadata: Mapping[str, object]) -> str | None:
        time.sleep(0.5)
        return f"Answer to {query}"

    monitor = make_monitor(ground_truth=look_up)
    for i in range(4):
        run(monitor, f"q{i}")
    started = time.monotonic()
    assert monitor.flush(20)

    assert time.monotonic() - started < 1.8  # one after the other they would take 2 s


# --- ground truths ---


def test_an_asynchronous_look_up_is_awaited_and_how_it_matched_stands_on_the_span(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    async def look_up(query: str, metadata: Mapping[str, object]) -> str | None:
        await asyncio.sleep(0.01)
        return f"Answer to {query}"

    monitor = make_monitor(ground_truth=look_up)
    run(monitor)
    assert monitor.flush()

    root = attributes(spans.root)
    assert root["claimspan.ground_truth"] == "Answer to q"
    assert root["claimspan.ground_truth.matched_by"] == "callable"
    assert "claimspan.score.precision" in root


@pytest.mark.parametrize(
    ("ground_truth", "metadata", "matched_by"),
    [
        ({"id-7": "Answer to q"}, {"id": "id-7"}, "id"),
        ({"q": "Answer to q"}, {}, "query"),
        ({"Q?": "Answer to q"}, {}, "normalised_query"),
    ],
)
def test_how_a_ground_truth_was_found_stands_on_the_root(
    make_monitor: MonitorFactory,
    spans: Spans,
    ground_truth: dict[str, str],
    metadata: dict[str, Any],
    matched_by: str,
) -> None:
    monitor = make_monitor(ground_truth=ground_truth)
    run(monitor, metadata=metadata)
    assert monitor.flush()

    assert attributes(spans.root)["claimspan.ground_truth.matched_by"] == matched_by


def test_a_similar_query_puts_the_match_and_its_score_on_the_root(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    pytest.importorskip("rapidfuzz")
    monitor = make_monitor(ground_truth=GroundTruth({"the q": "Answer to q"}, similarity=0.2))
    run(monitor)
    assert monitor.flush()

    root = attributes(spans.root)
    assert root["claimspan.ground_truth"] == "Answer to q"
    assert root["claimspan.ground_truth.matched_by"] == "similarity"
    assert root["claimspan.ground_truth.score"] == pytest.approx(1 / 3)  # pyright: ignore[reportUnknownMemberType] - pytest leaves approx untyped


@pytest.mark.parametrize(
    "error", [ValueError, SystemExit, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit]
)
@pytest.mark.parametrize("is_async", [False, True])
def test_whatever_a_look_up_raises_the_metrics_without_ground_truth_stand(
    make_monitor: MonitorFactory, spans: Spans, error: type[BaseException], is_async: bool
) -> None:
    def look_up(query: str, metadata: Mapping[str, object]) -> str | None:
        raise error

    async def look_up_later(query: str, metadata: Mapping[str, object]) -> str | None:
        raise error

    monitor = make_monitor(ground_truth=look_up_later if is_async else look_up)
    make_monitor.expected_faults = 1
    run(monitor)
    assert monitor.flush()

    root = attributes(spans.root)
    assert root["claimspan.evaluation.status"] == "evaluated"
    assert root["claimspan.score.faithfulness"] == 0.5
    assert str(root["claimspan.evaluation.reason"]).startswith("looking up the ground truth raised")


@pytest.mark.parametrize(
    "error",
    [
        ValueError,
        SystemExit,
        KeyboardInterrupt,
        asyncio.CancelledError,
        GeneratorExit,
        BaseException,
    ],
)
def test_whatever_a_judge_raises_the_record_reaches_its_state(
    make_monitor: MonitorFactory, spans: Spans, error: type[BaseException]
) -> None:
    monitor = make_monitor(judge=ScriptedJudge(error=error()))
    run(monitor)
    monitor.flush()
    make_monitor.expected_faults = monitor.stats.faults

    assert attributes(spans.root)["claimspan.evaluation.status"] == "judge_error"
    assert monitor.stats.pending == 0
