"""The entry made from a job and its outcome is the one that is read back from the trace file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from llama_index.core.postprocessor import SimilarityPostprocessor
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

import claimspan_haystack
import claimspan_llama_index
from claimspan import Label
from claimspan.errors import JudgeError
from claimspan.report import ReportEntry
from claimspan.testing import ScriptedJudge
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing.monitor import MonitorOptions
from claimspan_tracing.run.entries import entry_of
from claimspan_tracing.testing import InMemoryMonitor
from claimspan_tracing.trace_file.records import read_trace_file
from claimspan_tracing.trace_file.writing import OtlpFileExporter

from hs_pipelines import rag_pipeline
from lc_pipelines import Echo, Shelf, documents_for, rag_chain
from li_pipelines import Echo as LlamaEcho
from li_pipelines import Shelf as LlamaShelf
from li_pipelines import engine_of
from pipelines import AppError, answer_to

QUERY: Final = "the question"
TRUTH: Final = f"Answer to {QUERY}. Nobody knows {QUERY}."
APART: Final = timedelta(milliseconds=500)
"""The clock is read for the root span and again for its run: microseconds, but on a busy machine
more."""

Ask = Callable[[InMemoryMonitor], object]


def ask_langchain(monitor: InMemoryMonitor) -> object:
    return rag_chain().invoke(QUERY, {"callbacks": [ClaimspanCallbackHandler(monitor)]})


def ask_llama_index(monitor: InMemoryMonitor) -> object:
    detach = claimspan_llama_index.instrument(monitor)
    response = engine_of(LlamaShelf(), LlamaEcho()).query(QUERY)
    detach()
    return response


def ask_haystack(monitor: InMemoryMonitor) -> object:
    detach = claimspan_haystack.instrument(monitor)
    outputs = rag_pipeline().run({"shelf": {"query": QUERY}, "prompt": {"question": QUERY}})
    detach()
    return outputs


def ask_failing(monitor: InMemoryMonitor) -> object:
    chain = rag_chain(model=Echo(error=AppError("no")))
    with pytest.raises(AppError):
        chain.invoke(QUERY, {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    return None


def ask_with_a_cut_off(monitor: InMemoryMonitor) -> object:
    """The generator reads the first of the two chunks: the other has no score."""
    detach = claimspan_llama_index.instrument(monitor)
    cut_off = SimilarityPostprocessor(similarity_cutoff=0.5)
    response = engine_of(LlamaShelf(), LlamaEcho(), postprocessors=[cut_off]).query(QUERY)
    detach()
    return response


def both_entries(
    tmp_path: Path, ask: Ask, options: MonitorOptions
) -> tuple[ReportEntry, ReportEntry]:
    """The entries of one record: made from job and outcome, and read from its trace file."""
    path = tmp_path / "traces.jsonl"
    with InMemoryMonitor(**options) as monitor:
        monitor.provider.add_span_processor(SimpleSpanProcessor(OtlpFileExporter(path)))
        ask(monitor)
        record = monitor.only_record()
    (read,) = read_trace_file(path)
    return entry_of(record.job, record.outcome), read


def check_equal(made: ReportEntry, read: ReportEntry, *apart_from: str) -> None:
    """All fields are equal but those given; times are measured twice, and close.

    Spans have no room for the reason of each score.
    """
    left_out = {"started", "seconds", "judgement", *apart_from}
    assert made.model_dump(exclude=left_out) == read.model_dump(exclude=left_out)
    scores = [replace(each, explanation="") for each in made.assessments]
    assert replace(made.judgement, scores=tuple(scores)) == read.judgement
    assert made.started is not None
    assert read.started is not None
    assert abs(made.started - read.started) < APART
    assert abs(made.seconds - read.seconds) < APART.total_seconds()


@pytest.mark.parametrize("ask", [ask_langchain, ask_llama_index, ask_haystack])
def test_an_evaluated_record_with_ground_truth(tmp_path: Path, ask: Ask) -> None:
    made, read = both_entries(tmp_path, ask, {"ground_truth": {QUERY: TRUTH}})

    check_equal(made, read)
    assert (made.status, made.ground_truth) == ("evaluated", TRUTH)
    assert made.chunks[0].id == f"doc-{QUERY}"
    assert [claim.label for claim in made.response_claims] == [Label.ENTAILED, Label.NEUTRAL]
    assert made.response_claims[0].supported_by == (f"doc-{QUERY}",)
    assert made.response_claims[0].ground_truth_label is Label.ENTAILED
    assert len(made.ground_truth_claims) == 2
    assert made.scores["precision"] == 0.5


def test_undecided_and_contradicted_claims(tmp_path: Path) -> None:
    judge = ScriptedJudge(lambda claim, _: None if "Invented" in claim else "contradicted")

    made, read = both_entries(tmp_path, ask_langchain, {"judge": judge})

    check_equal(made, read)
    assert [claim.label for claim in made.response_claims] == [Label.CONTRADICTED, None]
    assert made.response_claims[0].contradicted_by == tuple(chunk.id for chunk in made.chunks)
    assert "groundedness" in made.undefined


def test_a_record_that_is_not_sampled(tmp_path: Path) -> None:
    made, read = both_entries(tmp_path, ask_langchain, {"sample": 0.0})

    check_equal(made, read)
    assert (made.status, made.scores, made.cost_usd) == ("not_sampled", {}, None)
    assert len(made.chunks) == 2


def test_a_record_whose_judge_failed(tmp_path: Path) -> None:
    judge = ScriptedJudge(error=JudgeError("the endpoint is down"))

    made, read = both_entries(tmp_path, ask_langchain, {"judge": judge})

    check_equal(made, read)
    assert made.status == "judge_error"
    assert made.reason


def test_a_pipeline_that_failed(tmp_path: Path) -> None:
    made, read = both_entries(tmp_path, ask_failing, {})

    check_equal(made, read)
    assert (made.status, made.response) == ("app_error", "")


def test_a_record_without_a_retriever_says_why_it_was_not_evaluated(tmp_path: Path) -> None:
    def ask(monitor: InMemoryMonitor) -> object:
        chain = rag_chain(retriever=Shelf(documents=[]))
        return chain.invoke(QUERY, {"callbacks": [ClaimspanCallbackHandler(monitor)]})

    made, read = both_entries(tmp_path, ask, {})

    check_equal(made, read)
    assert (made.status, made.reason) == ("no_context", "the retriever returned no chunks")


def test_what_the_generator_read_counts_and_not_what_was_retrieved(tmp_path: Path) -> None:
    made, read = both_entries(tmp_path, ask_with_a_cut_off, {})

    check_equal(made, read)
    assert [chunk.id for chunk in made.chunks] == [f"doc-{QUERY}"]
    assert made.chunks_left_out == 0  # there was room for the other


def test_more_chunks_than_a_record_keeps_are_counted(tmp_path: Path) -> None:
    documents = [d for n in range(60) for d in documents_for(f"{QUERY} {n}")]

    def ask(monitor: InMemoryMonitor) -> object:
        chain = rag_chain(retriever=Shelf(documents=documents))
        return chain.invoke(QUERY, {"callbacks": [ClaimspanCallbackHandler(monitor)]})

    made, read = both_entries(tmp_path, ask, {})

    # A span has room for 20; there are 20 more that decide a claim.
    check_equal(made, read, "chunks", "chunks_left_out")
    assert (len(made.chunks), made.chunks_left_out) == (100, 20)
    assert (len(read.chunks), read.chunks_left_out) == (40, 80)
    assert made.chunks[:20] == read.chunks[:20]


def test_a_chunk_that_two_retrievers_found_is_there_once(tmp_path: Path) -> None:
    def ask(monitor: InMemoryMonitor) -> object:
        inputs = {"context": Shelf(), "again": Shelf(), "question": RunnablePassthrough[str]()}
        chain = RunnableParallel(inputs) | RunnableLambda(lambda _: answer_to(QUERY))
        return chain.invoke(QUERY, {"callbacks": [ClaimspanCallbackHandler(monitor)]})

    made, read = both_entries(tmp_path, ask, {})

    check_equal(made, read)
    assert (len(made.chunks), made.chunks_left_out) == (2, 0)


def test_late_scores_keep_their_own_status_where_the_root_span_keeps_the_first(
    tmp_path: Path,
) -> None:
    judge = ScriptedJudge(delay_seconds=0.3)
    options: MonitorOptions = {"judge": judge, "hold_seconds": 0.1}

    made, read = both_entries(tmp_path, ask_langchain, options)

    check_equal(made, read, "status", "reason")
    assert made.late
    assert (made.status, made.reason) == ("evaluated", None)
    assert (read.status, read.reason) == ("timeout", "no verdicts within 0.1 s")
    assert made.scores["faithfulness"] == 0.5


def test_an_entry_has_whole_texts_where_spans_are_cut(tmp_path: Path) -> None:
    answer = answer_to(QUERY) + " And so on" * 2_000

    def ask(monitor: InMemoryMonitor) -> object:
        detach = claimspan_llama_index.instrument(monitor)
        response = engine_of(LlamaShelf(), LlamaEcho(said=answer)).query(QUERY)
        detach()
        return response

    made, read = both_entries(tmp_path, ask, {})

    check_equal(made, read, "response", "response_claims")
    assert made.response == answer
    assert answer.startswith(read.response)
    assert len(read.response) == 8 * 1024
