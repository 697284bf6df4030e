"""`claimspan run` runs a user's pipeline over a dataset, whatever it is and whatever it does."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from haystack.tracing.tracer import tracer
from llama_index_instrumentation import root_dispatcher
from opentelemetry.context import get_current
from opentelemetry.trace import get_tracer_provider

from claimspan.comparison.systems import read_system
from claimspan.evaluation.selection import Selection
from claimspan.results import ResultRow
from claimspan_tracing.run.files import read_dataset
from claimspan_tracing.run.session import RunSettings, Session
from claimspan_tracing.trace_file.records import read_trace_file

from command_line import call
from judge_server import judge_server
from otlp_receiver import receiver

PIPELINES: Final = Path(__file__).parents[1] / "support"
FILES: Final = {
    **dict.fromkeys(
        ("chain", "keyed_chain", "graph", "messages_graph", "make_chain"), "run_chains"
    ),
    **dict.fromkeys(("ask_chain", "beside_a_chain", "retrieval", "slow_chain"), "run_chains"),
    **dict.fromkeys(("engine", "streaming_engine", "make_engine", "workflow"), "run_engines"),
    **dict.fromkeys(("chat_engine", "make_chat_engine"), "run_engines"),
    "pipeline": "run_haystack",
}
"""The files of the pipelines that load a framework, which takes seconds; the others load none."""

DEADLINE: Final = 120.0
RIGHT: Final = 0.5
"""Faithfulness of the answers: one claim of two is in the first passage."""


def write(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    rows = [
        {
            "id": f"item-{n}",
            "query": f"q{n}",
            "ground_truth": f"Answer to q{n}.",
            "metadata": {"part": n % 2},
        }
        for n in range(4)
    ]
    return write(tmp_path / "dataset.jsonl", rows)


def named(name: str) -> str:
    return f"{PIPELINES / FILES.get(name, 'run_functions')}.py:{name}"


def arguments(name: str, dataset: Path, *options: str) -> list[str]:
    return ["run", named(name), str(dataset), "--judge", "lexical", *options]


def command(name: str, dataset: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "claimspan", *arguments(name, dataset, *options)]


def run(
    name: str, dataset: Path, *options: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the command in this process, in which every framework is loaded."""
    return call(*arguments(name, dataset, *options), cwd=dataset.parent, **variables)


def run_alone(
    name: str, dataset: Path, *options: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, which ends by itself."""
    return subprocess.run(
        command(name, dataset, *options),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        cwd=dataset.parent,
        env={**os.environ, **variables},
        check=False,
    )


def run_json(
    name: str, dataset: Path, *options: str, code: int = 0, alone: bool = False, **variables: str
) -> Any:
    ended = (run_alone if alone else run)(name, dataset, "--json", *options, **variables)
    assert ended.returncode == code, ended.stderr
    # What the pipeline prints must not stand among the results.
    return json.loads(ended.stdout)


def rows_of(path: Path) -> list[ResultRow]:
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [ResultRow.model_validate_json(line) for line in lines]
    return sorted(rows, key=lambda row: row.index)


def test_a_judge_is_set_by_options(dataset: Path) -> None:
    with judge_server() as server:
        judged = ("--judge", "openai:m", "--judge-option", f"base_url={server.url}")
        found = run_json("ask_chain", dataset, *judged, "--judge-option", "seed=7")

        assert found["failed"] == {}
        assert server.sent("seed") == {7}


# --- what can be run ---


@pytest.mark.parametrize(
    ("name", "alone"),
    [
        *(("chain", True), ("keyed_chain", False), ("graph", False), ("messages_graph", False)),
        *(("make_chain", False), ("engine", True), ("streaming_engine", False)),
        *(("make_engine", False), ("pipeline", True), ("ask_chain", True)),
        *(("with_chunks", True), ("mapping", False)),
    ],
)
def test_a_pipeline_is_recognised_asked_evaluated_and_traced(
    name: str, alone: bool, dataset: Path
) -> None:
    output, traces = dataset.with_name("results.jsonl"), dataset.with_name("traces.jsonl")

    result = run_json(name, dataset, "-o", str(output), "--traces", str(traces), alone=alone)

    rows = rows_of(output)
    assert [row.id for row in rows] == [f"item-{n}" for n in range(4)]
    assert [row.record.query for row in rows] == [f"q{n}" for n in range(4)]
    assert [row.record.metadata["part"] for row in rows] == [0, 1, 0, 1]
    # The graph puts the first of its two documents into the prompt.
    n_read = 1 if name == "graph" else 2
    assert all(row.record.ground_truth and len(row.record.chunks) == n_read for row in rows)
    assert all(row.metrics["faithfulness"] == RIGHT for row in rows)
    assert all(row.metrics["recall"] == 1.0 for row in rows)
    assert result["metrics"]["faithfulness"] == {"mean": RIGHT, "n": 4}
    traced = [entry for entry in read_trace_file(traces) if entry.scores]
    answered_in = {str(row.record.metadata["trace_id"]) for row in rows}
    assert {entry.trace_id for entry in traced} == answered_in
    assert all(entry.scores["faithfulness"] == RIGHT for entry in traced)
    written = traces.read_text(encoding="utf-8").replace("\\", "").replace(" ", "")
    assert all(f'"dataset_item":"item-{n}"' in written for n in range(4))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("keyed_chain", ["--input", "question={query}"]),
        ("workflow", ["--input", "topic={query}"]),
        ("pipeline", ["--input", "shelf.query={query}", "--input", "prompt.question={query}"]),
    ],
)
def test_inputs_can_be_named(name: str, options: list[str], dataset: Path) -> None:
    result = run_json(name, dataset, *options)

    assert result["metrics"]["faithfulness"] == {"mean": RIGHT, "n": 4}


def test_a_dataset_made_from_earlier_results_is_run_as_any_other(tmp_path: Path) -> None:
    earlier = {"dataset_item": "another", "trace_id": "0" * 32}
    dataset = write(tmp_path / "dataset.jsonl", [{"query": "q0", "metadata": earlier}])
    output, traces = tmp_path / "results.jsonl", tmp_path / "traces.jsonl"

    run_json("chain", dataset, "-o", str(output), "--traces", str(traces))

    (row,) = rows_of(output)
    assert row.record.metadata["trace_id"] in {each.trace_id for each in read_trace_file(traces)}


def test_a_chat_engine_begins_a_conversation_with_each_question(dataset: Path) -> None:
    output = dataset.with_name("results.jsonl")

    run_json("chat_engine", dataset, "-o", str(output))

    rows = rows_of(output)
    assert [row.record.chunks[0].id for row in rows] == [f"doc-q{n}" for n in range(4)]
    # The engine answers with the first line of its prompt, which a conversation would move.
    assert len({row.record.response for row in rows}) == 1


def test_a_module_is_found_by_its_dotted_name(dataset: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "claimspan", "run", "run_chains:chain", str(dataset), "--json"],
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        cwd=PIPELINES,
        env={**os.environ, "CLAIMSPAN_JUDGE": "lexical"},
        check=False,
    )

    assert json.loads(ended.stdout)["metrics"]["faithfulness"]["n"] == 4


def test_the_chunks_that_a_function_returns_go_before_those_of_a_framework(dataset: Path) -> None:
    output = dataset.with_name("results.jsonl")

    run_json("beside_a_chain", dataset, "-o", str(output))

    assert all(len(row.record.chunks) == 1 for row in rows_of(output))


def test_an_answer_without_chunks_is_compared_with_its_ground_truth(dataset: Path) -> None:
    result = run_json("text_alone", dataset)

    assert result["metrics"]["recall"] == {"mean": 1.0, "n": 4}
    assert "faithfulness" not in result["metrics"]


def test_retrieval_alone_is_measured_by_what_it_has_not_found(dataset: Path) -> None:
    result = run_json("retrieval", dataset)

    assert result["metrics"]["claim_recall"]["n"] == 4
    assert "faithfulness" not in result["metrics"]


def test_traces_go_to_the_endpoint_that_the_environment_names(dataset: Path) -> None:
    with receiver() as backend:
        run_json("with_chunks", dataset, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=backend.url)

        roots = [span for span in backend.spans if not span.parent_span_id]
        assert len(roots) == 4


def test_where_texts_are_forbidden_the_scores_come_without_them(dataset: Path) -> None:
    output, traces = dataset.with_name("results.jsonl"), dataset.with_name("traces.jsonl")
    forbidden = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "NO_CONTENT"}
    options = ("-o", str(output), "--traces", str(traces))

    result = run_json("chain", dataset, *options, code=0, alone=False, **forbidden)

    assert result["metrics"]["faithfulness"] == {"mean": RIGHT, "n": 4}
    assert "Invented for" not in output.read_text() + traces.read_text()


# --- what goes wrong ---


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("nothing", [], "a int is no pipeline"),
        ("missing", [], "has no 'missing'"),
        ("broken_factory", [], "raised RuntimeError: no index here"),
        ("engine", ["--input", "query={query}"], "leave --input out"),
        ("pipeline", ["--input", "query={query}"], "component.socket"),
        ("chain", ["--input", "query"], "write NAME={query}"),
    ],
)
def test_what_cannot_be_run_is_said_at_once(
    name: str, options: list[str], said: str, dataset: Path
) -> None:
    ended = run(name, dataset, *options)

    assert ended.returncode == 2
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


def test_failures_are_counted_by_their_class_and_tried_again(dataset: Path) -> None:
    output = dataset.with_name("results.jsonl")
    options = ("-o", str(output), "--timeout", "2")

    first = run_json("misbehaving", dataset, *options, code=1, alone=True)
    second = run_json("misbehaving", dataset, *options, WELL="1")

    assert first["failed"] == {
        "item-1": "the pipeline raised ValueError",
        "item-2": "the pipeline hangs: it had not returned after 2 s",
        "item-3": "the pipeline raised SystemExit",
    }
    assert second["failed"] == {}
    assert [row.index for row in rows_of(output)] == [0, 1, 2, 3]
    assert [row.scores["faithfulness"] for row in read_system(output).rows] == [RIGHT] * 4


def test_a_coroutine_that_hangs_is_left_behind(dataset: Path) -> None:
    failed = run_json("hanging", dataset, "--timeout", "1", code=1, alone=True)["failed"]

    assert set(failed.values()) == {"the pipeline hangs: it had not returned after 1 s"}


def test_a_function_that_returns_no_answer_is_a_failure_of_each_question(dataset: Path) -> None:
    failed = run_json("no_answer", dataset, code=1)["failed"]

    (why,) = set(failed.values())
    assert why.startswith("the function returned a int: return a str, (answer, chunks)")


def test_with_concurrency_1_everything_runs_on_the_thread_that_imported_it(dataset: Path) -> None:
    assert run_json("not_thread_safe", dataset, "--concurrency", "1")["failed"] == {}


def test_a_chat_engine_is_asked_on_the_thread_that_made_it(dataset: Path) -> None:
    assert run_json("make_chat_engine", dataset, "--concurrency", "4")["failed"] == {}


# --- resuming, and the other files ---


@pytest.mark.parametrize("name", ["slow", "slow_chain"])
def test_ctrl_c_ends_a_run_and_the_same_command_goes_on(name: str, dataset: Path) -> None:
    output, asked = dataset.with_name("results.jsonl"), dataset.with_name("asked")
    options = ("-o", str(output), "--concurrency", "1")
    process = subprocess.Popen(
        command(name, dataset, *options),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "ASKED": str(asked)},
        # A test that runs in the background ignores Ctrl-C, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    _wait_until(lambda: output.exists() and len(output.read_text().splitlines()) == 2)
    _wait_until(lambda: "q2" in asked.read_text())
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=DEADLINE)

    assert process.returncode == 130
    assert "stopped after 2 of 4 questions; the same command goes on" in said
    assert "Traceback" not in said

    result = run_json(name, dataset, *options, ASKED=str(asked), WELL="1")

    assert result["metrics"]["faithfulness"]["n"] == 4
    assert asked.read_text().split() == ["q0", "q1", "q2", "q2", "q3"]


@pytest.mark.parametrize("name", ["chain", "engine", "pipeline", "ask_chain"])
def test_a_run_leaves_nothing_behind_in_its_process(name: str, dataset: Path) -> None:
    provider, handlers = get_tracer_provider(), llama_index_handlers()
    slot, context = tracer.actual_tracer, get_current()
    settings = RunSettings(
        pipeline=named(name),
        inputs={},
        judge="lexical",
        judge_options=(),
        selection=Selection(),
        evaluate=True,
        output=None,
        traces=None,
        report=None,
        concurrency=2,
        timeout=DEADLINE,
        progress=False,
    )
    session = Session(read_dataset(dataset), settings)

    asyncio.run(session.run())
    session.close()

    assert [row.error for row in session.rows] == [None] * 4
    assert get_tracer_provider() is provider
    assert llama_index_handlers() == handlers
    assert tracer.actual_tracer is slot
    assert get_current() == context


def llama_index_handlers() -> list[int]:
    handlers = root_dispatcher.span_handlers  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - LlamaIndex leaves it open
    return [id(each) for each in handlers]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - as above


def _wait_until(happened: Any) -> None:
    deadline = time.monotonic() + DEADLINE
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_finished_run_asks_nothing_more_and_still_writes_its_report(dataset: Path) -> None:
    output, asked = dataset.with_name("results.jsonl"), dataset.with_name("asked")
    page = dataset.with_name("page.html")
    options = ("-o", str(output), "--report", str(page))
    run_json("slow", dataset, *options, ASKED=str(asked), WELL="1")
    page.unlink()

    again = run_json("slow", dataset, *options, ASKED=str(asked), WELL="1")

    assert len(asked.read_text().split()) == 4
    assert again["metrics"]["faithfulness"]["n"] == 4
    assert "Invented for q3." in page.read_text(encoding="utf-8")


def test_results_of_another_dataset_are_not_taken_for_ones_own(dataset: Path) -> None:
    output = dataset.with_name("results.jsonl")
    run_json("with_chunks", dataset, "-o", str(output))
    write(dataset, [{"query": "another"}])

    ended = run("with_chunks", dataset, "-o", str(output))

    assert ended.returncode == 2
    assert "the dataset has changed" in ended.stderr


@pytest.mark.parametrize("name", ["with_chunks", "hanging_in_a_pool"])
def test_a_full_disk_ends_a_run_with_one_line_that_says_so(name: str, dataset: Path) -> None:
    def limit() -> None:
        # No file may grow beyond this, which is about one line of results.
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))

    # Coverage would write its own file at the end, and fail at the same limit.
    environment = {name: v for name, v in os.environ.items() if not name.startswith("COV")}
    ended = subprocess.run(
        command(name, dataset, "-o", str(dataset.with_name("results.jsonl"))),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        preexec_fn=limit,
        env=environment,
        check=False,
    )

    assert ended.returncode == 2
    assert "cannot write the results" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_without_evaluation_the_records_can_be_evaluated_later(dataset: Path) -> None:
    output = dataset.with_name("records.jsonl")

    result = run_json("chain", dataset, "--no-evaluate", "-o", str(output))
    later = call("evaluate", str(output), "--judge", "lexical", "--json")

    assert result["metrics"] == {}
    assert json.loads(later.stdout)["metrics"]["faithfulness"] == {"mean": RIGHT, "n": 4}
    # And again: everything is done.
    assert run_json("chain", dataset, "--no-evaluate", "-o", str(output))["failed"] == {}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"ground_truth": "x"}], "line 1 has no question"),
        ([{"query": "a", "id": 1}, {"query": "b", "id": "1"}], "the id '1' more than once"),
        ([{"query": "a", "metadata": 3}], "metadata is no object"),
        ([], "holds no questions"),
    ],
)
def test_a_dataset_that_cannot_be_used_is_refused(
    rows: list[dict[str, object]], said: str, tmp_path: Path
) -> None:
    ended = run("with_chunks", write(tmp_path / "dataset.jsonl", rows))

    assert ended.returncode == 2
    assert said in ended.stderr


def test_a_run_says_at_its_end_what_it_has_done(dataset: Path) -> None:
    ended = run_alone("misbehaving", dataset, "--timeout", "1", "-o", "results.jsonl")

    assert ended.returncode == 1
    assert ended.stdout.startswith("1 of 4 questions answered and evaluated\n")
    assert "failed: 1 x the pipeline raised ValueError" in ended.stdout
    assert "swordfish" not in ended.stdout + (dataset.with_name("results.jsonl")).read_text()
