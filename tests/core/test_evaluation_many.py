"""Many records, and event loops: in order, a few at once, and each on its own where one fails."""

from __future__ import annotations

import asyncio

import pytest

from claimspan import Claim
from claimspan.errors import ConfigError, JudgeError
from claimspan.evaluation.evaluate import aevaluate, aevaluate_many, evaluate, evaluate_many
from claimspan.metrics import DEFAULT_METRICS

from scripted import PRIVATE, RaisingJudge, ScriptedJudge, make_record

# --- loops ---


async def test_evaluate_works_inside_a_running_event_loop() -> None:
    asyncio.get_running_loop()

    evaluation = evaluate(make_record(), judge=ScriptedJudge())

    assert evaluation.metrics["precision"] == 1 / 2


async def test_evaluate_inside_a_running_event_loop_raises_what_went_wrong() -> None:
    with pytest.raises(JudgeError, match="raised ValueError"):
        evaluate(make_record("boom."), judge=RaisingJudge(ValueError(PRIVATE)))


async def test_evaluate_many_works_inside_a_running_event_loop() -> None:
    evaluations = evaluate_many([make_record()], judge=ScriptedJudge())

    assert [each.error for each in evaluations] == [None]


async def test_sync_and_async_find_the_same() -> None:
    theirs = evaluate(make_record(), judge=ScriptedJudge())
    ours = await aevaluate(make_record(), judge=ScriptedJudge())

    assert ours.model_copy(update={"usage": theirs.usage}) == theirs


class HangingJudge(ScriptedJudge):
    """Never answers; counts who began to wait and who was told to stop."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Semaphore(0)
        self.cancelled = 0

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        self.begun.release()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return []


async def test_cancelling_an_evaluation_cancels_the_judge() -> None:
    judge = HangingJudge()
    task = asyncio.create_task(aevaluate(make_record(), judge=judge))
    await judge.begun.acquire()
    await judge.begun.acquire()

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert judge.cancelled == 2


async def test_cancelling_many_evaluations_cancels_the_judge_for_each() -> None:
    judge = HangingJudge()
    records = [make_record(ground_truth=None)] * 3
    task = asyncio.create_task(aevaluate_many(records, judge=judge))
    for _ in records:
        await judge.begun.acquire()

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert judge.cancelled == 3


# --- many records ---


class SlowestFirst(ScriptedJudge):
    """Takes longer over longer texts, and remembers how many it had at once."""

    def __init__(self) -> None:
        super().__init__()
        self.at_once = 0
        self.most = 0
        self.finished: list[str] = []

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await asyncio.sleep(len(text) / 1000)
        self.at_once -= 1
        self.finished.append(text)
        return await super().extract_claims(text, question=question)


def test_evaluations_come_in_the_order_of_the_records() -> None:
    texts = ["a" * 40, "b" * 20, "c"]
    judge = SlowestFirst()

    found = evaluate_many([make_record(text, ground_truth=None) for text in texts], judge=judge)

    assert judge.finished == texts[::-1]
    assert [each.response_claims[0].text for each in found] == texts


@pytest.mark.parametrize("concurrency", [1, 3])
def test_no_more_records_than_allowed_are_evaluated_at_once(concurrency: int) -> None:
    judge = SlowestFirst()
    records = [make_record("aa", ground_truth=None)] * 7

    evaluate_many(records, judge=judge, concurrency=concurrency)

    assert judge.most == concurrency


@pytest.mark.parametrize("concurrency", [0, -1])
def test_a_concurrency_that_lets_nothing_through_is_refused(concurrency: int) -> None:
    with pytest.raises(ConfigError, match="concurrency"):
        evaluate_many([make_record()], judge=ScriptedJudge(), concurrency=concurrency)


def test_a_record_that_fails_does_not_stop_the_others() -> None:
    records = [make_record("alpha."), make_record("boom."), make_record("beta.")]

    first, second, third = evaluate_many(records, judge=RaisingJudge(ValueError(PRIVATE)))

    assert (first.error, third.error) == (None, None)
    assert (first.metrics["precision"], third.metrics["precision"]) == (1.0, 0.0)
    assert second.error == "judge 'scripted' raised ValueError"
    assert second.metrics == {}
    assert second.undefined == dict.fromkeys(DEFAULT_METRICS, "the judge failed")
    assert second.judge_name == "scripted"


def test_no_records_give_no_evaluations() -> None:
    assert list(evaluate_many([], judge=ScriptedJudge())) == []


async def test_many_records_are_capped_and_zeroed_as_one_is() -> None:
    record = make_record("a. b. c.", chunks=())

    (found,) = await aevaluate_many([record], judge=ScriptedJudge(), max_claims=1, undefined="zero")

    assert found.claims_dropped == 2
    assert found.metrics["faithfulness"] == 0.0


def test_progress_is_a_bar_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    evaluate_many([make_record()] * 3, judge=ScriptedJudge(), progress=True)

    printed = capsys.readouterr()
    assert "evaluating" in printed.err
    assert "3/3" in printed.err
    assert printed.out == ""


@pytest.mark.parametrize("progress", [False, None])
def test_nothing_is_printed_where_nobody_watches(
    progress: bool | None, capsys: pytest.CaptureFixture[str]
) -> None:
    evaluate_many([make_record()], judge=ScriptedJudge(), progress=progress)

    assert capsys.readouterr() == ("", "")
