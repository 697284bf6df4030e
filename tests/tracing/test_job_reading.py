"""What is read from a run tree: parents, times and texts, whatever clocks and stores do.

Rows I1, I2 and, but for the spool, I5.
"""

from __future__ import annotations

import itertools
import json
import time
from contextvars import Context

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Finished, Job, PiiRedactor
from claimspan_tracing.capture.runs import Document as Found
from claimspan_tracing.capture.runs import Generation, Reader, Retrieval, Run, RunKind, RunTree
from claimspan_tracing.guard import Guard
from claimspan_tracing.read.job_reader import read_job
from claimspan_tracing.redact.redaction import MARGIN_BYTES, Redaction
from claimspan_tracing.write.sinks import without_content
from claimspan_tracing.write.spans import build_spans

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
    expected = {"3": 3.0, "0.7": 0.7}.get(str(score))
    assert chunk.score == expected
    assert attributes(spans.one("RETRIEVER")).get("retrieval.documents.0.document.score") == (
        expected
    )


# --- any record ---

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.binary(max_size=9)
    | st.text(st.characters(codec=None, categories=None), max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


class AnyReader(Reader):
    """Finds in a run what a test has put there, as a reader of a framework would."""

    def __init__(self, values: list[object]) -> None:
        self._values = itertools.cycle(values)

    def is_query(self, root: Run) -> bool:
        return True

    def query(self, root: Run) -> object:
        return next(self._values)

    def response(self, root: Run) -> object:
        return next(self._values)

    def given_documents(self, run: Run) -> list[Found]:
        return [self._document()]

    def passages(self, run: Run) -> list[str]:
        return ["text of a search"]

    def retrieval(self, run: Run) -> Retrieval:
        return Retrieval(
            next(self._values), [self._document(), self._document()], next(self._values)
        )

    def generation(self, run: Run) -> Generation:
        said = [(next(self._values), next(self._values)) for _ in range(3)]
        values = (next(self._values), next(self._values), next(self._values))
        return Generation(*values, messages=said)

    def parts(self, value: object) -> list[object]:
        return []

    def _document(self) -> Found:
        metadata = {"value": next(self._values)}
        return Found(next(self._values), next(self._values), None, metadata)


@given(st.lists(VALUES, min_size=1, max_size=12), st.dictionaries(st.text(max_size=5), VALUES))
def test_any_record_becomes_a_job_and_spans(
    values: list[object], metadata: dict[str, object]
) -> None:
    spans, guard = InMemorySpanExporter(), Guard()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(spans))
    tracer = provider.get_tracer("test")
    tree = RunTree(tracer.start_span("root"), AnyReader(values), Context())
    root = Run(0, tree, None, RunKind.CHAIN, values[0], 1, None, metadata, end=4, outputs=1)
    tree.runs += [root, Run(1, tree, root, RunKind.RETRIEVER, "", 2, None, {}, end=3)]
    tree.runs += [Run(2, tree, root, RunKind.GENERATOR, "", 2, None, {}, end=3)]

    job = read_job(tree, guard, margin=MARGIN_BYTES)
    shown = REDACTION.apply(job, guard)
    opened = build_spans(shown, tree.span, tracer, guard)
    for span, ended in opened.ends():
        span.end(ended)

    assert guard.faults == 0
    assert len(spans.get_finished_spans()) == 3
    assert Job.from_json(shown.to_json()) == shown
    assert Job.from_json(without_content(job).to_json()) == without_content(job)
    json.loads(spans.get_finished_spans()[-1].to_json())


REDACTION = Redaction(PiiRedactor())


@pytest.mark.parametrize(
    "text", [b"bytes", b"\xff", 7, {"a": 1}, ["a", "b"], None, Found("inner")], ids=repr
)
def test_a_chunk_of_any_type_has_a_text(text: object) -> None:
    reader = AnyReader([text])
    tree = RunTree(TracerProvider().get_tracer("t").start_span("root"), reader, Context())
    root = Run(0, tree, None, RunKind.CHAIN, "", 1, None, {}, end=4, outputs=1)
    tree.runs += [root, Run(1, tree, root, RunKind.RETRIEVER, "", 2, None, {}, end=3)]

    job = read_job(tree, Guard())

    assert all(isinstance(chunk.text, str) for chunk in job.record.chunks)
    assert all(chunk.id for chunk in job.record.chunks)
    assert Job.from_json(job.to_json()) == job
