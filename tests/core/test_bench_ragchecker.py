"""`claimspan bench ragchecker` recomputes RAGChecker's figures from the labels in its files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from claimspan.errors import ConfigError
from claimspan.metrics import compute_metrics
from claimspan.results.rag_results import RAGCHECKER_METRICS

from command_line import invoke, run

DATA = Path(__file__).parents[3] / "shared" / "data" / "ragchecker"
BENCH = "bench.ragchecker"

README = [73.3, 62.5, 67.3, 61.4, 87.5, 87.5, 22.5, 0.0, 4.2, 25.0, 70.8]
"""What RAGChecker's README shows for its command line, in the order of the paper's columns. It
comes from the labels of the file of 2024-06, which itself holds no figures."""

E, N = "Entailment", "Neutral"


def shared(name: str) -> Path:
    if not (DATA / name).exists():
        pytest.skip(f"{name} stands in the shared data, which is absent here")
    return DATA / name


def result(claims: Sequence[str], faithful: Sequence[str], **metrics: float) -> dict[str, object]:
    """A checked record with one chunk and one claim of the ground truth."""
    return {
        "query": "q",
        "response": "r",
        "gt_answer": "g",
        "retrieved_context": [{"doc_id": "d", "text": "t"}],
        "answer2response": list(claims),
        "response2answer": [E],
        "retrieved2response": [[label] for label in faithful],
        "retrieved2answer": [[E]],
        "metrics": metrics,
    }


def write(path: Path, *results: dict[str, object], **means: float) -> Path:
    value = {"results": results, "metrics": {"overall_metrics": means} if means else {}}
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def test_the_published_file_comes_out_equal_to_the_last_bit() -> None:
    found = json.loads(run(BENCH, str(shared("checking_outputs.json")), "--json"))

    (system,) = found["systems"]
    ours = {name: system["metrics"][name]["per_cent"] for name in RAGCHECKER_METRICS}
    assert ours == system["recorded_per_cent"]
    assert (system["values_compared"], system["largest_difference"]) == (22, 0.0)
    assert (system["equal"], system["claims_per_response"]) == (True, 8.0)


def test_the_file_of_2024_06_gives_the_figures_of_the_readme() -> None:
    path = str(shared("checking_outputs_legacy_2024-06.json"))

    (system,) = json.loads(run(BENCH, path, "--json"))["systems"]

    assert [system["metrics"][name]["per_cent"] for name in RAGCHECKER_METRICS] == README
    assert system["recorded_per_cent"] == {}


def test_every_conformance_case_comes_out_equal_in_a_file_of_results(tmp_path: Path) -> None:
    cases = json.loads(shared("conformance_ragchecker_0.1.9.json").read_bytes())["cases"]
    rows: list[dict[str, object]] = []
    for case in cases:
        tables: list[list[str]] = case["retrieved2response"] or case["retrieved2answer"] or [[]]
        chunks = [{"doc_id": None, "text": "t"} for _ in tables[0]]
        rows.append({**case, "query": "q", "response": "r", "retrieved_context": chunks})
    path = write(tmp_path / "cases.json", *rows)

    (system,) = json.loads(run(BENCH, str(path), "--json"))["systems"]

    assert (system["labelled"], system["values_compared"]) == (165, 165 * 11)
    assert system["equal"]


def test_systems_stand_below_each_other_in_the_columns_of_the_paper(tmp_path: Path) -> None:
    first = write(tmp_path / "first.json", result([E, N], [E, E], precision=0.5), precision=50.0)
    second = write(tmp_path / "second.json", result([E], [N]))

    lines = run(BENCH, str(first), str(second)).splitlines()

    assert lines[0].replace("|", " ").split() == [
        *("P", "R", "F1", "CR", "CP", "CU", "NS(I)", "NS(II)", "Hallu", "SK", "Faith", "#claims")
    ]
    assert [line.split()[0] for line in lines[1:4]] == ["first", "as", "second"]
    assert lines[1].split()[1:3] == ["50.0", "100.0"]
    assert lines[3].split()[-1] == "1.0"
    assert lines[5].startswith("first: 1 record with labels; 1 recorded values, equal to 1e-12")
    assert lines[6].endswith("no values of single records in the file; no means in the file")


def test_markdown_has_one_cell_a_column(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", result([E], [E]), precision=100.0)

    table = [line for line in run(BENCH, str(path), "--markdown").splitlines() if "|" in line]

    assert len(table) == 4
    assert {line.count("|") for line in table} == {14}


@pytest.mark.parametrize(
    ("metrics", "means", "told"),
    [
        ({"precision": 0.5 + 1e-9}, {}, "NOT equal to 1e-12"),
        ({}, {"precision": 50.1}, "recorded means NOT equal to one decimal: precision"),
    ],
)
def test_a_figure_that_its_labels_do_not_give_is_said_and_is_the_exit_code(
    tmp_path: Path, metrics: dict[str, float], means: dict[str, float], told: str
) -> None:
    path = write(tmp_path / "a.json", result([E, N], [E, E], **metrics), **means)

    found = invoke(BENCH, str(path))

    assert found.exit_code == 1
    assert told in found.stdout


def test_records_without_claims_count_as_zero_or_not_at_all(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", result([E], [E]), result([], []))

    zero, omitted = (
        json.loads(run(BENCH, str(path), "--json", "--undefined", rule))["systems"][0]["metrics"]
        for rule in ("zero", "omit")
    )

    assert zero["precision"] == {"mean": 0.5, "per_cent": 50.0, "n": 2}
    assert omitted["precision"] == {"mean": 1.0, "per_cent": 100.0, "n": 1}


def test_records_without_labels_are_left_out_and_said(tmp_path: Path) -> None:
    raw: dict[str, object] = {"query": "q", "response": "r"}
    path = write(tmp_path / "a.json", result([E], [E]), raw, {"query": "q"})
    empty = write(tmp_path / "raw.json", raw)

    found = invoke(BENCH, str(path))
    assert found.exit_code == 1
    assert "1 record with labels (left out: 1 without, 1 that cannot be read)" in found.stdout
    refused = invoke(BENCH, str(empty)).exception
    assert isinstance(refused, ConfigError)
    assert "check its claims first, with claimspan evaluate" in str(refused)


def test_means_are_rounded_as_numpy_rounds_them(tmp_path: Path) -> None:
    # 2.675 of 10 per cent steps: Python's own round() would look at the decimals of the float.
    labels = [E] * 107 + [N] * 293  # 26.75 per cent
    path = write(tmp_path / "a.json", result(labels, labels))

    (system,) = json.loads(run(BENCH, str(path), "--json"))["systems"]

    exact = compute_metrics(response_vs_ground_truth=labels)["precision"]
    assert system["metrics"]["precision"]["per_cent"] == round(exact * 100 * 10) / 10 == 26.8
