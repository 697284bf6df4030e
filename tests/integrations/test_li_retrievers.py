"""LlamaIndex's retrievers make submissions: as tutorials build them, over an index of documents."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# LlamaIndex leaves some of its generics open.

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from llama_index.core import Document, MockEmbedding, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import TokenTextSplitter
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from claimspan_bench.pandachat import evaluate_submissions, run_retriever
from claimspan_bench.retrievers import retriever_of

from panda_files import SAMPLE, sample


class Knowing(BaseRetriever):
    """A custom retriever as in LlamaIndex's guide; it finds the right document second."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        right = sample().by_query[query_bundle.query_str].document
        return [
            NodeWithScore(node=TextNode(text=each, id_=each), score=1.0) for each in ("sl.0", right)
        ]


def index(*, with_ids: bool = True) -> VectorStoreIndex:
    """As in the starter tutorial: documents, a splitter, an index."""
    documents = [
        Document(text=text, id_=id_) if with_ids else Document(text=text)
        for id_, text in sample().documents.items()
    ]
    return VectorStoreIndex.from_documents(
        documents,
        embed_model=MockEmbedding(embed_dim=8),
        transformations=[TokenTextSplitter(chunk_size=40, chunk_overlap=5, tokenizer=str.split)],
    )


def retriever(*, with_ids: bool = True) -> BaseRetriever:
    return index(with_ids=with_ids).as_retriever(similarity_top_k=3)


def engine() -> RetrieverQueryEngine:
    """With a model that must not be asked: only the retrieval counts."""
    return RetrieverQueryEngine(retriever(), get_response_synthesizer(llm=MockLLM()))


@pytest.mark.parametrize("make", [retriever, index, engine])
def test_an_index_a_retriever_and_a_query_engine_are_matched_by_their_documents_ids(
    tmp_path: Path, make: Callable[[], object]
) -> None:
    path = tmp_path / "submission_li.json"

    report = run_retriever(retriever_of(make()), sample(), path, system="li")

    assert set(report.matched) == {"id"}
    assert evaluate_submissions(path, dataset=SAMPLE).systems[0].sources_per_question >= 2


def test_nodes_of_documents_without_our_ids_are_matched_by_their_texts(tmp_path: Path) -> None:
    path = tmp_path / "submission_li.json"

    report = run_retriever(retriever_of(retriever(with_ids=False)), sample(), path, system="li")

    assert set(report.matched) == {"text"}


def test_the_nodes_of_a_custom_retriever_count_in_its_order(tmp_path: Path) -> None:
    path = tmp_path / "submission_li.json"

    run_retriever(retriever_of(Knowing()), sample(), path, system="li")

    (figures,) = evaluate_submissions(path).systems
    assert [hit.value for hit in figures.hit_at] == [0.0, 1.0]
