"""Any function from a query to texts, ids or documents is a retriever."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from claimspan import Chunk
from claimspan.errors import ConfigError
from claimspan_bench.retrievers import retriever_of


def returning(result: object) -> Callable[[str], object]:
    """A user's function that returns this for every query."""
    return lambda query: result


@pytest.mark.parametrize(
    "item",
    [
        Chunk(id="d1", text="besedilo", score=0.5, metadata={"page": 3}),
        {"id": "d1", "text": "besedilo", "score": 0.5, "metadata": {"page": 3, "vector": [1.0]}},
        {"document": "d1", "content": "besedilo", "score": 0.5, "metadata": {"page": 3}},
        ({"doc_id": "d1", "page_content": "besedilo", "metadata": {"page": 3}}, 0.5),
    ],
)
def test_a_document_is_a_chunk_a_mapping_or_a_pair_with_a_score(item: object) -> None:
    (chunk,) = retriever_of(returning([item]))("?")

    assert chunk == Chunk(id="d1", text="besedilo", score=0.5, metadata={"page": 3})


def test_a_text_may_be_an_id_or_a_text() -> None:
    (chunk,) = retriever_of(returning(["d1"]))("?")

    assert (chunk.id, chunk.text) == ("d1", "d1")


def test_the_one_list_of_a_mapping_holds_the_documents() -> None:
    found = retriever_of(returning({"documents": ["d1", "d2"], "took": 3}))("?")

    assert [chunk.id for chunk in found] == ["d1", "d2"]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("d1", "returned a str: return a list"),
        (None, "returned a NoneType: return a list"),
        ({"a": ["d1"], "b": ["d2"]}, "returned a dict: return a list"),
        ([7], "returned a int among its documents"),
        ([("d1", 0.5, "x")], "returned a tuple of 3"),
        ([{"score": 1.0}], "without 'id' and 'text'"),
    ],
)
def test_what_holds_no_documents_is_refused(result: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        retriever_of(returning(result))("?")


def test_what_a_retriever_raises_is_passed_on() -> None:
    def fails(query: str) -> list[str]:
        raise TimeoutError(query)

    with pytest.raises(TimeoutError):
        retriever_of(fails)("?")


def test_a_class_and_a_value_are_no_retrievers() -> None:
    for target in (dict, 7, "retriever"):
        with pytest.raises(ConfigError, match="is no retriever"):
            retriever_of(target)
