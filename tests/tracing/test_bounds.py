"""What one query may keep and how long: runs, spans, bytes of chunks, and the clocks.

Rows F10, F12 and I1 of the reliability matrix.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from uuid import uuid4

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from llama_index.core.llms import MockLLM
from opentelemetry.trace import INVALID_SPAN

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_langchain._reader import LangChainReader
from claimspan_tracing import Monitor
from claimspan_tracing.adapters import Capture, RunKind, open_capture
from claimspan_tracing.capture.runs import Run, RunTree
from claimspan_tracing.capture.table import MAX_OPEN_TREES, MAX_TREE_RUNS, RunTable
from claimspan_tracing.job import MAX_CHUNKS
from claimspan_tracing.read.values import MAX_CHUNKS_BYTES, MAX_RUNS

from lc_pipelines import Shelf, rag_chain
from support import MonitorFactory, Spans, attributes

QUERY = "Where is the tower?"


def capture_of(monitor: Monitor) -> Capture:
    return open_capture(monitor, LangChainReader())


def one_run(
    capture: Capture, kind: RunKind, parent: Hashable, inputs: object, outputs: object
) -> None:
    run_id = uuid4()
    capture.start(run_id, parent, kind, "step", inputs)
    capture.end(run_id, outputs)


def answered(capture: Capture, below: Callable[[Hashable], None]) -> None:
    """A query with one retrieval, one answer, and what the test puts below its root."""
    root = uuid4()
    capture.start(root, None, RunKind.CHAIN, "chain", QUERY)
    one_run(capture, RunKind.RETRIEVER, root, QUERY, [Document(page_content="The tower stands.")])
    below(root)
    capture.end(root, "It stands.")


def test_runs_beyond_the_bound_of_one_query_are_counted_and_not_kept(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()
    capture = capture_of(monitor)
    kept: list[int] = []

    def below(root: Hashable) -> None:
        for _ in range(MAX_TREE_RUNS + 500):
            one_run(capture, RunKind.GENERATOR, root, ["q"], "a")
        kept.append(len(monitor.engine.table.runs))

    answered(capture, below)
    assert monitor.flush()

    assert kept == [MAX_TREE_RUNS]
    assert len(monitor.engine.table.runs) == 0
    assert monitor.stats.produced == monitor.stats.evaluated == 1
    # The root, the retriever and the generators that were kept make the runs of the tree.
    with_span = len(spans.of_kind("LLM")) + len(spans.of_kind("RETRIEVER"))
    assert with_span == MAX_RUNS
    unrecorded = MAX_TREE_RUNS + 500 + 1 - with_span
    assert attributes(spans.root)["claimspan.runs.dropped"] == unrecorded


def test_what_runs_below_a_run_that_was_not_kept_is_no_query_of_its_own(
    make_monitor: MonitorFactory,
) -> None:
    monitor = make_monitor()
    capture = capture_of(monitor)

    def below(root: Hashable) -> None:
        for _ in range(MAX_TREE_RUNS):
            one_run(capture, RunKind.CHAIN, root, "q", "a")
        outer, inner = uuid4(), uuid4()
        capture.start(outer, root, RunKind.CHAIN, "outer", "q")
        capture.start(inner, outer, RunKind.CHAIN, "inner", "q")
        one_run(capture, RunKind.RETRIEVER, inner, "q", [])
        capture.end(inner, "a")
        capture.end(outer, "a")

    answered(capture, below)
    assert monitor.flush()

    assert monitor.stats.produced == 1
    assert len(monitor.engine.table.runs) == 0


def test_of_too_many_runs_the_first_and_the_last_get_a_span(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()
    capture = capture_of(monitor)

    def below(root: Hashable) -> None:
        for i in range(2 * MAX_RUNS):
            one_run(capture, RunKind.GENERATOR, root, [f"prompt {i:04}"], "a")

    answered(capture, below)
    assert monitor.flush()

    prompts = [attributes(span)["input.value"] for span in spans.of_kind("LLM")]
    assert len(spans.of_kind("RETRIEVER")) == 1
    assert prompts[-1] == f"prompt {2 * MAX_RUNS - 1:04}"
    assert "prompt 0000" in prompts
    assert "claimspan.score.faithfulness" in attributes(spans.of_kind("LLM")[-1])


def test_starts_without_an_end_leave_a_bounded_table_and_are_all_counted(
    make_monitor: MonitorFactory,
) -> None:
    monitor = make_monitor(sample=0.0)
    capture = capture_of(monitor)

    for i in range(2 * MAX_OPEN_TREES):
        capture.start(i, None, RunKind.CHAIN, "chain", "q")
        if i % 1000 == 0:
            monitor.flush(30)  # so that what is given up does not fill the queue
    monitor.flush(30)

    assert len(monitor.engine.table.runs) == MAX_OPEN_TREES
    stats = monitor.stats
    assert stats.produced == MAX_OPEN_TREES
    ended = sum(stats.skipped.values()) + sum(stats.dropped.values())
    assert ended == MAX_OPEN_TREES


@pytest.mark.parametrize("n_retrievers", [1, 4])
def test_the_chunk_text_of_one_record_is_bounded_in_all(
    make_monitor: MonitorFactory, spans: Spans, n_retrievers: int
) -> None:
    monitor = make_monitor()
    documents = [Document(id=str(i), page_content=f"{i} " + "x" * 60_000) for i in range(90)]

    def answer(query: str) -> str:
        for _ in range(n_retrievers):
            Shelf(documents=documents).invoke(query)
        return "It stands."

    config = {"callbacks": [ClaimspanCallbackHandler(monitor)]}
    RunnableLambda(answer).invoke(QUERY, config)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - RunnableConfig is a TypedDict
    assert monitor.flush()

    root = attributes(spans.root)
    assert root["claimspan.chunks.count"] == 90 * n_retrievers
    recorded = root["claimspan.chunks.recorded"]
    assert isinstance(recorded, int)
    assert 0 < recorded <= MAX_CHUNKS_BYTES // 60_000
    assert recorded < MAX_CHUNKS
    assert root["claimspan.evaluation.status"] == "evaluated"
    assert len(spans.of_kind("RETRIEVER")) == n_retrievers


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_that_is_set_moves_no_span_and_times_nothing_out(
    make_monitor: MonitorFactory, spans: Spans, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    monitor = make_monitor()
    handler = ClaimspanCallbackHandler(monitor)
    real = time.time_ns
    shift = [0]
    monkeypatch.setattr("time.time_ns", lambda: real() + shift[0])
    before = real()

    def answer(query: str) -> str:
        rag_chain().invoke(query)
        shift[0] = hours * 3_600 * 10**9
        return rag_chain().invoke(query)

    RunnableLambda(answer).invoke(QUERY, {"callbacks": [handler]})
    assert monitor.flush()

    assert monitor.stats.evaluated == 1
    starts: list[int] = []
    for span in spans.all:
        assert span.start_time is not None
        assert span.end_time is not None
        assert before <= span.start_time <= span.end_time <= real()
        starts.append(span.start_time)
    root = spans.root
    assert root.start_time == min(starts)
    assert root.end_time == max(span.end_time or 0 for span in spans.all)


def test_an_open_run_is_not_given_up_because_the_clock_was_set(
    make_monitor: MonitorFactory, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor = make_monitor()
    handler = ClaimspanCallbackHandler(monitor)
    real = time.time_ns

    def answer(query: str) -> str:
        monkeypatch.setattr("time.time_ns", lambda: real() + 2 * 3_600 * 10**9)
        rag_chain().invoke("another query", {"callbacks": [handler]})
        return rag_chain().invoke(query)

    open_stream = rag_chain().stream(QUERY, {"callbacks": [handler]})
    next(open_stream)
    answer("q")
    "".join(open_stream)
    assert monitor.flush()

    statuses = {attributes(root)["claimspan.evaluation.status"] for root in spans.roots}
    assert statuses == {"evaluated"}


def test_a_query_of_llama_index_has_the_times_of_one_clock(
    make_monitor: MonitorFactory, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    import claimspan_llama_index

    undo = claimspan_llama_index.instrument(make_monitor(sample=0.0))
    real = time.time_ns
    shifts = iter(range(0, -1_000, -1))
    monkeypatch.setattr("time.time_ns", lambda: real() + next(shifts) * 10**9)
    try:
        MockLLM().complete("q")
    finally:
        undo()
    make_monitor.made[0].flush()

    assert spans.all
    assert all((span.end_time or 0) >= (span.start_time or 0) for span in spans.all)


def test_what_begins_below_a_query_that_was_given_up_is_no_query(
    make_monitor: MonitorFactory,
) -> None:
    monitor = make_monitor()
    capture = capture_of(monitor)
    root, step, deeper = uuid4(), uuid4(), uuid4()
    capture.start(root, None, RunKind.CHAIN, "chain", QUERY)

    monitor.shutdown(1)
    capture.start(step, root, RunKind.CHAIN, "step", QUERY)
    capture.start(deeper, step, RunKind.CHAIN, "deeper step", QUERY)
    capture.end(deeper, "The tower stands.")
    capture.end(step, "The tower stands.")
    capture.end(root, "The tower stands.")

    assert monitor.stats.produced == 1
    assert monitor.stats.dropped == {"shutdown": 1}


def test_a_root_can_be_given_up_as_soon_as_it_can_be_found() -> None:
    table = RunTable()
    tree = RunTree(INVALID_SPAN, LangChainReader())

    class EndedByAnother:
        """An id. A dict asks for its hash, and another thread ends the run that it finds by it."""

        is_watched = True

        def __hash__(self) -> int:
            if self.is_watched and any(run.id is self for run in list(table.runs.values())):
                self.is_watched = False
                table.close(tree)
            return 1

    run_id = EndedByAnother()
    table.add_root(Run(run_id, tree, None, RunKind.CHAIN, "chain", tree.now(), QUERY, {}))
    run_id.is_watched = False

    # A root that was closed before it was added stayed the oldest, and each look at it was in vain.
    assert table.close_all() == [tree]
