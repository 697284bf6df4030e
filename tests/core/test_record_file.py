"""Records out of files, whatever stands in their texts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from claimspan import Chunk, RagRecord
from claimspan.errors import FileError, GroundTruthError
from claimspan.files.record_files import read_records

PRIVATE = "swordfish"
ROW = {"query": "q", "response": "r", "chunks": ["a"]}

LINE_BREAKS = "\u2028\u2029\u0085\u001c\u000b\u000c"
"""What Unicode or Python takes for the end of a line; the first three JSON lets stand as it is."""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_only_the_end_of_a_line_ends_a_record(tmp_path: Path, end: str) -> None:
    text = f"One{LINE_BREAKS}two."
    row = {"query": text, "response": text, "chunks": [{"id": "a", "text": text}]}
    path = tmp_path / "records.jsonl"
    lines = [json.dumps(row, ensure_ascii=False), "", json.dumps(row, ensure_ascii=False), ""]
    path.write_bytes(end.join(lines).encode())

    record = RagRecord(query=text, response=text, chunks=(Chunk(id="a", text=text),))
    assert read_records(path) == [record, record]


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_lines_lists_and_results_hold_the_same_records(tmp_path: Path) -> None:
    rows = [ROW, ROW]
    lines = write(tmp_path / "a", "\n".join(map(json.dumps, rows)))
    listed = write(tmp_path / "b", json.dumps(rows, indent=1))
    results = write(tmp_path / "c", json.dumps({"results": rows}))

    assert read_records(lines) == read_records(listed) == read_records(results)
    assert len(read_records(lines)) == 2
    assert read_records(write(tmp_path / "d", "")) == []


def test_ragcheckers_names_are_understood(tmp_path: Path) -> None:
    row = {
        "query_id": 7,
        "query": "q",
        "response": "r",
        "gt_answer": "g",
        "retrieved_context": [{"doc_id": "d", "text": "t"}],
    }
    path = write(tmp_path / "results.json", json.dumps({"results": [row]}))

    chunks = (Chunk(id="d", text="t"),)
    record = RagRecord(id="7", query="q", response="r", ground_truth="g", chunks=chunks)
    assert read_records(path) == [record]


def test_the_columns_of_ragas_are_understood(tmp_path: Path) -> None:
    row = {"user_input": "q", "response": "r", "retrieved_contexts": ["t"], "reference": "g"}
    path = write(tmp_path / "samples.jsonl", json.dumps(row))

    (record,) = read_records(path)
    assert (record.query, record.response, record.ground_truth) == ("q", "r", "g")
    assert [chunk.text for chunk in record.chunks] == ["t"]


@pytest.mark.parametrize(
    ("written", "text"),
    [("42", "42"), ("3.5", "3.5"), ("-1e21", "-1e+21"), ("true", "true"), ("false", "false")],
)
def test_a_number_or_a_boolean_is_an_answer_and_a_ground_truth(
    tmp_path: Path, written: str, text: str
) -> None:
    line = f'{{"query": "q", "response": {written}, "ground_truth": {written}}}'

    (record,) = read_records(write(tmp_path / "records.jsonl", line))
    (of_list,) = read_records(write(tmp_path / "records.json", f"[{line}]"))

    assert (record.response, record.ground_truth) == (text, text)
    assert of_list == record


@pytest.mark.parametrize(
    ("field", "written", "reason"),
    [
        ("ground_truth", '["a", "b"]', "ground_truth is a list, not a text"),
        ("gt_answer", '{"text": "a"}', "ground_truth is an object, not a text"),
        ("answer", "[1]", "response is a list, not a text"),
        ("query", "7", "query is not a text"),
        ("ground_truth", "Infinity", "ground_truth is not a text"),
    ],
)
def test_what_no_single_text_stands_for_is_refused(
    tmp_path: Path, field: str, written: str, reason: str
) -> None:
    row = {"query": "q", "answer": "r"} | {field: json.loads(written)}

    with pytest.raises(FileError, match=reason):
        read_records(write(tmp_path / "records.jsonl", json.dumps(row)))


def test_the_nan_of_a_data_frame_is_an_absent_ground_truth(tmp_path: Path) -> None:
    row = {**ROW, "ground_truth": float("nan")}

    (record,) = read_records(write(tmp_path / "records.jsonl", json.dumps(row)))
    assert record.ground_truth is None


def test_a_record_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    chunk = Chunk(id="a", text="t", score=0.5, metadata={"page": 3})
    record = RagRecord(query="q", response="r", chunks=(chunk,), metadata={"tenant": "x"})
    path = write(tmp_path / "records.jsonl", record.model_dump_json())

    assert read_records(path) == [record]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (f'{{"{PRIVATE}', "line 2: not JSON; write one record with query and response"),
        (f'["{PRIVATE}"]', "line 2: not a JSON object"),
        (f'{{"query": "{PRIVATE}"}}', "line 2: response is missing; write one record with"),
        (f'{{"query": ["{PRIVATE}"], "response": "r"}}', "line 2: query is a list, not a text"),
    ],
)
def test_a_bad_line_is_refused_and_named(tmp_path: Path, bad: str, message: str) -> None:
    path = write(tmp_path / "records.jsonl", f"{json.dumps(ROW)}\n{bad}\n")

    with pytest.raises(FileError, match=message) as caught:
        read_records(path)

    assert repr(str(path)) in str(caught.value)
    assert PRIVATE not in str(caught.value)
    assert not isinstance(caught.value, GroundTruthError)


def test_a_bad_record_of_a_list_is_named_by_its_number(tmp_path: Path) -> None:
    path = write(tmp_path / "records.json", json.dumps([ROW, {"query": PRIVATE}], indent=1))

    with pytest.raises(FileError, match="record 2: response is missing") as caught:
        read_records(path)

    assert PRIVATE not in str(caught.value)


@pytest.mark.parametrize("text", ["7", f'"{PRIVATE}"', '{"results": 7}'])
def test_json_that_is_no_list_of_records_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(FileError, match="is not a list of records: write one JSON record a line"):
        read_records(write(tmp_path / "records.json", text))


def test_a_file_that_cannot_be_read_says_what_to_give(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes("é".encode("latin-1"))

    with pytest.raises(FileError, match=r"\(FileNotFoundError\): give an existing JSON, "):
        read_records(tmp_path / "absent")
    with pytest.raises(FileError, match="line 1: not UTF-8"):
        read_records(tmp_path / "latin")
