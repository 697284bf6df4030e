"""`claimspan evaluate` evaluates a file of records, and goes on where it was broken off."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from claimspan import Claim
from claimspan.cli import evaluate_command
from claimspan.errors import ConfigError, FileError, JudgeError
from claimspan.judges import LexicalJudge

from command_line import invoke, run

RIGHT = {
    "query": "Where is it?",
    "chunks": ["The tower is in Paris."],
    "response": "It is in Paris.",
}


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "records.jsonl"
    write(path, [{**RIGHT, "id": f"r{number}"} for number in range(6)])
    return path


def write(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def rows_of(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class CountingJudge(LexicalJudge):
    """Counts the texts that it reads, and fails for some."""

    def __init__(self, failing: str = "") -> None:
        super().__init__()
        self.texts: list[str] = []
        self.failing = failing

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        self.texts.append(text)
        if self.failing and self.failing in text:
            raise JudgeError("the judge cannot read this")
        return await super().extract_claims(text, question=question)


def judge_with(monkeypatch: pytest.MonkeyPatch, judge: CountingJudge) -> CountingJudge:
    def named(name: str | None) -> CountingJudge:
        return judge

    monkeypatch.setattr(evaluate_command, "default_judge", named)
    return judge


def test_the_summary_has_the_mean_of_each_metric_and_where_it_is_defined(records: Path) -> None:
    found = json.loads(run("evaluate", str(records), "--judge", "lexical", "--json"))

    assert found["records"] == 6
    assert found["failed"] == {}
    assert found["metrics"]["faithfulness"] == {"mean": 1.0, "n": 6}
    assert "recall" not in found["metrics"]  # there is no ground truth


def test_the_table_counts_records_and_names_metrics(records: Path) -> None:
    printed = run("evaluate", str(records))

    assert "6 of 6 records evaluated" in printed
    assert "faithfulness" in printed


def test_the_output_has_one_line_a_record_with_its_id_and_evaluation(
    records: Path, tmp_path: Path
) -> None:
    output = tmp_path / "results.jsonl"

    run("evaluate", str(records), "-o", str(output))

    rows = rows_of(output)
    assert sorted(str(row["id"]) for row in rows) == [f"r{number}" for number in range(6)]
    assert all(
        row["metrics"] == {"faithfulness": 1.0, "contradicted_by_chunks": 0.0} for row in rows
    )
    assert all(row["evaluation"] and row["error"] is None for row in rows)


def test_a_run_that_was_broken_off_goes_on_where_it_was(
    records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "results.jsonl"
    run("evaluate", str(records), "-o", str(output))
    whole = output.read_text(encoding="utf-8").splitlines(keepends=True)
    output.write_text("".join(whole[:2]) + whole[2][:50], encoding="utf-8")  # torn in line 3
    judge = judge_with(monkeypatch, CountingJudge())

    found = json.loads(run("evaluate", str(records), "-o", str(output), "--json"))

    assert len(judge.texts) == 4
    assert found["records"] == 6
    assert sorted(str(row["index"]) for row in rows_of(output)) == list("012345")


def test_a_record_that_failed_is_said_and_tried_again_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records, output = tmp_path / "records.jsonl", tmp_path / "results.jsonl"
    write(records, [RIGHT, {**RIGHT, "response": "It is of glass."}])
    judge_with(monkeypatch, CountingJudge(failing="glass"))

    failed = invoke("evaluate", str(records), "-o", str(output))
    second = judge_with(monkeypatch, CountingJudge())
    done = invoke("evaluate", str(records), "-o", str(output))

    assert (failed.exit_code, done.exit_code) == (1, 0)
    assert "1 of 2 records evaluated" in failed.output
    assert "failed: the judge cannot read this" in failed.output
    assert second.texts == ["It is of glass."]
    assert [row["error"] for row in rows_of(output)] == [None, None]


def test_results_of_another_input_are_not_continued(records: Path, tmp_path: Path) -> None:
    output = tmp_path / "results.jsonl"
    run("evaluate", str(records), "-o", str(output))
    write(records, [{**RIGHT, "response": "It is in Rome."}])

    result = invoke("evaluate", str(records), "-o", str(output))

    assert isinstance(result.exception, ConfigError)
    assert "the input has changed" in str(result.exception)
    assert len(rows_of(output)) == 6


def test_a_file_that_holds_something_else_is_not_overwritten(records: Path, tmp_path: Path) -> None:
    output = tmp_path / "notes.txt"
    output.write_text("my notes\nof today\n", encoding="utf-8")

    result = invoke("evaluate", str(records), "-o", str(output))

    assert isinstance(result.exception, ConfigError)
    assert output.read_text(encoding="utf-8") == "my notes\nof today\n"


def test_a_place_that_cannot_be_written_is_named(records: Path, tmp_path: Path) -> None:
    result = invoke("evaluate", str(records), "-o", str(tmp_path / "no folder" / "results.jsonl"))

    assert isinstance(result.exception, ConfigError)
    assert "does not exist; create it" in str(result.exception)


def test_a_file_without_records_is_an_error(tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("", encoding="utf-8")

    assert isinstance(invoke("evaluate", str(empty)).exception, ConfigError)
    assert isinstance(invoke("evaluate", str(tmp_path / "absent")).exception, FileError)


def test_a_judge_for_workers_is_refused_as_they_have_one(records: Path) -> None:
    result = invoke("evaluate", str(records), "--celery", "--judge", "lexical")

    assert isinstance(result.exception, ConfigError)
    assert "--judge and --celery do not go together" in str(result.exception)
