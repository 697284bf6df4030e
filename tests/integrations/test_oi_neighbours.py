"""Windows and neighbours of what was found are chunks, in spans of OpenInference too."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# The frameworks leave some of their generics open.

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest
from haystack import Document, Pipeline, component
from haystack.components.builders import ChatPromptBuilder
from haystack.components.preprocessors import DocumentSplitter
from haystack.components.retrievers import SentenceWindowRetriever
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.dataclasses import ChatMessage
from haystack.document_stores.in_memory import InMemoryDocumentStore
from llama_index.core.postprocessor import (
    MetadataReplacementPostProcessor,
    PrevNextNodePostprocessor,
)
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.response_synthesizers import ResponseMode
from llama_index.core.schema import (
    NodeRelationship,
    NodeWithScore,
    QueryBundle,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.storage.docstore import SimpleDocumentStore
from openinference.instrumentation.haystack import HaystackInstrumentor
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

import claimspan_haystack
from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import attached, texts
from hs_pipelines import Echo
from li_pipelines import Script, Shelf, engine_of, text_of
from oi_spans import monitored, traced
from pipelines import Recipe

pytestmark = [
    # LlamaIndex and its instrumentor look at every attribute of an object, deprecated ones too.
    pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecationWarning"),
]


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with monitored() as made, traced(made, HaystackInstrumentor(), LlamaIndexInstrumentor()):
        yield made


# --- LlamaIndex -----------------------------------------------------------------------------------


def chain_of_nodes() -> list[TextNode]:
    """Return the facts as nodes of one file, each of which knows the next one."""
    path = {"file_path": "/books/on/buildings/and/how/they/were/made.md"}
    nodes = [TextNode(text=fact, id_=f"n{i}", metadata=path) for i, fact in enumerate(FACTS)]
    for before, after in pairwise(nodes):
        before.relationships[NodeRelationship.NEXT] = RelatedNodeInfo(node_id=after.node_id)
        after.relationships[NodeRelationship.PREVIOUS] = RelatedNodeInfo(node_id=before.node_id)
    return nodes


def with_neighbours(nodes: Sequence[TextNode]) -> BaseNodePostprocessor:
    store = SimpleDocumentStore()
    store.add_documents(nodes)
    return PrevNextNodePostprocessor(docstore=store, num_nodes=1, mode="both")


def ask(found: TextNode, postprocessor: BaseNodePostprocessor, mode: ResponseMode, how: str) -> str:
    engine = engine_of(
        Shelf([NodeWithScore(node=found, score=0.9)]),
        Script(said=HIGH),
        streaming=how == "stream",
        mode=mode,
        postprocessors=[postprocessor],
    )
    if how == "async":
        return str(asyncio.run(engine.aquery(TOWER)))
    return asyncio.run(text_of(engine.query(TOWER)))


STREAMED = [
    ResponseMode.COMPACT,
    ResponseMode.REFINE,
    ResponseMode.TREE_SUMMARIZE,
    ResponseMode.SIMPLE_SUMMARIZE,
]
WAYS = [
    *((mode, how) for mode in STREAMED for how in ("sync", "async", "stream")),
    *((ResponseMode.COMPACT_ACCUMULATE, how) for how in ("sync", "async")),
]


@pytest.mark.parametrize(("mode", "how"), WAYS)
def test_neighbours_that_a_postprocessor_puts_in_were_read(
    monitor: InMemoryMonitor, mode: ResponseMode, how: str
) -> None:
    nodes = chain_of_nodes()
    ask(nodes[1], with_neighbours(nodes), mode, how)

    record = monitor.only_record()
    assert record.status == "evaluated"
    assert texts(record) == FACTS[:3]  # as the postprocessor has put them


@pytest.mark.parametrize("how", ["sync", "async", "stream"])
def test_the_window_of_a_sentence_was_read_in_its_place(monitor: InMemoryMonitor, how: str) -> None:
    sentence = TextNode(text=FACTS[1], id_="n1", metadata={"window": " ".join(FACTS)})
    ask(sentence, MetadataReplacementPostProcessor("window"), ResponseMode.COMPACT, how)

    record = monitor.only_record()
    assert texts(record) == [" ".join(FACTS)]
    assert record.record.chunks[0].id == "n1"


class Widened(BaseNodePostprocessor):
    """Puts what stands around a node into its text, as an application does by hand."""

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        around = f"{FACTS[0]} {nodes[0].text} {FACTS[2]}"
        return [NodeWithScore(node=TextNode(text=around), score=1.0)]


def test_a_text_that_a_postprocessor_widens_was_read_in_place_of_what_was_found(
    monitor: InMemoryMonitor,
) -> None:
    ask(TextNode(text=FACTS[1], id_="n1"), Widened(), ResponseMode.COMPACT, "sync")

    record = monitor.only_record()
    assert texts(record) == [" ".join(FACTS)]
    assert record.record.chunks[0].id == "n1"


# --- Haystack -------------------------------------------------------------------------------------

SENTENCES = [f"{fact[:-1]}, as every guide to the country says." for fact in FACTS]
"""Longer than what Haystack shows of a document."""

EACH = "{% for each in documents %}{{ each.content }}\n{% endfor %}"
NUMBERED = "{% for each in documents %}[{{ loop.index }}] {{ each.content }}\n{% endfor %}"
WINDOWS = "{% for each in windows %}{{ each }}\n{% endfor %}"


def sentence_windows(template: str) -> Pipeline:
    """Build the pipeline of Haystack's documentation on windows around sentences."""
    store = InMemoryDocumentStore()
    splitter = DocumentSplitter(split_by="period", split_length=1, split_overlap=0)
    whole = f"{' '.join(SENTENCES)} It is one of the longest tunnels in the world."
    store.write_documents(splitter.run([Document(content=whole)])["documents"])
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=1))
    pipeline.add_component("around", SentenceWindowRetriever(store, window_size=1))
    message = ChatMessage.from_user(f"Use this:\n{template}\n{{{{ question }}}}")
    pipeline.add_component("prompt", ChatPromptBuilder([message], required_variables="*"))
    pipeline.add_component("generator", EchoChatGenerator(Recipe(answer=HIGH)))
    pipeline.connect("retriever.documents", "around.retrieved_documents")
    socket = "windows" if template == WINDOWS else "documents"
    pipeline.connect(f"around.context_{socket}", f"prompt.{socket}")
    pipeline.connect("prompt.prompt", "generator.messages")
    return pipeline


@component
class EchoChatGenerator(Echo):
    """OpenInference takes a component for a generator by its name."""


ASKED = {
    "retriever": {"query": "bridge Millau opened motorway"},
    "prompt": {"question": "When was the bridge at Millau opened?"},
}


@pytest.mark.parametrize("template", [EACH, NUMBERED])
def test_documents_around_a_sentence_were_read(monitor: InMemoryMonitor, template: str) -> None:
    sentence_windows(template).run(ASKED)

    record = monitor.only_record()
    assert sorted(text.strip() for text in texts(record)) == sorted(SENTENCES)


def test_a_window_of_sentences_was_read_in_their_place(monitor: InMemoryMonitor) -> None:
    sentence_windows(WINDOWS).run(ASKED)

    assert texts(monitor.only_record()) == [" ".join(SENTENCES)]


@pytest.mark.parametrize("template", [EACH, NUMBERED])
def test_a_window_is_no_chunk_beside_the_documents_that_it_consists_of(template: str) -> None:
    with attached(claimspan_haystack.instrument) as own:
        sentence_windows(template).run(ASKED)

        assert sorted(text.strip() for text in texts(own.only_record())) == sorted(SENTENCES)
