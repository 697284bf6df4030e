"""The strong judge by LiteLLM as a library, in an environment that has it and Bedrock's boto3."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import JsonValue

from claimspan.errors import MissingExtraError
from claimspan.judges.choice import default_judge

from judge_server import Exchange, JudgeServer, judge_server
from litellm_parts import Worker, litellm_worker
from provider_fakes import anthropic, bedrock, failing

KEY: Final = "sk-canary-4711-4711-4711"
LABELS: Final = [["entailed", "neutral", "neutral"], ["neutral", "entailed", "neutral"]]
OPENAI: Final = "litellm:openai/gpt-4o-mini"
CLAUDE: Final = "litellm:anthropic/claude-haiku-4-5"
NOVA: Final = "bedrock:amazon.nova-lite-v1:0"
AWS: Final = {"AWS_ACCESS_KEY_ID": "AKIACANARY", "AWS_SECRET_ACCESS_KEY": KEY}


@pytest.fixture(scope="module")
def outside() -> Iterator[socket.socket]:
    """What LiteLLM asks for newer tables in place of GitHub; a test sees whether it was asked."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        yield listening


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory, outside: socket.socket) -> Iterator[Worker]:
    folder = tmp_path_factory.mktemp("litellm")
    Path(folder, ".env").write_text("OF_THE_APPLICATION=1\n", encoding="utf-8")
    tables = f"http://127.0.0.1:{outside.getsockname()[1]}/tables.json"
    variables = {
        "LITELLM_MODEL_COST_MAP_URL": tables,
        "LITELLM_ANTHROPIC_BETA_HEADERS_URL": tables,
    }
    with litellm_worker(folder, variables) as worker:
        yield worker


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with judge_server() as server:
        yield server


def options(server: JudgeServer, **more: JsonValue) -> dict[str, JsonValue]:
    return {"api_base": server.url, **more}


def keyed(**more: str) -> dict[str, JsonValue]:
    return {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY, **more}


def ask(worker: Worker, judge: str, server: JudgeServer, **more: JsonValue) -> dict[str, Any]:
    """What a judge at the server makes of the record; nothing may be printed."""
    found = worker.judge(judge, options=options(server, call_seconds=5), variables=keyed(), **more)
    assert found["printed"].replace(_told(found["printed"]), "") == ""
    return found


def _told(printed: str) -> str:
    """Lines of our own log, which a program without a handler sees on standard error."""
    lines = printed.splitlines(keepends=True)
    return "".join(line for line in lines if line.startswith("claimspan: "))


# --- verdicts ---


def test_a_string_is_a_judge_with_price_and_usage_in_one_event_loop_after_the_other(
    worker: Worker, server: JudgeServer
) -> None:
    found = [ask(worker, OPENAI, server) for _ in range(3)]

    assert [each["labels"] for each in found] == [LABELS] * 3
    assert found[0]["name"] == "openai"
    assert found[0]["price"] == [0.15, 0.6]
    usage = found[0]["usage"]
    assert usage["calls"] == 2
    assert usage["input_tokens"] > 100
    cost = (usage["input_tokens"] * 0.15 + usage["output_tokens"] * 0.6) / 1e6
    assert usage["cost_usd"] == pytest.approx(cost)
    assert {each.headers["authorization"] for each in server.exchanges} == {f"Bearer {KEY}"}


def test_a_reasoning_model_gets_the_fields_that_it_takes(
    worker: Worker, server: JudgeServer
) -> None:
    assert ask(worker, "litellm:openai/gpt-5-mini", server)["labels"] == LABELS
    sent = server.exchanges[0].request
    assert "temperature" not in sent
    assert "max_completion_tokens" in sent


def test_what_litellm_itself_refuses_is_left_out(worker: Worker, server: JudgeServer) -> None:
    server.behave = anthropic
    base = server.url.removesuffix("/v1")

    found = worker.judge(CLAUDE, options={"api_base": base, "seed": 1}, variables=keyed())

    assert found["labels"] == LABELS
    assert "it refuses seed, and is asked without it" in found["printed"]
    assert {each.path for each in server.exchanges} == {"/v1/messages"}
    assert found["price"] == [1.0, 5.0]
    assert found["usage"]["input_tokens"] == 200


def test_bedrock_is_asked_with_a_signature(worker: Worker, server: JudgeServer) -> None:
    server.behave = bedrock
    base = server.url.removesuffix("/v1")
    variables = keyed(**AWS, AWS_REGION_NAME="us-east-1", AWS_BEDROCK_RUNTIME_ENDPOINT=base)

    found = worker.judge(NOVA, variables=variables)

    assert found["labels"] == LABELS
    assert found["name"] == "bedrock"
    first = server.exchanges[0]
    assert first.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIACANARY/")
    assert "us-east-1" in first.headers["authorization"]
    assert KEY not in first.text


def test_arguments_of_litellm_are_options(worker: Worker, server: JudgeServer) -> None:
    server.behave = bedrock
    base = server.url.removesuffix("/v1")
    given: dict[str, JsonValue] = {
        "aws_region_name": "eu-central-1",
        "aws_bedrock_runtime_endpoint": base,
    }

    found = worker.judge(NOVA, options=given, variables=keyed(**AWS))

    assert found["labels"] == LABELS
    assert "eu-central-1" in server.exchanges[0].headers["authorization"]
    assert "aws_region_name" not in server.exchanges[0].text


def test_without_the_extra_a_string_says_what_to_install() -> None:
    with pytest.raises(MissingExtraError, match=r"claimspan\[litellm\]"):
        default_judge(NOVA)


# --- what stays the application's ---


def test_nothing_is_fetched_or_printed_and_no_file_of_variables_is_read(
    worker: Worker, server: JudgeServer, outside: socket.socket
) -> None:
    server.behave = anthropic
    base = server.url.removesuffix("/v1")

    found = worker.judge(CLAUDE, options={"api_base": base}, variables=keyed())

    assert found["labels"] == LABELS
    assert found["printed"] == ""
    assert "OF_THE_APPLICATION" not in found["added"]
    with pytest.raises(BlockingIOError):
        outside.accept()


def test_calls_are_in_no_log_no_trace_and_no_cache_of_the_application(
    worker: Worker, server: JudgeServer
) -> None:
    given = options(server, call_seconds=2)
    quiet = [ask(worker, OPENAI, server, watched=True) for _ in range(2)]
    assert [(each["seen"], each["spans"]) for each in quiet] == [([], 0)] * 2
    assert server.calls == 4

    server.behave = failing(400, {"error": {"message": "no"}})
    refused = worker.judge(OPENAI, options=given, variables=keyed(), watched=True)
    assert "error" in refused
    assert (refused["seen"], refused["spans"]) == ([], 0)

    server.behave = anything
    own = worker.judge(OPENAI, options=given, variables=keyed(), watched=True, own_call=True)
    assert "logger: success" in own["seen"]
    assert own["spans"] > 0


async def anything(exchange: Exchange) -> None:
    await exchange.reply("So it is.")


# --- errors ---


def rejected(code: str, message: str, kind: str = "invalid_request_error") -> JsonValue:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


@pytest.mark.parametrize(
    ("status", "body", "said", "calls"),
    [
        (
            401,
            rejected("invalid_api_key", f"Incorrect API key provided: {KEY}."),
            "JudgeError: the endpoint answered with HTTP 401 .*check the key",
            1,
        ),
        (
            429,
            rejected("insufficient_quota", "You exceeded your current quota."),
            "JudgeUnavailableError: .*HTTP 429 .*the account has nothing left",
            1,
        ),
        (
            400,
            rejected(
                "context_length_exceeded",
                "This model's maximum context length is 8192 tokens. However, your messages "
                "resulted in 9000 tokens. Please reduce the length of the messages.",
            ),
            "TooLongError: .*the texts are too long for the model",
            2,  # the whole, and a half
        ),
        (
            404,
            rejected("model_not_found", "The model `gpt-4o-mini` does not exist."),
            "JudgeError: .*HTTP 404 .*check base_url and the model's name",
            1,
        ),
        (
            400,
            rejected("content_policy_violation", "Rejected by our safety system."),
            "JudgeError: .*the provider's content filter stops these texts",
            1,
        ),
    ],
    ids=["key", "quota", "length", "model", "filter"],
)
def test_an_error_of_the_provider_is_told_by_its_cause(
    worker: Worker, server: JudgeServer, status: int, body: JsonValue, said: str, calls: int
) -> None:
    server.behave = failing(status, body)

    found = ask(worker, OPENAI, server)

    assert server.calls == calls
    assert_told(found, said)


def assert_told(found: dict[str, Any], said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        raise AssertionError(found["error"])
    assert KEY not in found["error"]
    assert "river" not in found["error"]
    assert "litellm." not in found["error"]


def test_a_wait_that_a_provider_asks_for_is_kept_to(worker: Worker, server: JudgeServer) -> None:
    server.behave = failing(
        429, rejected("rate_limit_exceeded", "Slow down."), {"retry-after": "2"}, times=1
    )

    found = ask(worker, OPENAI, server)

    assert found["labels"] == LABELS
    assert server.calls == 3
    assert found["seconds"] > 2


def test_a_provider_that_hangs_ends_with_the_deadline(worker: Worker, server: JudgeServer) -> None:
    server.behave = hanging

    found = worker.judge(OPENAI, options=options(server, call_seconds=1), variables=keyed())

    assert "no reply within 1 s" in found["error"]
    assert found["printed"] == ""
    assert found["seconds"] < 30  # of 60; an import of LiteLLM takes seconds


async def hanging(_: Exchange) -> None:
    await asyncio.sleep(60)


def test_a_server_that_is_not_there_is_a_failed_connection(worker: Worker) -> None:
    given: dict[str, JsonValue] = {"api_base": "http://127.0.0.1:9/v1", "call_seconds": 1}

    found = worker.judge(OPENAI, options=given, variables=keyed())

    assert_told(found, "JudgeUnavailableError: the connection failed")


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        (OPENAI, "no key and no credentials for openai"),
        (CLAUDE, "no key and no credentials for anthropic"),
        ("litellm:gemini/gemini-2.5-flash", "no key and no credentials for gemini"),
        (NOVA, "no key and no credentials for bedrock"),
        ("vertex:gemini-2.5-flash", "LiteLLM needs the package 'google' for vertex_ai"),
        ("litellm:nosuch/model", "LiteLLM knows no provider 'nosuch'"),
    ],
)
def test_without_credentials_the_error_says_what_is_missing(
    worker: Worker, judge: str, said: str
) -> None:
    found = worker.judge(judge, variables={"AWS_EC2_METADATA_DISABLED": "true"})

    assert_told(found, f"JudgeError: .*{said}")
    assert found["printed"] == ""


def test_a_budget_in_dollars_goes_by_litellms_price(worker: Worker, server: JudgeServer) -> None:
    assert "labels" in ask(worker, OPENAI, server, budget=0.1)

    found = ask(worker, OPENAI, server, budget=0.000001)

    assert found["error"].startswith("BudgetExceededError")
    assert server.calls == 2


@pytest.mark.parametrize(
    ("judge", "status", "body", "said"),
    [
        (
            NOVA,
            400,
            {"message": "Input is too long for requested model."},
            "TooLongError: .*the texts are too long for the model",
        ),
        (
            NOVA,
            403,
            {"message": "You don't have access to the model with the specified model ID."},
            "JudgeError: .*HTTP 403.*check the key, and what it may do",
        ),
        (
            CLAUDE,
            400,
            {
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "message": "prompt is too long: 208310 tokens > 200000 maximum",
                },
            },
            "TooLongError: .*the texts are too long for the model",
        ),
        (
            CLAUDE,
            400,
            {
                "type": "error",
                "error": {
                    "type": "invalid_request_error",
                    "message": "Your credit balance is too low to access the Anthropic API.",
                },
            },
            "JudgeUnavailableError: .*the account has nothing left",
        ),
        (
            CLAUDE,
            401,
            {
                "type": "error",
                "error": {"type": "authentication_error", "message": f"invalid x-api-key {KEY}"},
            },
            "JudgeError: .*HTTP 401.*check the key",
        ),
    ],
    ids=["bedrock length", "bedrock access", "length", "balance", "key"],
)
def test_an_error_in_another_protocol_is_told_by_its_cause(
    worker: Worker, server: JudgeServer, judge: str, status: int, body: JsonValue, said: str
) -> None:
    server.behave = failing(status, body)
    base = server.url.removesuffix("/v1")
    variables = keyed(**AWS, AWS_REGION_NAME="us-east-1", AWS_BEDROCK_RUNTIME_ENDPOINT=base)
    given: dict[str, JsonValue] = {} if judge == NOVA else {"api_base": base}

    found = worker.judge(judge, options=given, variables=variables)

    assert_told(found, said)
    assert found["printed"] == ""


@pytest.mark.parametrize("status", [429, 529])
def test_a_wait_in_another_protocol_is_kept_to(
    worker: Worker, server: JudgeServer, status: int
) -> None:
    overloaded: JsonValue = {
        "type": "error",
        "error": {"type": "overloaded_error", "message": "Overloaded"},
    }
    refuse = failing(status, overloaded, {"retry-after": "2"})

    async def behave(exchange: Exchange) -> None:
        await (refuse if exchange.number == 1 else anthropic)(exchange)

    server.behave = behave
    given: dict[str, JsonValue] = {"api_base": server.url.removesuffix("/v1")}

    found = worker.judge(CLAUDE, options=given, variables=keyed())

    assert found["labels"] == LABELS
    assert found["seconds"] > 2
    assert server.calls == 3
