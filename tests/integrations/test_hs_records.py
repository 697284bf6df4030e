"""One answer of Haystack is one record: its question, its answer, and the chunks that were read."""

# No postponed annotations: Haystack before 2.24 takes the types of a component as they stand.

import json
from collections.abc import Iterator
from typing import Any

import pytest
from haystack import Document, Pipeline, SuperComponent, component
from haystack.components.agents import Agent
from haystack.components.builders import AnswerBuilder, ChatPromptBuilder, PromptBuilder
from haystack.components.converters import OutputAdapter
from haystack.components.joiners import BranchJoiner, DocumentJoiner, ListJoiner
from haystack.components.preprocessors import DocumentCleaner, DocumentSplitter
from haystack.components.retrievers import AutoMergingRetriever, SentenceWindowRetriever
from haystack.components.retrievers.in_memory import (
    InMemoryBM25Retriever,
    InMemoryEmbeddingRetriever,
)
from haystack.components.routers import ConditionalRouter
from haystack.components.validators import JsonSchemaValidator
from haystack.components.writers import DocumentWriter
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.tools import ComponentTool, Tool
from pydantic import BaseModel

import claimspan_haystack
from claimspan.testing import ScriptedJudge
from claimspan_tracing.testing import CapturedRecord, InMemoryMonitor

from hs_components import Embedder
from hs_pipelines import ASYNC_PIPELINE
from hs_scripts import (
    ANSWER,
    DOCUMENTS,
    FACTS,
    QUESTION,
    WAYS,
    Says,
    SaysText,
    Shelf,
    asking,
    chat_prompt,
    facts,
    plain_rag,
    run_in,
)

WEB = Document(id="web", content="A newspaper of today says that the tower is 330 metres high.")

every_way = pytest.mark.parametrize("way", WAYS)


@pytest.fixture
def judge() -> ScriptedJudge:
    return ScriptedJudge()


@pytest.fixture
def monitor(judge: ScriptedJudge) -> Iterator[InMemoryMonitor]:
    with InMemoryMonitor(judge=judge) as made:
        undo = claimspan_haystack.instrument(made)
        yield made
        undo()


def read(record: CapturedRecord) -> tuple[str, str, list[str], str]:
    """Question, answer, texts of the chunks and status."""
    found = record.record
    texts = [chunk.text for chunk in found.chunks]
    return found.query, found.response, texts, str(record.status)


def judged(record: CapturedRecord, chunks: list[str], answer: str = ANSWER) -> None:
    """Check that exactly this answer to the question was judged, by exactly these chunks."""
    assert read(record) == (QUESTION, answer, chunks, "evaluated")


def never_judged(monitor: InMemoryMonitor, judge: ScriptedJudge) -> CapturedRecord:
    record = monitor.only_record()
    assert record.status in ("no_answer", "no_context")
    assert record.record.response == ""
    assert judge.checks == judge.extractions == []
    return record


def documents_on_spans(monitor: InMemoryMonitor) -> list[str]:
    return [
        str(value)
        for span in monitor.spans()
        for key, value in (span.attributes or {}).items()
        if key.endswith(".document.content")
    ]


# --- nothing that happens afterwards changes a record --------------------------------------------


def shorten(outputs: dict[str, Any], data: dict[str, Any]) -> None:
    for document in outputs["shelf"]["documents"]:
        document.content = document.content[:10]
        document.meta.clear()


def change_answers(outputs: dict[str, Any], data: dict[str, Any]) -> None:
    answers = outputs["builder"]["answers"]
    answers[0].data = "changed"
    answers.append("another")
    outputs["builder"].clear()
    outputs.clear()


def reuse_data(outputs: dict[str, Any], data: dict[str, Any]) -> None:
    data["shelf"]["query"] = data["prompt"]["question"] = data["builder"]["query"] = "next"


@every_way
@pytest.mark.parametrize("change", [shorten, change_answers, reuse_data])
def test_what_the_application_changes_after_the_run_leaves_the_record_as_it_was(
    monitor: InMemoryMonitor, way: str, change: Any
) -> None:
    pipeline = plain_rag()
    pipeline.add_component("builder", AnswerBuilder())
    pipeline.connect("llm.replies", "builder.replies")
    data = asking() | {"builder": {"query": QUESTION}}
    monitor.hold = None if False else None  # type: ignore[attr-defined]
    outputs = run_in(way, pipeline, data, include_outputs_from={"shelf"})
    change(outputs, data)

    judged(monitor.only_record(), FACTS)
