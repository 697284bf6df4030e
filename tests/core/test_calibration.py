"""Thresholds of a cascade, found on labelled claims, and what to expect of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from claimspan import Label
from claimspan.errors import ConfigError
from claimspan.meta_evaluation.agreement import HumanLabel, JudgedClaim, LabelledClaim
from claimspan.meta_evaluation.calibration import calibrate, split_tune_test

from command_line import run

E, N, C = Label.ENTAILED, Label.NEUTRAL, Label.CONTRADICTED


def judged(label: HumanLabel, p: float) -> JudgedClaim:
    return JudgedClaim(label, E if p >= 0.5 else N, p)


# Right at both ends, half wrong in the middle.
MIXED = [
    *(judged("E", 0.9 + i / 1000) for i in range(40)),
    *(judged("N", 0.1 - i / 1000) for i in range(40)),
    *(judged("EN"[i % 2], (0.45, 0.55)[i // 10]) for i in range(20)),  # type: ignore[arg-type] # letters
]


def test_thresholds_save_what_they_can_without_a_loss() -> None:
    found = calibrate(MIXED, MIXED, max_loss=0.0)

    assert found.saved == pytest.approx(0.8)
    assert found.lost == 0.0
    assert 0.1 <= found.thresholds.low < 0.45
    assert 0.55 < found.thresholds.high <= 0.9


def test_an_allowed_loss_saves_more() -> None:
    found = calibrate(MIXED, MIXED, max_loss=0.05)

    assert found.saved == pytest.approx(0.9)
    assert found.lost == pytest.approx(0.05)


def test_what_the_strong_judge_would_get_wrong_is_not_lost() -> None:
    found = calibrate(MIXED, MIXED, max_loss=0.05, strong_accuracy=0.98)

    assert found.agreement_lost == pytest.approx(0.05 - 0.9 * 0.02)


def test_expectations_come_from_claims_that_did_not_choose_the_thresholds() -> None:
    reversed_labels: list[JudgedClaim] = [each._replace(human_label="C") for each in MIXED[:40]]

    found = calibrate(MIXED, reversed_labels, max_loss=0.0)

    assert found.n == 40
    assert found.lost == pytest.approx(found.saved)
    assert found.saved > 0.9


def test_what_lies_at_the_ends_of_the_scale_counts_as_decided() -> None:
    surest: list[JudgedClaim] = [judged("E", 0.0)] * 10 + [judged("N", 1.0)] * 5
    rest: list[JudgedClaim] = [judged("EN"[p > 0.5], p) for p in (0.4, 0.6) for _ in range(50)]  # type: ignore[arg-type] # letters

    found = calibrate([*surest, *rest], surest, max_loss=0.2)

    assert found.saved == found.lost == 1.0
    with pytest.raises(ConfigError, match="no thresholds keep to max_loss"):
        calibrate([*surest, *rest], surest, max_loss=0.1)


def test_labels_without_probabilities_save_nothing() -> None:
    bare = [
        JudgedClaim("E", E, 1.0, has_probabilities=False),
        JudgedClaim("N", N, 0.0, has_probabilities=False),
    ] * 20

    assert calibrate(MIXED, bare, max_loss=0.0).saved == 0.0
    assert calibrate(MIXED + bare, MIXED, max_loss=0.0) == calibrate(MIXED, MIXED, max_loss=0.0)
    with pytest.raises(ConfigError, match="gave no probabilities"):
        calibrate(bare, bare)


def test_a_label_against_its_own_probability_is_not_decided() -> None:
    torn: list[JudgedClaim] = [JudgedClaim("N", N, 0.95), JudgedClaim("E", E, 0.05)] * 5

    found = calibrate(MIXED + torn, MIXED + torn, max_loss=0.0)

    assert found.saved == pytest.approx(80 / 110)
    assert found.lost == 0.0


def test_halves_are_the_same_every_time_and_keep_premises_together() -> None:
    claims = [
        LabelledClaim(id=str(i), premises=(f"premise {i // 2}",), claim="It is so.", label="E")
        for i in range(100)
    ]
    marks = [JudgedClaim("E", E, i / 100) for i in range(100)]

    first, second = split_tune_test(claims, marks)

    assert split_tune_test(claims, marks) == (first, second)
    assert 20 < len(first) < 80
    assert {int((m.entailed or 0) * 100 + 0.5) // 2 for m in first}.isdisjoint(
        int((m.entailed or 0) * 100 + 0.5) // 2 for m in second
    )


@pytest.mark.parametrize("options", [{"max_loss": -0.1}, {"strong_accuracy": 1.1}])
def test_a_share_outside_of_0_and_1_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="between 0 and 1"):
        calibrate(MIXED, MIXED, **options)


# --- the command line ---


def test_calibrate_prints_what_to_expect(tmp_path: Path) -> None:
    path = tmp_path / "labelled.jsonl"
    rows = [
        {
            "id": str(i),
            "premises": [f"Door {i} is open."],
            "claim": claim.format(i),
            "label": label,
        }
        for i in range(40)
        for claim, label in (("Door {} is open.", "E"), ("Windows were sold.", "N"))
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows))

    shown = run("calibrate", str(path))
    found = json.loads(run("calibrate", str(path), "--json", "--max-loss", "0"))

    assert "verdicts saved     100.0%" in shown
    assert "agreement lost     0.0%" in shown
    assert found["saved"] == 1.0
    assert 0 <= found["thresholds"]["low"] <= found["thresholds"]["high"] <= 1
