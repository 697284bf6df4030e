"""A budget is never exceeded, whatever the calls under way turn out to cost."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from typing import Final

import pytest
from pydantic import JsonValue

from claimspan import Usage
from claimspan.cost.budget import Budget
from claimspan.cost.pricing import Price
from claimspan.cost.usage import metered
from claimspan.errors import BudgetExceededError, ConfigError, JudgeError
from claimspan.evaluation.evaluate import aevaluate, aevaluate_many
from claimspan.judges import OpenAIJudge

from judge_server import Exchange, JudgeServer, judge_server, reply_to
from judged import RECORD

PRICE: Final = Price(input=10.0, output=100.0)


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with judge_server() as server:
        yield server


def budgeted(server: JudgeServer, budget: Budget) -> OpenAIJudge:
    return OpenAIJudge("stub", base_url=server.url, price=PRICE, budget=budget, concurrency=4)


async def test_no_call_exceeds_the_budget_of_a_day(server: JudgeServer) -> None:
    budget = Budget(per_day=0.2)
    # One call at a time: one that is under way where another is refused is booked at its maximum.
    alone: dict[str, JsonValue] = {"ground_truth": None}
    records = [RECORD.model_copy(update={**alone, "query": f"Where? ({i})"}) for i in range(24)]

    evaluations = await aevaluate_many(records, judge=budgeted(server, budget))

    stopped = [e for e in evaluations if e.error]
    spent = sum(e.usage.cost_usd for e in evaluations)
    assert 0 < len(stopped) < 24
    assert all("the budget of 0.2 dollars a day" in str(e.error) for e in stopped)
    assert 0.1 < spent <= 0.2
    assert budget.spent_today.cost_usd == pytest.approx(spent)


async def test_no_call_exceeds_the_budget_of_a_record(server: JudgeServer) -> None:
    for budget, unit in (
        (Budget(per_record=0.05), "dollars"),
        (Budget(calls_per_record=2), "calls"),
        (Budget(tokens_per_record=2_000), "tokens"),
    ):
        server.reset()
        first, second = await aevaluate_many(
            [RECORD, RECORD.model_copy(update={"query": "Again?"})],
            judge=budgeted(server, budget),
        )

        assert f"{unit} a record" in str(first.error)
        assert f"{unit} a record" in str(second.error)  # each record has an account of its own
        assert server.calls <= 4


async def test_a_budget_that_is_enough_changes_nothing(server: JudgeServer) -> None:
    budget = Budget(per_day=10, per_record=1, calls_per_record=3, tokens_per_record=50_000)

    evaluation = await aevaluate(RECORD, judge=budgeted(server, budget))

    assert evaluation.usage.calls == 3
    assert evaluation.metrics["faithfulness"] == 1.0
    assert budget.spent_today == evaluation.usage.model_copy(update={"seconds": 0.0})


async def test_calls_under_way_count_with_their_upper_bound() -> None:
    budget = Budget(per_day=1.0)
    maximum = Usage(calls=1, cost_usd=0.6)

    order: list[str] = []

    async def call(name: str) -> None:
        async with budget.reserve(maximum) as reservation:
            order.append(f"{name} begins")
            await asyncio.sleep(0.01)
            order.append(f"{name} ends")
            reservation.spent = Usage(calls=1, cost_usd=0.1)

    await asyncio.gather(call("first"), call("second"))

    assert order == ["first begins", "first ends", "second begins", "second ends"]
    assert budget.spent_today.cost_usd == pytest.approx(0.2)


async def test_a_new_day_has_a_new_budget() -> None:
    now = 0.0
    budget = Budget(per_day=1.0, clock=lambda: now)
    async with budget.reserve(Usage(cost_usd=0.9)):
        pass
    with pytest.raises(BudgetExceededError):
        async with budget.reserve(Usage(cost_usd=0.2)):
            pass

    now = 86_400.0
    async with budget.reserve(Usage(cost_usd=0.9)):
        pass


async def test_a_call_without_a_response_is_booked_at_its_upper_bound(server: JudgeServer) -> None:
    async def behave(exchange: Exchange) -> None:
        await asyncio.sleep(60)

    server.behave = behave
    budget = Budget(per_day=10.0)
    judge = OpenAIJudge("stub", base_url=server.url, price=PRICE, budget=budget, call_seconds=0.2)

    with metered(), pytest.raises(JudgeError):
        await judge.extract_claims("It is so.")

    assert budget.spent_today.cost_usd > 0.02


async def test_waiting_for_the_budget_is_no_failure_of_the_endpoint(server: JudgeServer) -> None:
    async def behave(exchange: Exchange) -> None:
        await asyncio.sleep(0.2)
        await exchange.reply(reply_to(exchange.asked))

    server.behave = behave
    judge = OpenAIJudge(
        "stub",
        base_url=server.url,
        price=PRICE,
        budget=Budget(per_day=0.06),  # room for one call at a time
        call_seconds=0.8,
    )

    counts = await asyncio.gather(*(judge.extract_claims(f"It is {i}.") for i in range(8)))

    assert [len(claims) for claims in counts] == [1] * 8  # 1.6 s in all
    assert server.most_active == 1


async def test_the_reserve_for_reasoning_is_part_of_the_reservation(server: JudgeServer) -> None:
    async def behave(exchange: Exchange) -> None:
        await asyncio.sleep(60)

    server.behave = behave
    budget = Budget(per_day=10.0)
    judge = OpenAIJudge("o3", base_url=server.url, price=PRICE, budget=budget, call_seconds=0.2)

    with metered(), pytest.raises(JudgeError):
        await judge.extract_claims("It is so.")

    assert budget.spent_today.cost_usd > 2.5  # 25,000 tokens at $100 a million


@pytest.mark.parametrize("status", [307, 400, 401, 404, 422])
async def test_a_refused_request_is_booked_as_a_call_without_a_cost(
    server: JudgeServer, status: int
) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.send(b"{}", status=status)

    server.behave = behave
    budget = Budget(per_day=10.0)

    with pytest.raises(JudgeError, match=f"HTTP {status}"):
        await budgeted(server, budget).extract_claims("It is so.")

    assert budget.spent_today == Usage(calls=1)


async def test_a_response_that_cannot_be_read_is_booked_at_its_upper_bound(
    server: JudgeServer,
) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.send(b"Sorry.")

    server.behave = behave
    budget = Budget(per_day=10.0)

    with pytest.raises(JudgeError, match="is not JSON"):
        await budgeted(server, budget).extract_claims("It is so.")

    assert budget.spent_today.cost_usd > 0.02


@pytest.mark.parametrize(
    "options", [{"max_tokens": 20_000}, {"max_completion_tokens": 20_000}, {"n": 100}]
)
async def test_options_that_raise_the_length_of_a_reply_count_in_the_reservation(
    server: JudgeServer, options: dict[str, JsonValue]
) -> None:
    budget = Budget(per_day=1.0)
    judge = OpenAIJudge("stub", base_url=server.url, price=PRICE, budget=budget, options=options)

    with pytest.raises(BudgetExceededError):
        await judge.extract_claims("It is so.")

    assert server.calls == 0


@pytest.mark.parametrize("options", [{"max_tokens": None}, {"n": "2"}, {"n": 0}])
def test_options_that_allow_a_call_any_cost_are_refused_with_a_budget(
    options: dict[str, JsonValue],
) -> None:
    address = "http://127.0.0.1:9"
    with pytest.raises(ConfigError, match="a budget needs a whole number"):
        OpenAIJudge("stub", base_url=address, options=options, budget=Budget(calls_per_record=3))
    OpenAIJudge("stub", base_url=address, options=options)


@pytest.mark.parametrize(("status", "is_paid"), [(503, False), (None, True)])
async def test_a_failure_is_booked_at_its_upper_bound_where_it_may_have_been_paid(
    server: JudgeServer, status: int | None, is_paid: bool
) -> None:
    async def behave(exchange: Exchange) -> None:
        if exchange.number > 1:
            await exchange.reply(reply_to(exchange.asked))
        elif status is None:
            exchange.out.close()
        else:
            await exchange.send(b"{}", status=status)

    server.behave = behave
    budget = Budget(per_day=10.0)

    await budgeted(server, budget).extract_claims("It is so.")

    assert budget.spent_today.calls == 2
    assert (budget.spent_today.cost_usd > 0.02) is is_paid


def test_a_budget_in_dollars_needs_a_price() -> None:
    with pytest.raises(ConfigError, match="the price of 'stub' is not known"):
        OpenAIJudge("stub", base_url="http://127.0.0.1:9", budget=Budget(per_day=1.0))
    OpenAIJudge("stub", base_url="http://127.0.0.1:9", budget=Budget(calls_per_record=3))


@pytest.mark.parametrize("limit", [-1, math.nan])
def test_a_limit_that_nothing_is_within_is_refused(limit: float) -> None:
    with pytest.raises(ConfigError, match="negative or no number"):
        Budget(per_day=limit)
