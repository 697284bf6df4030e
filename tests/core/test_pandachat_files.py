"""Files of PandaChat-RAG that cannot be used: each is named, and nothing is written beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from claimspan.errors import ConfigError, FileError
from claimspan_bench.pandachat import evaluate_submissions, read_dataset

from command_line import invoke
from panda_files import EXAMPLE, submit


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "is no list of questions"),
        ('{"query": "?"}', "is no list of questions"),
        ('[{"query": "?", "document": "d"}, {"query": "?"}]', "entry 2 is no question"),
        ("[7]", "entry 1 is no question"),
        ("[" * 200, "nested too deeply"),
        ("query,document", "is not JSON"),
    ],
)
def test_what_is_no_dataset_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "my-dataset.json"
    path.write_text(content, encoding="utf-8")

    with pytest.raises(FileError, match=message):
        read_dataset(path)


def test_a_folder_without_a_dataset_says_how_its_name_ends(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"holds no file \*-dataset\.json"):
        read_dataset(tmp_path)


def test_a_dataset_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "my-dataset.json"
    content = (EXAMPLE / "sample-dataset.json").read_text("utf-8")
    path.write_text(content, encoding="utf-8-sig")

    assert len(read_dataset(tmp_path).documents) == 10


def test_a_submission_without_questions_is_refused(tmp_path: Path) -> None:
    path = submit(tmp_path / "submission_a.json", "a", fields={"df": []})

    with pytest.raises(FileError, match="has no questions in 'df'"):
        evaluate_submissions(path)


def test_no_source_at_all_counts_is_refused(tmp_path: Path) -> None:
    path = submit(tmp_path / "submission_a.json", "a")

    with pytest.raises(ConfigError, match="top_k is 0"):
        evaluate_submissions(path, top_k=0)


def test_a_task_that_would_lead_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    path = submit(tmp_path / "submission_a.json", "a", fields={"eval_scenario": "x/../../out"})

    result = invoke("bench.pandachat", str(path), "-o", str(tmp_path / "in" / "folder"))

    assert isinstance(result.exception, ConfigError)
    assert "can be part of no file's name" in str(result.exception)
    assert list((tmp_path / "in" / "folder").iterdir()) == []


def test_a_results_file_of_something_else_is_neither_read_nor_replaced(tmp_path: Path) -> None:
    path = submit(tmp_path / "submission_a.json", "a")
    output = tmp_path / "out"
    output.mkdir()
    (output / "results.json").write_text('[{"faithfulness": 1.0}]', encoding="utf-8")

    result = invoke("bench.pandachat", str(path), "-o", str(output))

    assert isinstance(result.exception, FileError)
    assert "holds no rows" in str(result.exception)
    assert (output / "results.json").read_text("utf-8") == '[{"faithfulness": 1.0}]'


def test_a_submission_is_not_written_where_its_progress_cannot_be(tmp_path: Path) -> None:
    result = invoke(
        *("bench.pandachat-run", f"{EXAMPLE / 'bm25.py'}:build_plain", str(EXAMPLE), "--build"),
        *("--system", "a", "-o", str(tmp_path / "absent" / "submission_a.json")),
    )

    assert isinstance(result.exception, ConfigError)
    assert "does not exist; create it" in str(result.exception)


def test_a_name_that_the_evaluation_of_a_folder_would_not_find_is_noted(tmp_path: Path) -> None:
    result = invoke(
        *("bench.pandachat-run", f"{EXAMPLE / 'bm25.py'}:build_plain", str(EXAMPLE), "--build"),
        *("--system", "a", "-o", str(tmp_path / "mine.json")),
    )

    assert result.exit_code == 0
    assert "finds files named submission_NAME.json" in result.stderr
    assert evaluate_submissions(tmp_path / "mine.json").systems[0].n == 13
