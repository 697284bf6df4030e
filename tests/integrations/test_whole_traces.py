"""Whole traces of each framework, compared with the files in ``__snapshots__``.

A change of any span, attribute or value fails here, with a diff; in review it shows as a change of
these files. Where the change is intended, write them again and look at what ``git diff`` says::

    make test ARGS="tests/integrations/test_whole_traces.py --snapshot-update"
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest
from langchain_core.runnables import RunnableConfig
from openinference.instrumentation.langchain import LangChainInstrumentor
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.json import JSONSnapshotExtension

import claimspan_haystack
import claimspan_llama_index
from claimspan.testing import ScriptedJudge
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_openinference import ClaimspanSpanProcessor
from claimspan_tracing.testing import InMemoryMonitor

from hs_pipelines import rag_pipeline
from lc_pipelines import Echo, rag_chain
from li_pipelines import Echo as LlamaEcho
from li_pipelines import Shelf as LlamaShelf
from li_pipelines import engine_of
from pipelines import AppError
from whole_traces import whole_trace

QUERY: Final = "the question"
TRUTH: Final = {QUERY: f"Answer to {QUERY}. Nobody knows {QUERY}."}


@pytest.fixture
def traces(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """The file of this test."""
    return snapshot.use_extension(JSONSnapshotExtension)


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with InMemoryMonitor(ground_truth=TRUTH) as monitor:
        yield monitor


def ask_chain(monitor: InMemoryMonitor, model: Echo | None = None) -> None:
    config: RunnableConfig = {
        "callbacks": [ClaimspanCallbackHandler(monitor)],
        "metadata": {"id": "record-1"},
        "run_name": "bot",
    }
    rag_chain(model=model).invoke(QUERY, config)


# --- LangChain ---


def test_langchain_evaluated(monitor: InMemoryMonitor, traces: SnapshotAssertion) -> None:
    ask_chain(monitor)

    assert whole_trace(monitor.spans()) == traces


def test_langchain_late(traces: SnapshotAssertion) -> None:
    judge = ScriptedJudge(delay_seconds=0.4)
    with InMemoryMonitor(judge=judge, hold_seconds=0.3, ground_truth=TRUTH) as monitor:
        ask_chain(monitor)

        assert whole_trace(monitor.spans()) == traces


def test_langchain_not_sampled(traces: SnapshotAssertion) -> None:
    with InMemoryMonitor(sample=0.0) as monitor:
        ask_chain(monitor)

        assert whole_trace(monitor.spans()) == traces


def test_langchain_app_error(monitor: InMemoryMonitor, traces: SnapshotAssertion) -> None:
    with pytest.raises(AppError):
        ask_chain(monitor, Echo(error=AppError("its message stays out")))

    assert whole_trace(monitor.spans()) == traces


# --- LlamaIndex ---


def test_llama_index_evaluated(monitor: InMemoryMonitor, traces: SnapshotAssertion) -> None:
    detach = claimspan_llama_index.instrument(monitor)
    engine_of(LlamaShelf(), LlamaEcho()).query(QUERY)
    detach()

    assert whole_trace(monitor.spans()) == traces


# --- Haystack ---


def test_haystack_evaluated(monitor: InMemoryMonitor, traces: SnapshotAssertion) -> None:
    detach = claimspan_haystack.instrument(monitor)
    rag_pipeline().run({"shelf": {"query": QUERY}, "prompt": {"question": QUERY}})
    detach()

    assert whole_trace(monitor.spans()) == traces


# --- spans of OpenInference's instrumentation ---


# OpenInference calls LangChain's texts like functions, which LangChain deprecates.
@pytest.mark.filterwarnings("ignore:Calling .text")
def test_openinference_evaluated(monitor: InMemoryMonitor, traces: SnapshotAssertion) -> None:
    monitor.provider.add_span_processor(ClaimspanSpanProcessor(monitor))
    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=monitor.provider)
    rag_chain().invoke(QUERY, {"max_concurrency": 1})  # else its branches start in any order
    instrumentor.uninstrument()

    assert whole_trace(monitor.spans()) == traces
