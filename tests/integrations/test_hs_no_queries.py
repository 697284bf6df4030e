"""What Haystack's pipelines do beside answering is no query: an index, a search, an evaluation."""

# No postponed annotations: Haystack before 2.24 takes the types of a component as they stand.

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from haystack import Document, Pipeline, component
from haystack.components import converters
from haystack.components.builders import PromptBuilder
from haystack.components.joiners import DocumentJoiner
from haystack.components.preprocessors import DocumentCleaner, DocumentSplitter
from haystack.components.retrievers.in_memory import (
    InMemoryBM25Retriever,
    InMemoryEmbeddingRetriever,
)
from haystack.components.routers import ConditionalRouter, LLMMessagesRouter
from haystack.components.writers import DocumentWriter
from haystack.core.errors import PipelineRuntimeError
from haystack.dataclasses import ChatMessage
from haystack.document_stores.in_memory import InMemoryDocumentStore

import claimspan_haystack
from claimspan.testing import ScriptedJudge
from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import attached, judged, no_record
from hs_components import Embedder
from hs_pipelines import ASYNC_PIPELINE
from hs_scripts import (
    DOCUMENTS,
    Says,
    SaysText,
    Shelf,
    adapter,
    asking,
    chat_prompt,
    every_way,
    facts,
    first_reply,
    plain_rag,
    run_in,
)


@pytest.fixture
def judge() -> ScriptedJudge:
    return ScriptedJudge()


@pytest.fixture
def monitor(judge: ScriptedJudge) -> Iterator[InMemoryMonitor]:
    with attached(claimspan_haystack.instrument, judge) as made:
        yield made


# --- indices -------------------------------------------------------------------------------------


def documents_on_spans(monitor: InMemoryMonitor) -> list[str]:
    return [
        str(value)
        for span in monitor.spans()
        for key, value in (span.attributes or {}).items()
        if key.endswith(".document.content")
    ]


def indexing(*, writes: bool = True) -> Pipeline:
    pipeline = Pipeline()
    pipeline.add_component("cleaner", DocumentCleaner())
    splitter = DocumentSplitter(split_by="word", split_length=8, split_overlap=0)
    pipeline.add_component("splitter", splitter)
    pipeline.connect("cleaner.documents", "splitter.documents")
    if writes:
        pipeline.add_component("writer", DocumentWriter(InMemoryDocumentStore()))
        pipeline.connect("splitter.documents", "writer.documents")
    return pipeline


@component
class TextFileToDocument:
    """A converter, which is told where documents are."""

    @component.output_types(documents=list[Document])
    def run(self, sources: list[str]) -> dict[str, Any]:
        return {"documents": facts()}


@component
class Encyclopedia:
    """Takes a title as a retriever would take a question."""

    @component.output_types(documents=list[Document])
    def run(self, title: str) -> dict[str, Any]:
        return {"documents": facts()}


@pytest.mark.parametrize("writes", [True, False])
def test_building_an_index_is_no_query_and_its_corpus_is_on_no_span(
    monitor: InMemoryMonitor, judge: ScriptedJudge, writes: bool
) -> None:
    pipeline = indexing(writes=writes)
    pipeline.add_component("converter", TextFileToDocument())
    pipeline.connect("converter.documents", "cleaner.documents")
    pipeline.run({"converter": {"sources": ["a.txt"]}})

    no_record(monitor, judge)
    assert documents_on_spans(monitor) == []


def test_what_is_looked_up_for_an_index_is_on_no_span(
    monitor: InMemoryMonitor, judge: ScriptedJudge
) -> None:
    pipeline = indexing()
    pipeline.add_component("pages", Encyclopedia())
    pipeline.connect("pages.documents", "cleaner.documents")
    pipeline.run({"pages": {"title": "Eiffel Tower"}})

    no_record(monitor, judge)
    assert documents_on_spans(monitor) == []


@component
class Counting:
    """Writes documents somewhere, and says how many; nothing tells that it is a writer."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails

    @component.output_types(count=int, message=str)
    def run(self, documents: list[Document]) -> dict[str, Any]:
        if self.fails:
            raise OSError("the disk is full")
        return {"count": len(documents), "message": f"Indexed {len(documents)} documents."}


@pytest.mark.parametrize("fails", [False, True])
def test_files_that_a_component_of_ones_own_indexes_are_no_record(
    monitor: InMemoryMonitor, judge: ScriptedJudge, tmp_path: Path, fails: bool
) -> None:
    text = tmp_path / "facts.txt"
    text.write_text("\n".join(FACTS))
    pipeline = indexing(writes=False)
    pipeline.add_component("converter", converters.TextFileToDocument())
    pipeline.add_component("counting", Counting(fails=fails))
    pipeline.connect("converter.documents", "cleaner.documents")
    pipeline.connect("splitter.documents", "counting.documents")
    with pytest.raises(PipelineRuntimeError) if fails else nullcontext():
        pipeline.run({"converter": {"sources": [str(text)]}})

    no_record(monitor, judge)
    assert documents_on_spans(monitor) == []


def as_documents(replies: Any) -> list[Document]:
    return [Document(content=first_reply(replies))]


def test_an_index_with_a_summary_of_each_document_is_no_query(
    monitor: InMemoryMonitor, judge: ScriptedJudge
) -> None:
    pipeline = Pipeline()
    pipeline.add_component("prompt", chat_prompt("Sum up:\n" + DOCUMENTS))
    pipeline.add_component("llm", Says("A tower, a bridge and a tunnel."))
    summaries = adapter("{{ replies | as_documents }}", list[Document], as_documents=as_documents)
    pipeline.add_component("adapter", summaries)
    pipeline.add_component("writer", DocumentWriter(InMemoryDocumentStore()))
    pipeline.connect("prompt.prompt", "llm.messages")
    pipeline.connect("llm.replies", "adapter.replies")
    pipeline.connect("adapter.output", "writer.documents")
    pipeline.run({"prompt": {"documents": facts()}})

    no_record(monitor, judge)


def test_an_answer_whose_documents_are_also_stored_is_a_query(monitor: InMemoryMonitor) -> None:
    pipeline = plain_rag()
    pipeline.add_component("writer", DocumentWriter(InMemoryDocumentStore()))
    pipeline.connect("shelf.documents", "writer.documents")
    pipeline.run(asking())

    judged(monitor.only_record(), FACTS)


def test_a_chat_that_writes_its_memory_into_a_store_is_a_query(monitor: InMemoryMonitor) -> None:
    pipeline = plain_rag()
    pipeline.add_component(
        "memories", adapter("{{ replies | docs }}", list[Document], docs=as_documents)
    )
    pipeline.add_component("writer", DocumentWriter(InMemoryDocumentStore()))
    pipeline.connect("llm.replies", "memories.replies")
    pipeline.connect("memories.output", "writer.documents")
    pipeline.run(asking())

    judged(monitor.only_record(), FACTS)


# --- retrieval alone -----------------------------------------------------------------------------


def hybrid() -> Pipeline:
    store = InMemoryDocumentStore()
    store.write_documents(
        [Document(id=each.id, content=each.content, embedding=[1.0, 0.5]) for each in facts()]
    )
    pipeline = ASYNC_PIPELINE()
    pipeline.add_component("embedder", Embedder())
    pipeline.add_component("vectors", InMemoryEmbeddingRetriever(store))
    pipeline.add_component("words", InMemoryBM25Retriever(store))
    pipeline.add_component("joiner", DocumentJoiner())
    pipeline.connect("embedder.embedding", "vectors.query_embedding")
    pipeline.connect("vectors", "joiner")
    pipeline.connect("words", "joiner")
    return pipeline


@every_way
def test_retrieval_alone_is_no_query(
    monitor: InMemoryMonitor, judge: ScriptedJudge, way: str
) -> None:
    run_in(way, hybrid(), {"embedder": {"text": TOWER}, "words": {"query": TOWER}})

    no_record(monitor, judge)
    assert documents_on_spans(monitor) != []


@pytest.mark.parametrize("shows", [False, True])
def test_a_query_that_is_rewritten_for_retrieval_alone_is_no_query(
    monitor: InMemoryMonitor, judge: ScriptedJudge, shows: bool
) -> None:
    pipeline = Pipeline()
    pipeline.add_component("prompt", PromptBuilder("Write a passage on {{ question }}"))
    pipeline.add_component("llm", SaysText("The tower is 300 metres high."))
    pipeline.add_component("first", adapter("{{ replies[0] }}"))
    pipeline.add_component("embedder", Embedder())
    pipeline.add_component("shelf", Shelf(facts()))
    pipeline.connect("prompt.prompt", "llm.prompt")
    pipeline.connect("llm.replies", "first.replies")
    pipeline.connect("first.output", "embedder.text")
    pipeline.connect("first.output", "shelf.query")
    pipeline.run(
        {"prompt": {"question": TOWER}},
        include_outputs_from={"llm", "first"} if shows else set(),
    )

    no_record(monitor, judge)


# --- evaluations, routes and guards --------------------------------------------------------------


@component
class FaithfulnessEvaluator:
    """As Haystack's own, with a scripted model."""

    @component.output_types(score=float, individual_scores=list[float], results=list[Any])
    def run(
        self, questions: list[str], contexts: list[list[str]], predicted_answers: list[str]
    ) -> dict[str, Any]:
        results = [{"statements": [answer], "score": 1.0} for answer in predicted_answers]
        return {"score": 1.0, "individual_scores": [1.0], "results": results}


def test_an_evaluation_is_no_query(monitor: InMemoryMonitor, judge: ScriptedJudge) -> None:
    pipeline = Pipeline()
    pipeline.add_component("faithfulness", FaithfulnessEvaluator())
    pipeline.run(
        {
            "faithfulness": {
                "questions": [TOWER],
                "contexts": [FACTS],
                "predicted_answers": [HIGH],
            }
        }
    )

    no_record(monitor, judge)


def test_a_pipeline_that_only_routes_a_text_is_no_query(
    monitor: InMemoryMonitor, judge: ScriptedJudge
) -> None:
    route: Any = {
        "condition": "{{ True }}",
        "output": "{{ query }}",
        "output_name": "fast",
        "output_type": str,
    }
    pipeline = Pipeline()
    pipeline.add_component("router", ConditionalRouter([route]))
    pipeline.run({"router": {"query": TOWER}})

    no_record(monitor, judge)


def test_what_a_guard_says_of_a_question_is_no_answer(
    monitor: InMemoryMonitor, judge: ScriptedJudge
) -> None:
    model: Any = Says("safe")
    guard = LLMMessagesRouter(model, ["unsafe", "safe"], ["unsafe", "safe"])
    pipeline = Pipeline()
    pipeline.add_component("guard", guard)
    pipeline.run({"guard": {"messages": [ChatMessage.from_user(TOWER)]}})

    no_record(monitor, judge)


def test_a_prompt_that_no_model_reads_is_no_answer(
    monitor: InMemoryMonitor, judge: ScriptedJudge
) -> None:
    pipeline = Pipeline()
    pipeline.add_component("shelf", Shelf(facts()))
    pipeline.add_component("prompt", PromptBuilder(DOCUMENTS + "{{ question }}"))
    pipeline.connect("shelf.documents", "prompt.documents")
    pipeline.run(asking())

    no_record(monitor, judge)
