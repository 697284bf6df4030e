"""Job and outcome are values: frozen, exact in JSON, and enough to write from another process."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import weakref
from collections.abc import Sequence
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from opentelemetry.sdk.trace import TracerProvider

from claimspan import Chunk, Claim, RagRecord, VerdictMatrix
from claimspan.errors import ConfigError
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Decision, Finished, Job, Monitor, Outcome, Status
from claimspan_tracing.job import GeneratorRun, RetrieverRun
from claimspan_tracing.write.scores import write_scores

from lc_pipelines import Shelf, answer_to, rag_chain
from support import MonitorFactory, Spans, attributes, ids, score_names

SUPPORT = Path(__file__).parents[1] / "support"


class Kept:
    """A sink that keeps jobs and outcomes."""

    def __init__(self) -> None:
        self.finished: list[Finished] = []

    def write(self, finished: Finished) -> None:
        self.finished.append(finished)


@pytest.fixture
def finished(make_monitor: MonitorFactory) -> Finished:
    """What a sink gets of one evaluated query."""
    sink = Kept()
    monitor = make_monitor(ground_truth={"q": answer_to("q")}, sinks=[sink])
    config = {"callbacks": [ClaimspanCallbackHandler(monitor)], "metadata": {"id": "r-1"}}
    rag_chain().with_config(run_name="bot").invoke("q", config)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - a plain dict will do
    assert monitor.flush()
    (only,) = sink.finished
    return only


def test_a_job_holds_the_record_its_ids_its_times_and_the_decision(
    finished: Finished, spans: Spans
) -> None:
    job = finished.job

    assert (job.record.query, job.record.response) == ("q", answer_to("q"))
    assert job.record.chunks[0].id == "doc-q"
    assert job.record.ground_truth is None  # it is the outcome that knows what was found
    assert job.record.metadata["id"] == "r-1"
    assert job.record.id == "r-1"
    assert job.route == "bot"
    assert job.key == (f"{ids(spans.root).trace_id:032x}", f"{ids(spans.root).span_id:016x}")
    assert (job.started, job.ended) != (0, 0)
    assert (spans.root.start_time, spans.root.end_time) == (job.started, job.ended)
    assert [run.kind for run in job.runs] == ["retriever", "generator"]
    assert job.decision == Decision(sampled=True, rate=1.0, reason="rate")
    assert job.status is None


def test_an_outcome_holds_status_evaluation_and_the_ground_truth_that_was_found(
    finished: Finished,
) -> None:
    outcome = finished.outcome

    assert outcome.status is Status.EVALUATED
    assert outcome.evaluation is not None
    assert "precision" in outcome.evaluation.metrics
    assert outcome.ground_truth is not None
    assert outcome.ground_truth.matched_by == "query"


def test_job_and_outcome_survive_json_exactly(finished: Finished) -> None:
    job, outcome = finished.job, finished.outcome

    assert Job.from_json(job.to_json()) == job
    assert Outcome.from_json(outcome.to_json()) == outcome
    assert json.loads(job.to_json())["version"] == 1


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_score_that_is_no_number_makes_no_outcome(number: str) -> None:
    text = f'{{"status": "evaluated", "evaluation": {{"metrics": {{"recall": {number}}}}}}}'

    with pytest.raises(ConfigError, match=r"metrics\.recall"):
        Outcome.from_json(text)


def test_job_and_outcome_are_frozen(finished: Finished) -> None:
    with pytest.raises(FrozenInstanceError):
        finished.job.route = "other"  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue] - wrong on purpose
    with pytest.raises(FrozenInstanceError):
        finished.outcome.status = Status.TIMEOUT  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue] - wrong on purpose


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
CHUNKS = st.builds(
    Chunk,
    id=TEXTS,
    text=TEXTS,
    score=st.none() | FLOATS,
    metadata=st.dictionaries(TEXTS, JSON, max_size=2),
)
NANOSECONDS = st.integers(0, 2**62)
RETRIEVERS = st.builds(
    RetrieverRun,
    started=NANOSECONDS,
    ended=NANOSECONDS,
    query=TEXTS,
    chunks=st.lists(CHUNKS, max_size=2).map(tuple),
    id_sources=st.just(()),
    found=st.integers(0, 9),
    parent=st.none() | st.integers(0, 3),
)
GENERATORS = st.builds(
    GeneratorRun, started=NANOSECONDS, ended=NANOSECONDS, prompt=TEXTS, model=TEXTS
)
JOBS = st.builds(
    Job,
    record=st.builds(
        RagRecord,
        query=TEXTS,
        response=TEXTS,
        chunks=st.lists(CHUNKS, max_size=2).map(tuple),
        metadata=st.dictionaries(TEXTS, JSON, max_size=2),
    ),
    trace_id=st.integers(1, 2**128 - 1).map(lambda n: f"{n:032x}"),
    span_id=st.integers(1, 2**64 - 1).map(lambda n: f"{n:016x}"),
    trace_flags=st.sampled_from([0, 1]),
    route=TEXTS,
    started=NANOSECONDS,
    ended=NANOSECONDS,
    runs=st.lists(RETRIEVERS | GENERATORS, max_size=3).map(tuple),
    status=st.none() | st.sampled_from(Status),
    decision=st.none() | st.just(Decision(sampled=True, rate=0.1, reason="rate")),
)


@given(JOBS)
@settings(max_examples=200)
def test_any_job_survives_json_exactly(job: Job) -> None:
    assert Job.from_json(job.to_json()) == job


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"version": 2}',
        '{"__class__": "os.system"}',
        '{"record": {"query": "canary"}}',
        "\x80\x04\x95",
        "[" * 10_000,
    ],
)
@pytest.mark.parametrize("kind", [Job, Outcome])
def test_what_is_no_job_is_refused_without_quoting_it(
    text: str, kind: type[Job] | type[Outcome]
) -> None:
    with pytest.raises(ConfigError, match="of version 1") as caught:
        kind.from_json(text)

    assert "canary" not in str(caught.value)


def test_a_job_of_another_version_or_with_a_field_too_many_is_refused(finished: Finished) -> None:
    fields = json.loads(finished.job.to_json())

    for change in ({"version": 2}, {"surplus": 1}, {"status": "fine"}, {"trace_flags": "x"}):
        with pytest.raises(ConfigError, match=next(iter(change))):
            Job.from_json(json.dumps(fields | change))


def test_a_job_that_was_written_before_runs_had_messages_and_span_ids_is_still_one(
    finished: Finished,
) -> None:
    fields = json.loads(finished.job.to_json())
    for run in fields["runs"]:
        for name in ("messages", "span_id", "completed"):
            run.pop(name, None)

    older = Job.from_json(json.dumps(fields))

    assert older.record == finished.job.record
    assert [(run.span_id, run.completed) for run in older.runs] == [("", True)] * 2
    assert not any(run.messages for run in older.runs if isinstance(run, GeneratorRun))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ended", 2**64),
        ("ended", -1),
        ("started", 10**30),
        ("trace_id", "f" * 64),
        ("span_id", "zz" * 8),
        ("span_id", "0" * 16 + "\n"),
        ("parent_span_id", "zz" * 8),
        ("trace_flags", 256),
    ],
)
def test_a_job_that_no_exporter_could_carry_is_refused(
    finished: Finished, field: str, value: object
) -> None:
    # An exporter would fail on its carrier, and on all that is in the batch, at each attempt.
    fields = json.loads(finished.job.to_json())

    with pytest.raises(ConfigError, match=field):
        Job.from_json(json.dumps(fields | {field: value}))


def test_job_and_outcome_are_enough_to_write_the_scores_in_another_process(
    finished: Finished, spans: Spans, tmp_path: Path
) -> None:
    (tmp_path / "job.json").write_text(finished.job.to_json(), encoding="utf-8")
    (tmp_path / "outcome.json").write_text(finished.outcome.to_json(), encoding="utf-8")
    code = """
import json, pathlib
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from claimspan_tracing import Finished, Job, Outcome
from claimspan_tracing.write.scores import write_scores
exporter, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
job = Job.from_json(pathlib.Path("job.json").read_bytes())
outcome = Outcome.from_json(pathlib.Path("outcome.json").read_bytes())
write_scores(lambda: provider.get_tracer("claimspan"), Finished(job, outcome))
carrier, annotated = exporter.get_finished_spans()
assert annotated.links[0].context == carrier.links[0].context
print(json.dumps({
    "trace": f"{carrier.context.trace_id:032x}",
    "parent": f"{carrier.parent.span_id:016x}",
    "link": f"{carrier.links[0].context.span_id:016x}",
    "times": [carrier.start_time, carrier.end_time],
    "attributes": {k: v for k, v in carrier.attributes.items() if k.startswith("claimspan.")},
}))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    written = json.loads(done.stdout)

    root = spans.root
    assert written["trace"] == finished.job.trace_id
    assert written["parent"] == written["link"] == finished.job.span_id
    assert written["times"] == [root.end_time, root.end_time]
    expected = {k: v for k, v in attributes(root).items() if k.startswith("claimspan.score.")}
    assert {k: v for k, v in written["attributes"].items() if ".score." in k and k in expected} == (
        expected
    )
    assert written["attributes"]["claimspan.claim.0.text"] == "Answer to q"


def test_a_carrier_with_everything_on_it_stays_below_a_hundred_attributes(
    finished: Finished, provider: TracerProvider, spans: Spans
) -> None:
    from claimspan.metrics import METRICS

    evaluation = finished.outcome.evaluation
    assert evaluation is not None
    full = evaluation.model_copy(
        update={
            "metrics": dict.fromkeys(METRICS, 0.5),
            "notes": {"note": 1},
            "undecided": {"reason": 1},
            "injection_suspected": ("response",),
            "claims_dropped": 3,
        }
    )
    outcome = Outcome(status=Status.EVALUATED, evaluation=full, late=True)
    spans.exporter.clear()

    write_scores(lambda: provider.get_tracer("claimspan"), Finished(finished.job, outcome))

    carrier, annotated = spans.all
    assert score_names(carrier) == set(METRICS)
    assert len(attributes(carrier)) <= 100
    assert len(attributes(annotated)) <= 100
    assert carrier.dropped_attributes == 0


def test_from_the_job_on_nobody_holds_an_object_of_the_framework(
    make_monitor: MonitorFactory,
) -> None:

    from langchain_core.documents import Document

    class Kind(Document):
        """A document that can be watched."""

    seen: list[bool] = []
    document = Kind(id="doc-q", page_content="Answer to q")
    watched = weakref.ref(document)

    class Looking:
        name = "looking"

        async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
            gc.collect()
            seen.append(watched() is None)
            return []

        async def check(
            self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
        ) -> VerdictMatrix:
            raise AssertionError

    def answer(monitor: Monitor, found: list[Document]) -> None:
        chain = rag_chain(retriever=Shelf(documents=found))
        chain.invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})

    monitor = make_monitor(judge=Looking())
    answer(monitor, [document])
    del document
    monitor.flush()

    assert seen == [True]
