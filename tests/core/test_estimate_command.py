"""The command ``claimspan estimate``, and the files that it reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from claimspan.errors import ConfigError, FileError

from command_line import invoke, run
from judged import RECORD


def test_estimate_prints_calls_tokens_and_money(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(RECORD.model_dump_json() + "\n" + RECORD.model_dump_json() + "\n")

    shown = run("estimate", str(path), "--model", "gpt-4o-mini")
    found = json.loads(run("estimate", str(path), "--json"))
    dearer = json.loads(
        run("estimate", str(path), "--json", "--input-price", "100", "--output-price", "100")
    )
    careful = json.loads(run("estimate", str(path), "--json", "--chunks-per-call", "1"))

    assert "2 records, gpt-4o-mini" in shown
    assert "cost                    $0.00" in shown
    assert found["records"] == 2
    assert careful["calls"] > found["calls"] > 0
    assert dearer["cost_usd"] > 10 * found["cost_usd"] > 0


def test_what_records_share_is_estimated_once(tmp_path: Path) -> None:
    once, twice = tmp_path / "once.jsonl", tmp_path / "twice.jsonl"
    once.write_text(RECORD.model_dump_json())
    twice.write_text(f"{RECORD.model_dump_json()}\n{RECORD.model_dump_json()}\n")

    first, second = (json.loads(run("estimate", str(path), "--json")) for path in (once, twice))

    assert second == first | {"records": 2}


def test_less_than_a_claim_a_sentence_adds_up_over_the_records(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    rows = [
        {"query": "Which?", "response": f"Door {i} is open.", "chunks": ["A door is open."]}
        for i in range(10)
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows))

    found = json.loads(run("estimate", str(path), "--json", "--claims-per-sentence", "0.5"))

    assert found["calls"] == 10 + 5  # every response is taken apart, every other has a claim


@pytest.mark.parametrize("price", ["-1", "nan"])
def test_a_price_that_is_none_is_refused(tmp_path: Path, price: str) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(RECORD.model_dump_json())
    prices = ["--input-price", price, "--output-price", "1"]

    result = invoke("estimate", str(path), *prices)

    assert isinstance(result.exception, ConfigError)


def test_estimate_reads_ragcheckers_files(tmp_path: Path) -> None:
    row = {
        "query_id": "7",
        "query": "Where?",
        "gt_answer": "By the river.",
        "response": "It is by the river.",
        "retrieved_context": [
            {"doc_id": None, "text": "By the river."},
            {"doc_id": "b", "text": "x"},
        ],
    }
    path = tmp_path / "inputs.json"
    path.write_text(json.dumps({"results": [row]}))

    assert json.loads(run("estimate", str(path), "--json"))["calls"] == 3


@pytest.mark.parametrize("text", ["{", '[{"query": "Where?"}]', "7"])
def test_a_file_that_holds_no_records_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(text)

    result = invoke("estimate", str(path))

    assert isinstance(result.exception, FileError | ConfigError)
    assert "records" in str(result.exception)


def test_rows_that_are_no_records_are_left_out_and_said(tmp_path: Path) -> None:
    path = tmp_path / "records.csv"
    path.write_text("question,answer,contexts\nWhere?,Here.,It is here.\nWhere?,Here.\n")

    result = invoke("estimate", str(path), "--json")

    assert json.loads(result.stdout)["records"] == 1
    assert "1 of 2 rows are no records: left out" in result.stderr
