"""What is read from a run tree: parents, times and texts, whatever clocks and stores do."""

from __future__ import annotations

import itertools
import time

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Finished

from lc_pipelines import Echo, Shelf, rag_chain
from support import MonitorFactory, Spans, attributes, ids


class Kept:
    """A sink that keeps what it gets."""

    def __init__(self) -> None:
        self.finished: list[Finished] = []

    def write(self, finished: Finished) -> None:
        self.finished.append(finished)


class AsksAModel(Shelf):
    """A retriever that has a model rephrase the query, within its own run."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        Echo().invoke("rephrase", {"callbacks": run_manager.get_child()})
        return super()._get_relevant_documents(query, run_manager=run_manager)


def test_while_the_clock_is_set_back_children_still_have_their_parents(
    make_monitor: MonitorFactory, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time_ns()
    backwards = (now - 1_000_000_000 * i for i in itertools.count())
    sink = Kept()
    monitor = make_monitor(sinks=[sink])
    monkeypatch.setattr(time, "time_ns", lambda: next(backwards))

    rag_chain(retriever=AsksAModel()).invoke(
        "q", {"callbacks": [ClaimspanCallbackHandler(monitor)]}
    )
    monkeypatch.undo()
    assert monitor.flush()

    (job,) = [each.job for each in sink.finished]
    assert [(run.kind, run.parent) for run in job.runs] == [
        ("retriever", None),
        ("generator", 0),
        ("generator", None),
    ]
    inner, answering = spans.of_kind("LLM")
    assert inner.parent is not None
    assert inner.parent.span_id == ids(spans.one("RETRIEVER")).span_id
    assert answering.parent is not None
    assert answering.parent.span_id == ids(spans.root).span_id


@pytest.mark.parametrize("score", [float("nan"), float("inf"), True, "0.7", None, 3])
def test_a_score_that_is_no_finite_number_leaves_the_chunk_without_one(
    make_monitor: MonitorFactory, spans: Spans, score: object
) -> None:
    found = [Document(id="a", page_content="Answer to q", metadata={"score": score})]
    sink = Kept()
    monitor = make_monitor(sinks=[sink])

    rag_chain(retriever=Shelf(documents=found)).invoke(
        "q", {"callbacks": [ClaimspanCallbackHandler(monitor)]}
    )
    assert monitor.flush()

    (chunk,) = sink.finished[0].job.record.chunks
    expected = {"3": 3.0, "0.7": 0.7, "True": 1.0}.get(str(score))
    assert chunk.score == expected
    assert attributes(spans.one("RETRIEVER")).get("retrieval.documents.0.document.score") == (
        expected
    )
