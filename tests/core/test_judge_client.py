"""A judge with a client of the user's: what the client decides, and what stays the judge's."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import time
from collections.abc import AsyncIterator, Iterator
from typing import Final

import pytest
from openai import AsyncAzureOpenAI, AsyncOpenAI, OpenAI

from claimspan import Usage
from claimspan.cost.budget import Budget
from claimspan.cost.pricing import Price
from claimspan.cost.usage import metered
from claimspan.errors import BudgetExceededError, ConfigError, JudgeError
from claimspan.evaluation.evaluate import aevaluate, evaluate
from claimspan.judges import OpenAIJudge
from claimspan.judges.verdict_cache import VerdictCache

from judge_server import Exchange, JudgeServer, judge_server, reply_to
from judged import RECORD

KEY: Final = "sk-of-the-user"


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with judge_server() as server:
        yield server


@pytest.fixture
async def client(server: JudgeServer) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(api_key=KEY, base_url=server.url, max_retries=1) as client:
        yield client


async def fail_once(exchange: Exchange) -> None:
    if exchange.number == 1:
        await exchange.send(b"{}", status=503)
    else:
        await exchange.reply(reply_to(exchange.asked))


# --- what the client decides ---


async def test_requests_go_where_the_client_sends_them_with_its_key_and_headers(
    server: JudgeServer,
) -> None:
    async with AsyncOpenAI(
        api_key=KEY, base_url=server.url, default_headers={"X-Gateway": "team"}
    ) as client:
        evaluation = await aevaluate(RECORD, judge=OpenAIJudge("stub", client=client))

    assert evaluation.metrics["faithfulness"] == 1.0
    assert evaluation.usage.calls == server.calls == 3
    assert {each.headers["authorization"] for each in server.exchanges} == {f"Bearer {KEY}"}
    assert {each.headers["x-gateway"] for each in server.exchanges} == {"team"}


async def test_azures_client_reaches_its_deployment(server: JudgeServer) -> None:
    async with AsyncAzureOpenAI(
        azure_endpoint=server.url.removesuffix("/v1"), api_key=KEY, api_version="2025-01-01"
    ) as client:
        claims = await OpenAIJudge("judge", client=client).extract_claims("It is so.")

    (exchange,) = server.exchanges
    assert len(claims) == 1
    assert exchange.path.startswith("/openai/deployments/judge/chat/completions?")
    assert "api-version=2025-01-01" in exchange.path
    assert exchange.headers["api-key"] == KEY


async def test_a_request_is_tried_again_as_often_as_the_client_says(
    server: JudgeServer, client: AsyncOpenAI
) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.send(b"{}", status=429, headers={"retry-after-ms": "1"})

    server.behave = behave

    with pytest.raises(JudgeError, match="HTTP 429; requests made: 2"):
        await OpenAIJudge("stub", client=client).extract_claims("It is so.")

    assert server.calls == 2


async def test_retries_in_place_of_the_client_count_as_requests(
    server: JudgeServer, client: AsyncOpenAI
) -> None:
    server.behave = fail_once

    with metered() as meter:
        await OpenAIJudge("stub", client=client).extract_claims("It is so.")

    assert meter.usage.calls == server.calls == 2


async def test_the_judge_leaves_the_client_open(server: JudgeServer, client: AsyncOpenAI) -> None:
    judge = OpenAIJudge("stub", client=client)
    await judge.extract_claims("It is so.")

    del judge
    gc.collect()
    await asyncio.sleep(0.01)

    assert not client.is_closed()


# --- what stays the judge's ---


async def test_a_call_ends_at_its_deadline_whatever_the_timeout_of_the_client(
    server: JudgeServer, client: AsyncOpenAI
) -> None:
    async def behave(exchange: Exchange) -> None:
        exchange.out.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(1000):
            exchange.out.write(b" ")
            await exchange.out.drain()
            await asyncio.sleep(0.1)

    server.behave = behave
    started = time.monotonic()

    with pytest.raises(JudgeError, match=r"no reply within 0\.6 s"):
        await OpenAIJudge("stub", client=client, call_seconds=0.6).extract_claims("It is so.")

    assert time.monotonic() - started < 5


async def test_five_calls_that_fail_open_the_circuit(
    server: JudgeServer, client: AsyncOpenAI
) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.send(b"{}", status=503, headers={"x-should-retry": "false"})

    server.behave = behave
    judge = OpenAIJudge("stub", client=client)
    for i in range(5):
        with pytest.raises(JudgeError, match="HTTP 503; requests made: 1"):
            await judge.extract_claims(f"It is {i}.")

    with pytest.raises(JudgeError, match="no request for another"):
        await judge.extract_claims("It is 5.")

    assert server.calls == 5


async def test_with_a_budget_every_request_is_reserved_and_none_is_repeated_unseen(
    server: JudgeServer, client: AsyncOpenAI
) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.send(b"{}", status=503)

    server.behave = behave
    budget = Budget(calls_per_day=3)
    judge = OpenAIJudge("stub", client=client, budget=budget)

    with pytest.raises(JudgeError, match="HTTP 503; requests made: 2"):
        await judge.extract_claims("It is so.")
    with pytest.raises(BudgetExceededError):
        await judge.extract_claims("It is so.")

    assert server.calls == 3
    assert budget.spent_today == Usage(calls=3)


async def test_a_request_that_was_never_sent_costs_nothing() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        budget = Budget(per_day=1.0)
        async with AsyncOpenAI(api_key=KEY, base_url=url) as client:
            judge = OpenAIJudge(
                "stub", client=client, budget=budget, price=Price(input=1.0, output=1.0)
            )
            with pytest.raises(JudgeError, match=r"the connection failed \(ConnectError\)"):
                await judge.extract_claims("It is so.")

    assert budget.spent_today == Usage(calls=3)


async def test_errors_hold_neither_the_key_nor_the_prompt(
    server: JudgeServer, client: AsyncOpenAI
) -> None:
    async def behave(exchange: Exchange) -> None:
        echo = f"bad key {exchange.headers['authorization']} for {exchange.text}"
        await exchange.send(json.dumps({"error": {"message": echo}}).encode(), status=401)

    server.behave = behave

    with pytest.raises(JudgeError) as caught:
        await OpenAIJudge("stub", client=client).extract_claims("The secret sentence is here.")

    said = "the endpoint answered with HTTP 401: bad key Bearer … for: check the key"
    assert str(caught.value).startswith(said)
    assert KEY not in str(caught.value)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


async def test_judges_of_two_endpoints_share_no_cached_verdict(server: JudgeServer) -> None:
    async with (
        AsyncOpenAI(api_key=KEY, base_url=server.url) as one,
        AsyncOpenAI(api_key=KEY, base_url=f"{server.url}/other") as other,
    ):
        cache = VerdictCache()
        await OpenAIJudge("stub", client=one, cache=cache).extract_claims("It is so.")
        await OpenAIJudge("stub", client=other, cache=cache).extract_claims("It is so.")

    assert server.calls == 2


# --- event loops ---


def test_one_client_serves_one_event_loop_after_the_other(server: JudgeServer) -> None:
    judge = OpenAIJudge("stub", client=AsyncOpenAI(api_key=KEY, base_url=server.url))

    first = evaluate(RECORD, judge=judge)
    second = evaluate(RECORD.model_copy(update={"query": "Again?"}), judge=judge)
    gc.collect()  # an open connection would be a warning, and so an error

    assert first.metrics == second.metrics
    assert server.calls == 6


# --- arguments ---


@pytest.mark.parametrize(
    "options",
    [
        {"base_url": "http://127.0.0.1:9"},
        {"api_key": KEY},
        {"headers": {"X-Gateway": "team"}},
        {"query": {"api-version": "1"}},
    ],
    ids=str,
)
def test_what_the_client_decides_is_not_given_beside_it(
    client: AsyncOpenAI, options: dict[str, str]
) -> None:
    (name,) = options
    with pytest.raises(ConfigError, match=f"client and {name} are both given") as caught:
        OpenAIJudge("stub", client=client, **options)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - one of four types

    assert KEY not in str(caught.value)


@pytest.mark.parametrize("client", [OpenAI(api_key=KEY), KEY], ids=["synchronous", "text"])
def test_what_is_no_asynchronous_client_is_refused(client: AsyncOpenAI) -> None:
    with pytest.raises(ConfigError, match=r"give an openai\.AsyncOpenAI") as caught:
        OpenAIJudge("stub", client=client)

    assert KEY not in str(caught.value)
