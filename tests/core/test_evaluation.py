"""One record: what the judge is asked, what comes back, and what it has cost."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Sequence
from typing import Any

import pytest

from claimspan import Chunk, Claim, Evaluation, Label, RagRecord, Usage, Verdict, VerdictMatrix
from claimspan.cost.usage import add_usage
from claimspan.errors import ConfigError, JudgeError
from claimspan.evaluation.evaluate import aevaluate, evaluate, evaluate_many
from claimspan.judges import Judge
from claimspan.metrics import DEFAULT_METRICS, METRICS
from claimspan.metrics.truths import NO_CONTEXT_VERDICTS

from scripted import (
    FACT,
    PRIVATE,
    QUESTION,
    TWO_CLAIMS,
    ScriptedJudge,
    SparseScriptedJudge,
    labels,
    make_record,
)

# --- one record ---


def test_the_scripted_judge_is_a_judge() -> None:
    assert isinstance(ScriptedJudge(), Judge)


def test_all_four_matrices_hold_what_the_judge_said() -> None:
    evaluation = evaluate(make_record(), judge=ScriptedJudge())

    entailed, neutral, contradicted = Label
    assert labels(evaluation.response_vs_chunks) == [[entailed, neutral], [neutral, contradicted]]
    assert labels(evaluation.response_vs_ground_truth) == [[entailed], [neutral]]
    assert labels(evaluation.ground_truth_vs_response) == [[entailed]]
    assert labels(evaluation.ground_truth_vs_chunks) == [[neutral, None]]


def test_the_judge_is_asked_about_the_right_texts_with_the_question() -> None:
    judge = ScriptedJudge()

    evaluate(make_record(), judge=judge)

    chunks = ("chunk one", "chunk two")
    assert sorted(judge.extractions) == [(TWO_CLAIMS, QUESTION), (FACT, QUESTION)]
    assert set(judge.checks) == {
        (("alpha", "beta"), chunks, QUESTION),
        (("alpha", "beta"), (FACT,), QUESTION),
        (("gamma",), (TWO_CLAIMS,), QUESTION),
        (("gamma",), chunks, QUESTION),
    }
    assert len(judge.checks) == 4


def test_a_sparse_judge_is_asked_once_for_the_cells_that_matter() -> None:
    judge = SparseScriptedJudge()

    evaluation = evaluate(make_record(), judge=judge)

    plain = evaluate(make_record(), judge=ScriptedJudge())
    ((claims, references, cells),) = judge.cells
    assert claims == ("alpha", "beta", "gamma")
    assert references == ("chunk one", "chunk two", FACT, TWO_CLAIMS)
    own_texts = {(0, 3), (1, 3), (2, 2)}
    assert cells == {(i, j) for i in range(3) for j in range(4)} - own_texts
    seconds = {"usage": Usage()}
    assert evaluation.model_copy(update=seconds) == plain.model_copy(update=seconds)


def test_a_sparse_judge_without_a_ground_truth_gets_the_plain_call() -> None:
    judge = SparseScriptedJudge()

    evaluate(make_record(ground_truth=None), judge=judge)

    assert judge.cells == []
    assert len(judge.checks) == 1


def test_claims_metrics_and_judge_stand_in_the_evaluation() -> None:
    evaluation = evaluate(make_record(), judge=ScriptedJudge())

    assert [claim.text for claim in evaluation.response_claims] == ["alpha", "beta"]
    assert [claim.text for claim in evaluation.ground_truth_claims] == ["gamma"]
    assert (evaluation.judge_name, evaluation.judge_version) == ("scripted", "1")
    assert evaluation.error is None
    assert evaluation.metrics["precision"] == 1 / 2  # alpha of alpha and beta
    assert evaluation.metrics["recall"] == 1.0  # gamma
    assert evaluation.metrics["faithfulness"] == 1 / 2  # alpha
    assert evaluation.metrics["contradicted_by_chunks"] == 1 / 2  # beta
    assert evaluation.undefined["claim_recall"] == "every verdict is undecided"
    assert set(evaluation.metrics) | set(evaluation.undefined) == set(DEFAULT_METRICS)


def test_a_claim_with_an_undecided_verdict_is_counted_once() -> None:
    undecided = {("gamma", "chunk one"): None, ("gamma", "chunk two"): None, ("beta", FACT): None}

    evaluation = evaluate(make_record(), judge=ScriptedJudge(undecided))

    assert evaluation.undecided_claims == 2


def test_a_judge_without_version_has_an_empty_one() -> None:
    class Unversioned:
        name = "unversioned"
        extract_claims = ScriptedJudge().extract_claims
        check = ScriptedJudge().check

    evaluation = evaluate(make_record(), judge=Unversioned())

    assert (evaluation.judge_name, evaluation.judge_version) == ("unversioned", "")


def test_without_ground_truth_only_the_two_metrics_of_chunks_are_defined() -> None:
    judge = ScriptedJudge()

    evaluation = evaluate(make_record(ground_truth=None), judge=judge, metrics="all")

    assert evaluation.metrics == {"faithfulness": 1 / 2, "contradicted_by_chunks": 1 / 2}
    assert evaluation.undefined == {
        **dict.fromkeys(
            (name for name in METRICS if name not in evaluation.metrics), "no ground truth"
        ),
        "groundedness": NO_CONTEXT_VERDICTS,
    }
    assert evaluation.response_vs_ground_truth is None
    assert evaluation.ground_truth_vs_response is None
    assert evaluation.ground_truth_vs_chunks is None
    assert (len(judge.extractions), len(judge.checks)) == (1, 1)


@pytest.mark.parametrize("response", ["", " \n"])
def test_an_empty_response_asks_the_judge_nothing(response: str) -> None:
    judge = ScriptedJudge()

    evaluation = evaluate(make_record(response, ground_truth=None), judge=judge)

    assert (judge.extractions, judge.checks) == ([], [])
    assert evaluation.metrics == {}
    assert evaluation.undefined["faithfulness"] == "no response claims"
    assert evaluation.response_vs_chunks == VerdictMatrix.of([], n_references=2)


def test_without_chunks_the_judge_is_not_asked_about_them() -> None:
    judge = ScriptedJudge()

    evaluation = evaluate(make_record(chunks=()), judge=judge)

    assert {references for _, references, _ in judge.checks} == {(FACT,), (TWO_CLAIMS,)}
    assert evaluation.response_vs_chunks == VerdictMatrix.of([[], []])
    assert evaluation.undefined["faithfulness"] == "no chunks"
    assert evaluation.metrics["precision"] == 1 / 2


def test_undefined_zero_reaches_the_metrics() -> None:
    evaluation = evaluate(
        make_record(chunks=()), judge=ScriptedJudge(), metrics="all", undefined="zero"
    )

    assert evaluation.metrics["faithfulness"] == 0.0
    assert evaluation.undefined == {
        "groundedness": "no chunks",
        "soft_alignment": "the judge gives no probabilities",
    }


def test_claims_beyond_the_cap_are_not_judged_but_counted() -> None:
    judge = ScriptedJudge()

    evaluation = evaluate(
        make_record("a. b. c. d.", ground_truth="e. f. g."), judge=judge, max_claims=2
    )

    assert [claim.text for claim in evaluation.response_claims] == ["a", "b"]
    assert [claim.text for claim in evaluation.ground_truth_claims] == ["e", "f"]
    assert evaluation.claims_dropped == 3  # c and d, g
    assert {claims for claims, _, _ in judge.checks} == {("a", "b"), ("e", "f")}


def test_no_claim_is_dropped_at_the_cap() -> None:
    assert evaluate(make_record(), judge=ScriptedJudge(), max_claims=2).claims_dropped == 0


@pytest.mark.parametrize("ground_truth", [None, FACT])
def test_an_evaluation_is_the_same_after_json(ground_truth: str | None) -> None:
    evaluation = evaluate(make_record(ground_truth=ground_truth), judge=ScriptedJudge())

    assert Evaluation.model_validate_json(evaluation.model_dump_json()) == evaluation


@pytest.mark.parametrize(
    ("response", "abstained"),
    [
        ("I don't know.", True),
        ("I cannot answer this question based on the provided context.", True),
        ("I don't know. The tower is in Paris.", False),
        (TWO_CLAIMS, False),
        ("", False),
        ("I don't know. " * 50, False),
    ],
)
def test_an_evaluation_says_whether_the_response_declined_to_answer(
    response: str, abstained: bool
) -> None:
    assert evaluate(make_record(response), judge=ScriptedJudge()).abstained is abstained


@pytest.mark.parametrize("name", ["lexical", "Lexical"])
def test_a_judge_may_be_given_by_its_name(name: str) -> None:
    record = RagRecord(query="q", chunks=(Chunk(id="a", text="It is red."),), response="It is red.")

    assert evaluate(record, judge=name).judge_name == "lexical"
    assert evaluate_many([record], judge=name)[0].judge_name == "lexical"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"judge": "nobody"}, "names no judge: use 'lexical'"),
        ({"judge": 3}, "judge is of type int: give an object"),
        ({"record": "a text"}, r"a record is of type str: give RagRecord\("),
    ],
)
def test_what_is_no_judge_or_no_record_is_refused_without_the_frames_of_a_loop(
    wrong: dict[str, Any], message: str
) -> None:
    given: dict[str, Any] = {"record": RagRecord(query="q", response="r")} | wrong

    with pytest.raises(ConfigError, match=message) as caught:
        evaluate(**given)

    assert len(traceback.extract_tb(caught.value.__traceback__)) <= 6
    assert caught.value.__context__ is None


@pytest.mark.parametrize("max_claims", [0, -1])
def test_a_cap_that_lets_no_claim_through_is_refused(max_claims: int) -> None:
    with pytest.raises(ConfigError, match=f"max_claims is {max_claims}: give 1 or more"):
        evaluate(make_record(), judge=ScriptedJudge(), max_claims=max_claims)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_a_deadline_that_has_passed_already_is_refused(seconds: float) -> None:
    with pytest.raises(ConfigError, match=r"deadline_seconds is .*: give more than 0"):
        evaluate(make_record(), judge=ScriptedJudge(), deadline_seconds=seconds)


# --- usage ---


class CountingJudge(ScriptedJudge):
    """Reports one call for each question, and as many tokens as it read characters."""

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        await asyncio.sleep(0)
        add_usage(Usage(calls=1, input_tokens=len(text), cost_usd=0.5))
        return await super().extract_claims(text, question=question)

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        await asyncio.sleep(0)
        add_usage(Usage(calls=1, output_tokens=len(claims) * len(references)))
        return await super().check(claims, references, question=question)


class UncheckingJudge(CountingJudge):
    """Takes texts apart, at a price, and then fails."""

    def verdict(self, claim: str, reference: str) -> Verdict | None:
        raise ValueError(PRIVATE)


def test_usage_adds_up_across_the_concurrent_calls_of_a_record() -> None:
    usage = evaluate(make_record(), judge=CountingJudge()).usage

    assert usage.calls == 6  # two texts taken apart, four matrices
    assert usage.input_tokens == len(TWO_CLAIMS) + len(FACT)
    assert usage.output_tokens == 2 * 2 + 2 * 1 + 1 * 1 + 1 * 2
    assert usage.cost_usd == 1.0
    assert usage.seconds > 0.0


def test_usage_does_not_leak_from_one_record_to_another() -> None:
    texts = ["a." * length for length in range(1, 6)]
    records = [make_record(text, ground_truth=None) for text in texts]

    usages = [each.usage for each in evaluate_many(records, judge=CountingJudge())]

    assert [usage.calls for usage in usages] == [2] * 5
    assert [usage.input_tokens for usage in usages] == [len(text) for text in texts]


async def test_usage_starts_anew_with_each_evaluation_of_one_task() -> None:
    first = await aevaluate(make_record(), judge=CountingJudge())
    second = await aevaluate(make_record(), judge=CountingJudge())

    assert (first.usage.calls, second.usage.calls) == (6, 6)


async def test_usage_of_a_record_that_failed_is_not_put_on_the_next_one() -> None:
    judge = CountingJudge()
    with pytest.raises(JudgeError):
        await aevaluate(make_record(), judge=UncheckingJudge())

    assert (await aevaluate(make_record(), judge=judge)).usage.calls == 6


def test_usage_reported_outside_of_an_evaluation_counts_nowhere() -> None:
    add_usage(Usage(calls=100))

    assert evaluate(make_record(), judge=ScriptedJudge()).usage.calls == 0
