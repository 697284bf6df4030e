"""`claimspan bench meta-eval`: RAGChecker's table 5 from its files, and rows of other judges."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from claimspan import Claim, evaluate
from claimspan.errors import ConfigError, FileError, JudgeError
from claimspan.judges import Judge, LexicalJudge
from claimspan.testing import ScriptedJudge
from claimspan_bench.meta_eval import (
    FIGURES,
    METRIC_OF_ASPECT,
    PUBLISHED,
    MetaEvaluation,
    differences_of,
    figures_of,
    meta_evaluate,
    read_pairs,
    records_of,
    resampled,
    stretched,
)

from command_line import invoke, run

SHARED = Path(__file__).parents[3] / "shared" / "data" / "ragchecker"
LABELS: Mapping[str, str] = {aspect: f"{aspect}_label" for aspect in METRIC_OF_ASPECT}

TRUTH = "Paris is in France. Rome is in Italy."
GOOD = "Paris is in France. Rome is in Italy."
HALF = "Paris is in France. Rome is in Spain."
BAD = "Madrid is in Peru."


def human_rows(
    place: int, answers: Sequence[str], labels: Sequence[int]
) -> list[dict[str, object]]:
    return [
        {
            "instance_id": place,
            "query": f"Where is city {place}?",
            "gt_answer": TRUTH,
            "model1": {"model_name": "a", "response": answers[0], "critiques": "none"},
            "model2": {"model_name": "b", "response": answers[1], "critiques": "none"},
            **dict.fromkeys(LABELS.values(), label),
        }
        for label in labels
    ]


def recorded_row(
    place: int, answers: Sequence[str], scores: Sequence[float | None]
) -> dict[str, object]:
    models = {
        f"model{number}": {
            "model_name": "ab"[number - 1],
            "response": answer,
            "ragchecker": dict.fromkeys(LABELS.values(), score),
        }
        for number, (answer, score) in enumerate(zip(answers, scores, strict=True), start=1)
    }
    return {"instance_id": place, **models}


def write(folder: Path, human: object, recorded: object) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "human_labeled_data.json").write_text(json.dumps(human), encoding="utf-8")
    (folder / "baseline_ragchecker.json").write_text(json.dumps(recorded), encoding="utf-8")
    return folder


CASES: Sequence[tuple[Sequence[str], Sequence[int], Sequence[float | None]]] = [
    ((GOOD, BAD), (-2, -2), (1.0, 0.0)),
    ((BAD, GOOD), (2, 1), (0.0, 1.0)),
    ((HALF, GOOD), (1, 1), (0.5, 1.0)),
    ((GOOD, GOOD), (0, 0), (1.0, 1.0)),
    ((GOOD, HALF), (-1, 0), (1.0, 0.5)),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    human = [row for i, (a, labels, _) in enumerate(CASES) for row in human_rows(i, a, labels)]
    recorded = [recorded_row(i, a, scores) for i, (a, _, scores) in enumerate(CASES)]
    return write(tmp_path / "data", human, recorded)


def values(found: MetaEvaluation, name: str) -> dict[str, dict[str, float]]:
    (row,) = (each for each in found.rows if each.name == name)
    return {
        aspect: {figure: estimate.value for figure, estimate in figures.items()}
        for aspect, figures in row.figures.items()
    }


# --- what it computes ---


def test_differences_are_stretched_to_the_range_of_the_labels() -> None:
    assert stretched([-0.5, 0.0, 0.5]) == [-2.0, 0.0, 2.0]
    assert stretched([0.0, 0.25, 1.0]) == [-2.0, -1.0, 2.0]
    assert stretched([0.3, 0.3]) == [0.3, 0.3]


def test_a_missing_difference_becomes_the_median_of_the_others() -> None:
    assert stretched([-1.0, None, 0.5, 1.0]) == [-2.0, 1.0, 1.0, 2.0]
    assert stretched([None, None]) == [0.0, 0.0]


def test_the_rows_of_the_script_of_the_authors_come_out(folder: Path) -> None:
    people = [label for _, labels, _ in CASES for label in labels]
    scores = [second - first for _, _, (first, second) in CASES if first is not None and second]
    scores.insert(0, -1.0)  # whose second score is 0
    twice = [2.0 * each for each in scores for _ in (0, 1)]  # from -1..1 to -2..2

    found = meta_evaluate(folder)

    row = values(found, "RAGChecker")["overall"]
    assert row["pearson"] == pytest.approx(stats.pearsonr(twice, people)[0])
    assert row["spearman"] == pytest.approx(stats.spearmanr(twice, people)[0])
    near = [abs(a - b) <= 1 for a, b in zip(twice, people, strict=True)]
    assert row["within_one"] == sum(near) / len(near)
    human = values(found, "Human")["overall"]
    assert human["pearson"] == pytest.approx(stats.pearsonr(people[::2], people[1::2])[0])
    assert human["spearman"] == pytest.approx(stats.spearmanr(people[::2], people[1::2])[0])
    assert human["within_one"] == 1.0


def test_a_recorded_score_that_is_not_a_number_counts_as_the_median(tmp_path: Path) -> None:
    cases = [*CASES, ((GOOD, BAD), (0, 0), (math.nan, 0.5)), ((GOOD, BAD), (0, 0), (None, 0.5))]
    human = [row for i, (a, labels, _) in enumerate(cases) for row in human_rows(i, a, labels)]
    recorded = [recorded_row(i, a, scores) for i, (a, _, scores) in enumerate(cases)]

    found = meta_evaluate(write(tmp_path, human, recorded))

    assert found.rows[0].missing == 2


def test_published_rows_from_the_files_of_the_authors() -> None:
    if not (SHARED / "meta_evaluation").exists():
        pytest.skip("shared data is absent")
    tables = json.loads((SHARED / "paper_tables.json").read_text("utf-8"))
    columns = tables["table5_columns"]
    for name, row in PUBLISHED.items():
        published = dict(zip(columns, tables["table5"][name], strict=True))
        flat = {f"{a}_{f}": round(100 * v, 2) for a, fs in row.items() for f, v in fs.items()}
        assert flat == published

    found = meta_evaluate(SHARED / "meta_evaluation")

    # The authors' script on the same rows, in its own order and by scipy alone.
    human = json.loads((SHARED / "meta_evaluation/human_labeled_data.json").read_text("utf-8"))
    recorded = json.loads((SHARED / "meta_evaluation/baseline_ragchecker.json").read_text("utf-8"))
    for aspect, label in LABELS.items():
        people = [row[label] for row in human]
        delta = np.array(
            [
                row["model2"]["ragchecker"][label] - row["model1"]["ragchecker"][label]
                for row in recorded
            ]
        )
        # Stretched as there, since rounding makes and breaks ties.
        norm = ((delta - delta.min()) / (delta.max() - delta.min()) - 0.5) * 4
        twice = np.repeat(norm, 2)
        rows = values(found, "RAGChecker")[aspect], values(found, "Human")[aspect]
        for figure, call in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr)):
            assert rows[0][figure] == pytest.approx(call(twice, people)[0])
            assert rows[1][figure] == pytest.approx(call(people[::2], people[1::2])[0])


@pytest.mark.parametrize("seed", range(5))
def test_a_resample_by_weights_is_the_correlation_of_what_was_drawn(seed: int) -> None:
    generator = np.random.default_rng(seed)
    left, right = generator.integers(-2, 3, (2, 30)).astype(float).tolist()
    counts = generator.multinomial(30, np.full(30, 1 / 30))
    rows = np.repeat(np.arange(30), counts)
    # Groups that cannot be drawn apart: the whole is one resample of itself.
    whole = resampled(np.array(left)[rows].tolist(), np.array(right)[rows].tolist(), [0] * 30)

    drawn = figures_of(np.array(left), np.array(right), counts[None, :].astype(float))

    for name in FIGURES:
        assert drawn[name][0] == pytest.approx(whole[name].value)
        estimate = whole[name].estimate()
        assert (estimate.low, estimate.high) == pytest.approx((estimate.value, estimate.value))
    assert whole["spearman"].value == pytest.approx(
        stats.spearmanr(np.array(left)[rows], np.array(right)[rows])[0]
    )


def test_a_constant_series_goes_along_with_nothing() -> None:
    found = resampled([0.1] * 6, [1, 2, 3, 1, 2, 3], list("abcdef"))

    assert (found["pearson"].value, found["spearman"].value) == (0.0, 0.0)


# --- judges ---


def test_a_judge_that_ranks_as_people_do_agrees_with_them(folder: Path) -> None:
    found = meta_evaluate(folder, {"scripted": ScriptedJudge()})

    assert values(found, "scripted")["overall"]["pearson"] > 0.9
    (row,) = (each for each in found.rows if each.name == "scripted")
    for figures in row.minus_ragchecker.values():
        for name, difference in figures.items():
            assert difference.low <= difference.value <= difference.high, name


def test_the_difference_to_ragchecker_is_0_for_a_judge_that_says_the_same(folder: Path) -> None:
    # The script finds one claim of two in HALF, as the recorded scores do.
    found = meta_evaluate(folder, {"scripted": ScriptedJudge()})

    difference = found.rows[2].minus_ragchecker["completeness"]["pearson"]
    assert (difference.value, difference.low, difference.high) == pytest.approx((0, 0, 0))


def test_an_answer_without_claims_counts_as_0_and_is_counted(folder: Path) -> None:
    pairs, _ = read_pairs(folder)
    records = records_of(pairs[:1])
    silent = records[0].model_copy(update={"response": ""})
    evaluations = [evaluate(each, judge=ScriptedJudge()) for each in (silent, records[0])]

    assert differences_of(evaluations) == {each: [1.0] for each in METRIC_OF_ASPECT}


def test_answers_without_a_value_are_counted(tmp_path: Path) -> None:
    cases = [*CASES, (("", GOOD), (2, 2), (0.0, 1.0))]
    human = [row for i, (a, labels, _) in enumerate(cases) for row in human_rows(i, a, labels)]
    recorded = [recorded_row(i, a, scores) for i, (a, _, scores) in enumerate(cases)]

    found = meta_evaluate(write(tmp_path, human, recorded), {"scripted": ScriptedJudge()})

    assert found.rows[2].undefined == {"correctness": 1, "completeness": 0, "overall": 1}


class Counting(ScriptedJudge):
    """Counts how often each text is read, and fails on some."""

    def __init__(self, failing: str = "\0") -> None:
        super().__init__()
        self.read = Counter[str]()
        self.failing = failing

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        self.read[f"{question}{text}"] += 1
        if self.failing in text:
            raise JudgeError("the judge cannot read this")
        return await super().extract_claims(text, question=question)


def test_the_claims_of_a_ground_truth_are_extracted_once(tmp_path: Path) -> None:
    answers = ("Paris is in France.", "Rome is in Italy.")
    folder = write(
        tmp_path,
        [row for i in range(3) for row in human_rows(i, answers, (i - 1, i - 1))],
        [recorded_row(i, answers, (0.5, 0.1 * i)) for i in range(3)],
    )
    judge = Counting()

    meta_evaluate(folder, {"counting": judge}, concurrency=6)

    assert max(judge.read.values()) == 1
    assert len(judge.read) == 3 * 3  # two answers and one ground truth a pair


@pytest.mark.parametrize("judge", [LexicalJudge(), ScriptedJudge()])
def test_a_run_goes_on_with_what_its_folder_holds(
    folder: Path, tmp_path: Path, judge: Judge
) -> None:
    first = meta_evaluate(folder, {"a/b": judge}, results=tmp_path / "kept")
    (kept,) = (tmp_path / "kept").iterdir()
    lines = kept.read_text("utf-8").splitlines(keepends=True)
    kept.write_text("".join(lines[:7]), encoding="utf-8")
    again = meta_evaluate(folder, {"a/b": judge}, results=tmp_path / "kept")

    assert kept.name == "a-b.jsonl"
    assert again == first
    assert len(kept.read_text("utf-8").splitlines()) == len(lines) == 10


def test_results_of_another_judge_are_refused(folder: Path, tmp_path: Path) -> None:
    meta_evaluate(folder, {"it": ScriptedJudge()}, results=tmp_path / "kept")

    with pytest.raises(ConfigError, match="of the judge 'scripted'"):
        meta_evaluate(folder, {"it": LexicalJudge()}, results=tmp_path / "kept")


def test_a_judge_that_fails_on_some_answers_is_told_and_the_others_count(folder: Path) -> None:
    found = meta_evaluate(folder, {"counting": Counting(failing="Peru")})

    assert found.rows[2].failed == {"the judge cannot read this": 2}
    assert found.rows[2].missing == 2


def test_a_judge_that_fails_on_every_answer_is_an_error(folder: Path) -> None:
    with pytest.raises(JudgeError, match="failed on every answer"):
        meta_evaluate(folder, {"counting": Counting(failing="")})


# --- files ---


def test_pairs_of_one_file_alone_are_left_out_and_counted(folder: Path) -> None:
    human = json.loads((folder / "human_labeled_data.json").read_text("utf-8"))
    write(
        folder,
        [*human, *human_rows(9, (GOOD, BAD), (1, 1))],
        [
            *json.loads((folder / "baseline_ragchecker.json").read_text("utf-8")),
            recorded_row(8, (GOOD, BAD), (0.0, 1.0)),
        ],
    )

    found = meta_evaluate(folder)

    assert (found.pairs, found.only_in_one) == (len(CASES), 2)


@pytest.mark.parametrize(
    ("human", "recorded", "message"),
    [
        (human_rows(1, (GOOD, BAD), (1,)), [recorded_row(1, (GOOD, BAD), (0, 1))], "1 annotators"),
        (
            human_rows(1, (GOOD, BAD), (1, 1)),
            [recorded_row(1, (BAD, GOOD), (0, 1))],
            "another order",
        ),
        (human_rows(1, (GOOD, BAD), (1, 1)), [], "no pair in common"),
        (human_rows(1, (GOOD, BAD), (1, 5)), [recorded_row(1, (GOOD, BAD), (0, 1))], r"1\.corr"),
        ({"a": 1}, [], "at its top"),
    ],
    ids=["one-annotator", "other-order", "nothing-in-common", "no-label", "no-list"],
)
def test_files_that_do_not_belong_together_are_refused(
    tmp_path: Path, human: object, recorded: object, message: str
) -> None:
    with pytest.raises(FileError, match=message) as caught:
        read_pairs(write(tmp_path, human, recorded))

    assert "France" not in str(caught.value)


# --- the command ---


def test_the_command_prints_published_and_computed_rows_side_by_side(folder: Path) -> None:
    printed = run("bench.meta-eval", str(folder), "--judge", "lexical")

    lines = [line.split("  ")[0] for line in printed.splitlines()]
    first = lines.index("correctness")
    assert lines[first + 1 : first + 6] == [
        *("RAGChecker, published", "RAGChecker", "Human, published", "Human", "lexical"),
    ]
    assert "5 of the 280 pairs" in printed
    assert "minus RAGChecker" in printed
    assert "published: 90.95 %" in printed
    # Of the ten labels, three are 2 away from no preference.
    assert printed.count("no preference          -") == len(METRIC_OF_ASPECT)
    assert found_in(printed, "no preference") == ["-", "-", "70.00"]


def found_in(printed: str, name: str) -> list[str]:
    """The cells of the first row of this name."""
    line = next(line for line in printed.splitlines() if line.startswith(name))
    return line.removeprefix(name).split()


def test_the_command_prints_json_and_markdown(folder: Path) -> None:
    found = json.loads(run("bench.meta-eval", str(folder), "--json"))
    table = run("bench.meta-eval", str(folder), "--markdown")

    assert found["rows"][0]["figures"]["overall"]["pearson"]["n"] == 2 * len(CASES)
    assert found["published"]["Human"]["overall"]["spearman"] == 0.6889
    assert "| RAGChecker, published | 61.93 | 60.90 | - |" in table


def test_the_command_uses_the_first_pairs_on_request(folder: Path) -> None:
    found = json.loads(run("bench.meta-eval", str(folder), "--limit", "3", "--json"))

    assert found["pairs"] == 3


def test_a_folder_without_the_files_is_an_error_of_one_line(tmp_path: Path) -> None:
    result = invoke("bench.meta-eval", str(tmp_path))

    assert isinstance(result.exception, FileError)
    assert "human_labeled_data.json" in str(result.exception)
