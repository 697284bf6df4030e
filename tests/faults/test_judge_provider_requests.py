"""What a judge sends, and where to: seeds, options, headers, proxies, certificates, redirects."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import JsonValue

from claimspan import Evaluation, RagRecord
from claimspan.errors import JudgeError
from claimspan.evaluation.evaluate import aevaluate
from claimspan.judges import OpenAIJudge, default_judge

from judge_providers import (
    KEY,
    RECORD,
    Refusal,
    asked,
    limit_of,
    right_reply,
    send,
    so_long_as,
)
from judge_server import Exchange, JudgeServer, judge_server
from provider_cells import (
    MAX_TOKENS,
    MOST_REQUESTS,
    SYSTEM,
    TEMPERATURE,
    TOO_HIGH,
    assert_right,
    assert_silent,
    failure,
    make_judge,
    most_requests,
    outcome,
    requests,
)


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with judge_server() as server:
        yield server


# --- seeds and options -------------------------------------------------------------------------


async def bodies(
    server: JudgeServer, record: RagRecord = RECORD, **options: JsonValue
) -> list[str]:
    server.reset()
    await aevaluate(record, judge=make_judge(server, options=options))
    return sorted(each.text for each in server.exchanges)


async def test_one_seed_makes_the_same_requests(server: JudgeServer) -> None:
    once = await bodies(server, seed=1)

    assert await bodies(server, seed=1) == once
    assert {json.loads(each)["seed"] for each in once} == {1}


async def test_other_seeds_and_other_texts_have_other_ids(server: JudgeServer) -> None:
    async def ids(record: RagRecord = RECORD, **options: JsonValue) -> set[str]:
        texts = await bodies(server, record, **options)
        return {str(asked(json.loads(each))["call"]) for each in texts}

    other = RECORD.model_copy(update={"query": "Where?", "response": "Elsewhere it stands."})
    sets = [await ids(seed=1), await ids(seed=2), await ids(other, seed=1), await ids()]

    shared = sets[0] & sets[2]  # the call of the ground truth asks the same only with its question
    assert shared == set()
    assert sets[0] & sets[1] == sets[0] & sets[3] == set()
    assert sets[3] & await ids() == set()


async def test_one_seed_makes_the_same_requests_after_a_refusal(server: JudgeServer) -> None:
    so_long_as(server, TEMPERATURE, SYSTEM)
    await bodies(server, seed=1)
    once = await bodies(server, seed=1)

    assert await bodies(server, seed=1) == once


@pytest.mark.parametrize(
    "name", ["temperature", "max_tokens", "response_format", "logprobs", "top_logprobs"]
)
async def test_an_option_that_is_none_leaves_its_field_out(server: JudgeServer, name: str) -> None:
    so_long_as(server)

    assert_right(
        await aevaluate(RECORD, judge=make_judge(server, options={"options": {name: None}}))
    )

    assert not any(name in each for each in requests(server))


@pytest.mark.parametrize("model", ["judge-prod", "gpt-5-mini", "o3-mini"])
async def test_no_limit_is_sent_if_both_names_are_none(server: JudgeServer, model: str) -> None:
    so_long_as(server)
    options: JsonValue = {"max_tokens": None, "max_completion_tokens": None}

    assert_right(await aevaluate(RECORD, judge=make_judge(server, model, {"options": options})))

    assert [limit_of(each) for each in requests(server)] == [0] * len(requests(server))


@pytest.mark.parametrize("model", ["judge-prod", "gpt-5-mini"])
@pytest.mark.parametrize("name", ["max_completion_tokens", "max_tokens"])
async def test_a_limit_of_the_user_is_the_only_one(
    server: JudgeServer, name: str, model: str
) -> None:
    so_long_as(server)

    await aevaluate(RECORD, judge=make_judge(server, model, {"options": {name: 30000}}))

    other = {"max_tokens": "max_completion_tokens"}.get(name, "max_tokens")
    assert {str(each.get(name)) for each in requests(server)} == {"30000"}
    assert not any(other in each for each in requests(server))


@pytest.mark.parametrize("refusal", [MAX_TOKENS, TOO_HIGH], ids=str)
async def test_a_limit_of_the_user_that_is_refused_is_sent_in_another_way_or_named(
    server: JudgeServer, refusal: Refusal
) -> None:
    so_long_as(server, refusal)

    result = await outcome(make_judge(server, options={"options": {"max_tokens": 30000}}))

    if isinstance(result, JudgeError):
        assert "max_tokens" in str(result)
    else:
        assert_right(result)
    assert most_requests(server) <= MOST_REQUESTS


async def test_an_option_of_the_user_that_is_refused_is_named(server: JudgeServer) -> None:
    async def behave(exchange: Exchange) -> None:
        if "reasoning_effort" in exchange.request:
            await send(
                exchange,
                400,
                {
                    "error": {
                        "message": "Unrecognized request argument supplied: reasoning_effort",
                        "type": "invalid_request_error",
                        "param": "reasoning_effort",
                        "code": None,
                    }
                },
            )
            return
        await exchange.reply(right_reply(exchange.request))

    server.behave = behave
    judge = make_judge(server, options={"options": {"reasoning_effort": "low"}})

    result = await outcome(judge)

    if isinstance(result, JudgeError):
        assert "reasoning_effort" in str(result)
    else:
        assert_right(result)


# --- addresses, proxies, certificates, headers -------------------------------------------------


@pytest.mark.filterwarnings("ignore:base_url is plain http")
@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
@pytest.mark.parametrize(("trust", "used"), [(None, False), ("0", False), ("1", True)])
async def test_a_proxy_is_used_only_if_it_is_wanted(
    server: JudgeServer,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    trust: str | None,
    used: bool,
) -> None:
    """The proxy alone knows the address, so that a request that goes past it fails."""
    so_long_as(server)
    monkeypatch.setenv(variable, server.url.removesuffix("/v1"))
    monkeypatch.delenv("CLAIMSPAN_TRUST_ENV", raising=False)
    if trust is not None:
        monkeypatch.setenv("CLAIMSPAN_TRUST_ENV", trust)
    nowhere = "http://judge.invalid/v1"

    result = await outcome(OpenAIJudge("m", base_url=nowhere, call_seconds=0.5))

    if used:
        assert isinstance(result, Evaluation)
        assert_right(result)
        assert {each.path for each in server.exchanges} == {f"{nowhere}/chat/completions"}
    else:
        assert isinstance(result, JudgeError)
        assert server.exchanges == []


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificate")
    subprocess.run(
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout k.pem -out c.pem"
        " -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1".split(),
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder / "c.pem"


async def test_a_certificate_of_a_company_is_trusted_and_its_lack_is_said(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("k.pem"))
    server = JudgeServer()
    so_long_as(server)
    listening = await asyncio.start_server(
        server.serve, "127.0.0.1", 0, ssl=context, ssl_shutdown_timeout=0.1
    )
    url = f"https://localhost:{listening.sockets[0].getsockname()[1]}/v1"
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)

    async with listening:
        message = await failure(OpenAIJudge("m", base_url=url, call_seconds=2))
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert_right(await aevaluate(RECORD, judge=OpenAIJudge("m", base_url=url)))

    assert re.search("(?i)certificate", message)
    assert "SSL_CERT_FILE" in message
    assert_silent(message)


async def test_the_documented_headers_of_azure_are_sent_and_no_other_key(
    server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-application")
    so_long_as(server)
    judge = OpenAIJudge(
        "judge-prod",
        base_url=server.url.removesuffix("/v1") + "/openai/deployments/judge-prod",
        headers={"api-key": KEY},
        query={"api-version": "2024-10-21"},
    )

    assert_right(await aevaluate(RECORD, judge=judge))

    for exchange in server.exchanges:
        assert exchange.headers["api-key"] == KEY
        assert "authorization" not in exchange.headers
        assert exchange.path == (
            "/openai/deployments/judge-prod/chat/completions?api-version=2024-10-21"
        )


@pytest.mark.parametrize("version", [None, "2024-10-21"])
async def test_azure_by_its_string_is_asked_at_its_documented_address(
    server: JudgeServer, monkeypatch: pytest.MonkeyPatch, version: str | None
) -> None:
    so_long_as(server, TEMPERATURE, MAX_TOKENS)
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.url.removesuffix("/v1") + "/")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_API_VERSION", raising=False)
    if version is not None:
        monkeypatch.setenv("OPENAI_API_VERSION", version)

    assert_right(await aevaluate(RECORD, judge=default_judge("azure:judge-prod")))

    path, _, query = server.exchanges[0].path.partition("?")
    headers = server.exchanges[0].headers
    assert KEY in (headers.get("api-key"), headers.get("authorization", "").removeprefix("Bearer "))
    if version is None:
        assert path == "/openai/v1/chat/completions"
    else:
        assert path == "/openai/deployments/judge-prod/chat/completions"
        assert query == f"api-version={version}"


async def test_a_key_of_the_application_is_not_sent_elsewhere(
    server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-application")
    so_long_as(server)

    assert_right(await aevaluate(RECORD, judge=OpenAIJudge("m", base_url=server.url)))

    assert not any("sk-of-the" in str(dict(each.headers)) for each in server.exchanges)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed_and_is_said(server: JudgeServer, status: int) -> None:
    with judge_server() as other:
        target = other.url + "/chat/completions"

        async def behave(exchange: Exchange) -> None:
            await send(exchange, status, "", {"Location": target})

        server.behave = behave
        message = await failure(make_judge(server))

        assert other.exchanges == []
    assert_silent(message)
    assert re.search(f"(?i)redirect|{status}", message)
    assert re.search("(?i)base.url|address", message)
    assert most_requests(server) <= MOST_REQUESTS
