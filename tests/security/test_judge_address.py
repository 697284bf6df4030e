"""Where a judge may send prompts and its key. Rows S1 and S3 of the reliability matrix."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Iterator
from typing import Final

import pytest

from claimspan import Usage
from claimspan.cost import Budget
from claimspan.errors import ClaimspanError, ConfigError, JudgeError, JudgeUnavailableError
from claimspan.judges import CascadeJudge, LexicalJudge, OpenAIJudge
from claimspan.judges.llm import openai_chat
from claimspan.judges.llm.openai_chat import is_forbidden_address
from claimspan_tracing import Monitor

from judge_server import Exchange, JudgeServer, judge_server
from judged import make_judge

CANARY: Final = "sk-canary-4711"


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with judge_server() as server:
        yield server


# --- at set-up ---


@pytest.mark.parametrize(
    "host",
    [
        "169。254。169。254",
        "169.254．169｡254",
        "１６９.２５４.１６９.２５４",
        "①⑥⑨.②⑤④.①⑥⑨.②⑤④",
        "169.254.169.254.",
        "169.254.43518",
        "0xA9FEA9FE",
        "025177524776",
        "%31%36%39.254.169.254",
        "169.254.169.254%2e",
        "[::ffff:a9fe:a9fe]",
        "[::169.254.169.254]",
        "[::ffff:0:169.254.169.254]",
        "[64:ff9b::169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
        "[64:ff9b:1::a9fe:a9fe]",
        "[2002:a9fe:a9fe::]",
        "[2002:a9fe:a9fe::1]",
        "[2001:0:a9fe:a9fe::1]",
        "[fe80::1%25eth0]",
        "[febf::1]",
        "[fd20:ce::254]",
        "[::]",
        "168.63.129.16",
        "192.0.0.192",
        "100.100.100.200",
        "ＭＥＴＡＤＡＴＡ.google.internal",
        "metadata。google。internal。",
        "metadata.goog",
        "instance-data.ec2.internal",
        "models.example.com%2f@169.254.169.254",
        "models.example.com%00.local",
    ],
)
def test_an_address_of_credentials_is_refused_however_it_is_spelled(host: str) -> None:
    with pytest.raises(ConfigError, match="base_url"):
        OpenAIJudge("stub", base_url=f"http://{host}/v1")


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.20",
        "[fd00::1]",
        "ollama",
        "vllm.internal",
    ],
)
def test_models_on_this_machine_and_in_private_networks_are_allowed(host: str) -> None:
    assert OpenAIJudge("stub", base_url=f"http://{host}:8000/v1").name == "openai"


@pytest.mark.parametrize("text", ["localhost", "", "models.example.com", "1.2.3.4.5"])
def test_a_name_is_no_forbidden_address(text: str) -> None:
    assert not is_forbidden_address(text)


def test_every_link_local_address_is_forbidden_also_inside_of_ipv6() -> None:
    for each in ("169.254.0.1", "169.254.255.254"):
        mapped = ipaddress.IPv6Address(f"::ffff:{each}")
        assert is_forbidden_address(each)
        assert is_forbidden_address(str(mapped))
        assert is_forbidden_address(f"64:ff9b::{each}")
    assert not is_forbidden_address("169.253.0.1")


# --- at the connection ---


async def test_a_name_that_leads_to_a_forbidden_address_is_sent_nothing(
    server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No test can count on a link-local address: the server's own takes its place.
    monkeypatch.setattr(openai_chat, "_METADATA_ADDRESSES", frozenset({"127.0.0.1"}))
    budget = Budget(calls_per_day=10)
    judge = OpenAIJudge(
        "stub",
        base_url=server.url.replace("127.0.0.1", "localhost"),
        api_key=CANARY,
        budget=budget,
    )

    for _ in range(6):  # more than would open the circuit breaker
        with pytest.raises(JudgeError, match="link-local or metadata address") as caught:
            await judge.extract_claims("The secret sentence is here.")
        assert not isinstance(caught.value, JudgeUnavailableError)

    assert server.calls == 0
    assert budget.spent_today == Usage(calls=6)


async def test_a_name_is_looked_at_again_with_every_connection(
    server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = make_judge(server.url.replace("127.0.0.1", "localhost"))

    async def hang_up(exchange: Exchange) -> None:
        await server.answer(exchange)
        exchange.out.close()

    server.behave = hang_up
    await judge.extract_claims("It is 1.")
    monkeypatch.setattr(openai_chat, "_METADATA_ADDRESSES", frozenset({"127.0.0.1"}))

    with pytest.raises(JudgeError, match="link-local or metadata address"):
        await judge.extract_claims("It is 2.")

    assert server.calls == 1


# --- secrets ---


@pytest.mark.parametrize(
    "url",
    [
        f"http://user:{CANARY}@127.0.0.1/v1",
        f"http://{CANARY}@127.0.0.1/v1",
        f"http://user:{CANARY}@169.254.169.254/v1",
        f"http://[{CANARY}/v1",
        f"ftp://user:{CANARY}@127.0.0.1/v1",
        f"http://user:{CANARY}%40127.0.0.1/v1",
    ],
)
def test_no_message_repeats_what_a_url_holds(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        OpenAIJudge("stub", base_url=url)

    seen = f"{caught.value!r} {caught.value.__cause__!r} {vars(caught.value)}"
    assert CANARY not in seen


@pytest.mark.parametrize("status", [200, 302, 401, 429, 500])
async def test_the_key_is_in_no_error_and_in_no_log_at_any_level(
    server: JudgeServer, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    async def behave(exchange: Exchange) -> None:
        echo = f'{{"error": {{"message": "bad key {CANARY}"}}}}'.encode()
        await exchange.send(echo, status=status, headers={"x-note": CANARY, "location": CANARY})

    server.behave = behave
    caplog.set_level(logging.DEBUG)
    # A refusal for a while is tried again for as long.
    judge = make_judge(
        server.url, headers={"X-Extra": CANARY}, query={"api": CANARY}, call_seconds=2.0
    )

    with pytest.raises(ClaimspanError) as caught:
        await judge.extract_claims("It is so.")

    error = caught.value
    seen = f"{error!r} {vars(error)} {error.__cause__!r} {error.__context__!r} {judge!r}"
    assert CANARY not in seen
    ours = [each.getMessage() for each in caplog.records if each.name.startswith("claimspan")]
    assert CANARY not in "".join(ours)
    assert f"Bearer {CANARY}" not in caplog.text
    assert server.exchanges[0].headers["authorization"] == f"Bearer {CANARY}"


def test_the_key_is_in_no_representation() -> None:
    judge = make_judge("http://127.0.0.1:9/v1", headers={"X-Gateway-Key": CANARY})
    monitor = Monitor(CascadeJudge(LexicalJudge(), judge))

    shown = list(represented(monitor))

    # So far that the walk has seen the judge, and what it consists of.
    assert {"Monitor", "Settings", "CascadeJudge", "OpenAIJudge"} <= {name for name, _ in shown}
    assert [name for name, text in shown if CANARY in text] == []


def represented(value: object, seen: set[int] | None = None) -> Iterator[tuple[str, str]]:
    """The class and the representation of an object, and of all of ours that it consists of."""
    seen = set() if seen is None else seen
    if id(value) in seen or not type(value).__module__.startswith("claimspan"):
        return
    seen.add(id(value))
    yield type(value).__name__, repr(value)
    slots = [getattr(value, name, None) for name in getattr(value, "__slots__", ())]
    for part in [*getattr(value, "__dict__", {}).values(), *slots]:
        yield from represented(part, seen)
