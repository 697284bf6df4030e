"""What a model refuses by name is asked for otherwise, once, and remembered."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Final

import pytest
from pydantic import JsonValue

from claimspan.cost import Budget
from claimspan.errors import JudgeError, JudgeUnavailableError
from claimspan.judges import OpenAIJudge
from claimspan.judges.llm.refusals import TooLongError

from judge_server import Exchange, JudgeServer, judge_server, reply_to
from judged import make_judge

Request = dict[str, JsonValue]


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with judge_server() as server:
        yield server


def refusing(
    server: JudgeServer, message: str, when: Callable[[Request], bool], *, status: int = 400
) -> None:
    """Refuses with a message what a test says, and replies to all else as it should."""

    async def behave(exchange: Exchange) -> None:
        if when(exchange.request):
            body: JsonValue = {"error": {"message": message}}
            await exchange.send(json.dumps(body).encode(), status=status)
        else:
            await exchange.reply(reply_to(asked_of(exchange)))

    server.behave = behave


def asked_of(exchange: Exchange) -> dict[str, dict[str, str]]:
    """The JSON object of the user message, also if the system's stands before it."""
    asked: dict[str, dict[str, str]] = json.loads(exchange.messages[-1].rpartition("\n\n")[2])
    return asked


def form_of(request: Request) -> JsonValue:
    form = request.get("response_format")
    return form["type"] if isinstance(form, dict) else None


async def extract(judge: OpenAIJudge, text: str) -> int:
    return len(await judge.extract_claims(text))


REFUSALS: Final[dict[str, tuple[str, Callable[[Request], bool]]]] = {
    "a temperature": (
        "Unsupported value: 'temperature' does not support 0 with this model.",
        lambda request: "temperature" in request,
    ),
    "the name of the limit": (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
        "'max_completion_tokens' instead.",
        lambda request: "max_tokens" in request,
    ),
    "a limit that is too high": (
        "max_tokens is too large: 500. This model supports at most 300 completion tokens.",
        lambda request: int(str(request["max_tokens"])) > 300,
    ),
    "a schema": (
        "response_format type 'json_schema' is not supported",
        lambda request: form_of(request) == "json_schema",
    ),
    "a message of the system": (
        "System role not supported",
        lambda request: len(list(request["messages"] or ())) > 1,  # type: ignore[arg-type] # a list
    ),
}


@pytest.mark.parametrize(("message", "when"), REFUSALS.values(), ids=list(REFUSALS))
async def test_what_is_refused_by_name_is_asked_for_otherwise_from_then_on(
    server: JudgeServer, message: str, when: Callable[[Request], bool]
) -> None:
    refusing(server, message, when)
    judge = make_judge(server.url)
    text = "The library stands beside the river. " * 10

    assert await extract(judge, text) == 10
    assert server.calls == 2
    assert await extract(judge, f"{text} It is so.") == 11
    assert server.calls == 3


async def test_the_log_says_once_what_a_model_refuses(
    server: JudgeServer, caplog: pytest.LogCaptureFixture
) -> None:
    refusing(server, "Unsupported parameter: 'temperature'", lambda each: "temperature" in each)
    judge = make_judge(server.url)
    for i in range(2):
        await extract(judge, f"It is {i}.")

    lines = [each.getMessage() for each in caplog.records if each.name == "claimspan"]
    assert len(lines) == 1
    assert "refuses temperature" in lines[0]


async def test_a_server_without_any_schema_is_told_the_form_in_words(server: JudgeServer) -> None:
    refusing(server, "response_format is not supported", lambda each: "response_format" in each)

    assert await extract(make_judge(server.url), "It is so.") == 1
    assert '"claims"' in server.exchanges[-1].messages[0]


async def test_a_format_of_the_users_that_is_refused_gives_way_to_ours(
    server: JudgeServer,
) -> None:
    form: JsonValue = {"type": "json_schema", "json_schema": {"name": "mine", "schema": {}}}
    refusing(
        server,
        "response_format: 'json_schema' is not supported",
        lambda each: form_of(each) == "json_schema",
    )
    judge = OpenAIJudge("stub", base_url=server.url, options={"response_format": form})

    assert await extract(judge, "It is so.") == 1
    assert form_of(server.exchanges[-1].request) == "json_object"
    assert '"claims"' in server.exchanges[-1].messages[0]


async def test_at_most_three_further_requests_follow_refusals(server: JudgeServer) -> None:
    refusing(server, "Bad request: unsupported temperature, seed, response_format", lambda _: True)

    with pytest.raises(JudgeError, match="HTTP 400"):
        await extract(make_judge(server.url, seed=1), "It is so.")

    assert server.calls <= 4


async def test_each_request_after_a_refusal_is_reserved_on_the_budget(server: JudgeServer) -> None:
    refusing(server, "Unsupported parameter: 'temperature'", lambda each: "temperature" in each)
    budget = Budget(calls_per_day=10)
    judge = OpenAIJudge("stub", base_url=server.url, budget=budget)

    assert await extract(judge, "It is so.") == 1
    assert budget.spent_today.calls == server.calls == 2


async def test_a_used_up_quota_stops_at_once_and_is_the_cause_that_the_next_records_get(
    server: JudgeServer,
) -> None:
    refusing(
        server, "You exceeded your current quota, check your plan.", lambda _: True, status=429
    )
    judge = make_judge(server.url)

    for _ in range(2):
        with pytest.raises(JudgeUnavailableError, match="the account has nothing left"):
            await extract(judge, "It is so.")

    assert server.calls == 1


async def test_texts_that_do_not_fit_are_asked_about_in_halves(server: JudgeServer) -> None:
    refusing(
        server,
        "This model's maximum context length is 512 tokens.",
        lambda each: len(json.dumps(each["messages"])) > 2_600,
    )
    text = " ".join(f"The library number {i} stands beside the river." for i in range(24))

    assert await extract(make_judge(server.url), text) == 24


async def test_one_sentence_that_does_not_fit_is_told(server: JudgeServer) -> None:
    refusing(server, "prompt is too long: 9000 tokens > 512 maximum", lambda _: True)

    with pytest.raises(TooLongError, match="give fewer or shorter chunks"):
        await extract(make_judge(server.url), "It is so.")


async def test_a_reply_that_was_cut_is_asked_for_with_room_to_reason(server: JudgeServer) -> None:
    async def behave(exchange: Exchange) -> None:
        if int(str(exchange.request["max_tokens"])) < 10_000:
            await exchange.reply("<think>Well", finish_reason="length")
        else:
            await exchange.reply(reply_to(exchange.asked))

    server.behave = behave
    judge = make_judge(server.url)

    assert await extract(judge, "It is so.") == 1
    assert server.calls == 2
    assert judge.reasons
    assert await extract(judge, "It stays so.") == 1
    assert server.calls == 3


@pytest.mark.parametrize(
    ("model", "reasons"),
    [
        ("gpt-4o-mini", False),
        ("gpt-5-mini", True),
        ("gpt-5-chat-latest", False),
        ("openai/o4-mini", True),
        ("gemini-2.5-flash", True),
        ("models/gemini-3-pro", True),
        ("gemini-2.5-flash-lite", False),
        ("gemini-2.0-flash", False),
        ("deepseek-chat", False),
        ("deepseek-reasoner", True),
        ("deepseek-r1:8b", True),
        ("Qwen/Qwen3-32B", True),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", False),
        ("qwen2.5-72b-instruct", False),
        ("openai/gpt-oss-120b", True),
        ("magistral-medium-latest", True),
        ("mistral-small-latest", False),
        ("claude-haiku-4-5", False),
        ("llama3", False),
    ],
)
async def test_a_model_whose_name_tells_that_it_thinks_has_room_from_the_first_call(
    server: JudgeServer, model: str, reasons: bool
) -> None:
    judge = OpenAIJudge(model, base_url=server.url)
    await judge.extract_claims("The library stands beside the river.")
    (request,) = [each.request for each in server.exchanges]
    limit = request.get("max_tokens") or request.get("max_completion_tokens")

    assert judge.reasons is reasons
    assert isinstance(limit, int)
    assert (limit > 25_000) is reasons
