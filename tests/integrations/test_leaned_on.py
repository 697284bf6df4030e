"""Names and behaviours of other packages that claimspan leans on and that they do not document.

One test each, on the real package. A test that fails after an upgrade names what has moved; what
breaks with it stands in ``docs/architecture*.md``, in the row that names the test.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# The frameworks leave open the types of what they hand to tracers and handlers.

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Generator, Iterator, Mapping
from contextvars import Context
from inspect import BoundArguments, signature
from pathlib import Path
from typing import Any, Final

import pytest
from haystack import Document, Pipeline
from haystack.components.agents import Agent
from haystack.components.extractors import LLMMetadataExtractor
from haystack.components.generators.chat import MockChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import ComponentTool
from haystack.tracing.tracer import Span, Tracer, disable_tracing, enable_tracing
from haystack.tracing.tracer import tracer as haystack_tracer
from langchain_core.callbacks import BaseCallbackHandler, CallbackManager
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core.async_utils import run_jobs
from llama_index.core.base.response.schema import StreamingResponse
from llama_index.core.chat_engine import CondensePlusContextChatEngine, SimpleChatEngine
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.instrumentation.events.llm import LLMCompletionEndEvent
from llama_index.core.llms import ChatMessage as LlamaMessage
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.workflow import Workflow
from llama_index.core.workflow import errors as workflow_errors
from llama_index_instrumentation import root_dispatcher
from llama_index_instrumentation.base import BaseEvent
from llama_index_instrumentation.event_handlers import BaseEventHandler
from llama_index_instrumentation.span.base import BaseSpan
from llama_index_instrumentation.span_handlers import BaseSpanHandler
from openinference.instrumentation import suppress_tracing
from openinference.semconv.trace import (
    DocumentAttributes,
    MessageAttributes,
    OpenInferenceSpanKindValues,
    RerankerAttributes,
    SpanAttributes,
)
from opentelemetry._logs import SeverityNumber, get_logger
from opentelemetry.instrumentation.utils import is_instrumentation_enabled, suppress_instrumentation
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.trace import NonRecordingSpan, SpanContext, set_span_in_context
from pydantic import PrivateAttr

import claimspan_langchain
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import semconv
from claimspan_tracing.suppression import is_suppressed, suppress

import hs_components
import hs_pipelines
import lc_graphs
import lc_pipelines
import li_agents
import li_pipelines
from support import MonitorFactory

QUERY: Final = "the question"

ROOT: Final = Path(__file__).parents[2]


def test_every_test_of_this_file_is_named_in_the_list_of_what_we_lean_on() -> None:
    pages = sorted((ROOT / "docs").glob("architecture*.md"))
    named = {
        name for page in pages for name in re.findall(r"`(test_\w+)`", page.read_text("utf-8"))
    }

    here = {name for name in globals() if name.startswith("test_")}
    listed = here - {"test_every_test_of_this_file_is_named_in_the_list_of_what_we_lean_on"}
    assert listed - named == set()

    elsewhere = "".join(path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    assert {name for name in named if f"def {name}(" not in elsewhere} == set()


# --- OpenTelemetry ---


def test_opentelemetrys_instrumentations_switch_off_by_the_keys_that_we_look_at() -> None:
    with suppress_instrumentation():
        assert is_suppressed(), "OpenTelemetry keeps its switch under another key"
    with suppress_tracing():
        assert is_suppressed(), "OpenInference keeps its switch under another key"
    assert not is_suppressed()


def test_the_keys_that_we_set_switch_off_opentelemetrys_instrumentations() -> None:
    def enabled() -> bool:
        suppress()
        return is_instrumentation_enabled()

    assert not Context().run(enabled), "OpenTelemetry looks at another key"


def test_an_event_is_emitted_on_the_context_of_a_span_that_has_ended() -> None:
    exporter = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]  # as it is
    provider = LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    ended = NonRecordingSpan(SpanContext(1, 2, is_remote=False))

    get_logger("scope", logger_provider=provider).emit(
        context=set_span_in_context(ended),
        event_name="name",
        severity_number=SeverityNumber.INFO,
        attributes={"score": 0.5},
    )

    (emitted,) = exporter.get_finished_logs()
    record = emitted.log_record
    assert (record.event_name, record.trace_id, record.span_id) == ("name", 1, 2)


# --- OpenInference ---


def test_openinferences_attributes_have_the_names_that_we_write_and_read() -> None:
    documents = f"{SpanAttributes.RETRIEVAL_DOCUMENTS}.0."
    reranked = f"{RerankerAttributes.RERANKER_OUTPUT_DOCUMENTS}.0."
    message = f"{SpanAttributes.LLM_OUTPUT_MESSAGES}.0.{MessageAttributes.MESSAGE_CONTENT}"
    assert semconv.document(0, "content") == documents + DocumentAttributes.DOCUMENT_CONTENT
    assert semconv.document(0, "id") == documents + DocumentAttributes.DOCUMENT_ID
    assert semconv.document(0, "score") == documents + DocumentAttributes.DOCUMENT_SCORE
    assert semconv.document(0, "metadata") == documents + DocumentAttributes.DOCUMENT_METADATA
    assert semconv.reranked(0, "content") == reranked + DocumentAttributes.DOCUMENT_CONTENT
    assert semconv.output_message(0, semconv.MESSAGE_CONTENT) == message
    assert semconv.OPENINFERENCE_SPAN_KIND == SpanAttributes.OPENINFERENCE_SPAN_KIND
    assert semconv.INPUT_VALUE == SpanAttributes.INPUT_VALUE
    assert semconv.OUTPUT_VALUE == SpanAttributes.OUTPUT_VALUE
    assert semconv.METADATA == SpanAttributes.METADATA
    assert semconv.LLM_MODEL_NAME == SpanAttributes.LLM_MODEL_NAME
    assert semconv.LLM_TOKENS_PROMPT == SpanAttributes.LLM_TOKEN_COUNT_PROMPT
    assert semconv.LLM_TOKENS_COMPLETION == SpanAttributes.LLM_TOKEN_COUNT_COMPLETION


def test_openinferences_span_kinds_have_the_values_that_we_write_and_read() -> None:
    values = {kind.value for kind in OpenInferenceSpanKindValues}

    ours = {name: value for name, value in vars(semconv).items() if name.startswith("KIND_")}
    assert set(ours.values()) <= values


# --- LangChain and LangGraph ---


class Heard(BaseCallbackHandler):
    """Keeps the keyword arguments of the callbacks, by the callback's name."""

    run_inline = True

    def __init__(self) -> None:
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self.threads: set[int] = set()

    def of(self, callback: str) -> list[Mapping[str, Any]]:
        return [kwargs for name, kwargs in self.calls if name == callback]

    def _hear(self, callback: str, kwargs: Mapping[str, Any]) -> None:
        self.calls.append((callback, kwargs))
        self.threads.add(threading.get_ident())

    def on_chain_start(self, *args: Any, **kwargs: Any) -> None:
        self._hear("on_chain_start", kwargs | {"given": args[1]})

    def on_chain_end(self, *args: Any, **kwargs: Any) -> None:
        self._hear("on_chain_end", kwargs)

    def on_chain_error(self, *args: Any, **kwargs: Any) -> None:
        self._hear("on_chain_error", kwargs | {"error": args[0]})

    def on_retriever_start(self, *args: Any, **kwargs: Any) -> None:
        self._hear("on_retriever_start", kwargs)

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        self._hear("on_chat_model_start", kwargs)


def test_langchain_asks_a_hook_that_is_no_context_variable_for_the_handler(
    make_monitor: MonitorFactory,
) -> None:
    def ours() -> list[BaseCallbackHandler]:
        handlers = CallbackManager.configure().inheritable_handlers
        return [each for each in handlers if isinstance(each, ClaimspanCallbackHandler)]

    undo = claimspan_langchain.instrument(make_monitor())
    attached = ours()
    undo()

    assert len(attached) == 1, "register_configure_hook no longer takes what has only get()"
    assert ours() == []


def test_a_stream_of_langchain_starts_without_its_input_and_ends_with_it() -> None:
    heard = Heard()

    list(lc_pipelines.rag_chain().stream(QUERY, {"callbacks": [heard]}))

    assert heard.of("on_chain_start")[0]["given"] != QUERY, "the input is no longer late"
    assert heard.of("on_chain_end")[-1]["inputs"] == QUERY, "the late input has moved"


async def test_langchain_calls_an_inline_handler_on_the_thread_of_the_loop() -> None:
    heard = Heard()

    await lc_pipelines.rag_chain().ainvoke(QUERY, {"callbacks": [heard]})

    assert heard.threads == {threading.get_ident()}


class Named(lc_pipelines.Echo):
    model_name: str = "model-1"


def test_langchain_names_store_model_and_provider_in_the_metadata_of_a_run() -> None:
    heard = Heard()
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_texts(["text"])

    store.as_retriever().invoke(QUERY, {"callbacks": [heard]})
    Named().invoke(QUERY, {"callbacks": [heard]})

    searched = heard.of("on_retriever_start")[0]["metadata"]
    asked = heard.of("on_chat_model_start")[0]["metadata"]
    assert searched["ls_vector_store_provider"] == "InMemoryVectorStore"
    assert asked["ls_model_name"] == "model-1"
    assert asked["ls_provider"] == "named"


def test_a_retrieval_chain_returns_the_documents_of_its_prompt_under_context() -> None:
    from langchain_classic.chains import create_retrieval_chain
    from langchain_core.runnables import RunnableLambda

    chain: Any = create_retrieval_chain(lc_pipelines.Shelf(), RunnableLambda(lambda _: "said"))

    documents = lc_pipelines.documents_for(QUERY)
    assert chain.invoke({"input": QUERY})["context"] == documents


def test_a_graph_that_waits_says_so_in_its_output_and_by_the_name_of_an_exception() -> None:
    heard = Heard()

    output = lc_graphs.interrupted_graph().invoke(
        {"question": QUERY}, {"callbacks": [heard], "configurable": {"thread_id": "1"}}
    )

    assert "__interrupt__" in output
    failed = [type(kwargs["error"]).__name__ for kwargs in heard.of("on_chain_error")]
    assert failed == ["GraphInterrupt"]


# --- LlamaIndex ---


class Spied(BaseSpanHandler[BaseSpan]):
    """Keeps what the dispatcher reports of spans."""

    _entered: dict[str, dict[str, Any]] = PrivateAttr(default_factory=dict)
    _left: dict[str, object] = PrivateAttr(default_factory=dict)

    @property
    def entered(self) -> dict[str, dict[str, Any]]:
        return self._entered

    @property
    def left(self) -> dict[str, object]:
        return self._left

    def ids(self, part: str) -> list[str]:
        return [id_ for id_ in self._entered if part in id_]

    def span_enter(
        self,
        id_: str,
        bound_args: BoundArguments,
        instance: object = None,
        parent_id: str | None = None,
        tags: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self._entered[id_] = {"arguments": bound_args.arguments, "instance": instance}

    def span_exit(
        self,
        id_: str,
        bound_args: BoundArguments,
        instance: object = None,
        result: object = None,
        **kwargs: Any,
    ) -> None:
        self._left[id_] = result

    def span_drop(
        self,
        id_: str,
        bound_args: BoundArguments,
        instance: object = None,
        err: BaseException | None = None,
        **kwargs: Any,
    ) -> None:
        self._left[id_] = err

    def new_span(self, *args: Any, **kwargs: Any) -> None: ...

    def prepare_to_exit_span(self, *args: Any, **kwargs: Any) -> None: ...

    def prepare_to_drop_span(self, *args: Any, **kwargs: Any) -> None: ...


class SpiedEvents(BaseEventHandler):
    """Keeps the events."""

    _events: list[BaseEvent] = PrivateAttr(default_factory=list)

    @property
    def events(self) -> list[BaseEvent]:
        return self._events

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        self._events.append(event)


@pytest.fixture
def spied() -> Iterator[Spied]:
    """On the root dispatcher, by the lists that ``undo`` replaces."""
    before, spied = root_dispatcher.span_handlers, Spied()
    root_dispatcher.span_handlers = [*before, spied]
    yield spied
    root_dispatcher.span_handlers = before


@pytest.fixture
def events() -> Iterator[list[BaseEvent]]:
    before, spied = root_dispatcher.event_handlers, SpiedEvents()
    root_dispatcher.event_handlers = [*before, spied]
    yield spied.events
    root_dispatcher.event_handlers = before


def engine(*, streaming: bool = False, empty: bool = False) -> Any:
    shelf = li_pipelines.Shelf(nodes=[] if empty else None)
    return li_pipelines.engine_of(shelf, li_pipelines.Echo(), streaming=streaming)


def test_the_root_dispatcher_calls_what_is_in_its_lists_and_nothing_else(
    events: list[BaseEvent], spied: Spied
) -> None:
    engine().query(QUERY)
    heard = len(spied.entered), len(events)
    root_dispatcher.span_handlers = [h for h in root_dispatcher.span_handlers if h is not spied]
    root_dispatcher.event_handlers = []
    engine().query(QUERY)

    assert heard > (0, 0)
    assert (len(spied.entered), len(events)) == heard, "a detached handler is still called"


def test_the_id_of_a_span_begins_with_class_and_method(spied: Spied) -> None:
    engine().query(QUERY)

    names = {id_.partition("-")[0] for id_ in spied.entered}
    assert {"RetrieverQueryEngine.query", "Shelf.retrieve", "Echo.complete"} <= names
    assert any(name.endswith(".synthesize") for name in names)


def test_a_synthesizer_is_given_its_nodes_by_name(spied: Spied) -> None:
    engine().query(QUERY)

    (synthesis,) = spied.ids(".synthesize-")
    arguments = spied.entered[synthesis]["arguments"]
    assert [each.node.node_id for each in arguments["nodes"]] != []
    assert "additional_source_nodes" in signature(BaseSynthesizer.synthesize).parameters


def test_a_query_engine_says_empty_response_where_it_found_nothing() -> None:
    assert str(engine(empty=True).query(QUERY)) == "Empty Response"


async def test_what_runs_side_by_side_is_a_span_that_is_called_run_jobs(spied: Spied) -> None:
    async def job() -> None:
        pass

    await run_jobs([job()])

    assert spied.ids("run_jobs")[0].startswith("run_jobs")


async def test_the_run_of_a_workflow_has_an_id_of_its_own_form(spied: Spied) -> None:
    await li_agents.ask_workflow(engine(), QUERY)

    (run,) = spied.ids(".run-")
    assert run.startswith("Asking.run-")
    assert isinstance(spied.entered[run]["instance"], Workflow)
    assert type(spied.left[run]).__name__ == "StopEvent"


async def test_a_workflow_that_its_user_cancels_exits_with_none(spied: Spied) -> None:
    await li_agents.cancel_workflow(li_pipelines.Shelf(seconds=5), QUERY)

    (run,) = spied.ids(".run-")
    assert spied.left[run] is None


def test_workflows_still_call_a_good_end_workflow_done() -> None:
    assert issubclass(vars(workflow_errors)["WorkflowDone"], Exception)


def test_the_stream_of_a_response_can_be_replaced_by_one_that_passes_it_on(spied: Spied) -> None:
    response = engine(streaming=True).query(QUERY)
    (run,) = spied.ids(".query-")
    assert spied.left[run] is response, "the user gets another object than the span exits with"
    assert isinstance(response, StreamingResponse)
    stream, parts = response.response_gen, list[str]()

    def followed() -> Iterator[str]:
        for part in stream:
            parts.append(part)
            yield part

    response.response_gen = followed()  # type: ignore[assignment]  # an iterator is all it needs

    assert str(response) == "".join(parts) != ""


def test_the_end_of_a_models_stream_is_an_event_with_the_id_of_its_span(
    spied: Spied, events: list[BaseEvent]
) -> None:
    stream = li_pipelines.Echo().stream_complete(f"Query: {QUERY}\n")
    (span,) = spied.ids("Echo.stream_complete-")
    assert span in spied.left, "the span now ends with its stream"
    list(stream)

    ended = [each for each in events if isinstance(each, LLMCompletionEndEvent)]
    assert [each.span_id for each in ended] == [span]


class BreaksOff(li_pipelines.Echo):
    """A model whose stream fails after it was returned."""

    def _answer(self, prompt: str) -> str:
        raise LookupError


def test_the_exception_of_a_models_stream_is_an_event_with_the_id_of_its_span(
    spied: Spied, events: list[BaseEvent]
) -> None:
    with pytest.raises(LookupError):
        list(BreaksOff().stream_complete(QUERY))

    (span,) = spied.ids("BreaksOff.stream_complete-")
    failed = [each for each in events if isinstance(each, ExceptionEvent)]
    assert [(each.span_id, type(each.exception)) for each in failed] == [(span, LookupError)]


async def test_a_custom_model_reads_its_synchronous_stream_for_the_asynchronous_one(
    spied: Spied,
) -> None:
    stream = await li_pipelines.Echo(said="so").astream_complete(QUERY)
    assert [part async for part in stream]

    assert len(spied.ids("Echo.astream_complete-")) == 1
    assert len(spied.ids("Echo.stream_complete-")) == 1


def test_a_streamed_chat_says_who_writes_it_and_when_it_is_done(spied: Spied) -> None:
    chat = CondensePlusContextChatEngine.from_defaults(
        retriever=li_pipelines.Shelf(),
        llm=li_pipelines.Echo(said="so"),
        memory=li_pipelines.memory_of([LlamaMessage("before")]),
    )

    response = chat.stream_chat(QUERY)
    said = "".join(response.response_gen)

    assert response.is_writing_to_memory
    assert response.is_done
    assert response.exception is None
    assert response.response == said.strip() == "so"
    (writer,) = spied.ids("StreamingAgentChatResponse.write_response_to_history-")
    assert spied.entered[writer]["instance"] is response


def test_the_stream_of_a_chat_is_where_it_can_be_replaced() -> None:
    chat = SimpleChatEngine.from_defaults(
        llm=li_pipelines.Echo(said="so"), memory=li_pipelines.memory_of([])
    )

    response = chat.stream_chat(QUERY)

    assert response.chat_stream is not None
    assert response.achat_stream is None
    assert "".join(response.response_gen).strip() == "so"


# --- Haystack ---


class NotedSpan(Span):
    """Keeps the tags of one operation."""

    def __init__(self, operation: str, tags: Mapping[str, Any], parent: Span | None) -> None:
        self.operation = operation
        self.tags = dict(tags)
        self.parent = parent

    def set_tag(self, key: str, value: Any) -> None:
        self.tags[key] = value

    def set_content_tag(self, key: str, value: Any) -> None:
        self.tags[key] = value


class NotedTracer(Tracer):
    """Keeps every operation."""

    def __init__(self) -> None:
        self.spans: list[NotedSpan] = []
        self.running: list[NotedSpan] = []

    @contextlib.contextmanager
    def trace(
        self,
        operation_name: str,
        tags: dict[str, Any] | None = None,
        parent_span: Span | None = None,
    ) -> Generator[Span]:
        span = NotedSpan(operation_name, tags or {}, parent_span)
        self.spans.append(span)
        self.running.append(span)
        yield span
        self.running.remove(span)

    def current_span(self) -> Span | None:
        return self.running[-1] if self.running else None

    def of(self, operation: str) -> list[NotedSpan]:
        return [span for span in self.spans if span.operation == operation]

    def component(self, name: str) -> NotedSpan:
        runs = self.of("haystack.component.run")
        return next(span for span in runs if span.tags["haystack.component.name"] == name)


@pytest.fixture
def noted() -> Iterator[NotedTracer]:
    noted = NotedTracer()
    enable_tracing(noted)
    yield noted
    disable_tracing()


def run_rag(**more: Any) -> dict[str, Any]:
    data = {"shelf": {"query": QUERY}, "prompt": {"question": QUERY}}
    return hs_pipelines.rag_pipeline().run(data | more)


def test_haystack_calls_the_methods_of_the_one_object_that_we_put_ours_on(
    noted: NotedTracer, monkeypatch: pytest.MonkeyPatch
) -> None:
    instead = NotedTracer()
    assert haystack_tracer.actual_tracer is noted

    monkeypatch.setattr(haystack_tracer, "trace", instead.trace)
    monkeypatch.setattr(haystack_tracer, "current_span", instead.current_span)
    run_rag()

    assert noted.spans == [], "Haystack calls its tracer in another way"
    assert instead.of("haystack.pipeline.run")


def test_a_pipeline_reports_its_data_under_the_operation_and_tags_that_we_know(
    noted: NotedTracer,
) -> None:
    output = run_rag()

    (run,) = noted.of("haystack.pipeline.run")
    assert run.tags["haystack.pipeline.input_data"]["shelf"] == {"query": QUERY}
    assert run.tags["haystack.pipeline.output_data"] == output
    assert run.tags["haystack.pipeline.metadata"] == {}


def test_a_component_reports_its_data_and_what_it_declares_below_its_pipeline(
    noted: NotedTracer,
) -> None:
    run_rag()

    (pipeline,), shelf = noted.of("haystack.pipeline.run"), noted.component("shelf")
    assert shelf.tags["haystack.component.input"] == {"query": QUERY}
    found = shelf.tags["haystack.component.output"]["documents"]
    assert [type(document) for document in found] == [Document, Document]
    assert list(shelf.tags["haystack.component.output_spec"]) == ["documents"]
    assert shelf.parent is pipeline


def test_content_tags_are_set_whether_or_not_content_tracing_is_on(noted: NotedTracer) -> None:
    assert not haystack_tracer.is_content_tracing_enabled

    run_rag()

    assert "haystack.component.output" in noted.component("shelf").tags


def test_a_generator_returns_replies_and_streams_to_a_callback(noted: NotedTracer) -> None:
    run_rag(llm={"streaming_callback": print})

    assert "streaming_callback" in noted.component("llm").tags["haystack.component.input"]
    assert list(MockChatGenerator("so").run([ChatMessage.from_user("q")])) == ["replies"]


def test_an_embedding_reaches_the_retriever_as_the_object_that_the_embedder_made(
    noted: NotedTracer,
) -> None:
    pipeline = Pipeline()
    pipeline.add_component("embedder", hs_components.Embedder())
    pipeline.add_component("shelf", hs_components.VectorShelf())
    pipeline.connect("embedder.embedding", "shelf.query_embedding")

    pipeline.run({"embedder": {"text": QUERY}})

    made = noted.component("embedder").tags["haystack.component.output"]["embedding"]
    used = noted.component("shelf").tags["haystack.component.input"]["query_embedding"]
    assert used is made or used == made, "the embedding changes on its way"
    assert used is made, "Haystack copies what it passes on: compare by value"


def test_an_agent_reports_its_model_calls_and_tools_under_the_operations_that_we_know(
    noted: NotedTracer,
) -> None:
    tool = ComponentTool(hs_pipelines.Shelf(), name="look_up", description="Looks something up")
    generator: Any = hs_components.Caller([QUERY])

    Agent(chat_generator=generator, tools=[tool]).run(messages=[ChatMessage.from_user(QUERY)])

    operations = [span.operation for span in noted.spans]
    assert operations[0] == "haystack.agent.run"
    assert operations.count("haystack.agent.step.llm") == 2
    (looked_up,) = noted.of("haystack.agent.step.tool")
    found = looked_up.tags["haystack.agent.step.tool.output"]["documents"]
    assert isinstance(found[0], Document)
    assert isinstance(looked_up.parent, NotedSpan)
    assert looked_up.parent.operation == "haystack.agent.step"


def test_a_model_inside_a_component_runs_below_the_span_that_was_current(
    noted: NotedTracer,
) -> None:
    model: Any = hs_pipelines.Echo()
    extractor = LLMMetadataExtractor("{{ document.content }}", model)
    pipeline = Pipeline()
    pipeline.add_component("extractor", extractor)

    pipeline.run({"extractor": {"documents": [Document(content=QUERY)]}})

    (call,) = noted.of("haystack.chat_generator.run")
    assert call.parent is noted.component("extractor")
    assert "replies" in call.tags["haystack.component.output"]
