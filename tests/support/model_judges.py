"""What holds for the judge of a model object, whatever framework the object is of."""

from __future__ import annotations

import asyncio
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Final, cast

import pytest

from claimspan import Chunk, RagRecord, evaluate, evaluate_many
from claimspan.cost import Budget
from claimspan.errors import ConfigError, JudgeError, JudgeUnavailableError
from claimspan.evaluation.evaluate import aevaluate
from claimspan.judges import judge_of
from claimspan.judges.llm.endpoint import Endpoint
from claimspan.judges.llm.judge import ModelJudge
from claimspan_tracing import Monitor

from judge_server import Exchange, JudgeServer, judge_server, reply_to

__all__ = [
    "KEY",
    "MODEL",
    "RECORD",
    "ModelJudgePromises",
    "answer",
    "answer_both",
    "record",
    "server_of_judge",
]

MODEL: Final = "gpt-4o-mini"
KEY: Final = "sk-test-0123456789abcdef"


def record(number: int = 0) -> RagRecord:
    """A record whose response is supported by the first of its chunks."""
    fact = f"The library number {number} stands beside the river."
    texts = (f"{fact} It opens every Monday.", "Nothing of interest.")
    chunks = tuple(Chunk(id=str(i), text=text) for i, text in enumerate(texts))
    return RagRecord(query="Where is the library?", response=fact, chunks=chunks)


RECORD: Final = record()


async def answer(exchange: Exchange) -> None:
    """Replies as a judge model does."""
    await exchange.reply(reply_to(exchange.asked))


async def answer_both(exchange: Exchange) -> None:
    """Replies as a judge model, or as the application's model if it is asked another question."""
    if "JSON schema" in exchange.messages[0]:
        await answer(exchange)
    else:
        await exchange.reply("The library stands beside the river.")


def server_of_judge() -> Iterator[JudgeServer]:
    """The body of a fixture: a server with a model that judges."""
    with judge_server() as server:
        server.behave = answer
        yield server


def _endpoint_of(given: object) -> Endpoint:
    return cast("ModelJudge", judge_of(given)).chat_model


def _patient(given: object, seconds: float) -> ModelJudge:
    """The judge of a model object with another deadline of its calls."""
    return ModelJudge(_endpoint_of(given).model, call_seconds=seconds)


class ModelJudgePromises(ABC):
    """The tests; a subclass says how a model object at an address is made."""

    provider: str
    """Who serves its model, as the judge calls it."""

    @abstractmethod
    def model_at(self, url: str, *, limit: int | None = None, retries: int = 0) -> Any:
        """A model object of ``MODEL`` with ``KEY``."""

    @pytest.fixture
    def server(self) -> Iterator[JudgeServer]:
        yield from server_of_judge()

    # --- judging ---

    def test_the_object_itself_is_a_judge(self, server: JudgeServer) -> None:
        found = evaluate(RECORD, judge=self.model_at(server.url))

        assert found.metrics["faithfulness"] == 1.0
        assert found.judge_name == self.provider
        assert found.judge_version.startswith(f"{MODEL}/")

    def test_the_messages_alone_are_sent_beside_what_the_object_says(
        self, server: JudgeServer
    ) -> None:
        evaluate(RECORD, judge=self.model_at(server.url))

        sent = server.exchanges[0].request
        # What a request of the object's has anyway.
        assert sent.keys() - {"stream", "n"} == {"model", "messages"}
        assert [each["role"] for each in cast("Any", sent["messages"])] == ["system", "user"]
        assert "JSON schema" in server.exchanges[0].messages[0]

    def test_tokens_and_cost_are_those_that_the_provider_counted(self, server: JudgeServer) -> None:
        usage = evaluate(RECORD, judge=self.model_at(server.url)).usage

        assert (usage.calls, usage.input_tokens, usage.output_tokens) == (2, 200, 20)
        assert usage.cost_usd == pytest.approx((200 * 0.15 + 20 * 0.6) / 1e6)

    def test_one_object_serves_one_event_loop_after_another(self, server: JudgeServer) -> None:
        judge = judge_of(self.model_at(server.url))

        scores = [
            evaluate(record(number), judge=judge).metrics["faithfulness"] for number in range(3)
        ]

        assert scores == [1.0, 1.0, 1.0]

    async def test_a_synchronous_evaluation_works_inside_a_running_loop(
        self, server: JudgeServer
    ) -> None:
        assert evaluate(RECORD, judge=self.model_at(server.url)).metrics["faithfulness"] == 1.0

    def test_twenty_records_at_once_are_judged_side_by_side(self, server: JudgeServer) -> None:
        async def slowly(exchange: Exchange) -> None:
            await asyncio.sleep(0.05)
            await answer(exchange)

        server.behave = slowly
        judge = self.model_at(server.url)

        found = evaluate_many([record(each) for each in range(20)], judge=judge, concurrency=20)

        assert [each.metrics["faithfulness"] for each in found] == [1.0] * 20
        assert server.most_active > 8

    def test_what_was_judged_once_is_not_asked_again(self, server: JudgeServer) -> None:
        judge = judge_of(self.model_at(server.url))
        evaluate(RECORD, judge=judge)
        before = server.calls

        assert evaluate(RECORD, judge=judge).usage.calls == 0
        assert server.calls == before

    # --- errors ---

    def test_a_wrong_key_is_said_without_the_key(self, server: JudgeServer) -> None:
        async def refuse(exchange: Exchange) -> None:
            said = f"Incorrect API key provided: {KEY}."
            await exchange.send_json({"error": {"message": said, "code": "k"}}, status=401)

        server.behave = refuse

        with pytest.raises(JudgeError, match=r"HTTP 401.*check the key") as caught:
            evaluate(RECORD, judge=self.model_at(server.url))

        assert KEY not in str(caught.value)
        assert server.calls == 1

    def test_a_judge_waits_as_long_as_the_endpoint_asks(self, server: JudgeServer) -> None:
        async def once_too_many(exchange: Exchange) -> None:
            if exchange.number == 1:
                await exchange.send(b"{}", status=429, headers={"retry-after": "1"})
            else:
                await answer(exchange)

        server.behave = once_too_many
        started = time.monotonic()

        assert evaluate(RECORD, judge=self.model_at(server.url)).metrics["faithfulness"] == 1.0
        assert time.monotonic() - started > 0.95

    def test_texts_that_are_too_long_are_asked_about_in_halves(self, server: JudgeServer) -> None:
        async def short_window(exchange: Exchange) -> None:
            asked = exchange.asked
            if len(asked.get("references", {})) > 4:
                said = "This model's maximum context length is 8192 tokens."
                error = {"message": said, "code": "context_length_exceeded"}
                await exchange.send_json({"error": cast("Any", error)}, status=400)
            else:
                await answer(exchange)

        server.behave = short_window
        texts = [f"{RECORD.response} Number {number}." for number in range(8)]
        chunks = tuple(Chunk(id=text[-3:], text=text) for text in texts)
        found = evaluate(
            RECORD.model_copy(update={"chunks": chunks}), judge=self.model_at(server.url)
        )

        assert found.metrics["faithfulness"] == 1.0
        assert found.undecided == {}
        sizes = [len(each.asked.get("references", {})) for each in server.exchanges]
        assert max(sizes) > 4
        assert sizes.count(4) > 1

    def test_a_broken_server_is_tried_again_and_then_away(self, server: JudgeServer) -> None:
        async def fail(exchange: Exchange) -> None:
            await exchange.send(b"{}", status=500, headers={"retry-after-ms": "1"})

        server.behave = fail

        with pytest.raises(JudgeUnavailableError, match="HTTP 500"):
            evaluate(RECORD, judge=self.model_at(server.url))

        assert server.calls == 3

    def test_nobody_tries_again_where_the_client_does_so_itself(self, server: JudgeServer) -> None:
        async def fail(exchange: Exchange) -> None:
            await exchange.send(b"{}", status=500)

        server.behave = fail

        with pytest.raises(JudgeUnavailableError, match="HTTP 500"):
            evaluate(RECORD, judge=self.model_at(server.url, retries=1))

        assert server.calls == 2

    def test_a_refused_connection_is_an_unavailable_judge(self) -> None:
        with socket.socket() as taken:  # bound, and never listened to
            taken.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
            with pytest.raises(JudgeUnavailableError, match="connection failed"):
                evaluate(RECORD, judge=self.model_at(url))

    def test_a_server_that_hangs_costs_no_more_than_the_deadline_of_a_call(
        self, server: JudgeServer
    ) -> None:
        async def hang(exchange: Exchange) -> None:
            await asyncio.sleep(5)

        server.behave = hang
        judge = _patient(self.model_at(server.url), 0.3)
        started = time.monotonic()

        with pytest.raises(JudgeUnavailableError, match="no reply within"):
            evaluate(RECORD, judge=judge)

        assert time.monotonic() - started < 2

    async def test_calls_that_hang_hold_up_no_other(self, server: JudgeServer) -> None:
        async def hang_first(exchange: Exchange) -> None:
            if exchange.number <= 4:
                await asyncio.sleep(5)
            await answer(exchange)

        server.behave = hang_first
        judge = _patient(self.model_at(server.url), 0.5)
        waiting = [aevaluate(record(each), judge=judge) for each in range(4)]
        hung = await asyncio.gather(*waiting, return_exceptions=True)

        assert {type(each) for each in hung} == {JudgeUnavailableError}
        assert (await aevaluate(record(9), judge=judge)).metrics["faithfulness"] == 1.0

    def test_an_empty_reply_is_no_verdict(self, server: JudgeServer) -> None:
        async def say_nothing(exchange: Exchange) -> None:
            await exchange.reply("")

        server.behave = say_nothing

        with pytest.raises(JudgeError, match="the reply is empty"):
            evaluate(RECORD, judge=self.model_at(server.url))

    def test_a_reply_that_the_object_cuts_says_what_to_raise(self, server: JudgeServer) -> None:
        async def cut(exchange: Exchange) -> None:
            await exchange.reply('{"call": "', finish_reason="length")

        server.behave = cut

        with pytest.raises(JudgeError, match="raise its max_tokens"):
            evaluate(RECORD, judge=self.model_at(server.url, limit=100))

    # --- limits ---

    @pytest.mark.parametrize(
        "budget", [Budget(per_day=1.0), Budget(tokens_per_record=10_000)], ids=["usd", "tokens"]
    )
    def test_a_budget_needs_the_limit_of_the_object(
        self, server: JudgeServer, budget: Budget
    ) -> None:
        with pytest.raises(ConfigError, match=r"no limit on its reply.*max_tokens"):
            Monitor(judge=self.model_at(server.url), budget=budget)
        with pytest.raises(JudgeError, match="no limit on its reply"):
            evaluate(RECORD, judge=self.model_at(server.url), budget=budget)

        assert server.calls == 0

    def test_a_budget_of_calls_needs_no_limit(self, server: JudgeServer) -> None:
        budget = Budget(calls_per_day=100)

        assert evaluate(RECORD, judge=self.model_at(server.url), budget=budget).metrics
        assert budget.spent_today.calls == 2

    def test_the_limit_of_the_object_bounds_what_a_budget_reserves(
        self, server: JudgeServer
    ) -> None:
        wide = self.model_at(server.url, limit=100_000)
        with pytest.raises(JudgeError, match="budget"):
            evaluate(RECORD, judge=wide, budget=Budget(tokens_per_record=50_000))
        assert server.calls == 0

        narrow = self.model_at(server.url, limit=1000)
        found = evaluate(RECORD, judge=narrow, budget=Budget(tokens_per_record=50_000))
        assert found.metrics["faithfulness"] == 1.0

    def test_a_process_of_its_own_is_refused_with_what_to_give(self, server: JudgeServer) -> None:
        with pytest.raises(ConfigError, match=r"worker='process' cannot make a .*give a name"):
            Monitor(judge=self.model_at(server.url), worker="process")
