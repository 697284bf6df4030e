"""Names and behaviours of Haystack that we lean on, and nobody documents.

One test each, on the real package. A test that fails after an upgrade names what has moved; what
breaks with it stands in ``docs/leaned_on.md``, in the row that names the test.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator, Mapping
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

from hs_components import Caller, Embedder, VectorShelf
from hs_pipelines import Echo, Shelf, rag_pipeline

QUERY: Final = "the question"


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
    return rag_pipeline().run(data | more)


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


def test_a_component_reports_its_class_its_types_and_who_receives_its_outputs(
    noted: NotedTracer,
) -> None:
    run_rag()

    shelf, llm = noted.component("shelf"), noted.component("llm")
    documents = shelf.tags["haystack.component.output_spec"]["documents"]
    assert shelf.tags["haystack.component.type"] == "Shelf"
    assert "dataclasses.document.Document" in documents["type"]
    assert documents["receivers"] != []
    assert list(shelf.tags["haystack.component.input_spec"]) == ["query"]
    assert llm.tags["haystack.component.output_spec"]["replies"]["receivers"] == []


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
    pipeline.add_component("embedder", Embedder())
    pipeline.add_component("shelf", VectorShelf())
    pipeline.connect("embedder.embedding", "shelf.query_embedding")

    pipeline.run({"embedder": {"text": QUERY}})

    made = noted.component("embedder").tags["haystack.component.output"]["embedding"]
    used = noted.component("shelf").tags["haystack.component.input"]["query_embedding"]
    assert used is made or used == made, "the embedding changes on its way"
    assert used is made, "Haystack copies what it passes on: compare by value"


def test_an_agent_reports_its_model_calls_and_tools_under_the_operations_that_we_know(
    noted: NotedTracer,
) -> None:
    tool = ComponentTool(Shelf(), name="look_up", description="Looks something up")
    generator: Any = Caller([QUERY])

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
    model: Any = Echo()
    extractor = LLMMetadataExtractor("{{ document.content }}", model)
    pipeline = Pipeline()
    pipeline.add_component("extractor", extractor)

    pipeline.run({"extractor": {"documents": [Document(content=QUERY)]}})

    (call,) = noted.of("haystack.chat_generator.run")
    assert call.parent is noted.component("extractor")
    assert "replies" in call.tags["haystack.component.output"]
