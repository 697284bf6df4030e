"""What labels of people say about a judge on one's own traffic."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimspan.meta_evaluation.traffic import LabelledVerdict, calibrate_traffic, fit_score
from claimspan.verdicts import Label

E, N, C = Label.ENTAILED, Label.NEUTRAL, Label.CONTRADICTED


def claims(n: int, *, people_from: float, noise: float = 0.0) -> list[LabelledVerdict]:
    """One claim a record; the judge says entailed from 0.5 on, people from another score on."""
    generator = random.Random(4)
    scores = [(index + 0.5) / n for index in range(n)]
    return [
        LabelledVerdict(
            record=f"r{index}",
            human="E" if (score >= people_from) != (generator.random() < noise) else "N",
            judge=E if score >= 0.5 else N,
            entailed=score,
        )
        for index, score in enumerate(scores)
    ]


SIXTY = claims(60, people_from=0.5)


@pytest.mark.parametrize("people_from", [0.25, 0.8])
@pytest.mark.parametrize("n", [60, 200])
def test_the_threshold_is_where_people_change_their_mind(n: int, people_from: float) -> None:
    found = calibrate_traffic(claims(n, people_from=people_from, noise=0.04), "lexical")

    assert found.calibration is not None
    assert found.cross_fitted is not None
    assert found.calibration.threshold == pytest.approx(people_from, abs=0.05)
    assert found.cross_fitted.accuracy.value > found.as_it_is.accuracy.value + 0.1
    assert not any("calibrat" in each for each in found.warnings)


def test_a_threshold_that_is_right_stays_where_it_is_and_the_gain_is_said_to_be_none() -> None:
    found = calibrate_traffic(claims(80, people_from=0.5), "lexical")

    assert found.calibration is not None
    assert found.calibration.threshold == 0.5
    assert [each for each in found.warnings if "keep the judge as it is" in each]


def test_gains_are_measured_on_records_that_the_fit_has_not_seen() -> None:
    generator = random.Random(11)
    by_chance = [
        each._replace(human=generator.choice(("E", "N"))) for each in claims(100, people_from=0.5)
    ]

    found = calibrate_traffic(by_chance, "lexical")

    # On the labels that it is fitted on, a threshold is never worse than the majority.
    assert found.cross_fitted is not None
    assert found.cross_fitted.accuracy.low < 0.5
    assert any("the calibrated judge is no better" in each for each in found.warnings)


def test_labels_are_weighted_by_the_claims_that_they_stand_for() -> None:
    # The doubtful half is wrong throughout, and stands for a tenth of the traffic.
    doubtful = [LabelledVerdict(f"d{n}", "N", E, 0.55, 1.0) for n in range(30)]
    random_ = [LabelledVerdict(f"r{n}", "E", E, 0.95, 9.0) for n in range(30)]

    found = calibrate_traffic([*doubtful, *random_], "lexical")

    assert found.as_it_is.accuracy.value == pytest.approx(0.9)
    assert found.people_entailed.value == pytest.approx(0.9)
    assert found.as_it_is.confusion["N"]["E"] == 30
    assert found.as_it_is.accuracy.low < 0.9 < found.as_it_is.accuracy.high


def test_a_judge_that_is_no_better_than_the_majority_is_named() -> None:
    labels = [LabelledVerdict(f"r{n}", "E" if n % 5 else "N", E, 0.9, 1.0) for n in range(60)]

    found = calibrate_traffic(labels, "lexical")

    assert found.majority == pytest.approx(0.8)
    assert any("the judge is no better than always saying E" in each for each in found.warnings)


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (claims(12, people_from=0.5), "a threshold needs 20 labels"),
        (claims(60, people_from=0.02), "5 of each side"),
        ([c._replace(entailed=None) for c in SIXTY], "no probabilities"),
        ([c._replace(entailed=1 - (c.entailed or 0)) for c in SIXTY], "take another judge"),
        ([c._replace(record="one") for c in SIXTY], "all labels are of one"),
    ],
)
def test_without_enough_to_go_by_there_is_agreement_and_no_calibration(
    labels: list[LabelledVerdict], told: str
) -> None:
    found = calibrate_traffic(labels, "lexical")

    assert found.calibration is None
    assert found.cross_fitted is None
    assert found.as_it_is.accuracy.n == len(labels)
    assert told in found.warnings[0]


def test_few_labels_are_warned_of() -> None:
    found = calibrate_traffic(claims(40, people_from=0.3), "lexical")

    assert any(each.startswith("40 labels are few") for each in found.warnings)


def test_not_entailed_merges_neutral_and_contradicted_on_both_sides() -> None:
    labels = [
        LabelledVerdict("a", "NE", C, 0.1),
        LabelledVerdict("b", "NE", N, 0.1),
        LabelledVerdict("c", "E", E, 0.9),
    ]

    found = calibrate_traffic(labels, "lexical")

    assert found.as_it_is.accuracy.value == 1.0
    assert found.as_it_is.confusion == {"E": {"E": 1, "NE": 0}, "NE": {"E": 0, "NE": 2}}


pairs = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=2, max_size=120)


@given(pairs)
def test_a_threshold_moves_to_the_best_one_or_stays(labels: list[tuple[float, bool]]) -> None:
    # Scores beyond three decimals from 0 and 1 are as good as 0 and 1.
    labels = [(min(max(score, 0.002), 0.998), is_entailed) for score, is_entailed in labels]
    found = fit_score([s for s, _ in labels], [y for _, y in labels], "lexical")
    if found is None:
        return

    def wrong(threshold: float) -> int:
        return sum((score >= threshold) != is_entailed for score, is_entailed in labels)

    candidates = [0.5, 0.001, 0.999, *(score for score, _ in labels)]
    best = min(map(wrong, candidates))
    assert wrong(found.threshold) == best or found.threshold == 0.5
    assert found.threshold == 0.5 or wrong(found.threshold) < wrong(0.5)


def test_a_gain_that_chance_may_give_moves_nothing() -> None:
    # Ten claims lie between 0.5 and a threshold that is right about six of them.
    between = [(0.45, n < 6) for n in range(10)]
    sure = [(0.9, True)] * 20 + [(0.1, False)] * 20
    labels = [*between, *sure]

    found = fit_score([s for s, _ in labels], [y for _, y in labels], "lexical")

    assert found is not None
    assert found.threshold == 0.5
