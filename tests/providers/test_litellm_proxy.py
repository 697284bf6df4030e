"""The strong judge behind LiteLLM's own proxy, with providers of three protocols behind that."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

import pytest
from pydantic import JsonValue

from claimspan.cost.usage import metered
from claimspan.errors import JudgeError, JudgeUnavailableError
from claimspan.evaluation.evaluate import aevaluate
from claimspan.judges import OpenAIJudge
from claimspan.judges.choice import default_judge
from claimspan.judges.llm.refusals import TooLongError

from judge_server import JudgeServer, judge_server
from judged import RECORD
from litellm_parts import litellm_proxy
from provider_fakes import anthropic, bedrock, failing

KEY: Final = "sk-team-4711"
PROVIDER_KEY: Final = "sk-provider-4711-4711-4711"
WRONG: Final = "sk-wrong-4711"
KEYS: Final = (KEY, PROVIDER_KEY, WRONG, "88dc28d0f030c55e")
"""The last one is the beginning of a hash that the proxy repeats."""

SECRET: Final = "The cathedral of Ljubljana was built by Andrea Pozzo."  # noqa: S105 - of a record


@pytest.fixture(scope="module")
def providers() -> Iterator[JudgeServer]:
    with judge_server() as server:
        yield server


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory, providers: JudgeServer) -> Iterator[str]:
    base = providers.url.removesuffix("/v1")
    openai: dict[str, JsonValue] = {"api_base": providers.url, "api_key": PROVIDER_KEY}
    aws: dict[str, JsonValue] = {
        "aws_access_key_id": "AKIACANARY",
        "aws_secret_access_key": PROVIDER_KEY,
        "aws_region_name": "us-east-1",
        "aws_bedrock_runtime_endpoint": base,
    }
    models: dict[str, dict[str, JsonValue]] = {
        "gpt-4o-mini": {"model": "openai/gpt-4o-mini", **openai},
        "gpt-5-mini": {"model": "openai/gpt-5-mini", **openai},
        # Names that do not tell what stands behind them.
        "team-reasons": {"model": "openai/o3-mini", **openai},
        "team-five": {"model": "openai/gpt-5-mini", **openai},
        "team-claude": {
            "model": "anthropic/claude-haiku-4-5",
            "api_base": base,
            "api_key": PROVIDER_KEY,
        },
        "team-nova": {"model": "bedrock/amazon.nova-lite-v1:0", **aws},
    }
    with litellm_proxy(tmp_path_factory.mktemp("proxy"), models) as url:
        yield url


@pytest.fixture
def server(providers: JudgeServer) -> JudgeServer:
    """The providers, as they answer by default."""
    providers.reset()
    providers.behave = providers.answer
    return providers


def judge_of_team(proxy: str, model: str, key: str = KEY, **more: JsonValue) -> OpenAIJudge:
    given: dict[str, JsonValue] = {"base_url": proxy, "api_key": key, "call_seconds": 10.0, **more}
    return OpenAIJudge(model, **given)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - the caller's to know


async def error_of(judge: OpenAIJudge, kind: type[JudgeError] = JudgeError) -> str:
    """The error of a call, which holds no key and no text."""
    with pytest.raises(kind) as caught:
        await judge.extract_claims(SECRET)
    said = str(caught.value)
    for private in (*KEYS, "cathedral", "Ljubljana", "Pozzo"):
        assert private not in said
    return said


# --- verdicts ---


@pytest.mark.parametrize("model", ["gpt-4o-mini", "gpt-5-mini", "team-reasons", "team-five"])
async def test_a_model_of_openais_is_judged_with_whatever_its_name(
    proxy: str, server: JudgeServer, model: str
) -> None:
    evaluation = await aevaluate(RECORD, judge=judge_of_team(proxy, model))

    assert evaluation.metrics["faithfulness"] == 1.0
    assert evaluation.usage.input_tokens > 100
    assert server.calls == 3  # what the proxy refuses has not reached the provider


async def test_a_string_reaches_the_proxy(
    proxy: str, server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", proxy)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    evaluation = await aevaluate(RECORD, judge=default_judge("openai:gpt-4o-mini"))

    assert evaluation.metrics["faithfulness"] == 1.0
    assert {each.headers["authorization"] for each in server.exchanges} == {
        f"Bearer {PROVIDER_KEY}"
    }


@pytest.mark.parametrize(
    ("model", "behave", "end"),
    [("team-claude", anthropic, "/v1/messages"), ("team-nova", bedrock, "/converse")],
    ids=["anthropic", "bedrock"],
)
async def test_a_model_with_a_protocol_of_its_own_is_judged_with(
    proxy: str, server: JudgeServer, model: str, behave: object, end: str
) -> None:
    server.behave = behave  # type: ignore[assignment]  # one of two functions
    judge = judge_of_team(proxy, model, seed=1)  # neither takes a seed

    evaluation = await aevaluate(RECORD, judge=judge)

    assert evaluation.metrics["faithfulness"] == 1.0
    assert evaluation.usage.input_tokens == 300
    assert all(each.path.endswith(end) for each in server.exchanges)


# --- refusals ---


def refused(code: str | None, message: str, param: str | None = None) -> JsonValue:
    return {
        "error": {
            "message": message,
            "type": "invalid_request_error",
            "param": param,
            "code": code,
        }
    }


async def test_texts_that_are_too_long_are_told(proxy: str, server: JudgeServer) -> None:
    server.behave = failing(
        400,
        refused(
            "context_length_exceeded",
            "This model's maximum context length is 8192 tokens. However, your messages resulted "
            "in 9000 tokens. Please reduce the length of the messages.",
            "messages",
        ),
    )

    said = await error_of(judge_of_team(proxy, "gpt-4o-mini"), TooLongError)

    assert "the texts are too long for the model" in said


async def test_a_limit_of_the_proxys_own_is_waited_for(proxy: str, server: JudgeServer) -> None:
    judge = judge_of_team(proxy, "gpt-4o-mini", key="sk-slow-4711", call_seconds=2.0)
    assert await judge.extract_claims("The first.")

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(3):
            await judge.extract_claims("The second.")

    assert server.calls == 1


async def test_a_limit_of_the_provider_is_tried_again(proxy: str, server: JudgeServer) -> None:
    server.behave = failing(
        429, refused("rate_limit_exceeded", "Rate limit reached."), {"retry-after": "1"}, times=1
    )

    with metered() as meter:
        assert await judge_of_team(proxy, "gpt-4o-mini").extract_claims(SECRET)

    assert meter.usage.calls == server.calls == 2


@pytest.mark.parametrize(
    ("status", "body", "kind", "told"),
    [
        (
            429,
            refused("insufficient_quota", "You exceeded your current quota."),
            JudgeUnavailableError,
            "the account has nothing left or is closed",
        ),
        (
            401,
            refused("invalid_api_key", f"Incorrect API key provided: {PROVIDER_KEY}."),
            JudgeError,
            "check the key, and what it may do",
        ),
        (
            404,
            refused("model_not_found", "The model `gpt-4o-mini` does not exist."),
            JudgeError,
            "check base_url and the model's name",
        ),
        (500, refused(None, "The server had an error."), JudgeUnavailableError, "HTTP 500"),
    ],
    ids=["quota", "key", "model", "fault"],
)
async def test_an_error_of_the_provider_is_told_by_its_cause(
    proxy: str,
    server: JudgeServer,
    status: int,
    body: JsonValue,
    kind: type[JudgeError],
    told: str,
) -> None:
    server.behave = failing(status, body)

    assert told in await error_of(judge_of_team(proxy, "gpt-4o-mini"), kind)


async def test_a_budget_of_the_proxy_that_is_spent_stops_at_once(
    proxy: str, server: JudgeServer
) -> None:
    judge = judge_of_team(proxy, "gpt-4o-mini", key="sk-spent-4711")

    said = await error_of(judge)

    assert "Budget has been exceeded" in said
    assert server.calls == 0


async def test_a_wrong_key_of_the_proxy_is_told(proxy: str, server: JudgeServer) -> None:
    said = await error_of(judge_of_team(proxy, "gpt-4o-mini", key=WRONG))

    assert "HTTP 401" in said
    assert "check the key, and what it may do" in said


async def test_a_model_that_the_proxy_does_not_have_is_told(
    proxy: str, server: JudgeServer
) -> None:
    said = await error_of(judge_of_team(proxy, "gpt-4o-nosuch"))

    assert "check base_url and the model's name" in said
