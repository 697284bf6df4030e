"""`claimspan compare` prints tables that can be read in a terminal, in a pipe and on a page."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Final

import pytest

from claimspan.comparison.compare import Comparison
from claimspan.errors import ClaimspanError
from claimspan.metrics.catalogue import DEFAULT_METRICS, METRICS

from command_line import invoke, run
from result_files import result_row, write_results

SHARED: Final = Path(__file__).parents[3] / "shared" / "data"
PAIRS: Final = SHARED / "ragchecker" / "meta_evaluation" / "human_labeled_data.json"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths: list[str] = []
    for name, shift in (("bm25", 0.0), ("e5", 0.2), ("same", 0.0)):
        dice = Random(3)
        rows = [
            result_row(
                n,
                {metric: 0.5 * dice.random() + shift for metric in METRICS},
                metadata={"language": "de" if n % 2 else "en"},
            )
            for n in range(30)
        ]
        paths.append(str(write_results(tmp_path / f"{name}.jsonl", rows)))
    return paths


def test_the_first_table_has_a_row_a_system_and_a_column_a_metric(files: list[str]) -> None:
    lines = run("compare", *files).splitlines()

    assert lines[1].split() == ["system", "records", *DEFAULT_METRICS, "low"]
    assert [line.split()[0] for line in lines[2:5]] == ["bm25", "e5", "same"]


def test_the_second_table_has_interval_difference_p_and_a_word(files: list[str]) -> None:
    lines = run("compare", *files, "--metrics", "f1,hallucination").splitlines()
    start = lines.index("Differences to bm25")
    _, _, baseline, e5, same, hallucination, more = lines[start : start + 7]

    assert baseline.startswith("f1")
    assert "  30  +0.200 [+0.200, +0.200]     30  <0.001      <0.001  better" in e5
    assert same.endswith("1.000       1.000  no difference shown")
    assert hallucination.startswith("hallucination  bm25")
    assert more.endswith("worse")
    assert (
        "e5 against bm25: better in f1; worse in hallucination; no difference shown in 0 of 2"
        in ("\n".join(lines))
    )


def test_another_system_can_be_the_baseline(files: list[str]) -> None:
    printed = run("compare", *files, "--baseline", "e5", "--metrics", "f1")

    assert "bm25 against e5: worse in f1" in printed


def test_slices_have_tables_of_their_own(files: list[str]) -> None:
    printed = run("compare", *files, "--slice", "language", "--metrics", "f1")

    assert "language = de: Means" in printed
    assert "language = en: Differences to bm25" in printed
    assert "Holm's for 2 tests, those of slices for 4." in printed


def test_json_is_the_whole_comparison(files: list[str]) -> None:
    found = Comparison.model_validate_json(run("compare", *files, "--json"))

    assert found.baseline == "bm25"
    assert [system.name for system in found.systems] == ["bm25", "e5", "same"]


def test_markdown_is_written_to_the_file(files: list[str], tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    run("compare", *files, "--markdown", str(page))
    written = page.read_text(encoding="utf-8")

    assert "| system | records | faithfulness | groundedness |" in written
    assert written.count("| e5 |") == 10
    widths = {line.count(" | ") for line in written.splitlines() if line.startswith("| f1")}
    assert widths == {8}


def test_piped_tables_are_as_wide_as_they_need_to_be(files: list[str]) -> None:
    command = [sys.executable, "-m", "claimspan", "compare", *files, "--metrics", "all"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)

    lines = done.stdout.splitlines()
    assert all(metric in lines[1] for metric in ("contradicted_by_ground_truth", "alignment"))
    assert not any("…" in line for line in lines)
    assert done.stderr == ""


def test_a_bar_can_be_asked_for(files: list[str]) -> None:
    command = [sys.executable, "-m", "claimspan", "compare", *files, "--progress"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)

    assert "3/3" in done.stderr


def write_records(path: Path, response: str) -> str:
    rows = [
        {"id": f"r{n}", "query": "Where?", "chunks": ["It is in Paris."], "response": response}
        for n in range(8)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return str(path)


def test_evaluate_compares_its_results_with_the_last_ones(tmp_path: Path) -> None:
    last, now = str(tmp_path / "last.jsonl"), str(tmp_path / "now.jsonl")
    judged = ("--judge", "lexical", "-o")
    run("evaluate", write_records(tmp_path / "old", "It is in Paris."), *judged, last)
    new = write_records(tmp_path / "new", "The bridge crosses the Nile.")

    printed = run("evaluate", new, *judged, now, "--compare", last)
    found = json.loads(run("evaluate", new, *judged, now, "--compare", last, "--json"))

    assert "8 of 8 records evaluated" in printed
    assert "now against last: worse in faithfulness" in printed
    assert Comparison.model_validate(found["comparison"]).baseline == "last"


def test_evaluate_compares_nothing_without_both_files(tmp_path: Path) -> None:
    records, out = write_records(tmp_path / "r.jsonl", "It is in Paris."), tmp_path / "o.jsonl"
    absent = str(tmp_path / "absent.jsonl")
    for arguments, message in (
        (("--compare", absent), "give one with -o"),
        (("--compare", str(out), "-o", str(out)), "are one file"),
        (("--compare", absent, "-o", str(out)), "absent.jsonl"),
    ):
        error = invoke("evaluate", records, "--judge", "lexical", *arguments).exception
        assert isinstance(error, ClaimspanError)
        assert message in str(error)
        assert not out.exists()


@pytest.mark.skipif(not PAIRS.exists(), reason="the shared data is absent")
def test_two_answers_to_each_query_are_compared_with_the_lexical_judge(tmp_path: Path) -> None:
    pairs = json.loads(PAIRS.read_text(encoding="utf-8"))[194:274:2]
    paths: list[str] = []
    for name in ("model1", "model2"):
        records = [
            {
                "id": str(place),
                "query": pair["query"],
                "response": pair[name]["response"],
                "ground_truth": pair["gt_answer"],
                "metadata": {"dataset": pair["dataset"]},
            }
            for place, pair in enumerate(pairs)
        ]
        source = tmp_path / f"{name}.records.jsonl"
        source.write_text("".join(f"{json.dumps(each)}\n" for each in records), encoding="utf-8")
        paths.append(str(tmp_path / f"{name}.jsonl"))
        run("evaluate", str(source), "--judge", "lexical", "-o", paths[-1])
    found = Comparison.model_validate_json(run("compare", *paths, "--json"))

    assert found.metrics == ("precision", "recall", "f1", "low")
    assert found.tests == 4
    second = found.systems[1]
    assert second.common == 40
    for name, result in second.metrics.items():
        assert result.estimate is not None
        assert result.estimate.low < result.estimate.high, name
        assert result.estimate.low <= result.estimate.value <= result.estimate.high
        assert result.difference is not None
        assert result.difference.difference.n > 30
    assert not any("claim_recall" in note for note in found.notes)


def test_a_file_of_ragchecker_is_compared_with_one_of_ours(tmp_path: Path) -> None:
    records = write_records(tmp_path / "r.jsonl", "It is in Paris.")
    ours, theirs = str(tmp_path / "ours.jsonl"), str(tmp_path / "theirs.json")
    for path in (ours, theirs):
        run("evaluate", records, "--judge", "lexical", "-o", path)
    found = Comparison.model_validate_json(run("compare", ours, theirs, "--json"))

    for name in ("faithfulness", "claims_per_response"):
        difference = found.systems[1].metrics[name].difference
        assert difference is not None
        assert (difference.difference.value, difference.difference.n) == (0.0, 8)
    assert "theirs: in RAGChecker's results a metric without a value is 0" in found.notes[0]
