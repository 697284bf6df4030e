"""Public datasets, read from files that the user has, and made into ground-truth files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from claimspan import Chunk
from claimspan.errors import ConfigError, FileError
from claimspan.files import GroundTruth
from claimspan.files.datasets import FORMATS, BadLine, DatasetItem, read_dataset

from command_line import invoke, run

Row = Mapping[str, object]

DATA: Final = Path(__file__).parents[3] / "shared" / "data"

FINANCEBENCH: Final[Row] = {
    "financebench_id": "financebench_id_1",
    "company": "Acme",
    "question": "What was capex (in USD millions)?",
    "answer": 8.7,
    "evidence": [{"evidence_text": "Capex 8.7", "doc_name": "ACME_10K", "evidence_page_num": 5}],
}
LEGAL: Final[Row] = {
    "question": "Who decided?",
    "answer": "The High Court.",
    "text": "Question: Who decided? Answer: The High Court.",
    "prompt": "...",
    "source": {"version_id": "v1", "citation": "Mabo (No 2)", "text": "The High Court held ..."},
}
OPEN: Final[Row] = {
    "question": "who wrote hamlet",
    "answer": ["Shakespeare", "William Shakespeare"],
}
TOKENS: Final = "<P> Hamlet was written by <B> William Shakespeare </B> . </P>"
SIMPLIFIED: Final[Row] = {
    "example_id": 42,
    "question_text": "who wrote hamlet",
    "document_text": TOKENS,
    "annotations": [
        {
            "long_answer": {"start_token": 0, "end_token": 10},
            "short_answers": [{"start_token": 6, "end_token": 8}],
            "yes_no_answer": "NONE",
        }
    ],
}
CLAPNQ: Final[Row] = {
    "id": "7",
    "input": "who wrote hamlet",
    "passages": [
        {
            "title": "Hamlet",
            "text": "Hamlet is by Shakespeare.",
            "sentences": ["Hamlet is by Shakespeare."],
        }
    ],
    "output": [{"answer": "Shakespeare wrote it."}, {"answer": "William Shakespeare did."}],
}
ROWS: Final[Mapping[str, Row]] = {
    "financebench": FINANCEBENCH,
    "legal-qa": LEGAL,
    "nq-open": OPEN,
    "nq": SIMPLIFIED,
    "clapnq": CLAPNQ,
}


def written(folder: Path, *rows: Row | str) -> Path:
    path = folder / "dataset.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def one(folder: Path, row: Row, name: str | None = None) -> DatasetItem:
    (item,) = read_dataset(name, written(folder, row))
    return item


@pytest.mark.parametrize("name", ROWS)
def test_the_format_is_known_by_the_fields_of_the_first_line(tmp_path: Path, name: str) -> None:
    assert one(tmp_path, ROWS[name]) == one(tmp_path, ROWS[name], name)


def test_financebench_gives_its_evidence_as_chunks_and_a_number_as_text(tmp_path: Path) -> None:
    item = one(tmp_path, FINANCEBENCH)

    assert (item.id, item.ground_truth) == ("financebench_id_1", "8.7")
    assert [(each.id, each.text) for each in item.chunks] == [("ACME_10K:5", "Capex 8.7")]
    assert item.metadata["company"] == "Acme"


def test_a_legal_question_gives_its_source_as_a_chunk(tmp_path: Path) -> None:
    item = one(tmp_path, LEGAL)

    assert item.ground_truth == "The High Court."
    assert [(each.id, each.text) for each in item.chunks] == [("v1", "The High Court held ...")]
    assert item.metadata == {"version_id": "v1", "citation": "Mabo (No 2)"}


def test_of_several_answers_the_first_is_the_ground_truth_and_all_are_kept(tmp_path: Path) -> None:
    opened, clapnq = one(tmp_path, OPEN), one(tmp_path, CLAPNQ)

    assert opened.ground_truth == "Shakespeare"
    assert opened.metadata["answers"] == ["Shakespeare", "William Shakespeare"]
    assert clapnq.ground_truth == "Shakespeare wrote it."
    assert clapnq.metadata["answers"] == ["Shakespeare wrote it.", "William Shakespeare did."]
    assert [each.metadata for each in clapnq.chunks] == [{"title": "Hamlet"}]


def test_a_page_of_natural_questions_gives_its_spans_without_tags(tmp_path: Path) -> None:
    item = one(tmp_path, SIMPLIFIED)

    assert (item.id, item.ground_truth) == ("42", "William Shakespeare")
    assert [each.text for each in item.chunks] == ["Hamlet was written by William Shakespeare."]


def test_both_forms_of_a_page_give_the_same_item(tmp_path: Path) -> None:
    tokens = [{"token": each, "html_token": each.startswith("<")} for each in TOKENS.split(" ")]
    original = {key: value for key, value in SIMPLIFIED.items() if key != "document_text"}

    assert one(tmp_path, {**original, "document_tokens": tokens}) == one(tmp_path, SIMPLIFIED)


@pytest.mark.parametrize(
    ("yes_no", "expected"), [("YES", "Yes"), ("NO", "No"), ("NONE", "Hamlet was written")]
)
def test_without_a_short_answer_it_is_yes_or_no_or_the_long_one(
    tmp_path: Path, yes_no: str, expected: str
) -> None:
    long = {"start_token": 1, "end_token": 4}
    annotation: Row = {"long_answer": long, "yes_no_answer": yes_no}

    item = one(tmp_path, {**SIMPLIFIED, "annotations": [annotation]})

    assert item.ground_truth == expected


def test_a_question_that_has_no_answer_has_no_ground_truth(tmp_path: Path) -> None:
    nowhere: Row = {"long_answer": {"start_token": -1, "end_token": -1}}

    assert one(tmp_path, {**CLAPNQ, "output": [{"answer": ""}]}).ground_truth is None
    assert one(tmp_path, {**SIMPLIFIED, "annotations": [nowhere]}).ground_truth is None


def test_a_bad_line_is_refused_by_its_number_or_handed_over_and_left_out(tmp_path: Path) -> None:
    beyond: Row = {"long_answer": {"start_token": 0, "end_token": 99}}
    path = written(
        tmp_path, SIMPLIFIED, "{broken", {**SIMPLIFIED, "annotations": [beyond]}, SIMPLIFIED
    )
    bad: list[BadLine] = []

    with pytest.raises(FileError, match="line 2: not JSON"):
        list(read_dataset(None, path))
    assert len(list(read_dataset(None, path, on_bad=bad.append))) == 2
    assert [each.line for each in bad] == [2, 3]
    assert not any("hamlet" in each.reason.lower() for each in bad)


def test_a_packed_file_with_a_byte_order_mark_and_other_line_ends_reads_as_any(
    tmp_path: Path,
) -> None:
    path = tmp_path / "dataset.jsonl.gz"
    path.write_bytes(gzip.compress(f"\ufeff{json.dumps(OPEN)}\r\n\r\n".encode()))

    assert [each.query for each in read_dataset("auto", path)] == ["who wrote hamlet"]


def test_a_damaged_packed_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "dataset.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(OPEN).encode() * 100)[:-20])

    with pytest.raises(FileError, match=r"dataset\.jsonl\.gz"):
        list(read_dataset("nq-open", path))


def test_a_table_may_have_line_ends_inside_of_its_cells(tmp_path: Path) -> None:
    path = tmp_path / "questions.tsv"
    rows = 'id\tquestion\tdoc-id-list\tanswers\n1\twho?\ta_1,b_2\t"One\nline::Another"\n2\tbroken\n'
    path.write_text(rows, encoding="utf-8")
    bad: list[BadLine] = []

    (item,) = read_dataset(None, path, on_bad=bad.append)

    assert item.ground_truth == "One\nline"
    assert item.metadata == {"documents": ["a_1", "b_2"], "answers": ["One\nline", "Another"]}
    assert [each.line for each in bad] == [4]


def test_an_unknown_format_says_which_there_are(tmp_path: Path) -> None:
    path = written(tmp_path, {"text": "no dataset"})

    with pytest.raises(ConfigError, match="nq-open"):
        list(read_dataset("squad", path))
    with pytest.raises(ConfigError, match="is not known by the fields"):
        list(read_dataset(None, path))


def test_the_command_writes_a_file_that_finds_the_ground_truth_of_a_query(tmp_path: Path) -> None:
    unanswered = {**CLAPNQ, "id": "8", "input": "nobody knows", "output": [{"answer": " "}]}
    path = written(tmp_path, CLAPNQ, unanswered, CLAPNQ, "{broken")
    output = tmp_path / "ground_truth.jsonl"

    result = invoke("dataset", "clapnq", str(path), "-o", str(output), "--json")

    account = json.loads(result.output)
    assert result.exit_code == 1  # a line could not be read
    assert account["written"] == account["without_answer"] == account["repeated"] == 1
    assert [each["line"] for each in account["lines"]] == [4]
    found = GroundTruth(output).find_known("Who wrote Hamlet?")
    assert found is not None
    assert found.text == "Shakespeare wrote it."
    assert output.stat().st_mode & 0o077 == 0


def test_the_command_writes_chunks_where_they_are_asked_for(tmp_path: Path) -> None:
    path, output = written(tmp_path, CLAPNQ), tmp_path / "ground_truth.jsonl"

    run("dataset", "auto", str(path), "-o", str(output))
    without = json.loads(output.read_text(encoding="utf-8"))
    run("dataset", "auto", str(path), "-o", str(output), "--chunks")
    with_chunks = json.loads(output.read_text(encoding="utf-8"))

    assert "chunks" not in without
    assert with_chunks["chunks"][0]["text"] == "Hamlet is by Shakespeare."


def test_a_dataset_that_breaks_off_leaves_the_ground_truths_of_before(tmp_path: Path) -> None:
    path, output = tmp_path / "dataset.jsonl.gz", tmp_path / "truths.jsonl"
    # Not one block of the packer: the rows before the damage can be read.
    rows = [{**OPEN, "question": f"{number} {number**40}?"} for number in range(5_000)]
    packed = gzip.compress("".join(f"{json.dumps(row)}\n" for row in rows).encode())
    path.write_bytes(packed[: len(packed) // 2])
    output.write_text("of before", encoding="utf-8")

    result = invoke("dataset", "nq-open", str(path), "-o", str(output))

    assert isinstance(result.exception, FileError)
    assert output.read_text(encoding="utf-8") == "of before"


def test_a_quotation_mark_that_is_not_closed_costs_one_line_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "questions.tsv"
    rows = ['1\t"who?\ta_1\tOne', *(f"{number}\twho {number}?\ta_1\tTwo" for number in range(2, 9))]
    path.write_text("\n".join(["id\tquestion\tdoc-id-list\tanswers", *rows]), encoding="utf-8")
    bad: list[BadLine] = []

    items = list(read_dataset(None, path, on_bad=bad.append))

    assert [each.id for each in items] == [*"2345678"]
    assert bad == [BadLine(2, "a quotation mark that is not closed")]


def test_a_file_without_any_question_replaces_no_ground_truths(tmp_path: Path) -> None:
    path, output = tmp_path / "dataset.jsonl", tmp_path / "truths.jsonl"
    path.write_text("no json\n" * 3, encoding="utf-8")
    output.write_text("of before", encoding="utf-8")

    result = invoke("dataset", "auto", str(path), "-o", str(output))

    assert isinstance(result.exception, ConfigError)
    assert output.read_text(encoding="utf-8") == "of before"


def test_passages_of_one_page_have_ids_of_their_own(tmp_path: Path) -> None:
    pages: list[tuple[str, int | None]] = [("a", 7), ("b", 7), ("c", 8), ("d", None)]
    evidence = [
        {"evidence_text": text, "doc_name": "D", "evidence_page_num": page} for text, page in pages
    ]

    (item,) = read_dataset(None, written(tmp_path, {**FINANCEBENCH, "evidence": evidence}))

    assert [each.id for each in item.chunks] == ["D:7", "D:7#2", "D:8", Chunk.content_id("d")]


def test_the_command_does_not_write_over_the_dataset(tmp_path: Path) -> None:
    path = written(tmp_path, CLAPNQ)

    result = invoke("dataset", "clapnq", str(path), "-o", str(path))

    assert isinstance(result.exception, ConfigError)
    assert list(read_dataset("clapnq", path))


@pytest.mark.parametrize(
    ("name", "path", "answered", "total"),
    [
        ("financebench", "financebench/financebench_open_source.jsonl", 65, 65),
        ("clapnq", "passages/clapnq/annotated_data/dev/clapnq_dev_answerable.jsonl", 300, 300),
        ("clapnq", "passages/clapnq/annotated_data/dev/clapnq_dev_unanswerable.jsonl", 0, 300),
        ("clapnq-questions", "passages/clapnq/retrieval/dev/question_dev_answerable.tsv", 300, 300),
    ],
)
def test_the_datasets_themselves_are_read_to_their_last_line(
    name: str, path: str, answered: int, total: int
) -> None:
    if not (DATA / path).exists():
        pytest.skip(f"{path} stands in the shared data, which is absent here")

    items = list(read_dataset(None, DATA / path))

    assert items == list(read_dataset(name, DATA / path))
    assert len(items) == total
    assert sum(each.ground_truth is not None for each in items) == answered


def test_every_format_is_described_by_the_fields_that_it_is_known_by() -> None:
    assert set(ROWS) | {"clapnq-questions"} == set(FORMATS)
