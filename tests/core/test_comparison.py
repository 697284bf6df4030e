"""Systems are compared record by record, with the figures that scipy has for the same values."""

from __future__ import annotations

import codecs
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest
from scipy import stats

from claimspan.comparison.compare import (
    PAPER_METRICS,
    Comparison,
    Difference,
    compare_files,
    compare_systems,
)
from claimspan.comparison.systems import CLAIMS_PER_RESPONSE, ScoredRow, System, read_systems
from claimspan.errors import ConfigError, FileError
from claimspan.metrics.catalogue import DEFAULT_METRICS, LOW_RECORDS, METRICS
from claimspan.statistics import holm

from result_files import Scores, result_row, write_results


def random_scores(seed: int, n: int, shift: float = 0.0) -> list[dict[str, float]]:
    dice = Random(seed)
    return [{name: dice.random() + shift for name in METRICS} for _ in range(n)]


def compared(folder: Path, before: Sequence[Scores], after: Sequence[Scores]) -> Comparison:
    old, new = folder / "old.jsonl", folder / "new.jsonl"
    return compare_files([write_results(old, before), write_results(new, after)], metrics=["all"])


def difference(found: Comparison, metric: str, system: int = 1) -> Difference:
    result = found.systems[system].metrics[metric].difference
    assert result is not None
    return result


# --- the figures ---


def test_means_intervals_and_p_values_are_those_that_scipy_finds(tmp_path: Path) -> None:
    before, after = random_scores(1, 120), random_scores(2, 120, shift=0.04)
    found = compared(tmp_path, before, after)

    p_values: dict[str, float] = {}
    for metric in METRICS:
        old, new = (np.array([row[metric] for row in rows]) for rows in (before, after))
        result = found.systems[1].metrics[metric]
        assert result.estimate is not None
        interval = stats.bootstrap(
            (new,), np.mean, method="percentile", n_resamples=9_999, rng=np.random.default_rng(9)
        ).confidence_interval
        # Ends of two bootstraps differ by chance; a tenth of the half width is five times that.
        room = 0.1 * float(interval.high - interval.low)
        assert result.estimate.value == pytest.approx(float(np.mean(new)))
        assert result.estimate.low == pytest.approx(float(interval.low), abs=room)
        assert result.estimate.high == pytest.approx(float(interval.high), abs=room)
        paired = difference(found, metric)
        assert paired.difference.value == pytest.approx(float(np.mean(new - old)))
        expected = stats.permutation_test(
            (new - old,),
            np.mean,
            permutation_type="samples",
            n_resamples=9_999,
            rng=np.random.default_rng(8),
        )
        assert paired.p_value == pytest.approx(float(expected.pvalue), abs=0.03)
        p_values[metric] = paired.p_value
    others = (LOW_RECORDS, CLAIMS_PER_RESPONSE)
    p_values |= {name: difference(found, name).p_value for name in others}
    adjusted = {name: difference(found, name).adjusted_p_value for name in found.metrics}
    assert adjusted == pytest.approx(holm(p_values))
    assert found.tests == len(p_values) == len(METRICS) + 2


def test_the_tests_of_all_systems_are_adjusted_together(tmp_path: Path) -> None:
    paths = [
        write_results(tmp_path / f"s{seed}.jsonl", random_scores(seed, 30)) for seed in range(4)
    ]
    found = compare_files(paths, metrics=["f1", "recall"])

    assert found.tests == 6
    assert [system.name for system in found.systems] == ["s0", "s1", "s2", "s3"]
    paired = {
        f"{i} {name}": difference(found, name, i) for i in (1, 2, 3) for name in found.metrics
    }
    adjusted = {name: each.adjusted_p_value for name, each in paired.items()}
    assert adjusted == holm({name: each.p_value for name, each in paired.items()})


@pytest.mark.no_cover  # dozens of comparisons cover what one does
def test_what_chance_alone_brings_is_called_a_difference_once_in_twenty_tables_at_most(
    tmp_path: Path,
) -> None:
    false_alarms = 0
    for seed in range(40):
        found = compared(tmp_path, random_scores(2 * seed, 25), random_scores(2 * seed + 1, 25))
        findings = {difference(found, name).finding for name in found.metrics}
        false_alarms += findings != {"no difference shown"}

    # At most 2 are expected; 7 or more happen in one of 300 runs, and the seeds are fixed.
    assert false_alarms <= 6


# --- words ---


@pytest.mark.parametrize(
    ("metric", "finding"),
    [
        ("faithfulness", "better"),
        ("f1", "better"),
        ("hallucination", "worse"),
        ("noise_sensitivity_in_relevant", "worse"),
        ("self_knowledge", "different"),
        ("claims_per_response", "different"),
        ("low", "worse"),
    ],
)
def test_a_rise_is_better_or_worse_by_the_direction_of_the_metric(
    tmp_path: Path, metric: str, finding: str
) -> None:
    dice = Random(4)
    before = [dice.random() / 2 for _ in range(40)]
    after = [value + 0.2 + dice.random() / 10 for value in before]

    def system(name: str, values: Sequence[float]) -> System:
        return System(name, tuple(ScoredRow(f"r{n}", {metric: v}) for n, v in enumerate(values)))

    def finding_of(first: Sequence[float], second: Sequence[float]) -> str:
        systems = [system("old", first), system("new", second)]
        return difference(compare_systems(systems, metrics=["all"]), metric).finding

    assert finding_of(before, after) == finding
    turned = finding_of(after, before)
    assert turned == {"better": "worse", "worse": "better"}.get(finding, finding)


def test_a_metric_of_the_users_own_has_the_direction_that_its_evaluation_says(
    tmp_path: Path,
) -> None:
    def file(name: str, value: float) -> Path:
        rows = [result_row(n, {"polite": value, "rude": value}, lower=["rude"]) for n in range(8)]
        return write_results(tmp_path / name, rows)

    found = compare_files([file("old.jsonl", 0.4), file("new.jsonl", 0.6)])

    assert found.metrics == ("polite", "rude")
    assert difference(found, "polite").finding == "better"
    assert difference(found, "rude").finding == "worse"


def test_a_score_of_other_programs_has_no_better_end(tmp_path: Path) -> None:
    def file(name: str, value: float) -> Path:
        rows = [result_row(n, {"f1": 0.5}) for n in range(8)]
        foreign = [each.model_copy(update={"metrics": {"bleu": value}}) for each in rows]
        return write_results(tmp_path / name, foreign)

    found = compare_files([file("old.jsonl", 0.4), file("new.jsonl", 0.6)], metrics=["bleu"])

    assert difference(found, "bleu").finding == "different"


def test_the_share_of_low_records_is_compared_where_lines_have_their_label(tmp_path: Path) -> None:
    good: list[Scores] = [{"faithfulness": 1.0}] * 10
    low: list[Scores] = [{"faithfulness": 0.5}] * 10
    silent: list[Scores] = [{"context_precision": 0.1}] * 10  # calls no answer low
    found = difference(compared(tmp_path, good, low[:8] + good[:1] + silent[:1]), LOW_RECORDS)

    assert (found.before, found.after, found.finding) == (0.0, 8 / 9, "worse")
    assert found.only_in_baseline == 1

    old = tmp_path / "old.jsonl"
    fields = ("label", "summary", "blame")
    lines = [json.loads(line) for line in old.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        assert [line.pop(name) for name in fields] == ["good", "", "none"]
    old.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    before = read_systems([old])[0]

    assert [row.scores.get(LOW_RECORDS) for row in before.rows] == [None] * 10
    assert [row.scores["faithfulness"] for row in before.rows] == [1.0] * 10


# --- what is compared with what ---


def test_records_are_paired_by_id_in_any_order(tmp_path: Path) -> None:
    scores = random_scores(1, 20)
    rows = [result_row(index, row) for index, row in enumerate(scores)]
    old = write_results(tmp_path / "old.jsonl", rows)
    new = write_results(tmp_path / "new.jsonl", reversed(rows))
    found = compare_files([old, new])

    assert found.systems[1].common == 20
    assert all(difference(found, name).difference.high == 0.0 for name in found.metrics)
    assert found.notes == ()


def test_records_of_one_file_only_are_counted_and_left_out_of_differences(tmp_path: Path) -> None:
    scores: list[Scores] = [{"f1": n / 10} for n in range(10)]
    rows = [result_row(index, row) for index, row in enumerate(scores)]
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    found = compare_files([write_results(old, rows[:8]), write_results(new, rows[3:])])
    system = found.systems[1]

    assert (system.common, system.only_here, system.only_in_baseline) == (5, 2, 3)
    assert difference(found, "f1").difference.n == 5
    assert system.metrics["f1"].estimate is not None
    assert system.metrics["f1"].estimate.n == 7
    assert any("5 records are in old as well, 2 are not, and 3" in note for note in found.notes)


def test_a_metric_is_compared_where_both_have_a_value_and_the_rest_is_counted(
    tmp_path: Path,
) -> None:
    before: Sequence[Scores] = [{"f1": 0.5, "recall": 0.5}] * 6 + [{"recall": 0.5}] * 3 + [None]
    after: Sequence[Scores] = [{"recall": 0.5}] * 2 + [{"f1": 0.7, "recall": 0.5}] * 8
    found = compared(tmp_path, before, after)
    paired = difference(found, "f1")

    assert (paired.difference.n, paired.only_in_baseline, paired.only_in_system) == (4, 2, 4)
    assert paired.difference.value == pytest.approx(0.2)
    assert found.systems[0].failed == 1
    assert any("old: 1 of 10 records have no evaluation" in note for note in found.notes)
    assert any("f1 over 4" in note for note in found.notes)


def test_a_metric_that_is_defined_in_no_common_record_has_no_difference(tmp_path: Path) -> None:
    found = compared(tmp_path, [{"f1": 0.5}] * 3, [{"recall": 0.5}] * 3)

    assert found.systems[1].metrics["f1"].estimate is None
    assert found.systems[1].metrics["recall"].difference is None
    assert any("both in it and in old for recall, f1" in note for note in found.notes)


def test_the_same_id_with_another_query_is_another_record(tmp_path: Path) -> None:
    old = [result_row(n, {"f1": 0.5}) for n in range(4)]
    new = [result_row(n, {"f1": 0.5}, query=f"Who is {n}?" if n else None) for n in range(4)]
    found = compare_files(
        [write_results(tmp_path / "old.jsonl", old), write_results(tmp_path / "new.jsonl", new)]
    )

    assert found.systems[1].common == 1
    assert any("3 records have the id of a record of old" in note for note in found.notes)


def test_several_runs_of_a_query_are_paired_in_order_and_count_once(tmp_path: Path) -> None:
    dice = Random(3)
    before = [dice.random() for _ in range(9)]

    def rows(shift: float, repeats: int) -> list[Scores]:
        return [{"f1": value + shift} for value in before for _ in range(repeats)]

    def file(name: str, shift: float, repeats: int) -> Path:
        found = [
            result_row(n, row, id=f"q{n // repeats}", query="Same?")
            for n, row in enumerate(rows(shift, repeats))
        ]
        return write_results(tmp_path / name, found)

    once = compare_files([file("a.jsonl", 0.0, 1), file("b.jsonl", 0.1, 1)], metrics=["f1"])
    often = compare_files([file("c.jsonl", 0.0, 5), file("d.jsonl", 0.1, 5)], metrics=["f1"])

    assert difference(often, "f1").difference.n == 45
    assert difference(often, "f1").p_value == difference(once, "f1").p_value
    assert any("36 records repeat" in note for note in often.notes)


def test_records_of_one_document_can_be_resampled_together(tmp_path: Path) -> None:
    dice = Random(3)
    levels = [dice.random() for _ in range(8)]

    def file(name: str, sign: float) -> Path:
        rows = [
            result_row(n, {"f1": 0.5 + sign * levels[n // 10]}, metadata={"document": n // 10})
            for n in range(80)
        ]
        return write_results(tmp_path / name, rows)

    paths = [file("a.jsonl", 0.0), file("b.jsonl", 0.3)]
    alone = difference(compare_files(paths, metrics=["f1"]), "f1")
    grouped = difference(compare_files(paths, metrics=["f1"], group_by="document"), "f1")

    assert grouped.p_value == pytest.approx(2 / 2**8)
    assert alone.p_value == pytest.approx(1e-4)
    widths = [each.difference.high - each.difference.low for each in (grouped, alone)]
    assert widths[0] > 2 * widths[1]


def test_systems_that_different_judges_have_judged_are_said_to_be_so(tmp_path: Path) -> None:
    def file(name: str, judge: str) -> Path:
        rows = [result_row(n, {"f1": 0.5}, judge=judge) for n in range(3)]
        return write_results(tmp_path / name, rows)

    same = compare_files([file("a.jsonl", "lexical"), file("b.jsonl", "lexical")])
    other = compare_files([file("a.jsonl", "lexical"), file("c.jsonl", "local")])

    assert same.notes == (*other.notes[1:],)
    assert "a by lexical; c by local" in other.notes[0]


# --- slices ---


def test_a_slice_is_the_comparison_of_its_records(tmp_path: Path) -> None:
    languages: Mapping[int, str] = {0: "de", 1: "en"}
    before, after = random_scores(1, 40), random_scores(2, 40)

    def file(name: str, scores: Sequence[Scores], of: Sequence[int] = range(40)) -> Path:
        rows = [result_row(n, scores[n], metadata={"language": languages[n % 2]}) for n in of]
        return write_results(tmp_path / name, rows)

    found = compare_files(
        [file("a.jsonl", before), file("b.jsonl", after)], metrics=["f1"], slice_by="language"
    )
    alone = compare_files(
        [file("c.jsonl", before, range(0, 40, 2)), file("d.jsonl", after, range(0, 40, 2))],
        metrics=["f1"],
    )

    assert [f"{each.key} {each.value}" for each in found.slices] == ["language de", "language en"]
    sliced = found.slices[0].systems[1].metrics["f1"]
    assert sliced.estimate == alone.systems[1].metrics["f1"].estimate
    assert sliced.difference is not None
    assert sliced.difference.difference == difference(alone, "f1").difference
    assert (found.tests, found.slice_tests) == (1, 2)


def test_a_key_that_no_record_has_or_that_is_an_id_makes_no_slices(tmp_path: Path) -> None:
    rows = [result_row(n, {"f1": 0.5}, metadata={"number": n}) for n in range(60)]
    paths = [write_results(tmp_path / name, rows) for name in ("a.jsonl", "b.jsonl")]

    with pytest.raises(ConfigError, match="no record has 'language'"):
        compare_files(paths, slice_by="language")
    with pytest.raises(ConfigError, match="'number' has 60 values"):
        compare_files(paths, slice_by="number")


# --- columns, names and files ---


def test_the_columns_are_what_is_measured_by_default_and_all_others_on_request(
    tmp_path: Path,
) -> None:
    scores = random_scores(1, 5)
    paths = [write_results(tmp_path / name, scores) for name in ("a.jsonl", "b.jsonl")]

    assert compare_files(paths).metrics == (*DEFAULT_METRICS, LOW_RECORDS)
    assert compare_files(paths, metrics=["paper"]).metrics == PAPER_METRICS
    others = (LOW_RECORDS, CLAIMS_PER_RESPONSE)
    assert compare_files(paths, metrics=["all"]).metrics == (*METRICS, *others)
    both = compare_files(paths, metrics=["default", "hallucination"])
    assert both.metrics == (*DEFAULT_METRICS, LOW_RECORDS, "hallucination")
    assert compare_files(paths, metrics=["alignment"]).metrics == ("alignment",)
    with pytest.raises(ConfigError, match="unknown metric 'recal': did you mean 'recall'"):
        compare_files(paths, metrics=["recal"])
    some = [write_results(path, [{"correctness": 0.5, "alignment": 0.5}] * 3) for path in paths]
    assert compare_files(some).metrics[:2] == ("correctness", "alignment")
    with pytest.raises(ConfigError, match="no record has a value of recall"):
        compare_files(some, metrics=["recall"])


def test_a_column_of_the_paper_is_missed_only_where_the_paper_is_asked_for(tmp_path: Path) -> None:
    paths = [write_results(tmp_path / name, [{"f1": 0.5}] * 3) for name in ("a.jsonl", "b.jsonl")]

    assert compare_files(paths).notes == ()
    assert compare_files(paths, metrics=["paper"]).notes[-1].startswith("No system has a value of")


def test_the_number_of_claims_is_compared_like_a_metric(tmp_path: Path) -> None:
    def file(name: str, claims: int) -> Path:
        rows = [result_row(n, {"f1": 0.5}, claims=claims + n % 3) for n in range(12)]
        return write_results(tmp_path / name, rows)

    paths = [file("a.jsonl", 3), file("b.jsonl", 5)]
    found = compare_files(paths, metrics=[CLAIMS_PER_RESPONSE])

    assert difference(found, CLAIMS_PER_RESPONSE).difference.value == 2.0
    assert difference(found, CLAIMS_PER_RESPONSE).finding == "different"


def test_files_of_the_same_name_are_told_apart_and_any_can_be_the_baseline(tmp_path: Path) -> None:
    paths: list[Path] = []
    for folder in ("monday", "tuesday"):
        (tmp_path / folder).mkdir()
        paths.append(write_results(tmp_path / folder / "results.jsonl", random_scores(1, 3)))

    found = compare_files(paths, baseline=str(paths[1]))

    assert [system.name for system in found.systems] == [str(path) for path in paths]
    assert found.baseline == str(paths[1])
    assert found.systems[1].metrics["f1"].difference is None
    assert found.systems[0].metrics["f1"].difference is not None


@pytest.mark.parametrize(
    ("names", "baseline", "message"),
    [
        (["a"], None, "at least two"),
        (["a", "a"], None, "given twice"),
        (["a", "b"], "c", "'c' is not among a, b"),
    ],
)
def test_systems_that_cannot_be_told_apart_are_refused(
    tmp_path: Path, names: list[str], baseline: str | None, message: str
) -> None:
    paths = [write_results(tmp_path / f"{name}.jsonl", [{"f1": 0.5}]) for name in names]

    with pytest.raises(ConfigError, match=message):
        compare_files(paths, baseline=baseline)


def test_files_without_a_common_record_are_refused(tmp_path: Path) -> None:
    old = write_results(tmp_path / "old.jsonl", [result_row(0, {"f1": 0.5}, id="a")])
    new = write_results(tmp_path / "new.jsonl", [result_row(0, {"f1": 0.5}, id="b")])

    with pytest.raises(ConfigError, match="old and new have no record in common"):
        compare_files([old, new])


def test_equal_queries_under_ids_in_one_file_alone_are_told(tmp_path: Path) -> None:
    old = write_results(tmp_path / "old.jsonl", [result_row(n, {"f1": 0.5}) for n in range(2)])
    rows = [result_row(n, {"f1": 0.5}).model_copy(update={"id": None}) for n in range(2)]
    new = write_results(tmp_path / "new.jsonl", rows)

    with pytest.raises(ConfigError, match=r"no record in common, but 2 queries.* the same ids, or"):
        compare_files([old, new])


def test_a_line_that_is_no_result_is_named_without_its_content(tmp_path: Path) -> None:
    good = write_results(tmp_path / "good.jsonl", [{"f1": 0.5}] * 2)
    torn = tmp_path / "torn.jsonl"
    lines = good.read_bytes().replace(b"\n", b"\r\n")
    torn.write_bytes(codecs.BOM_UTF8 + lines + b'{"secret": 1}\n')
    other = tmp_path / "other.jsonl"
    other.write_text('{"secret": 1}\n', encoding="utf-8")

    with pytest.raises(FileError, match=r"torn.jsonl' line 3 is no result") as caught:
        compare_files([good, torn])
    assert "secret" not in str(caught.value)
    for path in (other, tmp_path / "absent.jsonl"):
        with pytest.raises(FileError, match=path.name):
            compare_files([good, path])


def test_a_comparison_survives_json(tmp_path: Path) -> None:
    found = compared(tmp_path, random_scores(1, 12), random_scores(2, 12))

    assert Comparison.model_validate_json(found.model_dump_json()) == found
