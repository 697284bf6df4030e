"""LlamaIndex: makes one call before the query engine is used.

Run it with ``.venv/bin/python examples/query_engine.py`` after ``make test``, which installs
LlamaIndex into ``.venv``.
"""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUntypedFunctionDecorator=false
# LlamaIndex has no types for its decorators and for some of its generics.

from __future__ import annotations

from llama_index.core.llms import (
    CompletionResponse,
    CompletionResponseGen,
    CustomLLM,
    LLMMetadata,
)
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from openai import OpenAI

import claimspan_llama_index
from claimspan_demo.corpus import load_corpus
from claimspan_demo.model import MODEL_NAME, serve_model
from claimspan_demo.retriever import Bm25Retriever
from claimspan_tracing import Monitor

QUESTIONS = ("Who is the safety officer?", "When is the calibration laboratory closed?")


class Served(CustomLLM):
    """The included model as an LLM of LlamaIndex."""

    base_url: str

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name=MODEL_NAME, context_window=4096, num_output=100)

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **_: object) -> CompletionResponse:
        client = OpenAI(base_url=self.base_url, api_key="none")
        reply = client.chat.completions.create(
            model=MODEL_NAME,
            messages=[{"role": "user", "content": prompt}],
            temperature=0,
            max_completion_tokens=100,
        )
        return CompletionResponse(text=reply.choices[0].message.content or "")

    @llm_completion_callback()
    def stream_complete(
        self, prompt: str, formatted: bool = False, **_: object
    ) -> CompletionResponseGen:
        raise TypeError("this example does not stream")


class Bm25(BaseRetriever):
    """The demo's BM25 index as a retriever of LlamaIndex."""

    def __init__(self) -> None:
        self._index = Bm25Retriever(documents=load_corpus())
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = self._index.invoke(query_bundle.query_str)
        return [
            NodeWithScore(
                node=TextNode(id_=document.id or "", text=document.page_content),
                score=document.metadata["score"],
            )
            for document in found
        ]


def main() -> None:
    monitor = Monitor()
    claimspan_llama_index.instrument(monitor)  # the one line

    with serve_model() as base_url:
        engine = RetrieverQueryEngine.from_args(Bm25(), llm=Served(base_url=base_url))
        for question in QUESTIONS:
            print(engine.query(question))

    monitor.shutdown()
    print(monitor.stats)


if __name__ == "__main__":
    main()
