"""`claimspan bench pandachat-run`: a submission from any retriever, and a run that goes on."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, cast

import pytest

from claimspan import Chunk
from claimspan.errors import ConfigError, FileError
from claimspan_bench.pandachat import evaluate_submissions, run_retriever
from claimspan_bench.retrievers import retriever_of

from command_line import invoke, run
from panda_files import SAMPLE, Row, sample

COMMAND: Final = "bench.pandachat-run"

MODULE: Final = """
from words import first_words

ANSWERS = {"Kako prepoznamo roj?": ["sl.1", "sl.2"]}

def retriever(query):
    return ANSWERS.get(query, ["sl.3", "sl.4"])

def build(documents):
    return lambda query: [{"id": key} for key in documents if first_words(query) in documents[key]]

async def later(query):
    return []

number = 7
"""


def right_documents() -> Callable[[str], list[str]]:
    """A retriever that knows every document."""
    documents = {question.query: question.document for question in sample().questions}
    return lambda query: [documents[query]]


def module(folder: Path) -> str:
    """A module with retrievers, which imports another one beside it."""
    (folder / "words.py").write_text("def first_words(query):\n    return query[:6]\n")
    (folder / "my_retriever.py").write_text(MODULE, encoding="utf-8")
    return str(folder / "my_retriever.py")


def rows_of(path: Path) -> list[Row]:
    return cast("list[Row]", json.loads(path.read_text("utf-8"))["df"])


# --- the submission ---


def test_a_submission_repeats_the_dataset_with_the_sources_of_each_question(tmp_path: Path) -> None:
    path = tmp_path / "submission_mine.json"

    run_retriever(retriever_of(right_documents()), sample(), path, system="mine")

    content = json.loads(path.read_text("utf-8"))
    assert list(content) == ["eval_scenario", "system", "time_per_question", "df"]
    assert (content["eval_scenario"], content["system"]) == ("aqa-sl", "mine")
    dataset = cast("list[Row]", json.loads(SAMPLE.read_text("utf-8")))
    assert content["df"] == [{**row, "sources": [row["document"]]} for row in dataset]
    assert list(content["df"][0]) == [*dataset[0], "sources"]
    assert evaluate_submissions(path, top_k=1).systems[0].correct == len(dataset)


def test_the_time_per_question_is_the_mean_time_of_the_retriever_alone(tmp_path: Path) -> None:
    path = tmp_path / "submission_mine.json"
    waited: list[float] = []

    def slow(query: str) -> Sequence[Chunk]:
        began = time.perf_counter()
        time.sleep(0.002)
        waited.append(time.perf_counter() - began)
        return []

    report = run_retriever(slow, sample(), path, system="mine")

    seconds = json.loads(path.read_text("utf-8"))["time_per_question"]
    assert seconds == report.time_per_question >= sum(waited) / len(waited) >= 0.002


def test_a_chunk_of_no_document_keeps_its_place(tmp_path: Path) -> None:
    path = tmp_path / "submission_mine.json"
    right = right_documents()

    def strange_first(query: str) -> list[str]:
        return ["Tega besedila ni nikjer.", *right(query)]

    report = run_retriever(retriever_of(strange_first), sample(), path, system="mine")

    assert report.matched == {"nothing": 13, "id": 13}
    (figures,) = evaluate_submissions(path, top_k=2).systems
    assert [hit.value for hit in figures.hit_at] == [0.0, 1.0]
    (finding,) = evaluate_submissions(path, dataset=SAMPLE).findings
    assert (finding.kind, finding.examples) == ("unknown_documents", ("unmatched",))


# --- a run that goes on ---


def test_a_run_that_was_broken_off_asks_only_what_is_left(tmp_path: Path) -> None:
    path, asked, right = tmp_path / "submission_mine.json", list[str](), right_documents()

    def retrieve(query: str) -> list[str]:
        if len(asked) == 5:
            raise KeyboardInterrupt
        asked.append(query)
        return right(query)

    with pytest.raises(KeyboardInterrupt):
        run_retriever(retriever_of(retrieve), sample(), path, system="mine")
    assert not path.exists()

    report = run_retriever(retriever_of(right), sample(), path, system="mine")

    assert (report.resumed, report.n) == (5, 13)
    assert evaluate_submissions(path, top_k=1).systems[0].correct == 13
    assert [each.name for each in tmp_path.iterdir()] == ["submission_mine.json"]


def test_a_line_that_was_torn_is_asked_again(tmp_path: Path) -> None:
    path, right = tmp_path / "submission_mine.json", right_documents()
    break_off(path, after=3)
    part = path.with_suffix(".part")
    part.write_bytes(part.read_bytes()[:-20])

    report = run_retriever(retriever_of(right), sample(), path, system="mine")

    assert report.resumed == 2
    assert rows_of(path)[2]["sources"] == [rows_of(path)[2]["document"]]


def test_a_line_that_was_torn_within_a_letter_is_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "submission_mine.json"
    break_off(path, after=1)
    part = path.with_suffix(".part")
    line = part.read_bytes()
    part.write_bytes(line[: line.index("č".encode()) + 1])

    report = run_retriever(retriever_of(right_documents()), sample(), path, system="mine")

    assert (report.resumed, report.n) == (0, 13)


def test_a_run_that_ended_before_its_first_line_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "submission_mine.json"
    break_off(path, after=0)
    part = path.with_suffix(".part")
    part.write_bytes(part.read_bytes()[:5])

    assert run_retriever(retriever_of(right_documents()), sample(), path, system="mine").n == 13
    assert len(rows_of(path)) == 13


@pytest.mark.parametrize("system", ["mine", "other"])
def test_what_another_run_has_done_is_not_taken_for_this_ones(tmp_path: Path, system: str) -> None:
    path = tmp_path / "submission_mine.json"
    break_off(path, after=3)
    if system == "mine":
        path.with_suffix(".part").write_text("something else\n", encoding="utf-8")

    with pytest.raises(ConfigError, match="not of this run: remove it"):
        run_retriever(retriever_of(right_documents()), sample(), path, system=system)


def test_a_question_that_fails_leaves_no_submission_and_is_asked_again(tmp_path: Path) -> None:
    path, right = tmp_path / "submission_mine.json", right_documents()
    failing = [sample().questions[2].query, sample().questions[7].query]

    def flaky(query: str) -> list[str]:
        if query in failing:
            raise TimeoutError
        return right(query)

    report = run_retriever(retriever_of(flaky), sample(), path, system="mine")
    assert (report.failed, report.submission) == ({"TimeoutError": 2}, None)
    assert not path.exists()

    failing.clear()
    report = run_retriever(retriever_of(flaky), sample(), path, system="mine")
    assert (report.failed, report.resumed) == ({}, 11)
    assert evaluate_submissions(path, top_k=1).systems[0].correct == 13


def test_a_full_disk_is_no_failure_of_the_retriever(tmp_path: Path) -> None:
    path, before = tmp_path / "submission_mine.json", resource.getrlimit(resource.RLIMIT_FSIZE)
    # Room for a few lines of the file beside the submission.
    resource.setrlimit(resource.RLIMIT_FSIZE, (600, before[1]))
    try:
        with pytest.raises(FileError, match="make room and run the same command again"):
            run_retriever(retriever_of(right_documents()), sample(), path, system="mine")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    report = run_retriever(retriever_of(right_documents()), sample(), path, system="mine")
    assert report.resumed > 0
    assert evaluate_submissions(path, top_k=1).systems[0].correct == 13


def test_a_system_may_be_called_as_models_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = f"{module(tmp_path)}:retriever"
    monkeypatch.chdir(tmp_path)

    result = invoke(COMMAND, spec, str(SAMPLE), "--system", "BAAI/bge m3")

    assert result.exit_code == 0, result.exception
    written = json.loads((tmp_path / "submission_BAAI-bge-m3.json").read_text("utf-8"))
    assert written["system"] == "BAAI/bge m3"


def break_off(path: Path, after: int) -> None:
    """Leave what a run has done when it is broken off."""
    asked, right = list[str](), right_documents()

    def retrieve(query: str) -> list[str]:
        if len(asked) == after:
            raise KeyboardInterrupt
        asked.append(query)
        return right(query)

    with pytest.raises(KeyboardInterrupt):
        run_retriever(retriever_of(retrieve), sample(), path, system="mine")


# --- the command ---


def test_the_command_runs_a_retriever_of_a_users_module(tmp_path: Path) -> None:
    path = tmp_path / "submission_mine.json"

    shown = run(
        COMMAND, f"{module(tmp_path)}:retriever", str(SAMPLE), "--system", "mine", "-o", str(path)
    )

    assert "mine: 13 questions" in shown
    assert rows_of(path)[1]["sources"] == ["sl.1", "sl.2"]


def test_the_command_builds_a_retriever_from_the_documents_without_questions(
    tmp_path: Path,
) -> None:
    path = tmp_path / "submission_mine.json"

    report = json.loads(
        run(
            *(COMMAND, f"{module(tmp_path)}:build", str(SAMPLE), "--build", "--json"),
            *("--system", "mine", "-o", str(path)),
        )
    )

    # "Kdo sk" and its like stand in questions alone, which the documents are without.
    assert report["chunks_per_question"] < 0.5
    assert report["submission"] == str(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("number", "a int is no retriever"),
        ("later", "asynchronous"),
        ("absent", "has no 'absent'"),
        ("no name", "write path.py:name"),
    ],
)
def test_what_is_no_retriever_is_refused_before_a_question_is_asked(
    tmp_path: Path, name: str, message: str
) -> None:
    result = invoke(COMMAND, f"{module(tmp_path)}:{name}", str(SAMPLE), "--system", "mine")

    assert isinstance(result.exception, ConfigError)
    assert message in str(result.exception)


def test_the_command_fails_where_the_retriever_has_failed(tmp_path: Path) -> None:
    (tmp_path / "broken_retriever.py").write_text("def retriever(query):\n    return 1 / 0\n")
    spec = f"{tmp_path / 'broken_retriever.py'}:retriever"
    path = tmp_path / "submission_mine.json"

    result = invoke(COMMAND, spec, str(SAMPLE), "--system", "mine", "-o", str(path))

    assert "ZeroDivisionError for 13 of 13 questions" in str(result.exception)
    assert not path.exists()
