"""A budget around an evaluation bounds whichever judge it runs, beside the judge's own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final

import pytest
from openai import AsyncOpenAI

from claimspan import Claim, RagRecord, Usage, VerdictMatrix
from claimspan.cost import Budget, Price
from claimspan.cost.budget import current_budget, with_budget
from claimspan.cost.usage import add_usage
from claimspan.errors import BudgetExceededError, ConfigError, JudgeError
from claimspan.evaluation.evaluate import aevaluate, aevaluate_many, evaluate, evaluate_many
from claimspan.judges import CascadeJudge, LexicalJudge, OpenAIJudge
from claimspan.testing import ScriptedJudge

from judge_server import Exchange, JudgeServer, judge_server
from judged import RECORD

PRICE: Final = Price(input=10.0, output=100.0)
COST: Final = Usage(calls=1, input_tokens=100, output_tokens=10, cost_usd=0.125)


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with judge_server() as server:
        yield server


class PaidJudge(ScriptedJudge):
    """A judge of the user's that reports what it has spent, and reserves nothing."""

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        add_usage(COST)
        return await super().extract_claims(text, question=question)

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        add_usage(COST)
        return await super().check(claims, references, question=question)


def numbered(count: int) -> list[RagRecord]:
    return [RECORD.model_copy(update={"query": f"Where? ({i})"}) for i in range(count)]


async def test_no_request_exceeds_the_budget_around_a_judge_without_one(
    server: JudgeServer,
) -> None:
    budget = Budget(per_day=0.2)
    judge = OpenAIJudge("stub", base_url=server.url, price=PRICE, concurrency=4)

    # One call of a record at a time: one that is under way where another is refused is booked at
    # its maximum, since its cost is not known.
    records = [each.model_copy(update={"ground_truth": None}) for each in numbered(24)]

    evaluations = await aevaluate_many(records, judge=judge, budget=budget)

    stopped = [e for e in evaluations if e.error]
    assert 0 < len(stopped) < 24
    assert all("0.2 dollars a day" in str(e.error) for e in stopped)
    assert 0.1 < budget.spent_today.cost_usd <= 0.2
    spent = sum((e.usage for e in evaluations), Usage())
    assert spent.cost_usd == pytest.approx(budget.spent_today.cost_usd)  # and nothing twice
    assert spent.calls == budget.spent_today.calls == server.calls


async def test_the_judges_own_budget_holds_beside_the_one_around_it(server: JudgeServer) -> None:
    own, around = Budget(calls_per_day=2), Budget(calls_per_day=100)
    judge = OpenAIJudge("stub", base_url=server.url, budget=own)

    with pytest.raises(BudgetExceededError, match="2 calls a day"):
        await aevaluate(RECORD, judge=judge, budget=around)

    assert own.spent_today.calls == around.spent_today.calls == server.calls == 2


async def test_one_budget_in_both_places_is_charged_once(server: JudgeServer) -> None:
    budget = Budget(calls_per_day=10)
    judge = OpenAIJudge("stub", base_url=server.url, budget=budget)

    await aevaluate(RECORD, judge=judge, budget=budget)

    assert budget.spent_today.calls == server.calls == 3


async def test_each_request_by_a_client_of_the_users_is_reserved_on_the_budget(
    server: JudgeServer,
) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.send(b"{}", status=503)

    server.behave = behave
    budget = Budget(calls_per_day=100)
    async with AsyncOpenAI(api_key="k", base_url=server.url, max_retries=2) as client:
        with pytest.raises(JudgeError, match="HTTP 503"):
            await aevaluate(
                RECORD.model_copy(update={"ground_truth": None}),
                judge=OpenAIJudge("stub", client=client),
                budget=budget,
            )

    assert budget.spent_today.calls == server.calls == 3  # two of them as the client retries


async def test_a_judge_that_reserves_nothing_is_charged_afterwards_and_then_refused() -> None:
    budget, judge = Budget(per_day=1.0), PaidJudge()

    first, second, third = [
        (await aevaluate_many([record], judge=judge, budget=budget))[0] for record in numbered(3)
    ]

    assert first.usage.calls == second.usage.calls == 6  # two texts, four matrices
    assert budget.spent_today == COST + COST + first.usage.model_copy(
        update={
            "calls": 10,
            "input_tokens": 1_000,
            "output_tokens": 100,
            "cost_usd": 1.25,
            "seconds": 0.0,
        }
    )
    assert "1 dollars a day could be exceeded" in str(third.error)
    assert third.usage.calls == 0


async def test_a_judge_that_fails_is_charged_all_the_same() -> None:
    budget = Budget(per_day=1.0)

    with pytest.raises(JudgeError):
        await aevaluate(RECORD, judge=PaidJudge(error=JudgeError("no")), budget=budget)

    assert budget.spent_today.calls == 2


async def test_a_cascade_is_charged_once_for_what_either_judge_did(server: JudgeServer) -> None:
    budget = Budget(calls_per_day=100)
    judge = CascadeJudge(PaidJudge(), OpenAIJudge("stub", base_url=server.url))

    evaluation = await aevaluate(RECORD, judge=judge, budget=budget)

    assert server.calls > 0
    assert budget.spent_today.calls == evaluation.usage.calls > server.calls


@pytest.mark.parametrize("is_many", [False, True])
async def test_synchronous_code_gives_the_budget_on(server: JudgeServer, *, is_many: bool) -> None:
    budget = Budget(calls_per_day=10)
    judge = OpenAIJudge("stub", base_url=server.url)

    if is_many:
        evaluate_many([RECORD], judge=judge, budget=budget)
    else:
        evaluate(RECORD, judge=judge, budget=budget)

    assert budget.spent_today.calls == server.calls == 3


async def test_the_innermost_budget_counts_and_ends_with_its_block() -> None:
    outer, inner = Budget(), Budget()

    with with_budget(outer):
        with with_budget(inner):
            assert current_budget() is inner
            with with_budget(None):
                assert current_budget() is inner
        assert current_budget() is outer
        seen = await asyncio.create_task(_seen())
    assert seen is outer
    assert current_budget() is None


async def _seen() -> Budget | None:
    return current_budget()


def test_a_cascade_passes_the_check_of_a_budget_on_to_its_judges() -> None:
    unpriced = OpenAIJudge("stub", base_url="http://127.0.0.1:9")
    cascade = CascadeJudge(LexicalJudge(), unpriced)

    cascade.check_budget(Budget(calls_per_day=3))
    with pytest.raises(ConfigError, match="the price of 'stub' is not known"):
        cascade.check_budget(Budget(per_record=1.0))
