"""A gate fails where something fell, and never passes because nothing could be measured."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import pytest
from typer.testing import Result

from claimspan.comparison.gate import Gate, GateResult, check_gate
from claimspan.comparison.systems import ScoredRow, System
from claimspan.errors import ClaimspanError
from claimspan.metrics.catalogue import CATALOGUE, DEFAULT_METRICS, LOW_RECORDS, METRICS

from command_line import invoke
from result_files import Scores, result_row, write_results


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """40 records with a faithfulness around 0.8 and hallucination around 0.1."""
    return write_results(tmp_path / "good.jsonl", scores(0.8, 0.1))


def scores(faithfulness: float, hallucination: float, n: int = 40) -> list[Scores]:
    dice = Random(7)
    return [
        {
            "faithfulness": faithfulness + dice.uniform(-0.1, 0.1),
            "hallucination": hallucination + dice.uniform(-0.1, 0.1),
        }
        for _ in range(n)
    ]


def gate(path: Path, *arguments: str) -> tuple[int, GateResult]:
    result = invoke("gate", str(path), *arguments, "--json")
    return result.exit_code, GateResult.model_validate_json(result.stdout.splitlines()[0])


def failures(path: Path, *arguments: str) -> list[str]:
    """The rules that do not hold, with the exit code checked against them."""
    code, result = gate(path, *arguments)
    found = [f"{check.rule} {check.metric or ''}".strip() for check in result.failures]
    assert code == (1 if found else 0)
    assert result.passed is not bool(found)
    return found


# --- thresholds ---


def test_a_mean_on_the_right_side_of_its_thresholds_passes(good: Path) -> None:
    assert failures(good, "--min", "faithfulness=0.75", "--max", "hallucination=0.15") == []


def test_a_mean_beyond_its_threshold_fails_by_how_much_it_is_beyond(good: Path) -> None:
    code, result = gate(good, "--min", "faithfulness=0.9", "--max", "hallucination=0.05")
    checks = {check.metric: check for check in result.failures}

    assert code == 1
    for metric, sign in (("faithfulness", 1), ("hallucination", -1)):
        check = checks[metric]
        assert check.estimate is not None
        assert check.limit is not None
        assert check.fell_by == pytest.approx(sign * (check.limit - check.estimate.value))
        assert check.fell_by > 0


def test_a_mean_exactly_at_its_threshold_passes(tmp_path: Path) -> None:
    path = write_results(tmp_path / "r.jsonl", [{"faithfulness": 0.5, "hallucination": 0.5}] * 3)

    assert failures(path, "--min", "faithfulness=0.5", "--max", "hallucination=0.5") == []


@pytest.mark.parametrize("value", [0.05, 0.1, 0.2, 0.7])
def test_a_mean_that_only_rounding_takes_beyond_its_threshold_passes(
    tmp_path: Path, value: float
) -> None:
    path = write_results(tmp_path / "same.jsonl", [{"f1": value}] * 3)

    assert failures(path, "--min", f"f1={value}", "--max", f"f1={value}") == []


def test_confident_needs_more_than_one_value(tmp_path: Path) -> None:
    one = write_results(tmp_path / "one.jsonl", [{"f1": 0.9}])

    assert failures(one, "--min", "f1=0.8") == []
    assert failures(one, "--min", "f1=0.8", "--confident") == ["min f1"]


def test_confident_asks_the_end_of_the_interval_that_is_nearest_to_failing(good: Path) -> None:
    _, result = gate(good, "--min", "faithfulness=0", "--max", "hallucination=1")
    found = {check.metric: check.estimate for check in result.checks}
    faithful, invented = found["faithfulness"], found["hallucination"]
    assert faithful is not None
    assert invented is not None
    between = (
        *("--min", f"faithfulness={(faithful.low + faithful.value) / 2}"),
        *("--max", f"hallucination={(invented.high + invented.value) / 2}"),
    )

    assert failures(good, *between) == []
    assert failures(good, *between, "--confident") == ["min faithfulness", "max hallucination"]


# --- what could not be measured ---


@pytest.mark.parametrize("option", ["--min", "--max"])
def test_a_threshold_on_a_metric_that_no_record_has_fails(good: Path, option: str) -> None:
    assert failures(good, option, "recall=0.5") == [f"{option[2:]} recall"]


def test_a_misspelt_metric_fails_with_the_name_that_was_meant(good: Path) -> None:
    _, result = gate(good, "--min", "faithfullness=0.1")

    assert "did you mean faithfulness?" in result.failures[0].said


def test_a_run_of_which_too_many_records_failed_does_not_pass(tmp_path: Path) -> None:
    rows: list[Scores] = [*scores(0.9, 0.0, 37), *[None] * 3]
    path = write_results(tmp_path / "r.jsonl", rows)

    assert failures(path, "--min", "faithfulness=0.5") == ["failed"]
    assert failures(path, "--min", "faithfulness=0.5", "--max-failed", "0.1") == []


def test_a_run_of_which_every_record_failed_does_not_pass(tmp_path: Path) -> None:
    path = write_results(tmp_path / "r.jsonl", [None] * 4)

    found = failures(path, "--max", "hallucination=1", "--max-failed", "1")

    assert found == ["records", "max hallucination"]


def test_too_few_records_or_too_few_with_the_metric_do_not_pass(tmp_path: Path) -> None:
    rows: Sequence[Scores] = [{"faithfulness": 1.0}] * 3 + [{"recall": 1.0}] * 7
    path = write_results(tmp_path / "r.jsonl", rows)

    assert failures(path, "--min", "faithfulness=0.5", "--min-records", "3") == []
    assert failures(path, "--min", "faithfulness=0.5", "--min-records", "10") == [
        "min faithfulness"
    ]
    assert "records" in failures(path, "--min", "recall=0.5", "--min-records", "11")


# --- the baseline ---


def against(
    folder: Path, before: Sequence[Scores], after: Sequence[Scores], *more: str
) -> list[str]:
    old = write_results(folder / "last.jsonl", before)
    return failures(write_results(folder / "now.jsonl", after), "--baseline", str(old), *more)


def test_the_same_results_pass_their_own_baseline(tmp_path: Path) -> None:
    assert against(tmp_path, scores(0.8, 0.1), scores(0.8, 0.1)) == []


def test_what_got_worse_fails_in_its_own_direction(tmp_path: Path) -> None:
    before = scores(0.8, 0.1)
    both = ("--metrics", "faithfulness,hallucination")

    assert against(tmp_path, before, scores(0.7, 0.1), *both) == ["baseline faithfulness"]
    assert against(tmp_path, before, scores(0.8, 0.2), *both) == ["baseline hallucination"]
    assert against(tmp_path, before, scores(0.9, 0.0), *both) == []


def test_within_the_tolerance_nothing_fails(tmp_path: Path) -> None:
    before, after = scores(0.7, 0.1), scores(0.67, 0.1)

    assert against(tmp_path, before, after, "--tolerance", "0.02") == ["baseline faithfulness"]
    assert against(tmp_path, before, after, "--tolerance", "0.04") == []


def test_worse_by_no_more_than_chance_passes_and_is_said(tmp_path: Path) -> None:
    before, after = scores(0.8, 0.1), scores(0.8, 0.1)
    after[0] = {"faithfulness": 0.1, "hallucination": 0.1}
    path = write_results(tmp_path / "now.jsonl", after)
    old = write_results(tmp_path / "last.jsonl", before)
    code, result = gate(path, "--baseline", str(old))
    check = next(check for check in result.checks if check.metric == "faithfulness")

    assert code == 0
    assert check.fell_by > 0.01
    assert check.said == "worse, but no more than by chance"
    assert check.difference is not None
    assert check.difference.p_value == 1.0


def test_the_tests_of_the_baseline_are_adjusted_for_each_other(tmp_path: Path) -> None:
    # Five of six records worse: p = 2 / 32 alone is not enough; six: 2 / 64 is, for one metric.
    fell = {"recall": 0.4, "f1": 0.4, "precision": 0.4}
    had = dict.fromkeys(fell, 0.5)

    alone = ("--metrics", "f1")
    assert against(tmp_path, [{"f1": 0.5}] * 5, [{"f1": 0.4}] * 5, *alone) == []
    assert against(tmp_path, [{"f1": 0.5}] * 6, [{"f1": 0.4}] * 6, *alone) == ["baseline f1"]
    assert against(tmp_path, [had] * 6, [fell] * 6) == []
    assert against(tmp_path, [had] * 6, [fell] * 6, *alone) == ["baseline f1"]
    assert len(against(tmp_path, [had] * 8, [fell] * 8)) == 3


def test_a_metric_that_has_lost_all_its_values_fails(tmp_path: Path) -> None:
    before: list[Scores] = [{"f1": 0.5, "recall": 0.5}] * 8

    assert against(tmp_path, before, [{"recall": 0.5}] * 8) == ["baseline f1"]
    assert against(tmp_path, [{"recall": 0.5}] * 8, before) == []


def test_a_metric_that_most_records_have_lost_fails(tmp_path: Path) -> None:
    before = write_results(tmp_path / "before.jsonl", [{"f1": 0.9}] * 10)
    kept: Scores = {"f1": 0.9}
    lost: Scores = {"recall": 0.9}
    half = write_results(tmp_path / "half.jsonl", [kept] * 5 + [lost] * 5)
    few = write_results(tmp_path / "few.jsonl", [kept] * 4 + [lost] * 6)

    assert failures(half, "--baseline", str(before)) == []
    assert failures(few, "--baseline", str(before)) == ["baseline f1"]


def test_a_threshold_does_not_turn_the_direction_of_a_known_metric(tmp_path: Path) -> None:
    before = write_results(tmp_path / "before.jsonl", [{"hallucination": 0.0}] * 20)
    after = write_results(tmp_path / "after.jsonl", [{"hallucination": 0.04}] * 20)
    band = ("--min", "hallucination=0", "--max", "hallucination=0.05")

    assert failures(after, *band, "--baseline", str(before)) == ["baseline hallucination"]


def test_records_of_the_baseline_that_are_gone_fail_the_gate(tmp_path: Path) -> None:
    before = scores(0.8, 0.1)

    assert against(tmp_path, before, before[:20]) == ["missing"]
    assert against(tmp_path, before, before[:20], "--max-failed", "0.5") == []


def test_a_gate_compares_what_is_measured_by_default_and_what_has_a_threshold(
    tmp_path: Path,
) -> None:
    before: list[Scores] = [dict.fromkeys(METRICS, 0.5)] * 10
    old = write_results(tmp_path / "last.jsonl", before)
    path = write_results(tmp_path / "now.jsonl", before)

    def compared(*arguments: str) -> list[str | None]:
        _, result = gate(path, "--baseline", str(old), *arguments)
        return [check.metric for check in result.checks if check.rule == "baseline"]

    default = [*DEFAULT_METRICS[:7], "context_precision", "low"]
    assert compared() == default
    assert compared("--max", "hallucination=0.6") == [*default[:-1], "hallucination", "low"]
    assert compared("--metrics", "recall, precision") == ["precision", "recall"]
    assert compared("--metrics", "hallucination", "--primary", "f1") == ["f1", "hallucination"]
    assert compared("--metrics", "all") == [*(m for m in METRICS if m != "self_knowledge"), "low"]


def test_a_metric_of_the_users_own_fails_in_the_direction_that_its_results_say(
    tmp_path: Path,
) -> None:
    def file(name: str, polite: float, rude: float) -> Path:
        scores: Scores = {"f1": 0.9, "polite": polite, "rude": rude}
        rows = [result_row(n, scores, lower=["rude"]) for n in range(20)]
        return write_results(tmp_path / name, rows)

    old = str(file("old.jsonl", 0.5, 0.5))
    assert failures(file("a.jsonl", 0.4, 0.4), "--baseline", old) == ["baseline polite"]
    assert failures(file("b.jsonl", 0.6, 0.6), "--baseline", old) == ["baseline rude"]


def test_the_share_of_low_records_has_thresholds_and_may_not_rise(tmp_path: Path) -> None:
    good: Scores = {"faithfulness": 0.9}
    low: Scores = {"faithfulness": 0.79}
    path = write_results(tmp_path / "now.jsonl", [good] * 12 + [low] * 8)
    old = str(write_results(tmp_path / "old.jsonl", [good] * 20))

    assert failures(path, "--max", "low=0.4") == []
    assert failures(path, "--max", "low=0.3") == ["max low"]
    assert failures(path, "--baseline", old, "--metrics", "low") == ["baseline low"]


def test_what_is_named_and_cannot_be_tested_is_never_passed_over(tmp_path: Path) -> None:
    path = write_results(tmp_path / "now.jsonl", [{"f1": 0.5, "recall": 0.5}] * 6)
    old = str(write_results(tmp_path / "old.jsonl", [{"f1": 0.5, "self_knowledge": 0.5}] * 6))

    assert failures(path, "--baseline", old) == []
    for option in ("--metrics", "--primary"):
        assert failures(path, "--baseline", old, option, "recall") == ["baseline recall"]
    for arguments, message in (
        (("--baseline", old, "--metrics", "f1,recal"), "'recal': did you mean 'recall'?"),
        (("--baseline", old, "--primary", "recal"), "'recal': did you mean 'recall'?"),
        (("--baseline", old, "--primary", "all"), "primary got the unknown metric 'all'"),
        (("--baseline", old, "--metrics", "precision"), "no record has a value of precision"),
        (("--baseline", old, "--metrics", "self_knowledge"), "neither end of self_knowledge"),
        (("--min", "f1=0.1", "--metrics", "f1"), "give a baseline"),
    ):
        error = invoke("gate", str(path), *arguments).exception
        assert isinstance(error, ClaimspanError)
        assert message in str(error)


# --- the chance of a false alarm, and of a true one ---


def answers(dice: Random, questions: int, share: float) -> dict[str, list[float]]:
    """The scores of a run: five claims an answer, which several metrics look at."""
    runs: dict[str, list[float]] = {name: [] for name in (*DEFAULT_METRICS, LOW_RECORDS)}
    for _ in range(questions):
        luck = dice.choice((-0.2, 0.0, 0.1, 0.1))  # an easy question, or a hard one
        right = [dice.random() < share + luck for _ in range(5)]
        for name in DEFAULT_METRICS:
            # Half of what a metric says is what all of them say of the answer.
            own = [r if dice.random() < 0.5 else dice.random() < share + luck for r in right]
            value = sum(own) / 5
            runs[name].append(1 - value if CATALOGUE[name].failure else value)
        worst = min(runs[name][-1] for name in DEFAULT_METRICS if not CATALOGUE[name].failure)
        runs[LOW_RECORDS].append(float(worst < 0.6))
    return runs


def system(name: str, columns: Mapping[str, Sequence[float]]) -> System:
    rows = zip(*columns.values(), strict=True)
    scored = [dict(zip(columns, row, strict=True)) for row in rows]
    return System(name, tuple(ScoredRow(f"q{n}", each) for n, each in enumerate(scored)))


def fails(
    before: Mapping[str, Sequence[float]], after: Mapping[str, Sequence[float]], **rules: object
) -> bool:
    old, new = system("old", before), system("new", after)
    return not check_gate(new, Gate.of(rules), baseline=old, progress=False).passed


@pytest.mark.no_cover  # hundreds of gates cover what one does
@pytest.mark.parametrize("primary", [None, "precision"])
def test_without_a_change_a_gate_fails_in_one_build_of_twenty_at_most(primary: str | None) -> None:
    dice = Random(11)
    false = sum(
        fails(answers(dice, 20, 0.7), answers(dice, 20, 0.7), primary=primary) for _ in range(120)
    )

    # 6 of 120 are allowed on average; 12 or more happen in one of 50 runs at exactly 5 %.
    assert false <= 11


@pytest.mark.no_cover
def test_a_primary_metric_is_found_as_well_with_many_others_as_alone() -> None:
    dice = Random(5)
    found = {"alone": 0, "primary": 0, "among others": 0}
    for _ in range(40):
        before, after = answers(dice, 20, 0.7), answers(dice, 20, 0.7)
        after["precision"] = [
            max(0.0, each - dice.choice((0.0, 0.4))) for each in after["precision"]
        ]
        alone = {"precision": before["precision"]}, {"precision": after["precision"]}
        found["alone"] += fails(*alone, metrics=["precision"])
        found["primary"] += fails(before, after, primary="precision")
        found["among others"] += fails(before, after)

    assert found["primary"] >= found["alone"] > found["among others"] + 4


def test_twenty_questions_on_which_precision_halves_fail(tmp_path: Path) -> None:
    # A first look had 0.92 -> 0.49 with p = 0.004, and passed: 17 metrics were counted.
    others = {name: float(not CATALOGUE[name].failure) for name in DEFAULT_METRICS}
    precision = [1.0] * 18 + [0.2] * 2
    before: list[Scores] = [{**others, "precision": each} for each in precision]
    after: list[Scores] = [{**others, "precision": each} for each in [0.0] * 9 + precision[9:]]
    old = write_results(tmp_path / "last.jsonl", before)
    _, result = gate(write_results(tmp_path / "now.jsonl", after), "--baseline", str(old))
    found = {check.metric: check.difference for check in result.failures}["precision"]

    assert found is not None
    assert found.before == pytest.approx(0.92)
    assert found.after == pytest.approx(0.47)
    assert found.p_value == pytest.approx(0.0039, abs=1e-3)
    assert found.adjusted_p_value < 0.05
    assert sum(check.rule == "baseline" for check in result.checks) == 9


def test_a_metric_without_a_better_end_fails_only_where_a_threshold_gives_it_one(
    tmp_path: Path,
) -> None:
    before: list[Scores] = [{"self_knowledge": 0.5, "f1": 0.5}] * 10
    after: list[Scores] = [{"self_knowledge": 0.1, "f1": 0.5}] * 10

    assert against(tmp_path, before, after) == []
    assert against(tmp_path, before, after, "--min", "self_knowledge=0") == [
        "baseline self_knowledge"
    ]


# --- what is printed and written ---


def printed(path: Path, *arguments: str) -> Result:
    return invoke("gate", str(path), *arguments)


def test_the_table_begins_with_what_failed_and_a_line_for_logs_ends_it(good: Path) -> None:
    result = printed(good, "--min", "faithfulness=0.9", "--max", "hallucination=0.5")
    lines = result.stdout.rstrip().splitlines()

    assert result.exit_code == 1
    assert lines[1].startswith("FAILED  min faithfulness")
    assert "the mean is too low" in lines[1]
    assert lines[-1].startswith("claimspan gate: FAILED, 1 of 4 checks over 40 records: min faith")
    passing = printed(good, "--min", "faithfulness=0.5").stdout.rstrip().splitlines()
    assert passing[-1] == "claimspan gate: passed, 3 checks over 40 records"


def test_the_markdown_and_the_summary_of_a_github_step_have_the_table(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, summary = tmp_path / "gate.md", tmp_path / "summary.md"
    summary.write_text("# Before\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    asked = ("--min", "faithfulness=0.9")

    printed(good, *asked, "--markdown", str(page))
    assert summary.read_text(encoding="utf-8") == "# Before\n"  # not without being asked
    printed(good, *asked, "--github-summary")

    written = page.read_text(encoding="utf-8")
    assert "| FAILED | min faithfulness | 0." in written
    assert summary.read_text(encoding="utf-8") == f"# Before\n{written}"


def test_without_a_summary_file_the_gate_says_so_and_decides_all_the_same(
    good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    result = printed(good, "--min", "faithfulness=0.5", "--github-summary")

    assert result.exit_code == 0
    assert "GITHUB_STEP_SUMMARY is not set" in result.stderr


def test_names_of_metrics_and_records_command_neither_terminal_nor_page(tmp_path: Path) -> None:
    hostile = "\x1b[2J|<b>"
    rows = [result_row(n, {hostile: 0.5}) for n in range(3)]
    path, page = write_results(tmp_path / "r.jsonl", rows), tmp_path / "g.md"

    result = printed(path, "--min", f"{hostile}=0.9", "--markdown", str(page))

    assert "\x1b" not in result.stdout + page.read_text(encoding="utf-8")
    assert "\\|&lt;b>" in page.read_text(encoding="utf-8")


def test_a_threshold_on_the_number_of_claims_may_be_above_one(good: Path) -> None:
    assert failures(good, "--max", "claims_per_response=20") == []


# --- bad input ---


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "lets everything pass"),
        (("--min", "faithfulness"), "'faithfulness' is no threshold"),
        (("--min", "=0.5"), "is no threshold"),
        (("--max", "hallucination=nan"), "is no threshold"),
        (("--min", "f1=0.5", "--min", "f1=0.6"), "gives f1 twice"),
        (("--min", "f1=7"), "min f1 is 7: give a mean between 0.0 and 1.0, such as 0.07 for 7 %"),
        (("--max", "hallucination=80"), "give a mean between 0.0 and 1.0, such as 0.8 for 80 %"),
        (("--min", "f1=80%"), "'f1=80%' is no threshold: write f1=0.8"),
        (("--min", "f1=-0.1"), "min f1 is -0.1: give a mean between 0.0 and 1.0"),
        (("--min", "f1=inf"), "is no threshold: write f1=0.8"),
        (("--max", "claims_per_response=-1"), "give a number of 0 or more"),
        (("--baseline", "absent.jsonl"), "absent.jsonl"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(
    good: Path, arguments: tuple[str, ...], message: str
) -> None:
    error = invoke("gate", str(good), *arguments).exception

    assert isinstance(error, ClaimspanError)
    assert message in str(error)


@pytest.mark.parametrize(
    "option",
    "--tolerance=-1 --tolerance=5 --max-failed=2 --max-failed=nan --min-records=0".split(),
)
def test_a_rule_outside_of_its_range_is_bad_input(good: Path, option: str) -> None:
    assert invoke("gate", str(good), "--min", "f1=0.5", option).exit_code == 2


def test_a_baseline_of_other_records_is_bad_input(good: Path, tmp_path: Path) -> None:
    other = write_results(tmp_path / "o.jsonl", [result_row(0, {"f1": 0.5}, id="other")])
    error = invoke("gate", str(good), "--baseline", str(other)).exception

    assert isinstance(error, ClaimspanError)
    assert "no record in common" in str(error)


def test_json_holds_every_check(good: Path) -> None:
    result = invoke("gate", str(good), "--min", "faithfulness=0.5", "--json")
    found = json.loads(result.stdout)

    assert [check["rule"] for check in found["checks"]] == ["records", "failed", "min"]
    assert "claimspan gate: passed" in result.stderr
