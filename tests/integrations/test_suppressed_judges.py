"""A judge that is built on an instrumented framework is never captured as a query."""

# No postponed annotations: Haystack before 2.24 takes the types of a component as they stand.

from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final

import pytest
from haystack import Document, Pipeline
from haystack.components.agents import Agent
from haystack.components.extractors import LLMMetadataExtractor
from haystack.dataclasses import ChatMessage
from haystack.tools import ComponentTool
from langchain_core.runnables import RunnableLambda
from llama_index.core.chat_engine import CondensePlusContextChatEngine
from llama_index.core.llms import ChatMessage as LlamaMessage
from llama_index.core.response_synthesizers import ResponseMode
from llama_index.core.retrievers import QueryFusionRetriever
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Tracer

import claimspan_haystack
import claimspan_langchain
import claimspan_llama_index
from claimspan import Claim
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_openinference import ClaimspanSpanProcessor
from claimspan_tracing import Monitor

import hs_components
import hs_pipelines
import lc_graphs
import lc_pipelines
import li_agents
import li_pipelines
from hs_pipelines import ASYNC_PIPELINE
from support import MonitorFactory, ScriptedJudge, Spans, ids

Ask = Callable[[], Awaitable[object]]

QUERY: Final = "what does the judge want to know?"
"""What every judge here asks its framework; no span may have it."""


class Asking(ScriptedJudge):
    """A judge that asks a framework before it answers."""

    def __init__(self, ask: Ask) -> None:
        super().__init__()
        self.ask = ask
        self.answers: list[object] = []

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        self.answers.append(await self.ask())
        return await super().extract_claims(text, question=question)


@pytest.fixture
def judged_by(make_monitor: MonitorFactory) -> Iterator[Callable[[Ask], Monitor]]:
    """Evaluates one query of an application, in a process where every framework is instrumented."""
    with ExitStack() as attached:

        def judge(ask: Ask) -> Monitor:
            asking = Asking(ask)
            monitor = make_monitor(judge=asking)
            attached.callback(claimspan_langchain.instrument(monitor))
            attached.callback(claimspan_llama_index.instrument(monitor))
            attached.callback(claimspan_haystack.instrument(monitor))
            lc_pipelines.rag_chain().invoke("the application's question")
            assert monitor.flush(20)
            assert asking.answers
            assert all(asking.answers), "the judge did not get through"
            return monitor

        yield judge


def assert_only_the_application_was_captured(monitor: Monitor, spans: Spans) -> None:
    assert monitor.stats.evaluated == monitor.stats.produced == 1
    assert len({ids(span).trace_id for span in spans.all}) == 1
    assert QUERY not in repr([dict(span.attributes or {}) for span in spans.all])


# --- LangChain ---


async def lc_invoke() -> object:
    return lc_pipelines.rag_chain().invoke(QUERY)


async def lc_batch() -> object:
    return lc_pipelines.rag_chain().batch([QUERY, QUERY])  # on a pool of threads


async def lc_abatch() -> object:
    return await lc_pipelines.rag_chain().abatch([QUERY, QUERY])


async def lc_stream() -> object:
    return list(lc_pipelines.rag_chain().stream(QUERY))


async def lc_astream() -> object:
    return [part async for part in lc_pipelines.rag_chain().astream(QUERY)]


async def lc_abandoned_stream() -> object:
    return next(iter(lc_pipelines.rag_chain().stream(QUERY)))


async def lc_events() -> object:
    return [event async for event in lc_pipelines.rag_chain().astream_events(QUERY)]


async def lc_graph() -> object:
    return await lc_graphs.state_graph().ainvoke({"question": QUERY})


async def lc_agent() -> object:
    return lc_graphs.agent("so").invoke({"messages": [("user", QUERY)]})


async def lc_in_an_executor() -> object:
    chain: Any = RunnableLambda(lc_pipelines.rag_chain().invoke)
    return await chain.ainvoke(QUERY)  # LangChain runs the function in an executor


@pytest.mark.parametrize(
    "ask",
    [
        lc_invoke,
        lc_batch,
        lc_abatch,
        lc_stream,
        lc_astream,
        lc_abandoned_stream,
        lc_events,
        lc_graph,
        lc_agent,
        lc_in_an_executor,
    ],
)
def test_nothing_of_a_judge_on_langchain_is_captured(
    judged_by: Callable[[Ask], Monitor], spans: Spans, ask: Ask
) -> None:
    assert_only_the_application_was_captured(judged_by(ask), spans)


# --- LlamaIndex ---


def engine(*, streaming: bool = False, mode: ResponseMode = ResponseMode.COMPACT) -> Any:
    return li_pipelines.engine_of(
        li_pipelines.Shelf(), li_pipelines.Echo(), streaming=streaming, mode=mode
    )


async def li_query() -> object:
    return str(engine().query(QUERY))


async def li_aquery() -> object:
    return str(await engine().aquery(QUERY))


async def li_tree() -> object:
    return str(await engine(mode=ResponseMode.TREE_SUMMARIZE).aquery(QUERY))


async def li_stream() -> object:
    return list(li_pipelines.read(engine(streaming=True).query(QUERY)))


async def li_astream() -> object:
    response = await engine(streaming=True).aquery(QUERY)
    return [part async for part in li_pipelines.read_async(response)]


async def li_abandoned_stream() -> object:
    return next(iter(li_pipelines.read(engine(streaming=True).query(QUERY))))


async def li_unread_stream() -> object:
    return repr(engine(streaming=True).query(QUERY))


def chat() -> Any:
    return CondensePlusContextChatEngine.from_defaults(
        retriever=li_pipelines.Shelf(),
        llm=li_pipelines.Echo(said="so"),
        memory=li_pipelines.memory_of([LlamaMessage("before")]),
    )


async def li_chat_stream() -> object:
    return "".join(chat().stream_chat(QUERY).response_gen)  # written by a thread of LlamaIndex's


async def li_chat_astream() -> object:
    streamed = await chat().astream_chat(QUERY)
    return [part async for part in streamed.async_response_gen()]


async def li_fusion() -> object:
    shelves: Any = [li_pipelines.Shelf(), li_pipelines.Shelf()]
    fusion = QueryFusionRetriever(shelves, llm=li_pipelines.Echo(), num_queries=1, use_async=True)
    return fusion.retrieve(QUERY)  # on a loop in a thread of LlamaIndex's, as a loop runs here


async def li_agent() -> object:
    return await li_agents.ask_agent([li_agents.tool_of(engine(), QUERY)], QUERY, "so")


async def li_workflow() -> object:
    return await li_agents.ask_workflow(engine(), QUERY)


async def li_workflow_stream() -> object:
    response = await li_agents.stream_workflow(engine(streaming=True), QUERY)
    return [part async for part in response.response_gen]


async def li_cancelled_workflow() -> object:
    await li_agents.cancel_workflow(li_pipelines.Shelf(seconds=5), QUERY)
    return "cancelled"


@pytest.mark.parametrize(
    "ask",
    [
        li_query,
        li_aquery,
        li_tree,
        li_stream,
        li_astream,
        li_abandoned_stream,
        li_unread_stream,
        li_chat_stream,
        li_chat_astream,
        li_fusion,
        pytest.param(li_agent, marks=li_agents.agents_look_around),
        li_workflow,
        li_workflow_stream,
        li_cancelled_workflow,
    ],
)
def test_nothing_of_a_judge_on_llama_index_is_captured(
    judged_by: Callable[[Ask], Monitor], spans: Spans, ask: Ask
) -> None:
    assert_only_the_application_was_captured(judged_by(ask), spans)


# --- Haystack ---


def data() -> dict[str, Any]:
    return {"shelf": {"query": QUERY}, "prompt": {"question": QUERY}}


async def hs_run() -> object:
    return hs_pipelines.rag_pipeline().run(data())


async def hs_run_async() -> object:
    pipeline: Any = hs_pipelines.rag_pipeline(kind=ASYNC_PIPELINE)
    return await pipeline.run_async(data())


async def hs_run_async_generator() -> object:
    pipeline: Any = hs_pipelines.rag_pipeline(kind=ASYNC_PIPELINE)
    return [part async for part in pipeline.run_async_generator(data())]


async def hs_abandoned_generator() -> object:
    pipeline: Any = hs_pipelines.rag_pipeline(kind=ASYNC_PIPELINE)
    parts = pipeline.run_async_generator(data())
    first = await anext(parts)
    await parts.aclose()
    return first


async def hs_streaming() -> object:
    parts: list[object] = []
    hs_pipelines.rag_pipeline().run(data() | {"llm": {"streaming_callback": parts.append}})
    return parts


async def hs_sync_components_on_threads() -> object:
    pipeline: Any = ASYNC_PIPELINE()  # runs components without ``run_async`` in threads
    pipeline.add_component("oracle", hs_components.Oracle())
    return await pipeline.run_async({"oracle": {"wording": QUERY}})


def agent() -> Agent:
    tool = ComponentTool(hs_pipelines.Shelf(), name="look_up", description="Looks something up")
    generator: Any = hs_components.Caller([QUERY, QUERY])
    return Agent(chat_generator=generator, tools=[tool])


async def hs_agent() -> object:
    return agent().run(messages=[ChatMessage.from_user(QUERY)])  # calls its tools on threads


async def hs_agent_async() -> object:
    return await agent().run_async(messages=[ChatMessage.from_user(QUERY)])


async def hs_generators_on_threads() -> object:
    """A component that calls its model on threads of its own, without the caller's context."""
    model: Any = hs_pipelines.Echo()
    pipeline = Pipeline()
    prompt = "{{ document.content }}"
    pipeline.add_component("extractor", LLMMetadataExtractor(prompt, model))
    return pipeline.run({"extractor": {"documents": [Document(content=QUERY)]}})


@pytest.mark.parametrize(
    "ask",
    [
        hs_run,
        hs_run_async,
        hs_run_async_generator,
        hs_abandoned_generator,
        hs_streaming,
        hs_sync_components_on_threads,
        hs_agent,
        hs_agent_async,
        hs_generators_on_threads,
    ],
)
def test_nothing_of_a_judge_on_haystack_is_captured(
    judged_by: Callable[[Ask], Monitor], spans: Spans, ask: Ask
) -> None:
    assert_only_the_application_was_captured(judged_by(ask), spans)


# --- spans of other instrumentations ---

# OpenInference calls LangChain's texts like functions, which LangChain deprecates.
openinference = pytest.mark.filterwarnings("ignore:Calling .text")


@pytest.fixture
def tracer(provider: TracerProvider) -> Tracer:
    return provider.get_tracer("an instrumentation that does not look at the switch")


def traced(tracer: Tracer, query: str) -> str:
    """A trace as OpenInference makes it, by an instrumentation that is never switched off."""
    with tracer.start_as_current_span("rag") as root:
        root.set_attributes({"input.value": query, "output.value": "said"})
        with tracer.start_as_current_span("retrieve") as span:
            span.set_attribute("openinference.span.kind", "RETRIEVER")
            span.set_attribute("retrieval.documents.0.document.content", "said so")
    return "said"


def gathering(make_monitor: MonitorFactory, provider: TracerProvider, ask: Ask) -> Monitor:
    """Evaluates what passes through the provider."""
    monitor = make_monitor(judge=Asking(ask))
    provider.add_span_processor(ClaimspanSpanProcessor(monitor))
    return monitor


def test_spans_that_end_where_instrumentation_is_suppressed_are_never_gathered(
    make_monitor: MonitorFactory, provider: TracerProvider, tracer: Tracer, spans: Spans
) -> None:
    async def ask() -> object:
        return traced(tracer, QUERY)

    monitor = gathering(make_monitor, provider, ask)
    traced(tracer, "the application's question")
    assert monitor.flush(20)

    assert [span.name for span in spans.all].count("rag") > 1  # the judge's were made
    assert len(spans.evaluations) == 1
    assert monitor.stats.produced == monitor.stats.evaluated == 1


@openinference
@pytest.mark.parametrize("ask", [lc_invoke, lc_batch, lc_astream, lc_agent])
def test_a_judge_that_openinference_instruments_is_never_gathered(
    make_monitor: MonitorFactory, provider: TracerProvider, spans: Spans, ask: Ask
) -> None:
    monitor = gathering(make_monitor, provider, ask)
    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    try:
        lc_pipelines.rag_chain().invoke("the application's question")
        assert monitor.flush(20)
    finally:
        instrumentor.uninstrument()

    assert_only_the_application_was_captured(monitor, spans)


def test_claimspans_own_spans_are_never_gathered(
    make_monitor: MonitorFactory, provider: TracerProvider, spans: Spans
) -> None:
    own = make_monitor()
    others = make_monitor()
    provider.add_span_processor(ClaimspanSpanProcessor(others))

    handler = ClaimspanCallbackHandler(own)
    lc_pipelines.rag_chain().invoke("the application's question", {"callbacks": [handler]})
    assert own.flush()
    assert others.flush()

    assert len(spans.of_kind("RETRIEVER")) == 1
    assert own.stats.evaluated == 1
    assert others.stats.produced == 0
