"""The wrapper of a vector store: brings scores to the spans, and is a vector store in all else."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any, Self

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore

import claimspan_langchain
from claimspan_langchain import ScoredVectorStore
from claimspan_tracing import Monitor

from support import MonitorFactory, Spans, attributes


@pytest.fixture
def monitor(make_monitor: MonitorFactory) -> Iterator[Monitor]:
    """Attached to the whole process for as long as the test runs."""
    monitor = make_monitor()
    undo = claimspan_langchain.instrument(monitor)
    yield monitor
    undo()


def store() -> InMemoryVectorStore:
    filled = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    filled.add_documents([Document(id=f"d{i}", page_content=f"text {i}") for i in range(3)])
    return filled


@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
async def test_a_wrapped_vector_store_brings_its_scores_to_the_span(
    monitor: Monitor, spans: Spans, mode: str
) -> None:
    plain = store()
    expected = plain.similarity_search_with_score("text 1", k=3)
    chain = ScoredVectorStore(plain).as_retriever(search_kwargs={"k": 3}) | RunnableLambda(repr)

    if mode == "invoke":
        chain.invoke("text 1")
    else:
        await chain.ainvoke("text 1")
    assert await monitor.aflush()

    found = attributes(spans.one("RETRIEVER"))
    for index, (document, score) in enumerate(expected):
        assert found[f"retrieval.documents.{index}.document.id"] == document.id
        assert found[f"retrieval.documents.{index}.document.score"] == pytest.approx(score)  # pyright: ignore[reportUnknownMemberType] - pytest leaves approx untyped


def test_a_wrapped_vector_store_finds_what_the_store_finds_and_takes_what_it_takes() -> None:
    plain = store()
    wrapped = ScoredVectorStore(plain)
    wrapped.add_documents([Document(id="new", page_content="text new")])

    assert [d.id for d in wrapped.similarity_search("text new", k=2)] == [
        d.id for d in plain.similarity_search("text new", k=2)
    ]
    assert wrapped.get_by_ids(["new"])[0].page_content == "text new"
    wrapped.delete(["new"])
    assert plain.get_by_ids(["new"]) == []


def pickled(wrapped: ScoredVectorStore) -> ScoredVectorStore:
    loaded = pickle.loads(pickle.dumps(wrapped))  # noqa: S301 - what was pickled in this line
    assert isinstance(loaded, ScoredVectorStore)
    return loaded


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickled])
def test_a_copied_or_pickled_wrapper_is_a_wrapper_that_finds_the_same(
    duplicate: Callable[[ScoredVectorStore], ScoredVectorStore],
) -> None:
    wrapped = ScoredVectorStore(store())

    other = duplicate(wrapped)

    assert type(other) is ScoredVectorStore
    assert other.similarity_search("text 1") == wrapped.similarity_search("text 1")


def test_a_deep_copy_has_a_store_of_its_own() -> None:
    wrapped = ScoredVectorStore(store())

    other = copy.deepcopy(wrapped)
    other.delete(["d1"])

    assert other.get_by_ids(["d1"]) == []
    assert [found.id for found in wrapped.get_by_ids(["d1"])] == ["d1"]


class CopiesItself(InMemoryVectorStore):
    """A store with ways of its own of being copied, which make a store and no wrapper."""

    def __copy__(self) -> InMemoryVectorStore:
        return store()

    def __deepcopy__(self, memo: object) -> InMemoryVectorStore:
        return store()


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_the_way_in_which_a_store_copies_itself_does_not_replace_the_wrapper(
    duplicate: Callable[[ScoredVectorStore], ScoredVectorStore],
) -> None:
    wrapped = ScoredVectorStore(CopiesItself(DeterministicFakeEmbedding(size=8)))

    assert type(duplicate(wrapped)) is ScoredVectorStore


def test_an_attribute_of_a_wrapper_that_was_never_initialised_is_an_attribute_error() -> None:
    empty = ScoredVectorStore.__new__(ScoredVectorStore)

    with pytest.raises(AttributeError):
        _ = empty.anything


def test_a_method_that_only_the_store_has_is_passed_on() -> None:
    plain = store()

    assert ScoredVectorStore(plain).store is plain.store


def test_every_method_of_a_vector_store_is_passed_on() -> None:
    # These are made of other methods, so that the wrapper's own make them right.
    composed = {"search", "asearch", "as_retriever", "from_documents", "afrom_documents"}
    names = {name for name in vars(VectorStore) if not name.startswith("_")}

    assert names - composed - {"afrom_texts"} - set(vars(ScoredVectorStore)) == set()


async def test_searches_that_langchain_has_no_scores_for_find_what_the_store_finds() -> None:
    plain = store()
    wrapped = ScoredVectorStore(plain)
    vector = DeterministicFakeEmbedding(size=8).embed_query("text 1")

    assert wrapped.similarity_search_by_vector(vector) == plain.similarity_search_by_vector(vector)
    assert await wrapped.asimilarity_search_by_vector(vector) == (
        await plain.asimilarity_search_by_vector(vector)
    )
    assert await wrapped.asimilarity_search_with_score("text 1") == (
        await plain.asimilarity_search_with_score("text 1")
    )


async def test_what_is_added_and_deleted_asynchronously_reaches_the_store() -> None:
    plain = store()
    wrapped = ScoredVectorStore(plain)

    await wrapped.aadd_documents([Document(id="new", page_content="text new")])
    await wrapped.aadd_texts(["text newer"], ids=["newer"])
    await wrapped.adelete(["d0"])

    assert [found.id for found in await wrapped.aget_by_ids(["new", "newer"])] == ["new", "newer"]
    assert [found.id for found in plain.get_by_ids(["new", "newer", "d0"])] == ["new", "newer"]


class WithoutScores(VectorStore):
    """A store that cannot say how similar its documents are."""

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        return [Document(id="only", page_content=query)]

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> Self:
        raise NotImplementedError


async def test_a_store_without_scores_is_searched_without_them() -> None:
    wrapped = ScoredVectorStore(WithoutScores())

    assert [found.id for found in wrapped.similarity_search("q")] == ["only"]
    assert [found.id for found in await wrapped.asimilarity_search("q")] == ["only"]
