"""Spans of OpenInference's own instrumentors, below an HTTP request, are read as what they are."""

# No postponed annotations: OpenInference's Haystack instrumentor takes the types as they stand.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUntypedFunctionDecorator=false
# The frameworks leave some of their generics open.

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, List  # noqa: UP035 - OpenInference knows a generator by this very type

import pytest
from haystack import Document, Pipeline, component
from haystack.components.builders import AnswerBuilder, PromptBuilder
from haystack.components.retrievers.in_memory import (
    InMemoryBM25Retriever,
    InMemoryEmbeddingRetriever,
)
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.document_stores.types import DuplicatePolicy
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableLambda
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.query_engine import SubQuestionQueryEngine
from openinference.instrumentation import OITracer, TraceConfig
from openinference.instrumentation.haystack import HaystackInstrumentor
from openinference.instrumentation.langchain import LangChainInstrumentor
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import SpanKind, Tracer, get_current_span

from claimspan_tracing import semconv
from claimspan_tracing.job import RetrieverRun
from claimspan_tracing.testing import InMemoryMonitor

from captured import texts
from hs_pipelines import Echo as HaystackEcho
from hs_pipelines import prompt
from lc_graphs import agent, artifact_tool, state_graph, unreported_graph
from li_agents import ask_agent, ask_workflow, tool_of
from li_pipelines import Echo, Shelf, Splitting, engine_of, memory_of, synthesizer_of
from oi_spans import monitored, traced
from pipelines import answer_to

pytestmark = [
    pytest.mark.usefixtures("request_span"),
    # OpenInference calls LangChain's texts like functions, which LangChain deprecates.
    pytest.mark.filterwarnings("ignore:Calling .text"),
    # LlamaIndex and its instrumentor look at every attribute of an object, deprecated ones too.
    pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecationWarning"),
]

QUESTION = "How long is the Drava?"
FACTS = [
    "The Drava rises in South Tyrol and is 725 kilometres long, and flows into the Danube.",
    "The Sava is a river of the western Balkans, and flows into the Danube in Belgrade.",
]


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with (
        monitored({QUESTION: "It is 725 km long."}) as made,
        traced(made, HaystackInstrumentor(), LangChainInstrumentor(), LlamaIndexInstrumentor()),
    ):
        yield made


@pytest.fixture
def request_span(monitor: InMemoryMonitor) -> Iterator[Tracer]:
    """The span of an HTTP request, which is open all the time."""
    tracer = monitor.provider.get_tracer("opentelemetry.instrumentation.fastapi")
    with tracer.start_as_current_span("POST /ask", kind=SpanKind.SERVER):
        yield tracer


# --- Haystack -------------------------------------------------------------------------------------


@component
class EchoChatGenerator(HaystackEcho):
    """OpenInference takes a component for a generator by its name."""


@component
class EchoGenerator:
    @component.output_types(replies=List[str])  # noqa: UP006 - as above
    def run(self, prompt: str) -> dict[str, Any]:
        return {"replies": [f'It is "725" km long: {prompt.splitlines()[-1]}']}


@component
class LengthEmbedder:
    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, Any]:
        return {"embedding": [float(len(text)), 1.0]}


@component
class FirstRanker:
    @component.output_types(documents=list[Document])
    def run(self, query: str, documents: list[Document]) -> dict[str, Any]:
        return {"documents": sorted(documents, key=lambda each: each.content or "")[:1]}


def store() -> InMemoryDocumentStore:
    made = InMemoryDocumentStore()
    found = [Document(content=text, embedding=[1.0, float(n)]) for n, text in enumerate(FACTS)]
    made.write_documents(found, policy=DuplicatePolicy.OVERWRITE)
    return made


def chat_pipeline() -> Pipeline:
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store()))
    pipeline.add_component("prompt_builder", prompt())
    pipeline.add_component("llm", EchoChatGenerator())
    pipeline.connect("retriever.documents", "prompt_builder.documents")
    pipeline.connect("prompt_builder.prompt", "llm.messages")
    return pipeline


INPUT = {"retriever": {"query": QUESTION}, "prompt_builder": {"question": QUESTION}}


@pytest.mark.parametrize(
    "run",
    [
        lambda: chat_pipeline().run(INPUT),
        lambda: chat_pipeline().run({"query": QUESTION, "question": QUESTION}),
        lambda: asyncio.run(chat_pipeline().run_async(INPUT)),
    ],
    ids=["nested", "flat", "async"],
)
def test_the_query_of_haystack_is_the_plain_question_and_its_ground_truth_is_found(
    run: Callable[[], object], monitor: InMemoryMonitor
) -> None:
    run()

    record = monitor.only_record()
    assert record.record.query == QUESTION
    assert [run.query for run in record.job.runs if isinstance(run, RetrieverRun)] == [QUESTION]
    assert record.record.response == answer_to(QUESTION)
    assert sorted(texts(record)) == sorted(FACTS)
    assert record.job.context_source == "prompt"
    assert monitor.stats.with_ground_truth == 1


def test_an_answer_of_haystack_is_its_text_and_not_that_of_the_messages_behind_it(
    monitor: InMemoryMonitor,
) -> None:
    pipeline = chat_pipeline()
    pipeline.add_component("answers", AnswerBuilder())
    pipeline.connect("llm.replies", "answers.replies")
    pipeline.connect("retriever.documents", "answers.documents")
    pipeline.run({**INPUT, "answers": {"query": QUESTION}})

    record = monitor.only_record()
    assert record.record.response == answer_to(QUESTION)
    assert sorted(texts(record)) == sorted(FACTS)


def test_of_haystacks_documents_those_count_that_a_ranker_and_the_prompt_let_through(
    monitor: InMemoryMonitor,
) -> None:
    template = "{% for each in documents %}{{ each.content }}\n{% endfor %}\n{{ question }}"
    pipeline = Pipeline()
    pipeline.add_component("embedder", LengthEmbedder())
    pipeline.add_component("retriever", InMemoryEmbeddingRetriever(store()))
    pipeline.add_component("ranker", FirstRanker())
    pipeline.add_component("prompt_builder", PromptBuilder(template, required_variables="*"))
    pipeline.add_component("llm", EchoGenerator())
    pipeline.connect("embedder.embedding", "retriever.query_embedding")
    pipeline.connect("retriever.documents", "ranker.documents")
    pipeline.connect("ranker.documents", "prompt_builder.documents")
    pipeline.connect("prompt_builder.prompt", "llm.prompt")
    asked = {"embedder": {"text": QUESTION}, "ranker": {"query": QUESTION}}
    pipeline.run({**asked, "prompt_builder": {"question": QUESTION}})

    record = monitor.only_record()
    assert record.record.query == QUESTION
    assert record.record.response == f'It is "725" km long: {QUESTION}'
    assert texts(record) == FACTS[:1]


def test_a_haystack_pipeline_that_only_retrieves_or_embeds_is_no_record(
    monitor: InMemoryMonitor,
) -> None:
    for name, one, value in (
        ("retriever", InMemoryBM25Retriever(store()), {"query": QUESTION}),
        ("embedder", LengthEmbedder(), {"text": FACTS[0]}),
    ):
        pipeline = Pipeline()
        pipeline.add_component(name, one)
        pipeline.run({name: value})

    assert monitor.records() == []
    assert monitor.stats.produced == 0


# --- LlamaIndex, whose spans say what they are only when they end ---------------------------------


def engine(*, streaming: bool = False) -> Any:
    return engine_of(Shelf(), Echo(), streaming=streaming)


@pytest.mark.parametrize(
    "run",
    [
        lambda: engine().query(QUESTION),
        lambda: asyncio.run(engine().aquery(QUESTION)),
        lambda: list(engine(streaming=True).query(QUESTION).response_gen),
        lambda: asyncio.run(ask_workflow(engine(), QUESTION)),
    ],
    ids=["query", "async", "stream", "workflow"],
)
def test_a_query_of_llama_index_is_one_record_from_its_outermost_span(
    run: Callable[[], object], monitor: InMemoryMonitor
) -> None:
    run()

    record = monitor.only_record()
    assert (record.record.query, record.record.response.strip()) == (QUESTION, answer_to(QUESTION))
    assert len(texts(record)) == 2
    assert record.job.context_source == "prompt"


def test_each_turn_of_a_chat_of_llama_index_has_its_own_chunks(monitor: InMemoryMonitor) -> None:
    chat = ContextChatEngine.from_defaults(retriever=Shelf(), llm=Echo(), memory=memory_of([]))
    chat.chat(QUESTION)
    for _ in chat.stream_chat("And how wide?").response_gen:
        pass

    records = monitor.records()
    assert [record.record.query for record in records] == [QUESTION, "And how wide?"]
    for record in records:
        assert record.record.response.startswith("Answer to")
        assert all(record.record.query in text for text in texts(record))


PART = "how long the river is from its source to its mouth"


@pytest.mark.parametrize("said", ["725 km.", "The Drava is 725 kilometres long, they say."])
def test_answers_to_sub_questions_of_llama_index_are_no_evidence(
    monitor: InMemoryMonitor, said: str
) -> None:
    engine = SubQuestionQueryEngine.from_defaults(
        [tool_of(engine_of(Shelf(), Echo(said=said)), PART)],
        llm=Echo(),
        question_gen=Splitting(PART),
        response_synthesizer=synthesizer_of(Echo(said="It is 725 kilometres long.")),
        verbose=False,
    )
    engine.query(QUESTION)

    record = monitor.only_record()
    assert texts(record) == [node.text for node in Shelf().retrieve(PART)]
    assert record.job.context_source == "prompt"


def test_an_agent_of_llama_index_is_asked_what_its_user_said(monitor: InMemoryMonitor) -> None:
    asyncio.run(ask_agent([tool_of(engine(), "shelf")], QUESTION, "The final answer."))

    record = monitor.only_record()
    assert (record.record.query, record.record.response) == (QUESTION, "The final answer.")
    assert all("shelf" in text for text in texts(record))


# --- LangChain ------------------------------------------------------------------------------------


def test_a_graph_that_searches_without_a_retriever_is_judged_by_what_its_model_read(
    monitor: InMemoryMonitor,
) -> None:
    for graph in (state_graph(), unreported_graph()):
        graph.invoke({"question": QUESTION})

    first, second = monitor.records()
    assert first.record.query == second.record.query == QUESTION
    assert (
        texts(first)
        == texts(second)
        == [f"{answer_to(QUESTION).split('.')[0]}. More on {QUESTION}"]
    )


@pytest.mark.parametrize("tool", [None, artifact_tool], ids=["retriever", "artifact"])
def test_an_agent_of_langchain_is_judged_by_what_its_tools_have_found(
    tool: Any, monitor: InMemoryMonitor
) -> None:
    agent("A long answer to it.", tool).invoke({"messages": [HumanMessage(QUESTION)]})

    record = monitor.only_record()
    assert (record.record.query, record.record.response) == (QUESTION, "A long answer to it.")
    assert len(texts(record)) == 4
    assert record.job.context_source == "prompt"


# --- what we lean on, and nobody documents --------------------------------------------------------


class Opened(SpanProcessor):
    """Keeps the scope of each span that starts, and what stands for its parent in the context."""

    def __init__(self) -> None:
        self.scopes: set[str] = set()
        self.parents: list[object] = []

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        assert semconv.OPENINFERENCE_SPAN_KIND not in (span.attributes or {})
        scope = span.instrumentation_scope
        self.scopes.add("" if scope is None else scope.name)
        self.parents.append(get_current_span(parent_context))


def test_spans_of_openinferences_instrumentors_are_known_by_their_scope_while_they_are_open(
    monitor: InMemoryMonitor,
) -> None:
    opened = Opened()
    monitor.provider.add_span_processor(opened)
    Shelf().retrieve(QUESTION)
    RunnableLambda(str).invoke(QUESTION)

    assert len(opened.scopes) == 2
    assert all(scope.startswith(semconv.LATE_SCOPES) for scope in opened.scopes)


def test_openinferences_tracer_keeps_the_kind_of_an_open_span_where_we_look(
    monitor: InMemoryMonitor,
) -> None:
    opened = Opened()
    monitor.provider.add_span_processor(opened)
    tracer = OITracer(monitor.provider.get_tracer("app"), TraceConfig())
    with tracer.start_as_current_span("rag") as span:
        span.set_attribute(semconv.OPENINFERENCE_SPAN_KIND, semconv.KIND_CHAIN)
        tracer.start_span("search").end()

    kept = getattr(opened.parents[-1], semconv.BUFFERED_ATTRIBUTES)
    assert kept == {semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_CHAIN}
    assert isinstance(opened.parents[-1], ReadableSpan)
