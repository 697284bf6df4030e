"""`claimspan bench pandachat`: the authors' rows to the last byte, and what is said beside them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

import pytest

from claimspan.errors import FileError
from claimspan_bench.pandachat import evaluate_submissions
from claimspan_bench.pandachat.submissions import FindingKind

from command_line import invoke, run
from panda_files import SAMPLE, Row, sample, shared_pandachat, submit

COMMAND: Final = "bench.pandachat"

TABLE: Final = """\
| eval_scenario   | system   |   evaluated-top-k |   time_per_question (s) |   correct_retrieval_count |   correct_retrieval_per |
|:----------------|:---------|------------------:|------------------------:|--------------------------:|------------------------:|
| aqa-sl          | good     |                 2 |                    0.25 |                        13 |                100      |
| aqa-sl          | fair     |                 2 |                    0.25 |                        12 |                 92.3077 |
| aqa-sl          | poor     |                 2 |                    0.5  |                        11 |                 84.6154 |"""  # noqa: E501 - the authors' own form
"""The form of the authors' script: column widths, alignment at the decimal point, six digits."""


def three_systems(folder: Path) -> Path:
    submit(folder / "submission_a.json", "poor", missed=[0, 5], fields={"time_per_question": 0.5})
    submit(folder / "submission_b.json", "good")
    submit(folder / "submission_c.json", "fair", missed=[5])
    return folder


# --- the authors' rows ---


def test_every_published_row_with_a_submission_here_is_reproduced(tmp_path: Path) -> None:
    folder = shared_pandachat()
    published = cast("list[Row]", json.loads((folder / "results.json").read_text("utf-8")))

    run(COMMAND, str(folder), "--top-k", "2", "-o", str(tmp_path))

    found = cast("list[Row]", json.loads((tmp_path / "results.json").read_text("utf-8")))
    assert len(found) == len(list(folder.glob("submission_*.json")))
    # Types, column order and the order of rows count as well.
    names = [row["system"] for row in found]
    expected = [row for row in published if row["system"] in names]
    assert json.dumps(found) == json.dumps(expected)


def test_the_published_files_come_out_byte_for_byte(tmp_path: Path) -> None:
    folder = shared_pandachat()

    run(COMMAND, str(folder), "--with-published", "-o", str(tmp_path))

    for name in ("results.json", "results-aqa-sl.md"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_published_rows_stay_as_they_are_when_new_ones_are_added(tmp_path: Path) -> None:
    folder = shared_pandachat()
    shutil.copy(folder / "results.json", tmp_path)
    published = (folder / "results.json").read_text("utf-8").removesuffix("\n]")
    submission = submit(tmp_path / "submission_new.json", "new")

    run(COMMAND, str(submission), "-o", str(tmp_path))

    assert (tmp_path / "results.json").read_text("utf-8").startswith(published)


def test_the_table_is_sorted_by_accuracy_and_aligned_as_the_authors(tmp_path: Path) -> None:
    folder = three_systems(tmp_path)

    assert run(COMMAND, str(folder), "--markdown") == TABLE + "\n"
    run(COMMAND, str(folder), "-o", str(tmp_path / "out"))
    assert (tmp_path / "out" / "results-aqa-sl.md").read_text("utf-8") == TABLE


def test_systems_that_are_equal_keep_their_order(tmp_path: Path) -> None:
    for name in ("b", "c", "a"):
        submit(tmp_path / f"submission_{name}.json", name, missed=[1])

    rows = run(COMMAND, str(tmp_path), "--markdown").splitlines()[2:]

    assert [row.split("|")[2].strip() for row in rows] == ["a", "b", "c"]


def test_a_second_run_lists_no_system_twice(tmp_path: Path) -> None:
    folder, output = three_systems(tmp_path), tmp_path / "out"
    run(COMMAND, str(folder), "-o", str(output))
    first = (output / "results.json").read_bytes()

    run(COMMAND, str(folder), "-o", str(output))
    assert (output / "results.json").read_bytes() == first

    run(COMMAND, str(folder), "-o", str(output), "--top-k", "1")
    rows = cast("list[Row]", json.loads((output / "results.json").read_text("utf-8")))
    assert [row["evaluated-top-k"] for row in rows] == [2, 2, 2, 1, 1, 1]


def test_the_percentage_is_computed_in_the_authors_order(tmp_path: Path) -> None:
    path = submit(tmp_path / "submission_a.json", "a", missed=[0, 3, 7, 9])

    (row,) = json.loads(run(COMMAND, str(path), "--json"))["rows"]

    assert row["correct_retrieval_per"] == 9 / 13 * 100


def test_a_row_that_differs_from_the_published_one_is_named(tmp_path: Path) -> None:
    folder = three_systems(tmp_path)
    run(COMMAND, str(folder), "-o", str(folder))
    submit(folder / "submission_c.json", "fair", missed=[5, 6])

    shown = run(COMMAND, str(folder))

    assert "2 of 3 rows equal those of results.json" in shown
    assert "fair: correct_retrieval_count, correct_retrieval_per differ" in shown


def test_what_the_authors_script_leaves_out_is_no_submission(tmp_path: Path) -> None:
    folder = three_systems(tmp_path)
    submit(folder / "submission_b.json_results.json", "again")
    submit(folder / "draft.json", "draft")

    systems = [each.system for each in evaluate_submissions(folder).systems]

    assert sorted(systems) == ["fair", "good", "poor"]


# --- what is said beside them ---


def test_hits_and_reciprocal_ranks_count_the_place_of_the_document(tmp_path: Path) -> None:
    path = submit(tmp_path / "submission_a.json", "second", lambda right: ["x", right, right])

    (figures,) = evaluate_submissions(path, top_k=3).systems

    assert [hit.value for hit in figures.hit_at] == [0.0, 1.0, 1.0]
    assert figures.mrr.value == 0.5
    assert evaluate_submissions(path, top_k=1).systems[0].mrr.value == 0.0


def test_the_accuracy_has_wilsons_interval(tmp_path: Path) -> None:
    path = submit(tmp_path / "submission_a.json", "a", missed=[0, 1, 2])

    (figures,) = evaluate_submissions(path).systems

    # Wilson 1927 for 10 of 13 and z = 1.959964, computed by hand.
    interval = figures.accuracy.low, figures.accuracy.high
    assert [round(end, 4) for end in interval] == [0.4974, 0.9182]


def test_systems_are_compared_on_the_same_questions(tmp_path: Path) -> None:
    submit(tmp_path / "submission_a.json", "bad", missed=range(1, 12))
    submit(tmp_path / "submission_b.json", "good", missed=[0])
    submit(tmp_path / "submission_c.json", "same", missed=[0])

    found = evaluate_submissions(tmp_path)

    pairs = {(pair.before, pair.after): pair for pair in found.comparisons}
    apart, alike = pairs["bad", "good"], pairs["good", "same"]
    assert (apart.only_before, apart.only_after) == (1, 11)
    assert apart.hits.difference.value == (12 - 2) / 13
    assert apart.p_adjusted < 0.05 <= alike.p_adjusted == 1.0
    assert apart.hits.p_value < apart.p_adjusted  # adjusted for three pairs


def test_the_questions_that_all_miss_are_listed(tmp_path: Path) -> None:
    submit(tmp_path / "submission_a.json", "a", missed=[2, 4])
    submit(tmp_path / "submission_b.json", "b", missed=[4, 6])

    found = evaluate_submissions(tmp_path)

    (question,) = found.missed_by_all
    assert question.query == sample().questions[4].query
    assert question.systems == ("a", "b")
    assert len(found.missed) == 3
    assert "all systems miss: 1; that at least one does: 3" in run(COMMAND, str(tmp_path))


# --- what is odd ---

ODD: Final[dict[str, tuple[Callable[[list[Row]], object], int]]] = {
    "fewer_sources": (lambda rows: rows[0].update(sources=["sl.1"]), 1),
    "no_sources": (lambda rows: rows[1].update(sources=[]), 1),
    "unreadable": (lambda rows: (rows[2].pop("sources"), rows[3].update(document=7)), 2),
    "repeated_sources": (lambda rows: rows[4].update(sources=["sl.3", "sl.3"]), 1),
    "unknown_documents": (lambda rows: rows[5].update(sources=["sl.5", "sl.99"]), 1),
    "missing_questions": (lambda rows: rows.pop(), 1),
    "doubled_questions": (lambda rows: rows.append(rows[-1]), 1),
    "unknown_questions": (lambda rows: rows.append({**rows[0], "query": "Kaj pa to?"}), 1),
    "other_documents": (lambda rows: rows[0].update(document="sl.2"), 1),
    "other_order": (lambda rows: rows.reverse(), 12),
}


@pytest.mark.parametrize("kind", ODD)
def test_what_is_odd_in_a_submission_is_reported_and_changes_nothing_else(
    tmp_path: Path, kind: str
) -> None:
    change, count = ODD[kind]
    path = submit(tmp_path / "submission_a.json", "odd", change=change)

    found = evaluate_submissions(path, dataset=SAMPLE)

    counts = {finding.kind: finding.count for finding in found.findings}
    assert counts[cast("FindingKind", kind)] == count
    assert all(finding.message.startswith(str(finding.count)) for finding in found.findings)


def test_a_submission_as_it_should_be_has_nothing_odd(tmp_path: Path) -> None:
    path = submit(tmp_path / "submission_a.json", "a")

    assert evaluate_submissions(path, dataset=SAMPLE).findings == ()


def test_a_missing_time_and_a_name_that_is_taken_are_reported(tmp_path: Path) -> None:
    submit(tmp_path / "submission_a.json", "a", fields={"time_per_question": None})
    submit(tmp_path / "submission_b.json", "a")

    found = evaluate_submissions(tmp_path)

    assert {finding.kind for finding in found.findings} == {"no_time", "same_system"}
    assert len({system.name for system in found.systems}) == 2


def test_a_list_of_sources_that_pandas_wrote_as_a_text_is_read(tmp_path: Path) -> None:
    path = submit(
        tmp_path / "submission_a.json",
        "a",
        change=lambda rows: [row.update(sources=str(row["sources"])) for row in rows],
    )

    assert evaluate_submissions(path).systems[0].correct == 13


def test_a_file_that_cannot_be_read_stops_no_other_and_fails_the_command(tmp_path: Path) -> None:
    folder = three_systems(tmp_path)
    (folder / "submission_torn.json").write_text('{"df": [', encoding="utf-8")
    (folder / "submission_list.json").write_text("[]", encoding="utf-8")

    result = invoke(COMMAND, str(folder), "--json")

    assert len(json.loads(result.stdout)["systems"]) == 3
    assert isinstance(result.exception, FileError)
    assert "submission_torn.json' is not JSON" in str(result.exception)
    assert "submission_list.json' is no submission" in str(result.exception)


def test_a_folder_without_submissions_says_what_their_names_are(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"submission_NAME\.json"):
        evaluate_submissions(tmp_path)


def test_the_dataset_is_found_beside_submissions_and_in_the_authors_layout(tmp_path: Path) -> None:
    systems = tmp_path / "systems" / "ours"
    systems.mkdir(parents=True)
    submit(systems / "submission_a.json", "a")
    assert evaluate_submissions(systems).dataset is None

    upstream = tmp_path / "data" / "eval_datasets" / "PandaChat"
    upstream.mkdir(parents=True)
    # pandas writes NaN where a field is empty, which is no JSON.
    (upstream / "sl-dataset.json").write_text(
        SAMPLE.read_text("utf-8").replace("null", "NaN"), encoding="utf-8"
    )
    assert str(evaluate_submissions(systems).dataset).endswith("sl-dataset.json")
    assert "give --dataset" not in run(COMMAND, str(systems))
