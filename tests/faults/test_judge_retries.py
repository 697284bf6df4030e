"""Failures that pass: which are tried again, after which pauses, and when a call gives up.

Row F1 of the reliability matrix.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import pairwise

import pytest

from claimspan.cost import Budget
from claimspan.cost.usage import metered
from claimspan.errors import JudgeError, JudgeUnavailableError
from claimspan.evaluation.evaluate import aevaluate, aevaluate_many
from claimspan.judges import OpenAIJudge
from claimspan.judges.llm.refusals import retry_after_seconds

from judge_server import Exchange, JudgeServer, judge_server, reply_to
from judged import RECORD, make_judge


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with judge_server() as server:
        yield server


async def extract(judge: OpenAIJudge, text: str = "It is so. It stays so.") -> int:
    return len(await judge.extract_claims(text))


@pytest.mark.parametrize("status", [408, 429, 500, 529])
async def test_a_passing_failure_is_tried_again(server: JudgeServer, status: int) -> None:
    async def behave(exchange: Exchange) -> None:
        if exchange.number < 3:
            await exchange.send(b"{}", status=status, headers={"retry-after-ms": "1"})
        else:
            await exchange.reply(reply_to(exchange.asked))

    server.behave = behave

    assert await extract(make_judge(server.url)) == 2
    assert server.calls == 3


async def test_the_log_says_once_what_is_tried_again_and_where(
    server: JudgeServer, caplog: pytest.LogCaptureFixture
) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.send(b"{}", status=503, headers={"retry-after-ms": "1"})

    server.behave = behave
    judge = make_judge(server.url, call_seconds=2.0)
    for _ in range(2):
        with pytest.raises(JudgeError):
            await extract(judge)
    host = server.url.partition("://")[2].partition("/")[0]

    (line,) = [each.getMessage() for each in caplog.records if each.name == "claimspan"]
    assert f"requests of the judge to {host} are tried again for up to " in line
    assert line.endswith("the endpoint answered with HTTP 503")


async def test_the_log_names_the_host_that_nobody_listens_on_and_no_key(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(JudgeError):
        await extract(make_judge("http://127.0.0.1:9/v1", query={"key": "sk-canary-4712"}))

    assert "to 127.0.0.1:9 are tried again" in caplog.text
    assert "the connection failed (ConnectError)" in caplog.text
    assert "sk-canary" not in caplog.text


@pytest.mark.parametrize("status", [301, 307, 400, 401, 403, 404, 422])
async def test_a_lasting_failure_is_not_tried_again(server: JudgeServer, status: int) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.send(b"{}", status=status, headers={"location": "/v1/elsewhere"})

    server.behave = behave

    with pytest.raises(JudgeError, match=f"HTTP {status}: "):
        await extract(make_judge(server.url))

    assert server.calls == 1


async def test_a_failure_that_stays_is_given_up_after_three_requests(server: JudgeServer) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.send(b"{}", status=500)

    server.behave = behave

    with pytest.raises(JudgeError, match="HTTP 500; requests made: 3"):
        await extract(make_judge(server.url))

    assert server.calls == 3


@pytest.mark.parametrize("status", [429, 503])
async def test_too_many_requests_are_retried_with_growing_pauses_until_one_gets_through(
    server: JudgeServer, status: int
) -> None:
    moments: list[float] = []

    async def behave(exchange: Exchange) -> None:
        moments.append(time.monotonic())
        if exchange.number < 5:
            await exchange.send(b"{}", status=status)  # without a word on how long to wait
        else:
            await exchange.reply(reply_to(exchange.asked))

    server.behave = behave

    with metered() as meter:
        assert await extract(make_judge(server.url)) == 2

    pauses = [after - before for before, after in pairwise(moments)]
    assert len(pauses) == 4
    assert all(pause >= 0.375 * 2**i for i, pause in enumerate(pauses))
    assert meter.usage.calls == server.calls == 5  # each of them counts


async def test_a_limit_that_stays_is_given_up_where_no_time_is_left_for_another_pause(
    server: JudgeServer,
) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.send(b"{}", status=429)

    server.behave = behave
    started = time.monotonic()

    with pytest.raises(JudgeUnavailableError, match="429"):
        await extract(make_judge(server.url, call_seconds=3.0))

    assert 3 <= server.calls <= 4  # after 0.5, 1 and 2 s, less up to a quarter
    assert time.monotonic() - started < 10


async def test_a_budget_stops_the_retries_that_it_cannot_pay(server: JudgeServer) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.send(b"{}", status=429, headers={"retry-after-ms": "1"})

    server.behave = behave
    judge = OpenAIJudge("stub", base_url=server.url, budget=Budget(calls_per_record=4))

    evaluation = (await aevaluate_many([RECORD], judge=judge))[0]

    assert evaluation.error is not None
    assert evaluation.usage.calls == server.calls == 4


async def test_a_wait_that_the_server_asks_for_is_kept(server: JudgeServer) -> None:
    moments: list[float] = []

    async def behave(exchange: Exchange) -> None:
        moments.append(time.monotonic())
        if exchange.number == 1:
            await exchange.send(b"{}", status=429, headers={"Retry-After": "2"})
        else:
            await exchange.reply(reply_to(exchange.asked))

    server.behave = behave

    assert await extract(make_judge(server.url)) == 2
    assert moments[1] - moments[0] >= 2.0


@pytest.mark.parametrize("status", [429, 503])
async def test_a_wait_that_the_server_asks_for_stops_the_clocks_of_call_and_record(
    server: JudgeServer, status: int
) -> None:
    async def behave(exchange: Exchange) -> None:
        if exchange.number <= 2:
            await exchange.send(b"{}", status=status, headers={"Retry-After": "2"})
        else:
            await exchange.reply(reply_to(exchange.asked))

    server.behave = behave
    record = RECORD.model_copy(update={"ground_truth": None})
    judge = make_judge(server.url, call_seconds=1.0)

    evaluation = await aevaluate(record, judge=judge, deadline_seconds=1.5)

    assert evaluation.undecided == {}
    assert server.calls == 4


async def test_a_wait_of_more_than_fifteen_minutes_is_not_begun(server: JudgeServer) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.send(b"{}", status=429, headers={"Retry-After": "901"})

    server.behave = behave
    started = time.monotonic()

    with pytest.raises(JudgeUnavailableError, match="HTTP 429; requests made: 1"):
        await extract(make_judge(server.url, call_seconds=10.0))

    assert time.monotonic() - started < 5


def test_a_wait_is_read_in_every_form() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)

    assert retry_after_seconds({"retry-after": "3"}) == 3.0
    assert retry_after_seconds({"retry-after-ms": "250", "retry-after": "3"}) == 0.25
    assert 50 < retry_after_seconds({"retry-after": soon}) <= 60
    assert retry_after_seconds({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}) <= 0
    assert retry_after_seconds({"retry-after": "soon"}) == 0
    assert retry_after_seconds({"retry-after": "Fri, 31 Dec 9999 23:59:59 -1200"}) > 1e9
    assert retry_after_seconds({"retry-after": f"Mon, 01 Jan {'9' * 20} 00:00:00 GMT"}) == 0
    assert retry_after_seconds({}) == 0


async def test_pauses_grow_and_calls_that_failed_together_do_not_come_back_together(
    server: JudgeServer,
) -> None:
    moments: defaultdict[str, list[float]] = defaultdict(list)

    async def behave(exchange: Exchange) -> None:
        moments[exchange.messages[1].partition('"call"')[0]].append(time.monotonic())
        await exchange.send(b"{}", status=503)

    server.behave = behave
    judges = [make_judge(server.url) for _ in range(8)]  # one circuit breaker each
    calls = [extract(judge, f"It is {i}.") for i, judge in enumerate(judges)]
    await asyncio.gather(*calls, return_exceptions=True)

    pauses = [(times[1] - times[0], times[2] - times[1]) for times in moments.values()]
    assert len(pauses) == 8
    assert all(0.25 <= first < second for first, second in pauses)
    firsts = [first for first, _ in pauses]
    assert max(firsts) - min(firsts) > 0.01


@pytest.mark.parametrize("size", [0, 1, 40, 120])
async def test_a_connection_that_breaks_off_is_tried_again(server: JudgeServer, size: int) -> None:
    async def behave(exchange: Exchange) -> None:
        if exchange.number > 1:
            await exchange.reply(reply_to(exchange.asked))
            return
        exchange.out.write((b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + b" " * 90)[:size])
        exchange.out.close()

    server.behave = behave

    assert await extract(make_judge(server.url)) == 2


async def test_a_pause_beyond_the_deadline_is_not_begun(server: JudgeServer) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.send(b"{}", status=503)

    server.behave = behave

    with pytest.raises(JudgeUnavailableError, match="HTTP 503; requests made: 1"):
        await extract(make_judge(server.url, call_seconds=0.3))
