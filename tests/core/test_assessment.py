"""Scores as people read them: a label for each, and the counts behind every low one in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimspan.evaluation import Assessment, Evaluation, assess, label_of, summary_of
from claimspan.evaluation.assessment import GOOD, LOW, LOW_AT_LEAST, LOW_AT_MOST, NEUTRAL
from claimspan.evaluation.reasons import EXPECTED, MAX_REASON_BYTES, MEANS, REASONS
from claimspan.metrics import METRICS, Undefined, measure
from claimspan.metrics.compute import matrices_of_labels
from claimspan.report.glossary import describe
from claimspan.verdicts import Claim, Label, Verdict, VerdictMatrices, VerdictMatrix

E, N, C = Label.ENTAILED, Label.NEUTRAL, Label.CONTRADICTED
COUNTS: Final = re.compile(r"(\d+) of (\d+) (claim|fact|chunk)s? ")

# A slow machine is no broken promise.


class Labels(NamedTuple):
    """The labels of one record."""

    of_response: list[Label | None]
    of_truth: list[Label | None]
    response_in_chunks: list[list[Label | None]]
    truth_in_chunks: list[list[Label | None]]

    def evaluation(self, undefined: Undefined = "omit", text: str = "{what} {i}") -> Evaluation:
        matrices = matrices_of_labels(
            response_vs_ground_truth=self.of_response,
            ground_truth_vs_response=self.of_truth,
            response_vs_chunks=self.response_in_chunks,
            ground_truth_vs_chunks=self.truth_in_chunks,
        )
        return Evaluation(
            metrics=measure(matrices, undefined=undefined).metrics,
            matrices=matrices,
            response_claims=_claims("claim", len(self.of_response), text),
            ground_truth_claims=_claims("fact", len(self.of_truth), text),
        )


def _claims(what: str, number: int, text: str) -> tuple[Claim, ...]:
    return tuple(Claim(text=text.format(what=what, i=i)) for i in range(number))


@st.composite
def labels(draw: st.DrawFn) -> Labels:
    cell = st.one_of(st.none(), st.sampled_from(Label))
    n_r, n_g, k = (draw(st.integers(min_value=0, max_value=5)) for _ in range(3))

    def row(length: int) -> list[Label | None]:
        return draw(st.lists(cell, min_size=length, max_size=length))

    return Labels(row(n_r), row(n_g), [row(k) for _ in range(n_r)], [row(k) for _ in range(n_g)])


RIVERS: Final = Labels(
    of_response=[E, N, N, C],
    of_truth=[E, N, C],
    response_in_chunks=[[E, N, N], [N, N, N], [N, E, N], [N, C, C]],
    truth_in_chunks=[[E, N, N], [N, N, N], [N, N, N]],
)
"""Four claims, three facts and three chunks, with every kind of failure."""


def explanations(
    evaluation: Evaluation, *, chunk_ids: Sequence[str] = (), quotes: bool = True
) -> dict[str, str]:
    assessments = assess(evaluation, chunk_ids=chunk_ids, quotes=quotes)
    return {each.name: each.explanation for each in assessments}


# --- labels ---


def test_every_score_is_assessed_in_its_order() -> None:
    evaluation = RIVERS.evaluation()

    assert [(each.name, each.value) for each in assess(evaluation)] == list(
        evaluation.metrics.items()
    )


@pytest.mark.parametrize("metric", METRICS)
def test_a_quarter_that_failed_is_low_and_less_is_good(metric: str) -> None:
    ends = {True: (LOW_AT_LEAST, LOW_AT_LEAST - 0.01), False: (LOW_AT_MOST, LOW_AT_MOST + 0.01)}
    lower_is_better = describe(metric).lower_is_better
    low, good = ends[bool(lower_is_better)]

    found = [assess(Evaluation(metrics={metric: value}))[0].label for value in (low, good)]

    assert found == ([NEUTRAL, NEUTRAL] if lower_is_better is None else [LOW, GOOD])


def test_a_metric_of_others_is_low_where_its_value_is() -> None:
    metrics = {"politeness": 0.1, "wit": 0.9}

    assert assess(Evaluation(metrics=metrics)) == (
        Assessment(name="politeness", value=0.1, label=LOW, explanation=""),
        Assessment(name="wit", value=0.9, label=GOOD, explanation=""),
    )


# --- reasons ---


@pytest.mark.parametrize("metric", sorted({*METRICS} - {"self_knowledge", EXPECTED, *MEANS}))
def test_every_metric_with_a_bad_end_has_its_reason(metric: str) -> None:
    assert metric in REASONS


@given(labels())
def test_the_counts_of_a_reason_are_those_behind_its_score(case: Labels) -> None:
    for each in assess(case.evaluation()):
        if each.label == LOW and each.name in REASONS:
            found = COUNTS.match(each.explanation)
            assert found is not None, each
            failed = Fraction(int(found[1]), int(found[2]))
            good = failed if REASONS[each.name].failure else 1 - failed
            assert each.value == pytest.approx(float(good))
        elif each.label != LOW:
            assert each.explanation == ""


@given(labels())
def test_every_low_score_of_a_mean_tells_what_made_it_low(case: Labels) -> None:
    for each in assess(case.evaluation()):
        if each.label == LOW and each.name in MEANS:
            assert COUNTS.match(each.explanation)


@given(labels(), st.text(min_size=1, max_size=300))
def test_a_reason_is_one_line_of_at_most_a_kibibyte(case: Labels, text: str) -> None:
    evaluation = case.evaluation(text=text.replace("{", "(").replace("}", ")") * 9)
    found = explanations(evaluation, chunk_ids=[text * 9] * 3)

    for reason in found.values():
        assert len(reason.splitlines()) <= 1
        assert len(reason.encode("utf-8", "surrogatepass")) <= MAX_REASON_BYTES


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        ("precision", "3 of 4 claims are not in the ground truth: 'claim 1'; 'claim 2'; 'claim 3'"),
        ("recall", "2 of 3 facts of the ground truth are missing from the answer: 'fact 1'; 'f"),
        ("f1", "3 of 4 claims are not in the ground truth; 2 of 3 facts of the ground truth are m"),
        ("claim_recall", "2 of 3 facts of the ground truth are in no chunk: 'fact 1'; 'fact 2'"),
        ("context_precision", "2 of 3 chunks are not relevant to the ground truth: drava; [2]"),
        (
            "noise_sensitivity_in_irrelevant",
            "1 of 4 claims is not in the ground truth, but in irrelevant chunks: 'claim 2'",
        ),
        (
            "hallucination",
            "2 of 4 claims are neither in a chunk nor in the ground truth: 'claim 1'; 'claim 3'",
        ),
        ("faithfulness", "2 of 4 claims are in no chunk: 'claim 1'; 'claim 3'"),
        (
            "contradicted_by_chunks",
            "1 of 4 claims is contradicted by chunks drava, [2]: 'claim 3'",
        ),
        (
            "contradicted_by_ground_truth",
            "1 of 4 claims is contradicted by the ground truth: 'claim 3'",
        ),
        (
            "correctness",
            "1 of 2 facts of the ground truth that the answer takes up is not as the answer has "
            "it: 'fact 2'",
        ),
        ("self_knowledge", ""),
        ("context_utilization", ""),
    ],
)
def test_a_reason_names_what_failed(metric: str, reason: str) -> None:
    found = explanations(RIVERS.evaluation(), chunk_ids=["mur", "drava"])

    assert found[metric].startswith(reason)
    assert bool(found[metric]) == bool(reason)


def test_no_claim_is_quoted_where_none_may_be() -> None:
    found = explanations(RIVERS.evaluation(), quotes=False)

    assert found["faithfulness"] == "2 of 4 claims are in no chunk"
    assert not [reason for reason in found.values() if "'" in reason]


def test_a_long_claim_is_cut_and_a_broken_one_put_on_one_line() -> None:
    evaluation = RIVERS.evaluation(text="The {what}\n is " + 200 * "x")

    quoted = explanations(evaluation)["contradicted_by_ground_truth"].partition("'")[2]

    assert quoted == f"The claim is {'x' * 106}\N{HORIZONTAL ELLIPSIS}'"


def test_a_score_that_stands_for_none_says_so() -> None:
    nothing = Labels([], [], [], [])

    found = explanations(nothing.evaluation("zero"))

    assert found["faithfulness"] == "without a value, counted as 0: no response claims"
    assert found["alignment"] == "without a value, counted as 0: no ground truth claims"


def test_an_alignment_of_0_where_nothing_is_taken_up_says_that_facts_are_missing() -> None:
    found = explanations(Labels([N], [N, N], [[]], [[], []]).evaluation())

    assert found["alignment"] == "2 of 2 facts of the ground truth are missing from the answer"


def test_an_alignment_of_0_where_facts_are_denied_says_both() -> None:
    found = explanations(Labels([N], [C, N], [[]], [[], []]).evaluation())

    assert found["alignment"] == (
        "1 of 1 fact of the ground truth that the answer takes up is not as the answer has it; "
        "2 of 2 facts of the ground truth are missing from the answer"
    )


def test_the_reason_of_a_soft_alignment_gives_the_sums_of_probabilities() -> None:
    unsure = Verdict(label=E, entailed=0.6, neutral=0.1, contradicted=0.3)
    matrices = VerdictMatrices(ground_truth_vs_response=VerdictMatrix.of([[unsure], [unsure]]))
    evaluation = Evaluation(metrics=measure(matrices).metrics, matrices=matrices)

    assert explanations(evaluation)["soft_alignment"] == (
        "by probability the answer states 1.20 of 2 facts of the ground truth, and contradicts 0.60"
    )
    assert explanations(evaluation)["alignment"] == ""


def test_a_score_of_undecided_verdicts_that_counts_as_0_says_so() -> None:
    undecided = Labels([None], [None], [[None, None]], [[None, None]])

    assessments = assess(undecided.evaluation("zero"))

    low = {each.name: each.explanation for each in assessments if each.label == LOW}
    assert "faithfulness" in low
    why = "without a value, counted as 0: every verdict is undecided"
    assert low == dict.fromkeys(low, why)


def test_scores_without_their_verdicts_have_no_reason() -> None:
    assert explanations(Evaluation(metrics={"faithfulness": 0.1, "f1": 0.1})) == {
        "faithfulness": "",
        "f1": "",
    }


# --- the summary ---


def test_the_summary_gives_the_reason_of_the_main_score_and_names_the_others() -> None:
    summary = summary_of(assess(RIVERS.evaluation()))

    assert summary.startswith(
        "faithfulness 0.50: 2 of 4 claims are in no chunk: 'claim 1'; 'claim 3' "
        "(also low: precision 0.25, recall 0.33, "
    )
    assert "self_knowledge" not in summary


def test_the_summary_of_one_low_score_is_its_reason() -> None:
    evaluation = Labels([E], [E], [[E, N]], [[E, N]]).evaluation()

    assert summary_of(assess(evaluation)) == (
        "context_precision 0.50: 1 of 2 chunks is not relevant to the ground truth: [1]"
    )


def test_good_scores_have_no_summary() -> None:
    assert summary_of(assess(Labels([E], [E], [[E]], [[E]]).evaluation())) == ""


# --- labels of records ---


def test_a_record_is_low_where_a_score_is_low() -> None:
    assert label_of(assess(RIVERS.evaluation())) == LOW
    assert label_of(assess(Evaluation(metrics={"claim_recall": 0.5, "faithfulness": 1.0}))) == LOW


def test_a_right_answer_from_one_of_five_chunks_is_good() -> None:
    one_of_five: list[Label | None] = [E, N, N, N, N]
    assessments = assess(Labels([E], [E], [one_of_five], [one_of_five]).evaluation())

    assert {each.name for each in assessments if each.label == LOW} == {"context_precision"}
    assert label_of(assessments) == GOOD
    assert summary_of(assessments).startswith("context_precision 0.20: ")
