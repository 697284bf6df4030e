"""An endpoint that is down: who is told, how often it is asked, and when it is used again.

Rows F1, F2, F3 and F4 of the reliability matrix.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Final

import pytest

from claimspan.errors import ConfigError, JudgeError, JudgeUnavailableError, ReplyError
from claimspan.evaluation.evaluate import aevaluate_many
from claimspan.judges import CascadeJudge, LexicalJudge
from claimspan.judges.llm.endpoint import MAX_FAILURES, OPEN_SECONDS, CircuitBreaker
from claimspan.judges.llm.openai_chat import read_completion
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Budget, Monitor

from judge_server import Exchange, JudgeServer, completion, judge_server, reply_to
from judged import RECORD, make_judge
from lc_pipelines import rag_chain
from support import MonitorFactory, Spans, attributes, score_names

CUTS: Final = 30
"""Places in a body at which the connection breaks."""


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with judge_server() as server:
        yield server


async def answer_503(exchange: Exchange) -> None:
    await exchange.send(b"{}", status=503, headers={"retry-after-ms": "1"})


# --- what kind of error it is ---


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 529])
async def test_an_endpoint_that_is_overloaded_or_broken_is_away(
    server: JudgeServer, status: int
) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.send(b"{}", status=status, headers={"retry-after-ms": "1"})

    server.behave = behave

    with pytest.raises(JudgeUnavailableError, match=f"HTTP {status}"):
        await make_judge(server.url).extract_claims("It is so.")


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 413, 422])
async def test_an_endpoint_that_refuses_one_request_is_not_away(
    server: JudgeServer, status: int
) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.send(b"{}", status=status)

    server.behave = behave

    with pytest.raises(JudgeError, match=f"HTTP {status}") as caught:
        await make_judge(server.url).extract_claims("It is so.")
    assert not isinstance(caught.value, JudgeUnavailableError)


async def test_an_endpoint_that_refuses_the_connection_is_away() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        judge = make_judge(f"http://127.0.0.1:{unused.getsockname()[1]}/v1")
        with pytest.raises(JudgeUnavailableError, match="the connection failed"):
            await judge.extract_claims("It is so.")


async def test_an_endpoint_whose_name_is_unknown_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def resolve(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)

    with pytest.raises(JudgeUnavailableError, match="the connection failed"):
        await make_judge("https://endpoint.invalid/v1").extract_claims("It is so.")


async def test_an_endpoint_that_is_silent_is_away(server: JudgeServer) -> None:
    async def behave(exchange: Exchange) -> None:
        await asyncio.sleep(60)

    server.behave = behave

    with pytest.raises(JudgeUnavailableError, match=r"no reply within 0\.2 s"):
        await make_judge(server.url, call_seconds=0.2).extract_claims("It is so.")


async def test_an_unusable_reply_is_no_outage(server: JudgeServer) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.reply("Sorry.")

    server.behave = behave

    with pytest.raises(ReplyError):
        await make_judge(server.url).extract_claims("It is so.")


# --- the circuit breaker ---


async def test_a_dead_endpoint_is_asked_once_in_a_while_and_used_again_when_it_is_back(
    server: JudgeServer,
) -> None:
    server.behave = answer_503
    judge, now = make_judge(server.url), 0.0
    # Thirty seconds are too long for a test.
    judge.chat_model.breaker = CircuitBreaker(clock=lambda: now)
    for i in range(2):  # it opens within the retries of the first call
        with pytest.raises(JudgeUnavailableError):
            await judge.extract_claims(f"Failed {i}.")
    assert server.calls == MAX_FAILURES

    for i in range(600):  # ten minutes
        now += 1.0
        with pytest.raises(JudgeUnavailableError):
            await judge.extract_claims(f"Refused {i}.")
    assert server.calls == MAX_FAILURES + 600 / OPEN_SECONDS  # a probe each time, without retries

    server.behave = server.answer
    server.reset()
    now += OPEN_SECONDS
    counts = [len(await judge.extract_claims(f"It is {i}.")) for i in range(5)]
    assert counts == [1] * 5
    assert server.calls == 5


async def test_each_judge_has_a_breaker_of_its_own(server: JudgeServer) -> None:
    server.behave = answer_503
    for i in range(2):
        with pytest.raises(JudgeUnavailableError):
            await make_judge(server.url).extract_claims(f"It is {i}.")

    assert server.calls == 2 * MAX_FAILURES  # neither has counted the other's


@pytest.mark.parametrize("body", [b"Sorry.", b"{}", b" " * (5 * 2**20 + 1)], ids=len)
async def test_replies_that_cannot_be_used_do_not_open_the_circuit(
    server: JudgeServer, body: bytes
) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.send(body)

    server.behave = behave
    judge = make_judge(server.url)
    for i in range(MAX_FAILURES):
        with pytest.raises(ReplyError):
            await judge.extract_claims(f"It is {i}.")
    server.behave = server.answer

    assert len(await judge.extract_claims("It is so.")) == 1


async def test_a_success_between_failures_starts_the_count_anew(server: JudgeServer) -> None:
    async def behave(exchange: Exchange) -> None:
        if exchange.number % 3:
            await answer_503(exchange)
        else:
            await exchange.reply(reply_to(exchange.asked))

    server.behave = behave
    judge = make_judge(server.url)

    counts = [len(await judge.extract_claims(f"It is {i}.")) for i in range(6)]

    assert counts == [1] * 6
    assert server.calls == 18


async def test_an_outage_is_told_by_each_evaluation(server: JudgeServer) -> None:
    server.behave = answer_503
    records = [RECORD.model_copy(update={"query": f"Where? ({i})"}) for i in range(6)]

    evaluations = await aevaluate_many(records, judge=make_judge(server.url))

    assert all(e.error and e.metrics == {} for e in evaluations)
    assert server.calls <= MAX_FAILURES + 16  # those that were under way when it opened


# --- replies that were cut ---


def test_a_response_cut_at_any_byte_is_no_reply() -> None:
    body = json.dumps(completion('{"call": "1", "claims": []}')).encode()

    for end in range(len(body)):
        with pytest.raises(ReplyError):
            read_completion(body[:end])
    assert read_completion(body).text == '{"call": "1", "claims": []}'


async def test_a_connection_that_breaks_anywhere_in_the_body_is_tried_again(
    server: JudgeServer,
) -> None:
    seen: set[str] = set()

    async def behave(exchange: Exchange) -> None:
        body = json.dumps(completion(reply_to(exchange.asked))).encode()
        (sentence,) = exchange.asked["sentences"].values()
        if sentence in seen:
            await exchange.send(body)
            return
        seen.add(sentence)
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
        size = len(body) * int(sentence.split()[-1].strip(".")) // CUTS
        exchange.out.write(head.encode() + body[:size])
        exchange.out.close()

    server.behave = behave
    judges = [make_judge(server.url) for _ in range(CUTS)]  # a circuit breaker each

    claims = await asyncio.gather(
        *(judge.extract_claims(f"It is {i}.") for i, judge in enumerate(judges))
    )

    assert [len(each) for each in claims] == [1] * CUTS
    assert server.calls == 2 * CUTS


# --- replies that do not end ---

DRIPPING: Final = """
import asyncio, sys

async def serve(reader, writer):
    await reader.readuntil(b"\\r\\n\\r\\n")
    writer.write(b"HTTP/1.1 200 OK\\r\\n" + sys.argv[1].encode() + b"\\r\\n\\r\\n")
    try:
        for _ in range(300):
            writer.write(b" " * 1_000_000)
            await writer.drain()
    except ConnectionError:
        writer.close()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""

ASKING: Final = """
import asyncio, sys
from claimspan.errors import JudgeError
from claimspan.judges import OpenAIJudge

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

async def ask(port, text):
    try:
        await OpenAIJudge("stub", base_url=f"http://127.0.0.1:{port}/v1").extract_claims(text)
    except JudgeError as error:
        return str(error)

asyncio.run(ask(1, "Loads the client."))
before = peak()
for i in range(3):
    print(asyncio.run(ask(sys.argv[1], f"It is {i}.")))
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells the peak of the memory")
@pytest.mark.parametrize("header", ["Content-Length: 300000000", "Connection: close"])
def test_a_reply_of_300_mb_takes_at_most_10_mib(header: str) -> None:
    # Processes of their own: the server's buffers would count.
    command = [sys.executable, "-c", DRIPPING, header]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            port = server.stdout.readline().strip()
            asking = [sys.executable, "-c", ASKING, port]
            done = subprocess.run(asking, capture_output=True, text=True, timeout=60, check=True)
        finally:
            server.kill()

    *answers, grown = done.stdout.splitlines()
    assert answers == ["the response is larger than 5 MiB"] * 3
    assert int(grown) <= 10 * 1024  # KiB


# --- on the trace ---


def run(monitor: Monitor, query: str) -> None:
    rag_chain().invoke(query, {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    assert monitor.flush(30)


def test_a_judge_that_answers_garbage_is_a_judge_error_with_its_reason_on_the_root(
    make_monitor: MonitorFactory, spans: Spans, server: JudgeServer
) -> None:
    async def behave(exchange: Exchange) -> None:
        garbage = "sentences" not in exchange.asked
        await exchange.reply("Sorry." if garbage else reply_to(exchange.asked))

    server.behave = behave
    monitor = make_monitor(judge=make_judge(server.url))

    run_unclean(monitor)

    root = attributes(spans.root)
    assert root["claimspan.evaluation.status"] == "judge_error"
    reason = "the judge decided no verdict: the reply is not JSON"
    assert root["claimspan.evaluation.reason"] == reason
    (undecided,) = _texts(root["claimspan.evaluation.undecided"])
    assert undecided.startswith("the reply is not JSON: ")
    assert score_names(spans.root) == set()
    assert monitor.stats.dropped == {"judge_error": 1}


def test_a_judge_that_decides_a_part_says_on_the_root_why_not_the_rest(
    make_monitor: MonitorFactory, spans: Spans, server: JudgeServer
) -> None:
    async def behave(exchange: Exchange) -> None:
        reply = json.loads(reply_to(exchange.asked))
        for row in reply.get("verdicts", []):
            row["labels"] = row["labels"][1:]
        await exchange.reply(json.dumps(reply))

    server.behave = behave
    monitor = make_monitor(judge=make_judge(server.url))

    run_unclean(monitor)

    root = attributes(spans.root)
    (undecided,) = _texts(root["claimspan.evaluation.undecided"])
    assert undecided.startswith("the reply leaves verdicts out, or gives them twice: ")


def run_unclean(monitor: Monitor) -> None:
    rag_chain().invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    monitor.flush(30)  # False: a judge error is a loss


def _texts(value: object) -> list[str]:
    assert isinstance(value, tuple)
    return [str(each) for each in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - their text is what counts


def test_a_budget_in_dollars_for_a_model_without_a_price_is_refused_at_set_up() -> None:
    judge = CascadeJudge(LexicalJudge(), make_judge("http://127.0.0.1:9/v1"))

    with pytest.raises(ConfigError, match="the price of 'stub' is not known"):
        Monitor(judge=judge, budget=Budget(per_day=1.0))
    with pytest.raises(ConfigError, match="budget is of type float: give a Budget"):
        Monitor(budget=5.0)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - for those who do not type-check
    Monitor(judge=judge, budget=Budget(calls_per_day=1))
    Monitor(judge=LexicalJudge(), budget=Budget(per_day=1.0))


def test_the_budget_of_a_monitor_bounds_a_judge_that_has_none(
    make_monitor: MonitorFactory, spans: Spans, server: JudgeServer
) -> None:
    budget = Budget(calls_per_day=2)
    monitor = make_monitor(judge=make_judge(server.url), budget=budget)

    for query in ("first", "second", "third"):
        run(monitor, query)

    states = [attributes(root)["claimspan.evaluation.status"] for root in spans.roots]
    reasons = [attributes(root).get("claimspan.evaluation.reason") for root in spans.roots]
    assert states[-1] == "over_budget"
    assert "2 calls a day could be exceeded" in str(reasons[-1])
    assert budget.spent_today.calls == server.calls == 2
    assert monitor.stats.skipped["over_budget"] == states.count("over_budget")
    assert monitor.stats.pending == 0
