"""Scores as people read them: a label for each, and the counts behind every low one in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import Final, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimspan.evaluation import Assessment, Evaluation, judgement_of
from claimspan.evaluation.diagnosis import Part
from claimspan.evaluation.judgement import GOOD, LOW, MAX_REASON_BYTES, NEUTRAL, UNKNOWN
from claimspan.metrics import CATALOGUE, DEFAULT_METRICS, METRICS, Undefined, measure
from claimspan.metrics.compute import matrices_of_labels
from claimspan.metrics.truths import Truths, UndefinedMetricError
from claimspan.verdicts import Claim, Label, Verdict, VerdictMatrices, VerdictMatrix

E, N, C = Label.ENTAILED, Label.NEUTRAL, Label.CONTRADICTED
COUNTS: Final = re.compile(r"(\d+) of (\d+) (claim|fact|chunk)s? ")

SHARES: Final = sorted(name for name, each in CATALOGUE.items() if each.told)
"""The metrics whose failures are counted in words."""


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
    found = judgement_of(evaluation, chunk_ids=chunk_ids, quotes=quotes)
    return {each.name: each.explanation for each in found.scores}


def labels_of(evaluation: Evaluation) -> dict[str, str]:
    return {each.name: each.label for each in judgement_of(evaluation).scores}


# --- labels of scores ---


def test_every_score_is_assessed_in_its_order() -> None:
    evaluation = RIVERS.evaluation()

    assert [(each.name, each.value) for each in judgement_of(evaluation).scores] == list(
        evaluation.metrics.items()
    )


@pytest.mark.parametrize("metric", [n for n, m in CATALOGUE.items() if m.threshold is not None])
def test_a_score_is_good_from_its_threshold_on(metric: str) -> None:
    known = CATALOGUE[metric]
    limit = known.threshold or 0.0
    beyond = limit + 0.01 if known.failure else limit - 0.01

    found = [labels_of(Evaluation(metrics={metric: value})) for value in (limit, beyond)]

    assert found == [{metric: GOOD}, {metric: LOW}]


def test_a_share_that_misses_its_threshold_by_rounding_alone_is_at_it() -> None:
    assert labels_of(Evaluation(metrics={"contradicted_by_chunks": 1 - 0.8})) == {
        "contradicted_by_chunks": GOOD
    }


@pytest.mark.parametrize("metric", ["context_precision", "self_knowledge"])
def test_a_metric_that_is_low_on_all_traffic_calls_no_record_low(metric: str) -> None:
    found = judgement_of(Evaluation(metrics={metric: 0.0}))

    assert (found.label, found.summary, found.scores[0].label) == (UNKNOWN, "", NEUTRAL)


def test_a_metric_of_ones_own_is_low_by_its_own_threshold_and_direction() -> None:
    evaluation = Evaluation(
        metrics={"politeness": 0.5, "blame": 0.5, "wit": 0.0},
        thresholds={"politeness": 0.75, "blame": 0.2},
        lower_is_better=("blame",),
        explanations={"politeness": "It scolds the user."},
    )

    assert judgement_of(evaluation).scores == (
        Assessment(name="politeness", value=0.5, label=LOW, explanation="It scolds the user."),
        Assessment(name="blame", value=0.5, label=LOW),
        Assessment(name="wit", value=0.0, label=NEUTRAL),
    )


# --- reasons ---


@pytest.mark.parametrize(
    "metric", [n for n, m in CATALOGUE.items() if m.threshold is not None and not m.mean_of]
)
def test_every_share_that_can_be_low_has_its_reason(metric: str) -> None:
    assert CATALOGUE[metric].told
    assert CATALOGUE[metric].counted is not None


@pytest.mark.parametrize("metric", METRICS)
def test_a_metric_names_the_verdicts_that_it_needs_and_no_others(metric: str) -> None:
    every = RIVERS.evaluation().matrices
    every = every.model_copy(
        update={"response_vs_context": VerdictMatrix.of([[Verdict(label=E)]] * 4)}
    )
    graded = Verdict(label=E, entailed=1.0, neutral=0.0, contradicted=0.0)
    answer = VerdictMatrix.of([[graded]] * 3)
    every = every.model_copy(update={"ground_truth_vs_response": answer})
    needed = CATALOGUE[metric].needs
    enough = VerdictMatrices(**{name: getattr(every, name) for name in needed})

    assert CATALOGUE[metric].value(Truths(enough)) == CATALOGUE[metric].value(Truths(every))
    for name in needed:
        lacking = enough.model_copy(update={name: None})
        if metric == "groundedness" and name == "response_vs_chunks":
            continue  # it says only that there are no chunks
        with pytest.raises(UndefinedMetricError):
            CATALOGUE[metric].value(Truths(lacking))


@given(labels())
def test_the_counts_of_a_reason_are_those_behind_its_score(case: Labels) -> None:
    for each in judgement_of(case.evaluation()).scores:
        if each.label == LOW and each.name in SHARES:
            found = COUNTS.match(each.explanation)
            assert found is not None, each
            failed = Fraction(int(found[1]), int(found[2]))
            good = failed if CATALOGUE[each.name].failure else 1 - failed
            assert each.value == pytest.approx(float(good))
        elif each.label == GOOD:
            assert each.explanation == ""


@given(labels())
def test_every_low_score_of_a_mean_tells_what_made_it_low(case: Labels) -> None:
    for each in judgement_of(case.evaluation()).scores:
        if each.label == LOW and CATALOGUE[each.name].mean_of:
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
        (
            "precision",
            "3 of 4 claims are not in the ground truth, which contradicts 1 of them: 'claim 1'; ",
        ),
        ("recall", "2 of 3 facts of the ground truth are missing from the answer: 'fact 1'; 'f"),
        (
            "f1",
            "3 of 4 claims are not in the ground truth, which contradicts 1 of them; 2 of 3 fact",
        ),
        ("claim_recall", "2 of 3 facts of the ground truth are in no chunk: 'fact 1'; 'fact 2'"),
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
        ("context_precision", ""),
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
    assert labels_of(evaluation)["soft_alignment"] == NEUTRAL  # it is unsure, and not wrong
    assert explanations(evaluation)["alignment"] == ""


def test_a_score_of_undecided_verdicts_that_counts_as_0_says_so() -> None:
    undecided = Labels([None], [None], [[None, None]], [[None, None]])

    low = {e.name: e.explanation for e in judgement_of(undecided.evaluation("zero")).low}
    assert "faithfulness" in low
    why = "without a value, counted as 0: every verdict is undecided"
    assert low == dict.fromkeys(low, why)


def test_scores_without_their_verdicts_have_no_reason() -> None:
    assert explanations(Evaluation(metrics={"faithfulness": 0.1, "f1": 0.1})) == {
        "faithfulness": "",
        "f1": "",
    }


# --- the summary ---


def test_the_summary_gives_the_reason_of_the_most_telling_score_and_names_the_others() -> None:
    summary = judgement_of(RIVERS.evaluation()).summary

    assert summary.startswith(
        "faithfulness 0.50: 2 of 4 claims are in no chunk: 'claim 1'; 'claim 3' "
        "(also low: contradicted_by_chunks 0.25, precision 0.25, recall 0.33, "
    )
    assert "self_knowledge" not in summary
    assert "context_precision" not in summary


def test_the_summary_of_one_low_score_is_its_reason() -> None:
    evaluation = Labels([E], [E], [[N]], [[E]]).evaluation()
    found = judgement_of(
        evaluation.model_copy(update={"metrics": {"faithfulness": 0.0, "context_precision": 0.2}})
    )

    assert found.summary == "faithfulness 0.00: 1 of 1 claim is in no chunk: 'claim 0'"


def test_good_scores_have_no_summary() -> None:
    assert judgement_of(Labels([E], [E], [[E, N, N]], [[E, N, N]]).evaluation()).summary == ""


# --- the judgement of a record, by the cases of docs/scores.md ---


class Case(NamedTuple):
    """The claims of an answer by ``(chunks, ground truth)``; facts by ``(chunks, answer)``."""

    claims: Sequence[tuple[Label, Label | None]]
    facts: Sequence[tuple[Label, Label]]
    label: str
    part: Part
    abstained: bool = False


CASES: Final = {
    "right and supported": Case([(E, E)], [(E, E)], GOOD, Part.NONE),
    "it says more than a short truth": Case([(E, E), (E, N), (E, N)], [(E, E)], GOOD, Part.NONE),
    "it says more, and that is in no chunk": Case([(E, E), (N, N)], [(E, E)], LOW, Part.GENERATOR),
    "one claim of ten that the truth contradicts": Case(
        [(E, E)] * 9 + [(E, C)], [(E, E)] * 9 + [(E, C)], LOW, Part.GENERATOR
    ),
    "right, by what the model knows": Case([(N, E)], [(N, E)], LOW, Part.RETRIEVER),
    "wrong, and the fact was not retrieved": Case([(N, C)], [(N, C)], LOW, Part.BOTH),
    "contradicted by a chunk": Case([(C, C)], [(E, C)], LOW, Part.GENERATOR),
    "incomplete": Case([(E, E)], [(E, E), (E, N)], LOW, Part.GENERATOR),
    "incomplete, since half was not retrieved": Case(
        [(E, E)], [(E, E), (N, N)], LOW, Part.RETRIEVER
    ),
    "it declines, and the chunks hold the fact": Case(
        [], [(E, N)], LOW, Part.GENERATOR, abstained=True
    ),
    "it declines, and the chunks lack the fact": Case(
        [], [(N, N)], LOW, Part.RETRIEVER, abstained=True
    ),
    "without a truth, supported": Case([(E, None)], [], GOOD, Part.NONE),
    "without a truth, in no chunk": Case([(N, None)], [], LOW, Part.GENERATOR),
    "without a truth, it declines": Case([], [], UNKNOWN, Part.UNKNOWN, abstained=True),
    "one claim of ten in no chunk": Case([(E, None)] * 9 + [(N, None)], [], GOOD, Part.NONE),
    "a fact that the judge finds in no chunk, but supported claims state": Case(
        [(E, E)], [(N, E)], GOOD, Part.NONE
    ),
}


def evaluation_of(case: Case, **update: object) -> Evaluation:
    has_truth = bool(case.facts)
    found = matrices_of_labels(
        response_vs_chunks=[[chunk] for chunk, _ in case.claims],
        response_vs_ground_truth=[truth for _, truth in case.claims] if has_truth else None,
        ground_truth_vs_response=[answer for _, answer in case.facts] if has_truth else None,
        ground_truth_vs_chunks=[[chunk] for chunk, _ in case.facts] if has_truth else None,
        response_vs_context=[chunk for chunk, _ in case.claims],
    )
    evaluation = Evaluation(
        metrics=measure(found, metrics=DEFAULT_METRICS).metrics,
        matrices=found,
        response_claims=_claims("claim", len(case.claims), "{what} {i}"),
        ground_truth_claims=_claims("fact", len(case.facts), "{what} {i}"),
        abstained=case.abstained,
    )
    return evaluation.model_copy(update=update)


@pytest.mark.parametrize("name", CASES)
def test_a_record_is_judged_as_the_table_of_cases_says(name: str) -> None:
    case = CASES[name]
    found = judgement_of(evaluation_of(case))

    assert (found.label, found.part) == (case.label, case.part), found
    assert bool(found.summary) == (case.label == LOW)
    assert found.sentences


def test_an_answer_that_declines_and_is_low_says_so_first() -> None:
    case = CASES["it declines, and the chunks hold the fact"]

    assert judgement_of(evaluation_of(case)).summary.startswith(
        "the answer declines; recall 0.00: 1 of 1 fact"
    )


def test_what_is_excused_is_told_with_the_excuse_and_is_not_low() -> None:
    case = CASES["it says more than a short truth"]
    found = {each.name: each for each in judgement_of(evaluation_of(case)).scores}

    assert (found["precision"].label, found["f1"].label) == (NEUTRAL, NEUTRAL)
    assert found["precision"].explanation == (
        "2 of 3 claims are not in the ground truth: 'claim 1'; 'claim 2'; "
        "the chunks support what a short ground truth does not mention"
    )


def test_a_threshold_of_ones_own_is_taken_literally_and_excuses_nothing() -> None:
    case = CASES["it says more than a short truth"]
    strict = evaluation_of(case, thresholds={"precision": 0.9})
    lenient = evaluation_of(
        CASES["without a truth, in no chunk"], thresholds={"faithfulness": 0.0, "groundedness": 0.0}
    )

    assert judgement_of(strict).label == LOW
    assert (judgement_of(lenient).label, judgement_of(lenient).part) == (GOOD, Part.NONE)


@given(labels(), st.sampled_from([METRICS, DEFAULT_METRICS, ("precision",), ("recall", "f1")]))
def test_label_summary_and_blame_of_any_verdicts_agree(
    case: Labels, metrics: tuple[str, ...]
) -> None:
    whole = case.evaluation()
    chosen = {name: value for name, value in whole.metrics.items() if name in metrics}
    found = judgement_of(whole.model_copy(update={"metrics": chosen}))

    assert (found.label == LOW) == bool(found.low) == bool(found.summary)
    assert (found.label == GOOD) == (found.part is Part.NONE)
    assert found.label == LOW or not (found.part.is_bad or found.doubts)
    assert found.label != UNKNOWN or found.part is Part.UNKNOWN


@given(labels())
def test_an_answer_that_the_ground_truth_contradicts_is_never_good(case: Labels) -> None:
    denied = C in case.of_response or C in case.of_truth

    assert not denied or judgement_of(case.evaluation()).label == LOW


@pytest.mark.parametrize(
    ("dropped", "told"),
    [(1, "1 more claim was not judged."), (1_950, "1,950 more claims were not judged.")],
)
def test_claims_that_were_not_judged_are_told_of_a_good_answer_too(dropped: int, told: str) -> None:
    case = CASES["without a truth, supported"]
    found = judgement_of(evaluation_of(case, claims_dropped=dropped))

    assert found.label == GOOD
    assert found.findings[-1] == told
