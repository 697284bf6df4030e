"""Every line of a file of records is a record, skipped with a reason, blank, or a header."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from claimspan.errors import FileError
from claimspan.files.raw_rows import NoRow, SkippedRow
from claimspan.files.record_files import MAX_PLACES, Account, RecordFile, read_records
from claimspan.files.record_rows import InputRow

BOM = b"\xef\xbb\xbf"
ROW: dict[str, object] = {
    "id": "a",
    "query": "q",
    "response": "r",
    "ground_truth": "g",
    "chunks": ["c"],
    "metadata": {"tenant": "x"},
}
LEGACY_COLUMNS: dict[str, object] = {
    "response_claims": [[["a", "is", "b"]]],
    "gt_answer_claims": [[]],
    "answer2response": [["Entailment"]],
    "response2answer": [[]],
    "retrieved2response": [[["Neutral"]]],
    "retrieved2answer": [[]],
}


def account_of(path: Path) -> Account:
    account = Account()
    for row in RecordFile(path).rows():
        account.add(row)
    return account


def reasons(path: Path) -> dict[str, list[int]]:
    return {reason: skips.places for reason, skips in account_of(path).skips.items()}


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def as_csv(rows: Sequence[Mapping[str, str]], end: str = "\r\n") -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator=end)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def test_a_last_line_that_a_crash_has_cut_off_is_told_from_one_that_is_no_json(
    tmp_path: Path,
) -> None:
    good, torn = json.dumps(ROW).encode(), b'{"query": "torn'

    cut = write(tmp_path / "cut.jsonl", b"\n".join([good, torn]))
    ended = write(tmp_path / "ended.jsonl", b"\n".join([good, torn, b""]))

    assert reasons(cut) == {"not JSON, cut off where the file ends": [2]}
    assert reasons(ended) == {"not JSON": [2]}


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("mark", [b"", BOM])
def test_each_line_of_a_half_broken_file_is_accounted_for(
    tmp_path: Path, end: bytes, mark: bytes
) -> None:
    good = json.dumps(ROW).encode()
    lines = [
        *(good, b"", b'{"query": "torn', good, b'["q", "r"]', b"  ", b'{"query": "q"}'),
        *(b'{"response": "r", "query": null}', b'{"query": 7, "response": "r"}', b"\xff\xfe", good),
        *(b'{"query": "q", "response": "r", "chunks": 7}', b"null", b"[" * 100_000, good),
    ]
    path = write(tmp_path / "records.jsonl", mark + end.join(lines))

    account = account_of(path)

    assert reasons(path) == {
        "not JSON": [3, 14],
        "not a JSON object": [5, 13],
        "response is missing": [7],
        "query is missing": [8],
        "query is not a text": [9],
        "not UTF-8": [10],
        "chunks is not a list of texts or of objects with a text": [12],
    }
    assert (account.records, account.blank, account.lines) == (4, 2, len(lines))
    assert account.records + account.skipped + account.blank == account.lines


def test_a_record_keeps_its_place_whatever_is_broken_before_it(tmp_path: Path) -> None:
    path = write(tmp_path / "records.jsonl", b'{"torn\n\n' + json.dumps(ROW).encode())

    (row,) = RecordFile(path).records()

    assert (row.index, row.place) == (1, 3)


def test_what_records_lack_is_counted(tmp_path: Path) -> None:
    bare = {"query": "q", "response": "r", "chunks": None, "ground_truth": ""}
    lines = [json.dumps(ROW), json.dumps(bare), json.dumps(bare)]
    path = write(tmp_path / "records.jsonl", "\n".join(lines).encode())

    account = account_of(path)

    assert account.missing == {"chunks": 2, "ground_truth": 2, "id": 2, "metadata": 2}


def test_a_skipped_row_is_kept_as_it_stands_in_the_file(tmp_path: Path) -> None:
    lines = write(tmp_path / "records.jsonl", json.dumps(ROW).encode() + b'\n{"query": "to\n')
    listed = write(tmp_path / "records.json", json.dumps([ROW, {"query": "é"}]).encode())

    (torn,) = [row for row in RecordFile(lines).rows() if isinstance(row, SkippedRow)]
    (other,) = [row for row in RecordFile(listed).rows() if isinstance(row, SkippedRow)]

    assert (torn.place, torn.text) == (2, '{"query": "to')
    assert (other.place, json.loads(other.text)) == (2, {"query": "é"})


def test_places_are_listed_up_to_a_bound_and_counted_beyond(tmp_path: Path) -> None:
    path = write(tmp_path / "records.jsonl", b"{}\n" * 1_000 + json.dumps(ROW).encode())

    (skips,) = account_of(path).skips.values()

    assert (skips.count, len(skips.places)) == (1_000, MAX_PLACES)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_has_the_records_of_json_lines(tmp_path: Path, delimiter: str) -> None:
    chunks = [{"id": "d", "text": 'a "quoted" text,\nof two lines', "score": 0.5}, "plain; \t"]
    row = {**ROW, "chunks": chunks, "response": 'r, "r";\tr\nr'}
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter)
    writer.writerow(row)
    writer.writerow(v if isinstance(v, str) else json.dumps(v, indent=1) for v in row.values())
    lines = write(tmp_path / "records.jsonl", json.dumps(row).encode())
    table = write(tmp_path / "records.csv", BOM + text.getvalue().encode())

    # A line end within a cell of CSV is written as the file has it.
    assert read_records(table) == read_records(lines)


def test_a_cell_may_be_long_and_other_readers_of_csv_keep_their_limit(tmp_path: Path) -> None:
    rows = [{"query": "q", "response": "r", "chunks": "x" * 1_000_000}]
    path = write(tmp_path / "records.csv", as_csv(rows).encode())
    before = csv.field_size_limit()

    (record,) = read_records(path)

    assert len(record.chunks[0].text) == 1_000_000
    assert csv.field_size_limit() == before


def test_a_plain_text_in_the_column_of_chunks_is_one_chunk_and_an_empty_cell_none(
    tmp_path: Path,
) -> None:
    rows = [{"query": "q", "response": "r", "contexts": text} for text in ("One chunk.", "")]
    path = write(tmp_path / "records.csv", as_csv(rows).encode())

    found = [[chunk.text for chunk in record.chunks] for record in read_records(path)]

    assert found == [["One chunk."], []]


def test_a_mark_that_is_not_closed_costs_its_own_line_alone(tmp_path: Path) -> None:
    rows = [{"query": f"q{i}", "response": f"r{i}", "id": str(i)} for i in range(50)]
    lines = as_csv(rows, "\n").split("\n")
    lines[4] = 'q3,"r3,3'
    lines[20] = "q19,r19"
    lines[30] = 'q29,"r"29,29'
    path = write(tmp_path / "records.csv", "\n".join(lines).encode())

    found = {row.record.id for row in RecordFile(path).records()}

    assert found == {str(i) for i in range(50)} - {"3", "19", "29"}
    assert reasons(path) == {
        "a quotation mark that is not closed": [5],
        "not as many cells as the header has": [21],
        "not CSV": [31],
    }
    account = account_of(path)
    assert account.lines == account.records + account.skipped + account.header + account.blank


def test_a_mark_inside_of_a_cell_of_csv_is_a_mark(tmp_path: Path) -> None:
    text = 'query,response\nHow wide?,It is 5" wide.\n"How ""wide""?\nSay.",One inch\n'
    path = write(tmp_path / "records.csv", text.encode())

    found = [(record.query, record.response) for record in read_records(path)]

    assert found == [("How wide?", 'It is 5" wide.'), ('How "wide"?\nSay.', "One inch")]


def test_a_file_of_lines_is_a_stream_also_where_its_first_lines_are_broken(tmp_path: Path) -> None:
    line = json.dumps({**ROW, "response": "r" * 10_000})
    path = write(
        tmp_path / "records.jsonl", "\n".join(["broken", line[:50], *[line] * 800]).encode()
    )

    tracemalloc.start()
    try:
        account = account_of(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (account.records, account.skipped) == (800, 2)
    assert peak < path.stat().st_size / 4


def test_a_row_of_csv_over_several_lines_counts_all_of_them(tmp_path: Path) -> None:
    rows = [{"query": "q\nq\n\nq", "response": "r"}, {"query": "", "response": "r"}]
    path = write(tmp_path / "records.csv", as_csv(rows, "\n").encode())

    found = [(row.place, row.n_lines) for row in RecordFile(path).rows()]

    assert found == [(1, 1), (2, 4), (6, 1)]
    assert reasons(path) == {"query is missing": [6]}


@given(st.lists(st.sampled_from([*'ab",\n;{}[]:', "\r\n", "query", "\x00", "\ufeff", "é"])))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@pytest.mark.parametrize("name", ["records.jsonl", "records.csv"])
def test_whatever_a_file_holds_its_lines_add_up(
    tmp_path: Path, name: str, parts: list[str]
) -> None:
    content = "query,response\n" + "".join(parts)
    path = write(tmp_path / name, content.encode())

    rows = list(RecordFile(path).rows())
    places = [row.place + i for row in rows for i in range(row.n_lines)]
    indices = [row.index for row in rows if isinstance(row, InputRow)]

    n_lines = sum(1 for _ in io.BytesIO(content.encode()))
    assert places == list(range(1, n_lines + 1))
    assert indices == sorted(set(indices))


def test_the_format_of_2024_06_is_read_column_by_column(tmp_path: Path) -> None:
    row = {"query_id": "7", "query": "q", "response": "r", "gt_answer": "g"}
    row |= {"retrieved_context": [{"doc_id": "d", "text": "t"}]}  # type: ignore[dict-item]  # JSON
    path = write(
        tmp_path / "old.json", json.dumps({"input_data": [row], **LEGACY_COLUMNS}).encode()
    )

    (found,) = RecordFile(path).records()

    assert found.record.id == "7"
    assert found.recorded.response_claims == (("a", "is", "b"),)
    assert found.recorded.answer2response == ("entailed",)
    assert found.recorded.retrieved2response == (("neutral",),)


def test_columns_of_another_length_are_refused(tmp_path: Path) -> None:
    value: dict[str, object] = {"input_data": [ROW, ROW], **LEGACY_COLUMNS}
    path = write(tmp_path / "old.json", json.dumps(value).encode())

    with pytest.raises(FileError, match="response_claims has to be a list with one entry for each"):
        RecordFile(path)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"answer2response": ["Entailment"]}, "claims and labels do not fit together"),
        ({"retrieved2response": [["Neutral"] * 2] * 2}, "not as many labels as chunks"),
        ({"answer2response": ["Maybe", "Neutral"]}, "answer2response is not a list of labels"),
        ({"response_claims": [["", "", ""], "b"]}, "claims and labels do not fit together"),
    ],
)
def test_labels_that_cannot_be_are_a_reason_to_skip_a_record(
    tmp_path: Path, fields: dict[str, object], reason: str
) -> None:
    row = {**ROW, "response_claims": [["a", "is", "b"], "c"], **fields}
    path = write(tmp_path / "results.json", json.dumps({"results": [row, ROW]}).encode())

    assert reasons(path) == {reason: [1]}


def test_both_spellings_of_the_groups_of_means_are_read(tmp_path: Path) -> None:
    groups = {"overall": {"precision": 76.4}, "retriever_metrics": {"claim_recall": 61}}
    value = {"results": [ROW], "metrics": groups}
    path = write(tmp_path / "results.json", json.dumps(value).encode())

    assert RecordFile(path).recorded_means == {"precision": 76.4, "claim_recall": 61.0}


def test_a_file_of_lines_is_found_out_without_reading_all_of_it(tmp_path: Path) -> None:
    good = json.dumps(ROW).encode()
    for first in (good, b'{"query": "torn'):
        path = write(tmp_path / "records.json", first + b"\n" + good + b"\n" + b"\xff" * 100)

        assert RecordFile(path).unit == "line"
        assert not any(isinstance(row, NoRow) for row in RecordFile(path).rows())


@pytest.mark.parametrize("indent", [None, 0, 2])
@pytest.mark.parametrize("whole", [[ROW, ROW], {"results": [ROW, ROW]}])
def test_a_json_value_is_a_list_however_it_is_laid_out(
    tmp_path: Path, indent: int | None, whole: object
) -> None:
    path = write(tmp_path / "records.jsonl", json.dumps(whole, indent=indent).encode())

    assert RecordFile(path).unit == "record"
    assert account_of(path).records == 2
