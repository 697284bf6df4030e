"""Traces that others wrote to a real Phoenix and a real MLflow are judged where they are."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest
from openinference.instrumentation import using_attributes
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from claimspan_demo.phoenix_server import Phoenix
from claimspan_tracing.trace_file.writing import OtlpFileExporter

from backend_queries import provider_to
from backend_traces import FAITHFULNESS, ask_all, backfill, killed, slow_judge, started
from environments import ROOT, environment
from mlflow_api import Experiment
from phoenix_api import PhoenixApi, eventually

pytestmark = [
    # OpenInference calls LangChain's texts like functions, which LangChain deprecates.
    pytest.mark.filterwarnings("ignore:Calling .text"),
    # LlamaIndex and its instrumentor look at every attribute of an object, deprecated ones too.
    pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecationWarning"),
]


def test_phoenix_gets_scores_for_traces_that_were_there_and_each_once(
    phoenix: Phoenix, tmp_path: Path
) -> None:
    name = f"before us {uuid4()}"
    provider = provider_to(f"{phoenix.url}/v1/traces", openinference__project__name=name)
    n_traces = ask_all(provider)
    provider.shutdown()
    api = PhoenixApi(phoenix.url, name)
    eventually(api.roots, lambda roots: len(roots) == n_traces)
    command = ("phoenix", "--url", phoenix.url, "--project", name)

    told = backfill(*command, folder=tmp_path)
    assert (told["traces"], told["judged"], told["failed"]) == (n_traces, n_traces, {})
    eventually(api.annotated, lambda spans: len(spans) == n_traces)
    found = Counter((each.name, each.span_id) for each in api.annotations())
    faithful = [a.result.score for a in api.annotations() if a.name == "faithfulness"]
    assert faithful == [FAITHFULNESS] * n_traces

    again = backfill(*command, folder=tmp_path)
    assert (again["judged"], again["already"]) == (0, n_traces)
    # Another state knows nothing, and what it writes takes the place of what is there.
    anew = backfill(*command, "--state", "other.db", folder=tmp_path)
    assert anew["judged"] == n_traces
    assert Counter((each.name, each.span_id) for each in api.annotations()) == found
    assert set(found.values()) == {1}


@pytest.mark.parametrize("backend", ["phoenix", "mlflow"])
def test_what_is_read_from_a_backend_is_what_was_sent_to_it(
    phoenix: Phoenix, mlflow: str, tmp_path: Path, backend: str
) -> None:
    name = f"whole {uuid4()}"
    provider = provider_to(f"{phoenix.url}/v1/traces", openinference__project__name=name)
    command = ["phoenix", "--url", phoenix.url, "--project", name]
    if backend == "mlflow":
        experiment = Experiment(mlflow)
        provider = experiment.provider()
        command = ["mlflow", "--url", mlflow, "--project", experiment.id]
    provider.add_span_processor(SimpleSpanProcessor(OtlpFileExporter(tmp_path / "traces.jsonl")))
    metadata = {"thread_id": "t", "id": "q7", "n": 3}
    with using_attributes(session_id="s1", user_id="u1", metadata=metadata):
        n_traces = ask_all(provider)
    provider.shutdown()
    if backend == "phoenix":
        api = PhoenixApi(phoenix.url, name)
        eventually(api.roots, lambda roots: len(roots) == n_traces)

    backfill(*command, "-o", "there.jsonl", folder=tmp_path)
    backfill("traces.jsonl", "-o", "sent.jsonl", folder=tmp_path)

    assert len(records_in(tmp_path / "there.jsonl")) == n_traces
    assert records_in(tmp_path / "there.jsonl") == records_in(tmp_path / "sent.jsonl")


def records_in(file: Path) -> dict[str, object]:
    found = [json.loads(line)["record"] for line in file.read_text("utf-8").splitlines()]
    return {each["metadata"]["span_id"]: each for each in found}


def test_a_run_that_was_killed_goes_on_and_phoenix_has_each_score_once(
    phoenix: Phoenix, tmp_path: Path
) -> None:
    name = f"killed {uuid4()}"
    provider = provider_to(f"{phoenix.url}/v1/traces", openinference__project__name=name)
    n_traces = ask_all(provider) + ask_all(provider)
    provider.shutdown()
    api = PhoenixApi(phoenix.url, name)
    eventually(api.roots, lambda roots: len(roots) == n_traces)
    command = ("phoenix", "--url", phoenix.url, "--project", name, *slow_judge(tmp_path))

    killed(*command, folder=tmp_path)
    told = backfill(*command, folder=tmp_path)

    assert 0 < told["already"] < n_traces
    assert told["judged"] + told["already"] == n_traces
    eventually(api.annotated, lambda spans: len(spans) == n_traces)
    found = Counter((each.name, each.span_id) for each in api.annotations())
    assert set(found.values()) == {1}


def test_an_unknown_project_is_one_line_that_says_what_to_do(
    phoenix: Phoenix, mlflow: str, tmp_path: Path
) -> None:
    for source, url in (("phoenix", phoenix.url), ("mlflow", mlflow)):
        process = started(source, "--url", url, "--project", "no such", folder=tmp_path)
        _, error = process.communicate()
        assert process.returncode == 2
        assert b"'no such'" in error
        assert b"--project" in error
        assert error.count(b"\n") == 1


def test_mlflow_gets_scores_for_traces_that_were_there_and_each_once(
    mlflow: str, tmp_path: Path
) -> None:
    experiment = Experiment(mlflow)
    provider = experiment.provider()
    n_traces = ask_all(provider)
    provider.shutdown()
    command = ("mlflow", "--url", mlflow, "--project", experiment.id)

    told = backfill(*command, folder=tmp_path)
    assert (told["traces"], told["judged"], told["failed"]) == (n_traces, n_traces, {})
    traces = experiment.traces()
    found = {trace.id: sorted(each.name for each in trace.assessments) for trace in traces}
    faithful = [a.value for t in traces for a in t.assessments if a.name == "faithfulness"]
    assert faithful == [FAITHFULNESS] * n_traces

    again = backfill(*command, folder=tmp_path)
    assert (again["judged"], again["already"]) == (0, n_traces)
    anew = backfill(*command, "--state", "other.db", folder=tmp_path)
    assert anew["judged"] == n_traces
    assert {t.id: sorted(e.name for e in t.assessments) for t in experiment.traces()} == found


DECORATED: Final = """
import sys
import mlflow
from mlflow.entities import Document, SpanType

url, experiment, *questions = sys.argv[1:]
mlflow.set_tracking_uri(url)
mlflow.set_experiment(experiment_id=experiment)

@mlflow.trace(span_type=SpanType.RETRIEVER)
def retrieve(question):
    found = "The tower stands in Ptuj, and was built in 1540."
    return [Document(page_content=found, metadata={"source": "guide"}, id="d1")]

@mlflow.trace(span_type=SpanType.CHAT_MODEL)
def chat(messages):
    return {"choices": [{"message": {"role": "assistant", "content": "It stands in Ptuj."}}]}

@mlflow.trace(span_type=SpanType.CHAIN)
def answer(question):
    found = "\\n".join(each.page_content for each in retrieve(question))
    said = chat([{"role": "user", "content": f"{found}\\n{question}"}])
    return said["choices"][0]["message"]["content"]

for question in questions:
    answer(question)
mlflow.flush_trace_async_logging()
"""
"""An application that MLflow's decorators trace, and no framework."""


def test_traces_of_mlflows_decorators_get_their_scores_on_the_traces(
    mlflow: str, tmp_path: Path
) -> None:
    experiment = Experiment(mlflow)
    questions = ("Where is the tower?", "Where does the tower stand?")
    python = environment("mlflow", ROOT / "requirements" / "mlflow.txt")
    script = tmp_path / "app.py"
    script.write_text(DECORATED)
    command = [str(python), "-I", str(script), mlflow, experiment.id, *questions]
    subprocess.run(command, check=True, cwd=tmp_path, timeout=120, capture_output=True)
    n_traces = len(questions)
    eventually(experiment.traces, lambda traces: len(traces) == n_traces)

    told = backfill("mlflow", "--url", mlflow, "--project", experiment.id, folder=tmp_path)

    assert (told["traces"], told["judged"], told["failed"]) == (n_traces, n_traces, {})
    for trace in experiment.traces():
        (root,) = [span for span in experiment.spans(trace) if not span.parent]
        assert root.name == "answer"
        assert trace.feedback(root)["faithfulness"].value == FAITHFULNESS
