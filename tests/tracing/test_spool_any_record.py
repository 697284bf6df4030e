"""Whatever a record holds, it comes out of the spool as it went in, and is judged.

Row I5 of the reliability matrix, as far as it concerns the spool.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.runnables import Runnable
from opentelemetry.sdk.trace import TracerProvider

from claimspan import evaluate
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Finished, Job, Monitor
from claimspan_tracing.spool import Spool

from lc_pipelines import Shelf, rag_chain
from spool_jobs import rows
from support import ScriptedJudge

TEXTS = st.text(st.characters(codec=None, categories=None), min_size=1, max_size=30)
"""With NUL, lone surrogates, controls, and signs of every script."""

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.binary(max_size=9) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


class Jobs:
    """A sink that keeps the jobs."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def write(self, finished: Finished) -> None:
        self.jobs.append(finished.job)


@pytest.fixture(scope="module")
def captured() -> Iterator[tuple[Monitor, Jobs]]:
    """A monitor that captures, and the sink that has its jobs."""
    sink, provider = Jobs(), TracerProvider(shutdown_on_exit=False)
    monitor = Monitor(ScriptedJudge(), sample=0.0, tracer_provider=provider, sinks=[sink])
    yield monitor, sink
    assert monitor.stats.faults == 0
    monitor.shutdown()


@settings(max_examples=200)
@given(query=TEXTS, text=TEXTS, chunk=VALUES, metadata=st.dictionaries(TEXTS, VALUES, max_size=3))
def test_any_record_is_judged_from_the_spool_as_it_was_captured(
    captured: tuple[Monitor, Jobs],
    query: str,
    text: str,
    chunk: object,
    metadata: dict[str, object],
) -> None:
    monitor, sink = captured
    # Constructed: pydantic refuses texts that Python and stores accept.
    found = Document.model_construct(page_content=text, metadata={"value": chunk})
    chain: Runnable[str, str] = rag_chain(retriever=Shelf.model_construct(documents=[found]))
    chain.invoke(query, {"callbacks": [ClaimspanCallbackHandler(monitor)], "metadata": metadata})
    assert monitor.flush()
    job = sink.jobs.pop()

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spool.db"
        first, second = Spool(path), Spool(path)
        assert first.add(job) is not None
        first.close()  # what is left is another's to take up
        (row,) = second.claim(9)
        second.close()
        assert rows(path) == [("waiting",)]

    assert row.job == job
    evaluation = evaluate(row.job.record, judge=ScriptedJudge())
    assert "faithfulness" in {*evaluation.metrics, *evaluation.undefined}
