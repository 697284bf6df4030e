"""`claimspan evaluate` evaluates a file of records, and goes on where it was broken off."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from claimspan import Claim
from claimspan.cli import evaluate_command
from claimspan.errors import ConfigError, FileError, JudgeError
from claimspan.judges import LexicalJudge
from claimspan.metrics.catalogue import DEFAULT_METRICS

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


class OtherJudge(CountingJudge):
    """A judge of another name."""

    @property
    def name(self) -> str:
        return "another"


def judge_with(monkeypatch: pytest.MonkeyPatch, judge: CountingJudge) -> CountingJudge:
    def named(_: str | None, __: object) -> CountingJudge:
        return judge

    monkeypatch.setattr(evaluate_command, "judge_from", named)
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


def test_the_table_says_what_the_records_are_why_and_the_metrics_in_their_one_order(
    tmp_path: Path,
) -> None:
    rows = [
        {"query": "Where?", "response": "I do not know.", "ground_truth": "It is in Paris."},
        {"query": "Where?", "response": "It is in Rome.", "ground_truth": ""},
        {"query": "Where?", "response": "It is in Paris.", "ground_truth": "It is in Paris."},
    ]
    chunks = ["The tower is in Paris."]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(f"{json.dumps({**row, 'chunks': chunks})}\n" for row in rows))

    lines = run("evaluate", str(path), "--judge", "lexical").splitlines()
    assert lines[0] == "3 of 3 records evaluated: 2 low, 1 good"
    assert lines[1] == "  low above all in recall (1), faithfulness (1)"
    assert [line.split()[0] for line in lines[2:10]] == [*DEFAULT_METRICS]
    found = json.loads(run("evaluate", str(path), "--judge", "lexical", "--json"))
    assert (found["labels"], list(found["metrics"])) == ({"low": 2, "good": 1}, [*DEFAULT_METRICS])


def test_the_output_has_one_line_a_record_with_its_id_and_evaluation(
    records: Path, tmp_path: Path
) -> None:
    output = tmp_path / "results.jsonl"

    run("evaluate", str(records), "-o", str(output))

    rows = rows_of(output)
    assert sorted(str(row["id"]) for row in rows) == [f"r{number}" for number in range(6)]
    expected = {"faithfulness": 1.0, "groundedness": 1.0, "contradicted_by_chunks": 0.0}
    assert all(row["metrics"] == expected for row in rows)
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


@pytest.mark.parametrize("output", ["out.jsonl", "out.json"])
def test_an_answer_that_is_a_number_is_evaluated_and_gone_on_with(
    tmp_path: Path, output: str
) -> None:
    row = {"query": "How many?", "answer": 42, "gt_answer": 42.0, "contexts": ["There are 42."]}
    (tmp_path / "in.json").write_text(json.dumps([row]))
    arguments = (str(tmp_path / "in.json"), "-o", str(tmp_path / output), "--json")

    for _ in range(2):
        means = json.loads(run("evaluate", *arguments))["metrics"]
        assert (means["faithfulness"]["mean"], means["recall"]["mean"]) == (1.0, 1.0)


# --- files with rows that are no records ---


def half_broken(path: Path) -> Path:
    """A file with a byte order mark and CRLF, with four columns missing and half its rows bad."""
    good = json.dumps({"query": "Where is it?", "response": "It is in Paris."})
    lines = [good, '{"query": "torn', "", good, '{"query": "q"}', good, "[]", '{"response": []}']
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    return path


def test_the_rest_of_a_broken_file_is_evaluated_and_every_line_accounted_for(
    tmp_path: Path,
) -> None:
    result = invoke("evaluate", str(half_broken(tmp_path / "in.jsonl")), "--json")

    found = json.loads(result.stdout)
    file = found["file"]
    assert result.exit_code == 1
    assert found["records"] + file["skipped"] + file["blank"] == file["lines"] == 8
    assert file["skipped_by_reason"] == {
        "not JSON": {"count": 1, "first_lines": [2]},
        "response is missing": {"count": 1, "first_lines": [5]},
        "not a JSON object": {"count": 1, "first_lines": [7]},
        "query is missing, response is a list, not a text": {"count": 1, "first_lines": [8]},
    }
    assert file["missing"] == {"chunks": 3, "ground_truth": 3, "id": 3, "metadata": 3}
    assert "faithfulness" in file["not_computed"]["chunks"]
    assert "recall" in file["not_computed"]["ground_truth"]
    assert "recall" not in file["not_computed"]["chunks"]


def test_people_read_what_was_skipped_and_what_cannot_be_computed(tmp_path: Path) -> None:
    printed = invoke("evaluate", str(half_broken(tmp_path / "in.jsonl"))).stdout

    assert "3 of 3 records evaluated" in printed
    assert "skipped 4 of 7 rows (8 lines in the file, 1 of them blank)" in printed
    assert "  not JSON: 1 (line 2)" in printed
    assert "no ground_truth in 3 of 3 records: precision, recall, f1," in printed
    assert "no id in 3 of 3 records" in printed


def test_results_of_two_judges_in_one_file_are_said(
    records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out.jsonl"
    first = judge_with(monkeypatch, CountingJudge())
    run("evaluate", str(records), "-o", str(output))
    assert "judged by" not in run("evaluate", str(records), "-o", str(output))
    lines = output.read_text(encoding="utf-8").splitlines(keepends=True)
    output.write_text("".join(lines[:4]), encoding="utf-8")
    judge_with(monkeypatch, OtherJudge())

    told = run("evaluate", str(records), "-o", str(output))

    version = first.version
    assert f"judged by {first.name} {version} (4), another {version} (2)" in told


@pytest.mark.parametrize("name", ["in.jsonl", "out.jsonl", "last.jsonl"])
def test_skipped_rows_are_never_written_over_a_file_of_the_run(tmp_path: Path, name: str) -> None:
    path = half_broken(tmp_path / "in.jsonl")
    invoke("evaluate", str(path), "-o", str(tmp_path / "last.jsonl"), "--judge", "lexical")
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    (tmp_path / "sub").mkdir()

    result = invoke(
        *("evaluate", str(path), "--judge", "lexical", "-o", str(tmp_path / "out.jsonl")),
        *("--compare", str(tmp_path / "last.jsonl")),
        *("--skipped", str(tmp_path / "sub" / ".." / name)),
    )

    assert isinstance(result.exception, ConfigError)
    assert "give another path with --skipped" in str(result.exception)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir() if each.is_file()} == before


def test_a_trace_file_is_refused_with_the_commands_that_read_it(tmp_path: Path) -> None:
    path = tmp_path / "claimspan-traces.jsonl"
    path.write_text('{"resourceSpans": []}\n')

    error = invoke("evaluate", str(path)).exception

    assert isinstance(error, ConfigError)
    assert "is a trace file" in str(error)
    assert "claimspan report" in str(error)


def test_skipped_rows_are_written_with_their_reasons_on_request(tmp_path: Path) -> None:
    skipped = tmp_path / "skipped.jsonl"

    invoke("evaluate", str(half_broken(tmp_path / "in.jsonl")), "--skipped", str(skipped))

    rows = rows_of(skipped)
    assert [row["line"] for row in rows] == [2, 5, 7, 8]
    assert rows[0] == {"line": 2, "reason": "not JSON", "text": '{"query": "torn'}


def test_a_run_goes_on_when_a_broken_line_was_repaired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, output = half_broken(tmp_path / "in.jsonl"), tmp_path / "out.jsonl"
    invoke("evaluate", str(path), "-o", str(output))
    repaired = path.read_bytes().replace(b'"torn', b'"mended", "response": "It is in Rome."}')
    path.write_bytes(repaired)
    judge = judge_with(monkeypatch, CountingJudge())

    invoke("evaluate", str(path), "-o", str(output))

    assert judge.texts == ["It is in Rome."]
    assert sorted(str(row["index"]) for row in rows_of(output)) == ["0", "1", "2", "4"]


def test_strict_stops_at_the_first_row_and_evaluates_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = judge_with(monkeypatch, CountingJudge())

    result = invoke("evaluate", str(half_broken(tmp_path / "in.jsonl")), "--strict")

    assert isinstance(result.exception, FileError)
    assert "line 2: not JSON" in str(result.exception)
    assert judge.texts == []


def test_a_file_of_which_nothing_can_be_used_says_why(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text('{"query": "q"}\n{"query": "q"}\n{\n', encoding="utf-8")

    result = invoke("evaluate", str(path))

    assert isinstance(result.exception, ConfigError)
    assert "no records (2 response is missing, 1 not JSON)" in str(result.exception)


def test_a_table_is_evaluated_as_json_lines_are(tmp_path: Path, records: Path) -> None:
    table = tmp_path / "records.csv"
    lines = ['"r,1";Where is it?;It is in Paris.;The tower is in Paris.'] * 6
    header = "id;question;answer;contexts"
    table.write_text("\r\n".join([header, *lines]), encoding="utf-8-sig")

    found = json.loads(run("evaluate", str(table), "--judge", "lexical", "--json"))
    of_lines = json.loads(run("evaluate", str(records), "--judge", "lexical", "--json"))

    assert found["metrics"] == of_lines["metrics"]
    assert (found["file"]["lines"], found["file"]["header"]) == (7, 1)


def test_all_rows_of_a_file_follow_one_rule_for_undefined_metrics(tmp_path: Path) -> None:
    path, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    write(path, [{**RIGHT, "ground_truth": "It is in Paris.", "response": "I do not know."}])
    run("evaluate", str(path), "-o", str(output))

    (omitted,) = rows_of(output)
    run("evaluate", str(path), "-o", str(output), "--undefined", "zero")
    (zeroed,) = rows_of(output)

    assert "precision" not in dict(omitted["metrics"])  # type: ignore[call-overload]  # a mapping
    assert dict(zeroed["metrics"])["precision"] == 0.0  # type: ignore[call-overload]  # a mapping


def test_records_may_come_through_a_pipe(tmp_path: Path, records: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(records.read_bytes()))
    writer.start()

    printed = run("evaluate", str(pipe), "--judge", "lexical")
    writer.join()

    assert "6 of 6 records evaluated" in printed


@pytest.mark.parametrize(
    "choice", [("--metrics", "faithfulness"), ("--threshold", "faithfulness=0.5")]
)
def test_results_of_another_choice_are_not_taken_for_what_was_asked(
    records: Path, tmp_path: Path, choice: tuple[str, str]
) -> None:
    output = tmp_path / "results.jsonl"
    assert invoke("evaluate", str(records), "-o", str(output)).exit_code == 0

    other = invoke("evaluate", str(records), "-o", str(output), *choice)
    same = invoke("evaluate", str(records), "-o", str(output), "--metrics", "default")

    assert isinstance(other.exception, ConfigError)
    assert "give another path with -o" in str(other.exception)
    assert same.exit_code == 0


def test_a_function_that_fails_is_told_in_the_summary(records: Path, tmp_path: Path) -> None:
    module = tmp_path / "metrics_of_ours.py"
    module.write_text("def boom(evaluation):\n    raise KeyError(evaluation.judge_name)\n")

    done = invoke("evaluate", str(records), "--metrics", f"faithfulness,{module}:boom")

    assert done.exit_code == 0
    assert ": the function raised KeyError (" in done.stdout
    assert "  no boom in " in done.stdout
