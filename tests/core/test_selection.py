"""What ``metrics=`` and ``thresholds=`` choose, and that nothing else is judged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, cast

import pytest

from claimspan import Chunk, Claim, Criterion, Evaluation, FunctionMetric, RagRecord, evaluate
from claimspan.errors import ConfigError
from claimspan.evaluation import aevaluate_many
from claimspan.evaluation.selection import MetricsLike, Selection
from claimspan.judges import LexicalJudge
from claimspan.judges.protocol import Cell, Grade
from claimspan.metrics import CATALOGUE, DEFAULT_METRICS, METRICS, WITHOUT_GROUND_TRUTH
from claimspan.verdicts import VerdictMatrix

WITHOUT_TRUTH: Final = RagRecord(
    query="How long is the Drava?",
    chunks=(Chunk(id="a", text="The Drava is 725 km long."), Chunk(id="b", text="It is a river.")),
    response="The Drava is 725 km long.",
)
RECORD: Final = WITHOUT_TRUTH.model_copy(update={"ground_truth": "The Drava is 725 km long."})
POLITE: Final = Criterion("polite", "The answer is polite and does not blame the user.")


class CountingJudge(LexicalJudge):
    """A judge that remembers what it was asked; it grades by the length of a statement."""

    def __init__(self) -> None:
        super().__init__()
        self.extracted: list[str] = []
        self.n_cells = 0
        self.graded: list[str] = []

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        self.extracted.append(text)
        return await super().extract_claims(text, question=question)

    async def check_context(
        self,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        *,
        context: Sequence[int],
        question: str | None = None,
    ) -> VerdictMatrix:
        self.n_cells += len(cells)
        return await super().check_context(
            claims, references, cells, context=context, question=question
        )

    async def check_cells(
        self,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        *,
        question: str | None = None,
    ) -> VerdictMatrix:
        self.n_cells += len(cells)
        return await super().check_cells(claims, references, cells, question=question)

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        self.n_cells += len(claims) * len(references)
        return await super().check(claims, references, question=question)

    async def grade(self, criteria: Sequence[Criterion], record: RagRecord) -> Sequence[Grade]:
        self.graded.append(record.response)
        await asyncio.sleep(0)
        return [Grade(0.5, f"{each.name} by half") for each in criteria]


# --- what is chosen ---


def test_few_scores_are_made_by_default_and_those_of_the_truth_only_with_one() -> None:
    assert tuple(evaluate(RECORD, judge="lexical").metrics) == DEFAULT_METRICS
    found = evaluate(WITHOUT_TRUTH, judge="lexical")
    assert tuple(found.metrics) == WITHOUT_GROUND_TRUTH
    assert found.undefined == {}


def test_all_is_every_metric() -> None:
    found = evaluate(RECORD, judge="lexical", metrics="all")

    assert {*found.metrics, *found.undefined} == {*METRICS}


@pytest.mark.parametrize(
    "metrics",
    ["recall, faithfulness", ["recall", "faithfulness"], ("faithfulness", "recall", "recall")],
)
def test_scores_stand_in_one_order_however_they_are_named(metrics: MetricsLike) -> None:
    assert list(evaluate(RECORD, judge="lexical", metrics=metrics).metrics) == [
        "faithfulness",
        "recall",
    ]


def test_a_metric_that_was_asked_for_by_name_says_why_it_has_no_value() -> None:
    found = evaluate(WITHOUT_TRUTH, judge="lexical", metrics=["recall", "faithfulness"])

    assert found.undefined == {"recall": "no ground truth"}


@pytest.mark.parametrize("metric", METRICS)
def test_what_is_not_chosen_is_not_judged(metric: str) -> None:
    judge = CountingJudge()
    found = evaluate(RECORD, judge=judge, metrics=[metric])

    needed = CATALOGUE[metric].needs
    cells = {
        "response_vs_chunks": 2,
        "response_vs_context": 1,
        "response_vs_ground_truth": 1,
        "ground_truth_vs_response": 1,
        "ground_truth_vs_chunks": 2,
    }
    texts = {"response", "ground_truth"} & {each.partition("_vs_")[0] for each in needed}
    assert judge.n_cells == sum(cells[name] for name in needed)
    assert len(judge.extracted) == len(texts)
    assert {name for name, matrix in found.matrices if matrix is not None} == needed
    assert {*found.metrics, *found.undefined} == {metric}


def test_a_chosen_metric_has_the_value_that_it_has_among_all() -> None:
    every = evaluate(RECORD, judge="lexical", metrics="all").metrics

    for metric in METRICS:
        alone = evaluate(RECORD, judge="lexical", metrics=[metric]).metrics
        assert alone == {metric: every[metric]} if metric in every else alone == {}


def test_the_matrices_of_all_metrics_are_all_matrices() -> None:
    def needed(names: Sequence[str]) -> set[str]:
        return {matrix for name in names for matrix in CATALOGUE[name].needs}

    assert len(needed(METRICS)) == 5
    assert needed(WITHOUT_GROUND_TRUTH) == {"response_vs_chunks", "response_vs_context"}


# --- metrics of one's own ---


def shortness(evaluation: Evaluation) -> float:
    return 1.0 if len(evaluation.response_claims) < 3 else 0.0


def test_a_plain_function_is_a_metric_after_ours() -> None:
    found = evaluate(RECORD, judge="lexical", metrics=["faithfulness", shortness])

    assert found.metrics == {"faithfulness": 1.0, "shortness": 1.0}
    assert found.judgement.scores[1].label == "neutral"


def test_a_function_with_threshold_and_direction_makes_a_record_low() -> None:
    worse = FunctionMetric(shortness, name="brevity", threshold=0.5, lower_is_better=True)
    found = evaluate(RECORD, judge="lexical", metrics=["default", worse])

    assert (found.judgement.label, found.judgement.summary) == ("low", "brevity 1.00")
    assert found.lower_is_better == ("brevity",)
    assert found.thresholds == {"brevity": 0.5}


def raising(evaluation: Evaluation) -> float:
    raise KeyError(evaluation.judge_name)


def wrong(evaluation: Evaluation) -> float:
    return float("nan") if evaluation.metrics else 7.0


def nothing(_: Evaluation) -> float | None:
    return None


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (raising, "the function raised KeyError"),
        (wrong, "the function returned no number between 0 and 1"),
        (nothing, "the function returned None"),
    ],
)
def test_a_function_that_fails_costs_its_own_score_alone(function: Any, why: str) -> None:
    found = evaluate(RECORD, judge="lexical", metrics=["faithfulness", function])

    assert found.metrics == {"faithfulness": 1.0}
    assert list(found.undefined.values()) == [why]


def test_a_criterion_is_graded_beside_the_claims_with_its_reason() -> None:
    judge = CountingJudge()
    found = evaluate(RECORD, judge=judge, metrics=["default", POLITE, "answer_relevance"])

    assert tuple(found.metrics) == (*DEFAULT_METRICS, "polite", "answer_relevance")
    assert found.explanations["polite"] == "polite by half"
    assert judge.graded == [RECORD.response]  # one call for both
    assert (
        found.judgement.summary == "polite 0.50: polite by half (also low: answer_relevance 0.50)"
    )


def test_criteria_alone_cost_no_claims() -> None:
    judge = CountingJudge()
    found = evaluate(RECORD, judge=judge, metrics=[POLITE])

    assert (judge.extracted, judge.n_cells) == ([], 0)
    assert found.metrics == {"polite": 0.5}


def test_an_evaluation_with_metrics_of_ones_own_equals_itself_after_json() -> None:
    found = evaluate(RECORD, judge=CountingJudge(), metrics=["default", POLITE, shortness])

    again = Evaluation.model_validate_json(found.model_dump_json())

    assert again == found
    assert again.judgement == found.judgement


def test_a_selection_is_the_same_in_another_process() -> None:
    chosen = Selection.of(["recall", POLITE], {"recall": 0.9})

    assert Selection.from_data(chosen.data()) == chosen
    assert Selection.of(chosen, {"polite": 0.1}).thresholds == {"recall": 0.9, "polite": 0.1}


def test_many_records_have_the_chosen_metrics_too_where_the_judge_fails() -> None:
    class Failing(LexicalJudge):
        async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
            raise OSError(text, question)

    (found,) = asyncio.run(
        aevaluate_many([WITHOUT_TRUTH], judge=Failing(), metrics=["default", shortness])
    )

    assert {*found.undefined} == {*WITHOUT_GROUND_TRUTH, "shortness"}


# --- what is refused, at set-up ---


def lambda_like() -> Any:
    made: Callable[[Evaluation], float] = lambda _: 1.0  # noqa: E731 - a lambda is what is refused
    return made


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("faithfullness", "did you mean 'faithfulness'"),
        ([], "metrics is empty"),
        ("", "metrics is empty"),
        (3, "of type int"),
        ([None], "of type NoneType"),
        ([lambda_like()], "FunctionMetric(function, name='...')"),
        ([POLITE, Criterion("polite", "Again.")], "two metrics are called 'polite'"),
        ([Criterion("recall", "So.")], "which claimspan uses"),
        ([Criterion(f"c{i}", "So.") for i in range(21)], "at most 20"),
        ({"recall": 1}, "of type dict"),
    ],
)
def test_metrics_that_cannot_work_are_refused_with_what_to_do(metrics: Any, message: str) -> None:
    with pytest.raises(ConfigError) as told:
        evaluate(RECORD, judge="lexical", metrics=metrics)

    assert message in str(told.value)


@pytest.mark.parametrize(
    ("thresholds", "message"),
    [
        ({"faithfullness": 0.9}, "did you mean 'faithfulness'"),
        ({"hallucination": 0.1}, "not chosen: add it to metrics"),
        ({"faithfulness": 90}, "such as 0.9 for 90 %"),
        ({"faithfulness": True}, "between 0.0 and 1.0"),
        ({"faithfulness": "0.9"}, "between 0.0 and 1.0"),
        (["faithfulness"], "thresholds is no mapping"),
    ],
)
def test_thresholds_that_cannot_work_are_refused_with_what_to_do(
    thresholds: Any, message: str
) -> None:
    with pytest.raises(ConfigError) as told:
        evaluate(RECORD, judge="lexical", thresholds=thresholds)

    assert message in str(told.value)


def test_a_threshold_on_a_metric_without_a_better_end_is_refused() -> None:
    with pytest.raises(ConfigError, match="neither end is better"):
        Selection.of("all", {"self_knowledge": 0.5})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Criterion("Polite", "So."), "small letters"),
        (lambda: Criterion("polite", " "), "no statement"),
        (lambda: Criterion("polite", "x" * 2_001), "at most 2,000"),
        (lambda: Criterion("polite", "So.", scale=1), "2 to 10 grades"),
        (lambda: Criterion("polite", "So.", threshold=75), "such as 0.75 for 75 %"),
        (lambda: FunctionMetric(shortness, name="a b"), "small letters"),
        (lambda: FunctionMetric(cast("Any", "shortness")), "give a function"),
    ],
)
def test_a_metric_of_ones_own_is_checked_when_it_is_made(
    make: Callable[[], object], message: str
) -> None:
    with pytest.raises(ConfigError) as told:
        make()

    assert message in str(told.value)


@pytest.mark.parametrize("judge", ["lexical", LexicalJudge()])
def test_a_criterion_without_a_language_model_is_refused(judge: str | LexicalJudge) -> None:
    with pytest.raises(ConfigError, match="needs a language model"):
        evaluate(RECORD, judge=judge, metrics=[POLITE])


@pytest.mark.parametrize("name", ["label", "query", "index", "error"])
def test_a_metric_of_ones_own_takes_no_column_of_a_table(name: str) -> None:
    with pytest.raises(ConfigError, match="which claimspan uses"):
        evaluate(RECORD, judge="lexical", metrics=[FunctionMetric(shortness, name=name)])


def meddling(evaluation: Evaluation) -> float:
    cast("dict[str, float]", evaluation.metrics)["faithfulness"] = 0.1
    return 0.5


def test_a_function_changes_no_score_but_its_own() -> None:
    found = evaluate(RECORD, judge="lexical", metrics=["faithfulness", meddling])

    assert found.metrics == {"faithfulness": 1.0, "meddling": 0.5}


async def delayed(_: Evaluation) -> float:
    return 0.5


def test_an_asynchronous_function_is_refused() -> None:
    with pytest.raises(ConfigError, match="asynchronous"):
        FunctionMetric(cast("Any", delayed))
