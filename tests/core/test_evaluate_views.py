"""`claimspan evaluate --csv --report`: a table and a page of the run that has just ended."""

from __future__ import annotations

import csv
import json
import os
import stat
import tempfile
from pathlib import Path

import pytest

from claimspan import Chunk, Evaluation, RagRecord, evaluate
from claimspan.cost.usage import Usage
from claimspan.errors import ConfigError
from claimspan.judges import LexicalJudge
from claimspan.metrics import METRICS
from claimspan.metrics.catalogue import WITHOUT_GROUND_TRUTH
from claimspan.results.rows import ResultRow, write_table

from command_line import invoke, run

RIGHT = {"chunks": ["The tower is in Paris."], "response": "It is in Paris."}
RECORD = RagRecord(
    query="Where is it?",
    chunks=(Chunk(id="a", text="The tower is in Paris."),),
    response="It is in Paris.",
)
QUERIES = ["Where is it?", '=HYPERLINK("http://x")', 'A "quoted", one\nof two lines']


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "records.jsonl"
    rows = [{**RIGHT, "id": f"r{place}", "query": query} for place, query in enumerate(QUERIES)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_table_has_one_row_a_record_in_the_order_of_the_input(
    records: Path, tmp_path: Path
) -> None:
    run("evaluate", str(records), "--csv", str(tmp_path / "t.csv"))
    rows = table(tmp_path / "t.csv")

    assert [row["id"] for row in rows] == ["r0", "r1", "r2"]
    assert rows[2]["query"] == QUERIES[2]
    assert [float(row["faithfulness"]) for row in rows] == [1.0, 1.0, 1.0]
    assert [name for name in rows[0] if name in METRICS] == [*WITHOUT_GROUND_TRUTH]
    assert [row["label"] for row in rows] == ["good"] * 3


def test_numbers_of_the_table_have_four_digits_at_most(tmp_path: Path) -> None:
    scores = {"faithfulness": 2 / 3, "recall": 1 / 300_000}
    row = ResultRow.of(0, RECORD, Evaluation(metrics=scores, usage=Usage(seconds=1234.567)))
    with (tmp_path / "t.csv").open("w") as file:
        write_table(file, [row], scores)

    (written,) = table(tmp_path / "t.csv")
    assert (written["faithfulness"], written["recall"]) == ("0.6667", "3.333e-06")
    assert written["seconds"] == "1235"


def test_a_text_that_a_spreadsheet_would_run_is_text_in_the_table(
    records: Path, tmp_path: Path
) -> None:
    run("evaluate", str(records), "--csv", str(tmp_path / "t.csv"))

    assert table(tmp_path / "t.csv")[1]["query"] == f"'{QUERIES[1]}"


def test_a_metric_of_the_users_own_has_a_column(tmp_path: Path) -> None:
    row = ResultRow.of(0, RECORD, evaluate(RECORD, judge=LexicalJudge()))
    own = row.model_copy(update={"metrics": {**row.metrics, "tone": 0.5}})
    with (tmp_path / "t.csv").open("w") as file:
        write_table(file, [own], own.metrics)

    assert table(tmp_path / "t.csv")[0]["tone"] == "0.5"


def test_the_page_and_the_table_are_also_those_of_a_run_that_goes_on(
    records: Path, tmp_path: Path
) -> None:
    output, page, rows = (str(tmp_path / name) for name in ("r.jsonl", "p.html", "t.csv"))
    run("evaluate", str(records), "-o", output)
    printed = run("evaluate", str(records), "-o", output, "--csv", rows, "--report", page, "--json")

    assert json.loads(printed)["csv"] == rows
    assert json.loads(printed)["report"] == page
    assert len(table(Path(rows))) == 3
    assert "Where is it?" in Path(page).read_text(encoding="utf-8")


def test_the_files_are_named_and_only_their_owner_reads_them(records: Path, tmp_path: Path) -> None:
    page, rows = tmp_path / "p.html", tmp_path / "t.csv"
    printed = run("evaluate", str(records), "--csv", str(rows), "--report", str(page))

    assert str(page) in printed
    assert {stat.S_IMODE(os.stat(each).st_mode) for each in (page, rows)} == {0o600}


def test_without_o_no_results_stay_behind(
    records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (scratch := tmp_path / "scratch").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    run("evaluate", str(records), "--report", str(tmp_path / "p.html"))

    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--csv", "missing/t.csv"], "does not exist"),
        (["--csv", "records.jsonl"], "are one file"),
        (["-o", "r.jsonl", "--report", "r.jsonl"], "are one file"),
        (["--csv", "one", "--report", "one"], "--csv and --report are one file"),
        (["--parquet", "records.jsonl"], "are one file"),
        (["-o", "r.json", "--csv", "t.csv"], "RAGChecker"),
    ],
)
def test_what_cannot_be_written_is_said_before_a_judge_is_asked(
    arguments: list[str],
    told: str,
    records: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(records.parent)
    before = sorted(records.parent.iterdir())
    result = invoke("evaluate", records.name, "--judge", "openai:nobody-asks-it", *arguments)

    assert isinstance(result.exception, ConfigError)
    assert told in str(result.exception)
    assert sorted(records.parent.iterdir()) == before


def test_a_record_that_failed_is_in_the_table_with_its_reason(tmp_path: Path) -> None:
    found = evaluate(RECORD, judge=LexicalJudge())
    failed = found.model_copy(update={"metrics": {}, "error": "the judge is away"})
    with (tmp_path / "t.csv").open("w") as file:
        write_table(file, [ResultRow.of(7, RECORD, failed)], [])

    (row,) = table(tmp_path / "t.csv")
    assert (row["index"], row["label"], row["error"]) == ("7", "unknown", "the judge is away")
