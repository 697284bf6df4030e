"""Haystack: makes one call before the pipeline runs.

Run it with ``.venv/bin/python examples/document_pipeline.py`` after ``make test``, which installs
Haystack into ``.venv``.
"""

from __future__ import annotations

from haystack import Document, Pipeline
from haystack.components.builders import ChatPromptBuilder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.dataclasses import ChatMessage
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.utils import Secret

import claimspan_haystack
from claimspan_demo.corpus import load_corpus
from claimspan_demo.model import MODEL_NAME, serve_model
from claimspan_tracing import Monitor

QUESTIONS = ("Who is the safety officer?", "When is the calibration laboratory closed?")
TEMPLATE = [
    ChatMessage.from_system("Answer the question in one sentence from the text."),
    ChatMessage.from_user(
        "Text:\n{% for d in documents %}{{ d.content }}\n{% endfor %}\nQuestion: {{ query }}"
    ),
]


def build(base_url: str) -> Pipeline:
    """Build a pipeline that retrieves by BM25, fills a prompt and generates."""
    store = InMemoryDocumentStore()
    store.write_documents([Document(id=d.id or "", content=d.page_content) for d in load_corpus()])
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=2))
    pipeline.add_component("prompt", ChatPromptBuilder(TEMPLATE, required_variables="*"))
    pipeline.add_component(
        "model",
        OpenAIChatGenerator(
            api_key=Secret.from_token("none"),
            model=MODEL_NAME,
            api_base_url=base_url,
            generation_kwargs={"temperature": 0, "max_tokens": 100},
        ),
    )
    pipeline.connect("retriever.documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "model.messages")
    return pipeline


def main() -> None:
    monitor = Monitor()
    claimspan_haystack.instrument(monitor)  # the one line

    with serve_model() as base_url:
        pipeline = build(base_url)
        for question in QUESTIONS:
            data = {"retriever": {"query": question}, "prompt": {"query": question}}
            print(pipeline.run(data)["model"]["replies"][0].text)

    monitor.shutdown()
    print(monitor.stats)


if __name__ == "__main__":
    main()
