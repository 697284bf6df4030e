"""Haystack's retrievers make submissions: a component by itself, and pipelines of retrieval."""

# No postponed annotations: Haystack before 2.24 takes the types of a component as they stand.

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from haystack import Document, Pipeline, component
from haystack.components.joiners import DocumentJoiner
from haystack.components.preprocessors import DocumentSplitter
from haystack.components.retrievers.in_memory import (
    InMemoryBM25Retriever,
    InMemoryEmbeddingRetriever,
)
from haystack.document_stores.in_memory import InMemoryDocumentStore

from claimspan.errors import ConfigError
from claimspan_bench.pandachat import evaluate_submissions, run_retriever
from claimspan_bench.retrievers import retriever_of

from panda_files import SAMPLE, sample


@component
class Letters:
    """Embeds a text by its letters."""

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, Any]:
        return {"embedding": letters(text)}


def letters(text: str) -> list[float]:
    return [float(text.lower().count(letter)) for letter in "abcčdefghijklmnoprsštuvzž"]


def store(*, with_ids: bool = True) -> InMemoryDocumentStore:
    """As in the tutorials: documents, split by words, written into a store."""
    documents = [
        Document(id=id_, content=text) if with_ids else Document(content=text)
        for id_, text in sample().documents.items()
    ]
    splitter = DocumentSplitter(split_by="word", split_length=25, split_overlap=5)
    splitter.warm_up()
    pieces = splitter.run(documents=documents)["documents"]
    filled = InMemoryDocumentStore()
    filled.write_documents(
        [replace(each, embedding=letters(each.content or "")) for each in pieces]
    )
    return filled


def by_words(*, with_ids: bool = True) -> InMemoryBM25Retriever:
    return InMemoryBM25Retriever(store(with_ids=with_ids), top_k=3)


def pipeline_by_words() -> Pipeline:
    pipeline = Pipeline()
    pipeline.add_component("retriever", by_words())
    return pipeline


def hybrid_pipeline() -> Pipeline:
    """Two retrievers and a joiner: the query goes to both of its open inputs."""
    pipeline = Pipeline()
    pipeline.add_component("embedder", Letters())
    pipeline.add_component("by_letters", InMemoryEmbeddingRetriever(store(), top_k=2))
    pipeline.add_component("by_words", by_words())
    pipeline.add_component("joiner", DocumentJoiner())
    pipeline.connect("embedder.embedding", "by_letters.query_embedding")
    pipeline.connect("by_letters", "joiner")
    pipeline.connect("by_words", "joiner")
    return pipeline


@pytest.mark.parametrize("make", [by_words, pipeline_by_words, hybrid_pipeline])
def test_a_component_and_pipelines_are_matched_by_their_documents_ids(
    tmp_path: Path, make: Callable[[], object]
) -> None:
    path = tmp_path / "submission_hs.json"

    report = run_retriever(retriever_of(make()), sample(), path, system="hs")

    assert set(report.matched) == {"id"}
    assert evaluate_submissions(path, dataset=SAMPLE, top_k=3).systems[0].correct >= 9


def test_documents_without_our_ids_are_matched_by_their_texts(tmp_path: Path) -> None:
    path = tmp_path / "submission_hs.json"

    report = run_retriever(retriever_of(by_words(with_ids=False)), sample(), path, system="hs")

    assert set(report.matched) == {"text"}


def test_a_pipeline_without_one_list_of_documents_is_refused(tmp_path: Path) -> None:
    two = Pipeline()
    two.add_component("one", by_words())
    two.add_component("other", by_words())

    with pytest.raises(ConfigError, match="returned 2 lists of documents"):
        run_retriever(retriever_of(two), sample(), tmp_path / "submission_hs.json", system="hs")


def test_a_pipeline_without_an_input_for_the_query_is_refused() -> None:
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryEmbeddingRetriever(store()))

    with pytest.raises(ConfigError, match="no open input for a query"):
        retriever_of(pipeline)
