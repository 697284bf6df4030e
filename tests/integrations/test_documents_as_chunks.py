"""The documents of the frameworks are chunks of a record, as they are."""

from __future__ import annotations

import pytest
from haystack import Document as HaystackDocument
from langchain_core.documents import Document as LangChainDocument
from llama_index.core.schema import NodeWithScore, TextNode

from claimspan import Chunk
from claimspan.evaluation.evaluate import records_of

NODE = TextNode(text="t", id_="n", metadata={"page": 3})


@pytest.mark.parametrize(
    ("document", "chunk"),
    [
        (
            LangChainDocument(page_content="t", metadata={"page": 3}),
            Chunk(id=Chunk.content_id("t"), text="t", metadata={"page": 3}),
        ),
        (
            (LangChainDocument(page_content="t", id="n", metadata={"page": 3}), 0.5),
            Chunk(id="n", text="t", score=0.5, metadata={"page": 3}),
        ),
        (
            LangChainDocument(page_content="t", id="n").model_dump(),
            Chunk(id="n", text="t"),
        ),
        (
            NodeWithScore(node=NODE, score=0.5),
            Chunk(id="n", text="t", score=0.5, metadata={"page": 3}),
        ),
        (
            NodeWithScore(node=NODE, score=0.5).to_dict(),
            Chunk(id="n", text="t", score=0.5, metadata={"page": 3}),
        ),
        (NODE, Chunk(id="n", text="t", metadata={"page": 3})),
        (
            HaystackDocument(content="t", id="n", score=0.5, meta={"page": 3}),
            Chunk(id="n", text="t", score=0.5, metadata={"page": 3}),
        ),
        (
            HaystackDocument(content="t", id="n", meta={"page": 3}).to_dict(flatten=False),
            Chunk(id="n", text="t", metadata={"page": 3}),
        ),
    ],
)
def test_a_document_is_a_chunk_with_its_text_its_id_its_score_and_its_metadata(
    document: object, chunk: Chunk
) -> None:
    (record,) = records_of([{"input": "q", "answer": "r", "context": [document]}])

    assert record.chunks == (chunk,)
