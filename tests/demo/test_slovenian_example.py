"""The worked example with BM25: it runs as its page says, and its figures are those of the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from claimspan_bench.pandachat import evaluate_submissions

from command_line import run
from panda_files import EXAMPLE, Row, shared_pandachat

SYSTEMS = ("plain", "slovenian")


def submissions(dataset: Path, folder: Path) -> Path:
    """Run the example's two retrievers."""
    for words in SYSTEMS:
        run(
            *("bench.pandachat-run", f"{EXAMPLE / 'bm25.py'}:build_{words}", str(dataset)),
            *("--build", "--system", f"bm25-{words}"),
            *("-o", str(folder / f"submission_bm25-{words}.json")),
        )
    return folder


def test_the_example_runs_on_its_own_sample_and_stems_help(tmp_path: Path) -> None:
    found = evaluate_submissions(submissions(EXAMPLE, tmp_path), dataset=EXAMPLE)

    correct = {system.system: system.correct for system in found.systems}
    assert correct["bm25-slovenian"] == 13 > correct["bm25-plain"]


@pytest.fixture(scope="module")
def submitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the two retrievers find in the benchmark itself."""
    return submissions(shared_pandachat(), tmp_path_factory.mktemp("submissions"))


def test_the_figures_of_the_page_are_those_of_the_benchmark(submitted: Path) -> None:
    page = (EXAMPLE / "README.md").read_text("utf-8")

    found = evaluate_submissions(submitted, dataset=shared_pandachat())

    for system in found.systems:
        for hit in system.hit_at:
            low, high = 100 * hit.low, 100 * hit.high
            assert f"{100 * hit.value:.2f} [{low:.2f}, {high:.2f}]" in page


def test_the_examples_row_stands_among_the_published_ones(submitted: Path) -> None:
    folder = shared_pandachat()
    published = cast("list[Row]", json.loads((folder / "results.json").read_text("utf-8")))

    table = run(
        *("bench.pandachat", str(submitted), "--dataset", str(folder)),
        *("--published", str(folder / "results.json"), "--with-published", "--markdown"),
    )

    systems = [line.split("|")[2].strip() for line in table.splitlines()[2:]]
    assert sorted(systems) == sorted(
        [*(str(row["system"]) for row in published), *(f"bm25-{words}" for words in SYSTEMS)]
    )
    assert systems.index("bm25-slovenian") < systems.index("bm25-plain")
