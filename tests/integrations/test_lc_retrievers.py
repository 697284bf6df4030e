"""LangChain's retrievers make submissions: as tutorials build them, split, and without ids."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Final

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import RecursiveCharacterTextSplitter

from claimspan.text.words import slovenian_words
from claimspan_bench.pandachat import evaluate_submissions, run_retriever
from claimspan_bench.retrievers import retriever_of

from panda_files import SAMPLE, sample

SIZE: Final = 512


class BagOfWords(Embeddings):
    """Embeds a text by its words, so that a search by similarity finds what is asked for."""

    def embed_query(self, text: str) -> list[float]:
        vector = [0.0] * SIZE
        for word, count in Counter(slovenian_words(text)).items():
            vector[int(hashlib.sha256(word.encode()).hexdigest(), 16) % SIZE] += count
        return vector

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


class FirstWord(BaseRetriever):
    """The retriever of LangChain's guide to custom retrievers: it looks for a word."""

    documents: list[Document]

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        word = query.split()[-1].strip("?").lower()
        return [each for each in self.documents if word in each.page_content.lower()]


def documents() -> list[Document]:
    return [
        Document(page_content=text.replace("<p>", "\n\n"), metadata={"id": id_})
        for id_, text in sample().documents.items()
    ]


def store() -> InMemoryVectorStore:
    """As in the tutorial on semantic search: split, embed, index."""
    splitter = RecursiveCharacterTextSplitter(chunk_size=120, chunk_overlap=20)
    filled = InMemoryVectorStore(BagOfWords())
    # Without metadata: the text alone says which document a chunk is from.
    filled.add_documents(
        [Document(page_content=each.page_content) for each in splitter.split_documents(documents())]
    )
    return filled


@pytest.mark.parametrize(
    "make",
    [
        lambda: store().as_retriever(search_kwargs={"k": 3}),
        store,
        lambda: RunnableLambda(str.upper) | store().as_retriever(),
    ],
    ids=["as_retriever", "vector store", "chain"],
)
def test_a_retriever_over_split_texts_makes_a_submission(
    tmp_path: Path, make: Callable[[], object]
) -> None:
    path = tmp_path / "submission_lc.json"

    report = run_retriever(retriever_of(make()), sample(), path, system="lc")

    assert set(report.matched) == {"text"}
    (figures,) = evaluate_submissions(path, dataset=SAMPLE).systems
    assert figures.correct >= 11


def test_a_custom_retriever_is_matched_by_the_metadata_of_its_documents(tmp_path: Path) -> None:
    path = tmp_path / "submission_lc.json"

    report = run_retriever(
        retriever_of(FirstWord(documents=documents())), sample(), path, system="lc"
    )

    assert set(report.matched) == {"id"}


def test_the_adapter_is_looked_up_once_and_not_while_a_retriever_is_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    retrieve = retriever_of(store())
    retrieve("Kdaj brusimo robnike?")

    def refused(**_: str) -> list[EntryPoint]:
        raise AssertionError("a look-up costs more time than many a retriever")

    monkeypatch.setattr("claimspan_bench.retrievers.entry_points", refused)

    assert retrieve("Kako prepoznamo roj?")


def test_a_function_that_returns_langchains_documents_is_a_retriever() -> None:
    found = store()

    def search(query: str) -> list[tuple[Document, float]]:
        return found.similarity_search_with_score(query, k=2)

    chunks = retriever_of(search)("Kdaj brusimo robnike?")

    assert "robnike" in chunks[0].text.lower()
    assert chunks[0].score is not None
    assert chunks[0].score > (chunks[1].score or 0)
