"""Whatever breaks inside us, the application's result is the same, and the fault is counted."""

from __future__ import annotations

import asyncio
import logging
from typing import NoReturn

import pytest

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_langchain._reader import LangChainReader
from claimspan_tracing.adapters import open_capture
from claimspan_tracing.guard import Guard

from lc_pipelines import Echo, Shelf, answer_to, rag_chain
from support import MonitorFactory, Spans, attributes

QUERY = "the question"

PLACES = [
    "claimspan_tracing.capture.table.RunTable.add",
    "claimspan_tracing.capture.table.RunTable.close",
    "claimspan_tracing.engine.Engine.start_root",
    "claimspan_tracing.engine.Engine.submit",
    "claimspan_tracing.records.table.Records.give_place",
    "claimspan_tracing.dispatch.loop_thread.Worker.wake",
    "claimspan_langchain._reader.LangChainReader.parts",
    "claimspan_langchain._reader.LangChainReader.query",
    "claimspan_langchain._reader.LangChainReader.response",
    "claimspan_langchain._reader.LangChainReader.retrieval",
    "claimspan_langchain._reader.LangChainReader.generation",
    "claimspan_tracing.engine.reading.build_spans",
    "claimspan_tracing.engine.reading.read_job",
    "claimspan_tracing.records.table.Records.wait_for_judge",
    "claimspan_tracing.dispatch.judging.LocalDispatcher.dispatch",
    "claimspan_tracing.dispatch.evaluator.Evaluator._decided",
    "claimspan_tracing.engine.engine.write_scores",
    "claimspan_tracing.engine.engine.write_claims",
    "claimspan_tracing.write.signals.Signals.write_events",
    "claimspan_tracing.write.signals.Signals.write_scores",
    "claimspan_tracing.write.signals.Signals.count",
]


def fail(*_: object, **__: object) -> NoReturn:
    raise ZeroDivisionError("injected; quotes sk-canary")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("raise_error", [False, True])
@pytest.mark.parametrize("mode", ["invoke", "ainvoke", "batch", "stream"])
async def test_a_fault_anywhere_inside_leaves_the_result_as_it_is(
    make_monitor: MonitorFactory,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    place: str,
    raise_error: bool,
    mode: str,
) -> None:
    monkeypatch.setattr(place, fail)
    monitor = make_monitor()
    handler = ClaimspanCallbackHandler(monitor)
    handler.raise_error = raise_error
    chain = rag_chain().with_config(callbacks=[handler])

    match mode:
        case "invoke":
            result = chain.invoke(QUERY)
        case "ainvoke":
            result = await chain.ainvoke(QUERY)
        case "batch":
            (result,) = chain.batch([QUERY])
        case _:
            result = "".join(chain.stream(QUERY)).strip()
    monitor.shutdown(timeout=1)

    assert result == answer_to(QUERY)
    assert monitor.stats.faults > 0
    make_monitor.expected_faults = monitor.stats.faults
    assert "sk-canary" not in caplog.text


@pytest.mark.parametrize("raise_error", [False, True])
def test_a_fault_inside_does_not_hide_the_applications_own_error(
    make_monitor: MonitorFactory, monkeypatch: pytest.MonkeyPatch, raise_error: bool
) -> None:
    monkeypatch.setattr("claimspan_tracing.engine.Engine.submit", fail)
    monitor = make_monitor()
    handler = ClaimspanCallbackHandler(monitor)
    handler.raise_error = raise_error
    error = LookupError("the application's own")

    with pytest.raises(LookupError) as caught:
        rag_chain(retriever=Shelf(error=error)).invoke(QUERY, {"callbacks": [handler]})

    assert caught.value is error
    make_monitor.expected_faults = monitor.stats.faults


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_what_is_meant_for_the_application_passes_the_guard(error: type[BaseException]) -> None:
    guard = Guard()

    with pytest.raises(error), guard:
        raise error

    assert guard.faults == 0


def test_a_guard_logs_once_a_minute_and_counts_every_time(caplog: pytest.LogCaptureFixture) -> None:
    guard = Guard()

    with caplog.at_level(logging.WARNING, "claimspan"):
        for _ in range(100):
            with guard:
                raise ValueError("quotes a chunk")

    assert guard.faults == 100
    assert len(caplog.records) == 1
    assert "ValueError" in caplog.text
    assert "quotes a chunk" not in caplog.text


def test_texts_as_they_come_never_lose_the_query_or_the_scores(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    from langchain_core.documents import Document

    class Unreadable:
        def __str__(self) -> str:
            raise RuntimeError("no text")

    odd: list[Document] = [
        Document(page_content="\ud800 lone \x00 NUL", metadata={"x": float("nan"), "y": {1, 2}}),
        Document(page_content="z" * 10_000_000, metadata={"deep": [[[[[[[["deep"]]]]]]]]}),
        Document(page_content=f"Answer to {QUERY}", metadata={"cyclic": Unreadable()}),
    ]
    monitor = make_monitor()
    chain = rag_chain(retriever=Shelf(documents=odd), model=Echo())

    chain.invoke(QUERY, {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    assert monitor.flush()

    found = attributes(spans.one("RETRIEVER"))
    assert found["retrieval.documents.0.document.content"] == "\ufffd lone \ufffd NUL"
    root = attributes(spans.root)
    assert root["input.value"] == QUERY
    # What no kept text supports may stand in the ten million letters that are not kept.
    assert root["claimspan.score.faithfulness"] == 1.0
    assert "64 KiB are kept of 1 long chunks" in str(root["claimspan.evaluation.undecided"])
    for span in spans.all:
        span.to_json().encode("utf-8")


def test_an_end_without_a_start_is_ignored(make_monitor: MonitorFactory) -> None:
    monitor = make_monitor()
    capture = open_capture(monitor, LangChainReader())

    capture.end("never started", "outputs")
    capture.fail("never started", ValueError())

    assert monitor.stats.produced == 0
