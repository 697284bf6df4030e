"""``f1`` by grades and probabilities: it is RAGChecker's where the judge is sure."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimspan import Label, Verdict, VerdictMatrix
from claimspan.metrics.compute import measure
from claimspan.verdicts import VerdictMatrices


def verdict(entailed: float) -> Verdict:
    label = Label.ENTAILED if entailed >= 0.5 else Label.NEUTRAL
    return Verdict(label=label, entailed=entailed, neutral=1.0 - entailed, contradicted=0.0)


def f1_of(response: list[Verdict | None], ground_truth: list[Verdict | None]) -> float | None:
    matrices = VerdictMatrices(
        response_vs_ground_truth=VerdictMatrix.of([[each] for each in response], 1),
        ground_truth_vs_response=VerdictMatrix.of([[each] for each in ground_truth], 1),
    )
    return measure(matrices).metrics.get("f1")


labels = st.lists(st.sampled_from(Label), min_size=1, max_size=12)


@given(response=labels, ground_truth=labels)
def test_labels_alone_give_ragcheckers_f1_to_the_last_bit(
    response: list[Label], ground_truth: list[Label]
) -> None:
    precision = sum(each is Label.ENTAILED for each in response) / len(response)
    recall = sum(each is Label.ENTAILED for each in ground_truth) / len(ground_truth)
    both = precision + recall
    expected = 2 * precision * recall / both if precision and recall else 0.0

    found = f1_of(
        [Verdict(label=each) for each in response], [Verdict(label=each) for each in ground_truth]
    )

    assert found == expected


@pytest.mark.parametrize("p", [0.8, 0.9, 0.98, 1.0])
def test_a_verdict_that_is_sure_counts_as_one(p: float) -> None:
    assert f1_of([verdict(p)], [verdict(p)]) == 1.0
    assert f1_of([verdict(1 - p)], [verdict(p)]) == 0.0


def test_a_claim_that_is_right_for_the_most_part_counts_for_most_of_one() -> None:
    found = f1_of([verdict(0.75)], [verdict(0.75)])

    assert found == pytest.approx(0.55 / 0.6)


def test_a_claim_that_is_right_in_part_lifts_an_answer_above_one_that_is_not() -> None:
    in_part = f1_of([verdict(0.4), verdict(1.0)], [verdict(1.0)])
    wrong = f1_of([verdict(0.0), verdict(1.0)], [verdict(1.0)])

    assert in_part is not None
    assert wrong is not None
    assert in_part > wrong


def test_what_is_undecided_does_not_count() -> None:
    assert f1_of([verdict(1.0), None], [verdict(1.0)]) == 1.0
    assert f1_of([None], [verdict(1.0)]) is None


@given(
    ps=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12),
    more=st.integers(0, 11),
    by=st.floats(0.0, 1.0),
)
def test_a_claim_that_is_likelier_entailed_never_lowers_it(
    ps: list[float], more: int, by: float
) -> None:
    lifted = [min(1.0, p + by) if i == more else p for i, p in enumerate(ps)]
    truth = [verdict(1.0)]

    before = f1_of([verdict(p) for p in ps], list(truth))
    after = f1_of([verdict(p) for p in lifted], list(truth))

    assert before is not None
    assert after is not None
    assert after >= before or math.isclose(after, before)
