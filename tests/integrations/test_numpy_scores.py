"""Scores of numpy, as stores and rerankers return them: most of its scalars are no float."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from haystack.dataclasses import Document as HaystackDocument
from llama_index.core.schema import NodeWithScore, TextNode

import claimspan_llama_index
from claimspan_tracing import Monitor, semconv

from li_pipelines import Echo, Shelf, engine_of
from support import MonitorFactory, Spans, attributes

TEXT = "The Drava is 725 km long."
SCORE = np.float32(0.75)


def reranked() -> NodeWithScore:
    """As rerankers of LlamaIndex do: the field is not checked when it is set."""
    node = NodeWithScore(node=TextNode(text=TEXT), score=0.1)
    node.score = SCORE  # type: ignore[assignment] # pyright: ignore[reportAttributeAccessIssue] - as the rerankers do
    return node


def of_haystack() -> HaystackDocument:
    return HaystackDocument(content=TEXT, score=SCORE)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - it is not checked


def ask_plain(monitor: Monitor, found: object) -> None:
    with monitor.record("How long?") as record:
        record.retrieved([found])
        record.answered(TEXT)


@pytest.mark.parametrize(
    "found",
    [
        lambda: {"text": TEXT, "score": SCORE},
        of_haystack,
        reranked,
    ],
    ids=["mapping", "haystack", "llama-index"],
)
def test_the_score_of_a_document_that_plain_code_found_is_on_its_span(
    found: Callable[[], object], make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()
    ask_plain(monitor, found())
    assert monitor.flush()

    assert attributes(spans.one("RETRIEVER"))[semconv.document(0, "score")] == 0.75


def test_the_score_of_a_reranked_node_is_on_the_span_of_its_retriever(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()
    undo = claimspan_llama_index.instrument(monitor)
    engine_of(Shelf([reranked()]), Echo()).query("How long?")
    undo()
    assert monitor.flush()

    assert attributes(spans.one("RETRIEVER"))[semconv.document(0, "score")] == 0.75


def test_what_is_no_number_is_no_score(make_monitor: MonitorFactory, spans: Spans) -> None:
    monitor = make_monitor()
    for score in (True, np.float32("nan"), "near", np.array([1.0, 2.0]), 10**400):
        ask_plain(monitor, {"text": TEXT, "score": score})
    assert monitor.flush()

    assert monitor.stats.evaluated == 5
    scores = [attributes(s).get(semconv.document(0, "score")) for s in spans.of_kind("RETRIEVER")]
    assert scores == [None] * 5
