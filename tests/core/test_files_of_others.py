"""A file that holds no records is told by what it is, with what to do about it."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import sys
from pathlib import Path

import pytest

from claimspan.cli.main import main
from claimspan.errors import ConfigError
from claimspan.files.record_files import read_records

from command_line import invoke
from result_files import result_row, write_results

RECORD = {"query": "Where is it?", "chunks": ["It is in Paris."], "response": "In Paris."}
LINE = f"{json.dumps(RECORD)}\n".encode()
SECRET = "only-in-the-file"  # noqa: S105 - content, which no message may have


def said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int | str | None, str]:
    """Exit code and last line on standard error of a command."""
    monkeypatch.setattr(sys, "argv", ["claimspan", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code, capsys.readouterr().err.rstrip().splitlines()[-1]


@pytest.mark.parametrize("command", ["evaluate", "estimate"])
@pytest.mark.parametrize(
    ("row", "told"),
    [
        (
            {"inputs": {"q": SECRET}, "outputs": {}},
            "inputs and outputs, as in exports of LangSmith",
        ),
        ({"attributes.input.value": SECRET}, "attributes.input.value, as in exports of Phoenix"),
        ({"attributes": {}, "span_kind": "CHAIN"}, "attributes and span_kind, as in exports of"),
        ({"input": {"q": SECRET}, "output": {}}, "input and output, as in exports of Langfuse and"),
    ],
)
def test_an_export_of_another_tool_is_named_with_the_page_that_tells_its_fields(
    tmp_path: Path, command: str, row: object, told: str
) -> None:
    path = tmp_path / "export.jsonl"
    path.write_text(f"{json.dumps(row)}\n")
    error = invoke(command, str(path)).exception

    assert isinstance(error, ConfigError)
    assert f"but rows with {told}" in str(error)
    assert "docs/migration.md says which field is which" in str(error)
    assert SECRET not in str(error)


def test_a_table_without_a_header_shows_none_of_its_cells(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"{SECRET},other\nmore,cells\n")

    assert SECRET not in str(invoke("evaluate", str(path)).exception)


@pytest.mark.parametrize(
    "table",
    [
        {"question": [SECRET], "answer": [SECRET], "contexts": [[SECRET]]},
        {"user_input": {"0": SECRET}, "response": {"0": SECRET}},
    ],
)
def test_a_table_by_columns_is_told_how_to_be_written_by_rows(
    tmp_path: Path, table: object
) -> None:
    path = tmp_path / "table.json"
    path.write_text(f"{json.dumps(table)}\n")
    error = str(invoke("evaluate", str(path)).exception)

    assert "is a table by columns: write it by rows, such as with to_json(path, orient=" in error
    assert "cut off" not in error
    assert SECRET not in error


def test_results_are_sent_to_the_commands_that_read_them(tmp_path: Path) -> None:
    path = write_results(tmp_path / "done.jsonl", [result_row(0, {"f1": 0.5})])

    assert "is a file of results, whose records are evaluated: see `claimspan report`" in str(
        invoke("evaluate", str(path)).exception
    )


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (gzip.compress(LINE), "compressed by gzip: unpack it first"),
        (bz2.compress(LINE), "compressed by bzip2: unpack it first"),
        (lzma.compress(LINE), "compressed by xz: unpack it first"),
        (LINE.decode().encode("utf-16"), "in UTF-16: save it in UTF-8"),
        (b"PK\x03\x04" + LINE, "a zip archive or a spreadsheet"),
    ],
    ids=["gzip", "bzip2", "xz", "UTF-16", "zip"],
)
@pytest.mark.parametrize(
    "command",
    [
        "evaluate FILE",
        "estimate FILE",
        "gate FILE --min f1=0.5",
        "compare FILE FILE",
        "report FILE -o page.html",
        "stats FILE",
        "curate FILE -o golden.jsonl",
        "label FILE -o label.html",
        "run pipeline.py:chain FILE",
    ],
)
def test_a_file_that_is_no_text_is_told_by_what_it_is(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    given: bytes,
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("given.jsonl", "other.jsonl"):
        (tmp_path / name).write_bytes(given)
    (tmp_path / "pipeline.py").write_text("def chain(query):\n    return query\n")
    words = command.replace("FILE FILE", "given.jsonl other.jsonl").replace("FILE", "given.jsonl")
    code, last = said(monkeypatch, capsys, *words.split())

    assert code in (1, 2)
    assert last.startswith("claimspan: ")
    assert f"'given.jsonl' is {told}" in last


@pytest.mark.parametrize(
    "command", ["evaluate -", "evaluate given.jsonl -o -", "report given.jsonl -o -", "stats -"]
)
def test_a_dash_is_refused_and_becomes_no_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "given.jsonl").write_text(f"{json.dumps(RECORD)}\n")

    assert said(monkeypatch, capsys, *command.split()) == (
        2,
        "claimspan: '-' does not stand for standard input or output here: give the path of a file",
    )
    assert not (tmp_path / "-").exists()


def test_the_fields_of_a_test_case_of_deepeval_are_read(tmp_path: Path) -> None:
    path = tmp_path / "cases.json"
    case = {
        "input": "Where is it?",
        "actual_output": "In Paris.",
        "expected_output": "In Paris, France.",
        "retrieval_context": ["It is in Paris."],
    }
    path.write_text(json.dumps([case]))
    (record,) = read_records(path)

    assert (record.query, record.response) == ("Where is it?", "In Paris.")
    assert record.ground_truth == "In Paris, France."
    assert [chunk.text for chunk in record.chunks] == ["It is in Paris."]


def test_a_dataset_of_ragas_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pipeline.py").write_text("def chain(query):\n    return 'It is in Paris.'\n")
    row = {"user_input": "Where is it?", "reference": "In Paris."}
    (tmp_path / "testset.jsonl").write_text(f"{json.dumps(row)}\n")
    monkeypatch.chdir(tmp_path)
    result = invoke("run", "pipeline.py:chain", "testset.jsonl", "--json")

    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout.splitlines()[-1])["questions"] == 1
