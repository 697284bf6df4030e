"""Criteria in the user's words: what is asked, what becomes of the grades, and what they cost."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import pytest
from pydantic import JsonValue

from claimspan import Chunk, Evaluation, RagRecord, evaluate, evaluate_many
from claimspan.cost import Budget
from claimspan.cost.pricing import Price
from claimspan.errors import ConfigError
from claimspan.evaluation.estimate import aestimate
from claimspan.evaluation.evaluate import aevaluate, aevaluate_many
from claimspan.evaluation.judgement import LOW, judgement_of
from claimspan.evaluation.selection import MetricsLike
from claimspan.judges import (
    CalibratedJudge,
    CascadeJudge,
    Judge,
    LexicalJudge,
    ModelJudge,
    OpenAIJudge,
    default_judge,
)
from claimspan.judges.calibrated import JudgeCalibration
from claimspan.judges.criteria import ANSWER_RELEVANCE, Criterion
from claimspan.judges.protocol import ContextJudge, CriteriaJudge, Grade, SparseJudge
from claimspan.judges.verdict_cache import VerdictCache
from claimspan.testing import ScriptedJudge

from graders import GradingModel, rows
from judge_server import JudgeServer, judge_server
from judged import RECORD, make_judge

POLITE = Criterion("polite", "The answer is polite and does not blame the user.")
CITED = Criterion("cited", "The answer names the chunk of each fact.", with_chunks=True, scale=5)
BLAMING = Criterion("blaming", "The answer blames the user.", lower_is_better=True)


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with judge_server() as server:
        yield server


def graded(*grades: str) -> GradingModel:
    """A model that gives these grades to the criteria in turn."""
    return GradingModel(lambda asked: rows(asked, *grades))


def evaluated(model: GradingModel, *criteria: Criterion, record: RagRecord = RECORD) -> Evaluation:
    return evaluate(record, judge=model.judge, metrics=[*criteria])


# --- in an evaluation ---


def test_a_criterion_is_a_score_beside_the_others_with_reason_threshold_and_direction() -> None:
    model = graded("yes", "4", "no")

    found = evaluate(RECORD, judge=model.judge, metrics=["default", POLITE, CITED, BLAMING])

    assert found.metrics["polite"] == 1.0
    assert found.metrics["cited"] == 0.75
    assert found.metrics["blaming"] == 0.0
    assert {"faithfulness", "groundedness", "precision", "f1"} <= found.metrics.keys()
    assert found.explanations == {
        "polite": "Reason 1.",
        "cited": "Reason 2.",
        "blaming": "Reason 3.",
    }
    assert found.lower_is_better == ("blaming",)
    assert {name: found.thresholds[name] for name in ("polite", "cited", "blaming")} == {
        "polite": 0.75,
        "cited": 0.75,
        "blaming": 0.25,
    }
    assert Evaluation.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize(
    ("criterion", "grade", "label"),
    [
        (POLITE, "yes", "good"),
        (POLITE, "no", "low"),
        (CITED, "4", "good"),
        (CITED, "3", "low"),
        (BLAMING, "no", "good"),
        (BLAMING, "yes", "low"),
        (Criterion("x", "It is.", scale=5, lower_is_better=True), "4", "low"),
        (Criterion("x", "It is.", scale=5, lower_is_better=True), "2", "good"),
        (Criterion("x", "It is.", scale=5, threshold=0.5), "3", "good"),
        (Criterion("x", "It is.", scale=5, threshold=0.0, lower_is_better=True), "2", "low"),
    ],
)
def test_a_record_is_low_by_the_threshold_of_its_criterion(
    criterion: Criterion, grade: str, label: str
) -> None:
    judged = judgement_of(evaluated(graded(grade), criterion))

    (score,) = judged.scores
    assert judged.label == score.label == label
    assert score.explanation == "Reason 1."


def test_the_reason_of_a_low_criterion_is_what_is_said_of_the_record() -> None:
    found = evaluate(RECORD, judge=graded("no").judge, metrics=["faithfulness", POLITE])

    judged = judgement_of(found)

    assert [each.name for each in judged.low] == ["polite"]
    assert judged.summary == "polite 0.00: Reason 1."


def test_a_threshold_of_the_evaluation_goes_before_that_of_the_criterion() -> None:
    found = evaluate(RECORD, judge=graded("3").judge, metrics=[CITED], thresholds={"cited": 0.5})

    assert judgement_of(found).label == "good"


@pytest.mark.parametrize(
    ("scale", "grade", "score"),
    [(2, "1", 0.0), (2, "2", 1.0), (5, "1", 0.0), (5, "2", 0.25), (5, "5", 1.0), (10, "10", 1.0)],
)
def test_a_scale_begins_at_nothing_and_ends_at_one(scale: int, grade: str, score: float) -> None:
    found = evaluated(graded(grade), Criterion("x", "It is.", scale=scale))

    assert found.metrics == {"x": score}


def test_a_criterion_that_nothing_shows_has_no_score_but_the_reason_and_no_error() -> None:
    record = RECORD.model_copy(update={"chunks": ()})
    model = GradingModel(
        lambda _: [{"criterion": "1", "reason": "No tone is heard.", "grade": "cannot tell"}]
    )

    (found,) = evaluate_many([record], judge=model.judge, metrics=[POLITE])

    assert found.metrics == {}
    assert found.undefined == {"polite": "No tone is heard."}
    assert found.error is None
    assert len(model.requests) == 1


async def test_a_chunk_criterion_of_a_record_without_chunks_is_not_asked() -> None:
    record = RECORD.model_copy(update={"chunks": (Chunk(id="a", text=" \n"),)})
    model = graded("yes")

    found = await aevaluate(record, judge=model.judge, metrics=[CITED])

    assert found.undefined == {"cited": "the record has no chunks"}
    assert model.requests == []


async def test_a_judge_that_fails_leaves_every_criterion_undefined() -> None:
    class Failing(GradingModel):
        async def complete(self, request: object) -> object:  # type: ignore[override]  # - it raises
            raise RuntimeError

    (found,) = await aevaluate_many([RECORD], judge=ModelJudge(Failing()), metrics=[POLITE, CITED])  # type: ignore[arg-type]  # - as above

    assert found.error is not None
    assert found.undefined == {"polite": "the judge failed", "cited": "the judge failed"}


def test_an_answer_that_declines_is_graded_all_the_same() -> None:
    refusal = RECORD.model_copy(update={"response": "I'm sorry, but I can't assist with that."})

    found = evaluate(refusal, judge=graded("yes").judge, metrics=["faithfulness", POLITE])

    assert found.abstained
    assert found.metrics == {"polite": 1.0}


def test_the_shipped_criterion_is_chosen_by_its_name() -> None:
    model = graded("5")

    found = evaluate(RECORD, judge=model.judge, metrics="answer_relevance")

    assert found.metrics == {"answer_relevance": 1.0}
    assert ANSWER_RELEVANCE.statement in json.dumps(model.asked[0])


# --- what is asked ---


def test_all_criteria_go_into_one_call_with_question_and_answer_and_without_the_truth() -> None:
    model = graded("yes", "no")

    evaluated(model, POLITE, BLAMING)

    (asked,) = model.asked
    assert asked == {
        "criteria": {
            "1": {"statement": POLITE.statement, "grades": "yes, no"},
            "2": {"statement": BLAMING.statement, "grades": "yes, no"},
        },
        "question": RECORD.query,
        "answer": RECORD.response,
        "call": asked["call"],
    }
    assert str(RECORD.ground_truth) not in str(model.requests)


def test_the_chunks_go_in_once_if_a_criterion_is_about_them() -> None:
    model = graded("yes", "5")
    chunks = (*RECORD.chunks, RECORD.chunks[0])

    evaluated(model, POLITE, CITED, record=RECORD.model_copy(update={"chunks": chunks}))

    (asked,) = model.asked
    assert asked["passages"] == [each.text for each in RECORD.chunks]
    assert asked["criteria"] == {
        "1": {"statement": POLITE.statement, "grades": "yes, no"},
        "2": {"statement": CITED.statement, "grades": "1 to 5", "passages": True},
    }


def test_the_exact_schema_has_the_grades_of_each_criterion() -> None:
    model = graded("yes", "5")

    evaluate(RECORD, judge=ModelJudge(model, exact_schema=True), metrics=[POLITE, CITED])

    schema = json.dumps(model.requests[0].schema)
    assert '{"enum": ["no", "yes", "cannot tell"]}' in schema
    assert '{"enum": ["1", "2", "3", "4", "5", "cannot tell"]}' in schema


def test_the_openai_client_grades_at_a_real_endpoint(server: JudgeServer) -> None:
    river = Criterion("river", "The answer mentions a river.")
    sea = Criterion("seaside", "It speaks of ports.", scale=4)

    found = evaluate(RECORD, judge=make_judge(server.url), metrics=["default", river, sea])

    assert (found.metrics["river"], found.metrics["seaside"]) == (1.0, 0.0)
    assert found.explanations["river"] == "It speaks of river."
    assert server.kinds == {"extract": 2, "check": 1, "grade": 1}
    assert found.usage.calls == 4
    (grading,) = [each for each in server.exchanges if "criteria" in each.asked]
    assert grading.schema["required"] == ["call", "grades"]


async def test_the_grading_runs_beside_the_verdicts(server: JudgeServer) -> None:
    await aevaluate(RECORD, judge=make_judge(server.url))  # loads the client
    server.reset()
    server.latency = 0.5  # long enough for the third of three to arrive on a busy machine

    await aevaluate(RECORD, judge=make_judge(server.url), metrics=["default", POLITE])

    assert server.most_active == 3


# --- what is known already ---


def test_a_grade_is_cached_and_a_new_criterion_is_asked_alone(tmp_path: Path) -> None:
    model = graded("yes", "no")
    for _ in range(2):
        cache = VerdictCache(tmp_path / "cache")
        judge = ModelJudge(model, cache=cache)
        evaluate(RECORD, judge=judge, metrics=[POLITE])
        found = evaluate(RECORD, judge=judge, metrics=[POLITE, BLAMING])
        cache.close()
        assert found.explanations == {"polite": "Reason 1.", "blaming": "Reason 1."}

    assert len(model.requests) == 2
    assert model.asked[1]["criteria"] == {
        "1": {"statement": BLAMING.statement, "grades": "yes, no"}
    }


@pytest.mark.parametrize(
    ("change", "calls"),
    [
        ({"query": "Another?"}, 2),
        ({"response": "Another."}, 2),
        ({"chunks": RECORD.chunks[:1]}, 2),
        ({"ground_truth": "Another."}, 1),
        ({"id": "another"}, 1),
    ],
)
def test_a_grade_is_that_of_question_answer_and_chunks(
    change: dict[str, JsonValue], calls: int
) -> None:
    model = graded("5")
    judge = model.judge

    for record in (RECORD, RECORD.model_copy(update=change)):
        evaluate(record, judge=judge, metrics=[CITED])

    assert len(model.requests) == calls


async def test_records_that_are_equal_are_graded_once_at_a_time(server: JudgeServer) -> None:
    server.latency = 0.1

    found = await aevaluate_many([RECORD] * 5, judge=make_judge(server.url), metrics=[POLITE])

    assert {each.metrics["polite"] for each in found} == {0.0}
    assert server.kinds == {"grade": 1}


# --- judges that wrap others ---


def test_a_judge_around_one_that_can_grade_grades() -> None:
    model = graded("yes").judge
    calibrated = CalibratedJudge(model, JudgeCalibration(judge=model.name, threshold=0.5))

    for judge in (calibrated, CascadeJudge(LexicalJudge(), calibrated), CascadeJudge(model, model)):
        found = evaluate(RECORD, judge=judge, metrics=["default", POLITE])
        assert found.metrics["polite"] == 1.0
        assert "faithfulness" in found.metrics


def test_in_a_cascade_the_strong_judge_grades() -> None:
    cheap, strong = graded("no"), graded("yes")

    found = evaluate(RECORD, judge=CascadeJudge(cheap.judge, strong.judge), metrics=[POLITE])

    assert found.metrics == {"polite": 1.0}
    assert cheap.requests == []


LEXICAL = JudgeCalibration(judge="lexical", threshold=0.5)


@pytest.mark.parametrize(
    "judge",
    [
        LexicalJudge(),
        CalibratedJudge(LexicalJudge(), LEXICAL),
        CascadeJudge(LexicalJudge(), LexicalJudge()),
        CascadeJudge(LexicalJudge(), CalibratedJudge(LexicalJudge(), LEXICAL)),
        default_judge("lexical"),
    ],
)
def test_a_judge_without_a_model_refuses_criteria_before_anything_is_judged(judge: Judge) -> None:
    assert not isinstance(judge, CriteriaJudge)
    for call in (
        lambda: evaluate(RECORD, judge=judge, metrics=[POLITE]),
        lambda: evaluate_many([RECORD], judge=judge, metrics=[POLITE]),
    ):
        with pytest.raises(ConfigError, match=r"criterion 'polite' needs a language model"):
            call()


def test_a_calibrated_judge_has_the_calls_of_the_judge_behind_it_and_no_other() -> None:
    simple = ScriptedJudge({})
    plain = CalibratedJudge(simple, JudgeCalibration(judge=simple.name, threshold=0.5))
    model = graded().judge
    whole = CalibratedJudge(model, JudgeCalibration(judge=model.name, threshold=0.5))

    kinds = (SparseJudge, ContextJudge, CriteriaJudge)
    assert [isinstance(plain, each) for each in kinds] == [False, False, False]
    assert [isinstance(whole, each) for each in kinds] == [True, True, True]


class _OwnGrader(LexicalJudge):
    """A judge of a user's that returns what a test gives it."""

    def __init__(self, grades: object) -> None:
        super().__init__()
        self._grades = grades

    async def grade(self, criteria: Sequence[Criterion], record: RagRecord) -> Sequence[Grade]:
        return cast("Sequence[Grade]", self._grades)


@pytest.mark.parametrize(
    "grades",
    [
        None,
        [],
        [Grade(1.0, ""), Grade(1.0, "")],
        [1.0],
        [Grade(7.0, "too much")],
        [Grade(float("nan"), "no number")],
    ],
)
def test_what_a_judge_of_the_users_returns_is_checked(grades: object) -> None:
    (found,) = evaluate_many([RECORD], judge=_OwnGrader(grades), metrics=[POLITE])

    assert found.metrics == {}
    assert "returned" in str(found.error)


# --- cost ---


async def test_the_estimate_counts_gradings_and_what_is_not_chosen_does_not_count(
    server: JudgeServer,
) -> None:
    choices: list[MetricsLike | None] = [None, "all", [POLITE], ["default", POLITE, CITED]]
    for metrics in choices:
        server.reset()
        judge = OpenAIJudge("stub", base_url=server.url)
        expected = await aestimate([RECORD], judge, metrics)
        assert server.calls == 0
        found = await aevaluate(RECORD, judge=judge, metrics=metrics)
        assert expected.calls == found.usage.calls == server.calls
        assert expected.input_tokens == pytest.approx(server.prompt_tokens, rel=0.1)


async def test_an_estimate_of_criteria_by_a_judge_without_a_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="needs a language model"):
        await aestimate([RECORD], LexicalJudge(), [POLITE])


async def test_a_grading_is_reserved_on_the_budget_and_booked(server: JudgeServer) -> None:
    budget = Budget(per_day=1.0)
    judge = OpenAIJudge("stub", base_url=server.url, price=Price(input=10.0, output=100.0))

    found = await aevaluate(RECORD, judge=judge, metrics=[POLITE], budget=budget)

    assert found.usage.calls == 1
    assert found.usage.input_tokens == server.prompt_tokens > 0
    assert found.usage.cost_usd > 0
    assert budget.spent_today.cost_usd == pytest.approx(found.usage.cost_usd)


def test_it_works_on_a_running_loop_and_without_one() -> None:
    async def inside() -> Evaluation:
        return evaluate(RECORD, judge=graded("yes").judge, metrics=[POLITE])

    assert asyncio.run(inside()).metrics == evaluated(graded("yes"), POLITE).metrics


# --- criteria themselves ---


def test_name_and_statement_are_enough_and_the_others_go_by_name() -> None:
    assert (POLITE.scale, POLITE.threshold, POLITE.with_chunks) == (None, 0.75, False)
    assert BLAMING.threshold == 0.25
    with pytest.raises(TypeError):
        Criterion("polite", "The answer is polite.", True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue] - the mistake


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"name": "Polite!"}, "small letters"),
        ({"name": "faithfulness"}, "which claimspan uses"),
        ({"statement": " "}, "has no statement"),
        ({"statement": "x" * 2_001}, "2,001 characters"),
        ({"scale": 1}, "2 to 10"),
        ({"scale": 2.5}, "2 to 10"),
        ({"threshold": 75}, "between 0.0 and 1.0"),
    ],
)
def test_a_criterion_that_cannot_work_says_why(wrong: dict[str, JsonValue], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        Criterion(**{"name": "x", "statement": "It is.", **wrong})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - the mistake


def test_low_is_what_a_judge_said_of_an_answer_and_nothing_else() -> None:
    found = evaluated(graded("cannot tell"), POLITE)

    assert judgement_of(found).label == "unknown"
    assert [each for each in judgement_of(found).scores if each.label == LOW] == []
