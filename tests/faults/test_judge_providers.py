"""Providers and what they refuse: an evaluation ends in verdicts, or says why it cannot.

A table of providers stands in ``judge_providers``. No cell of it may invent a score, ask more than
three times more for one call, or show a word of the record or the key.

Row F17 of the reliability matrix.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from email.utils import formatdate
from typing import Final, cast

import pytest
from pydantic import JsonValue

from claimspan import Chunk, Evaluation, RagRecord
from claimspan.errors import JudgeError
from claimspan.evaluation.evaluate import aevaluate, aevaluate_many

from judge_providers import (
    BUSY,
    HOPELESS,
    KEY,
    LONG,
    QUOTA,
    RECORD,
    REFUSALS,
    SLOW_DOWN,
    WINDOWS,
    Answer,
    Refusal,
    answer_with,
    asked,
    is_check,
    right_reply,
    send,
    so_long_as,
)
from judge_server import Exchange, JudgeServer, judge_server
from provider_cells import (
    ANY_FORM,
    JSON_SCHEMA,
    LM_STUDIO,
    LOGPROBS,
    MAX_TOKENS,
    MOST_REQUESTS,
    NO_ROOM,
    SYSTEM,
    TEMPERATURE,
    TOO_HIGH,
    assert_right,
    assert_silent,
    failure,
    make_judge,
    most_requests,
    named,
    outcome,
    requests,
)


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with judge_server() as server:
        yield server


# --- what a model refuses ----------------------------------------------------------------------


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
async def test_a_refusal_is_answered_by_another_request(
    server: JudgeServer, refusal: Refusal
) -> None:
    so_long_as(server, refusal)

    evaluation = await aevaluate(RECORD, judge=make_judge(server, refusal.model, refusal.options))

    assert_right(evaluation)
    assert most_requests(server) <= MOST_REQUESTS
    last = requests(server)[-1]
    assert [name for name in refusal.keeps if name not in last] == []


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
async def test_what_was_refused_once_is_not_asked_again(
    server: JudgeServer, refusal: Refusal
) -> None:
    judge = make_judge(server, refusal.model, refusal.options)
    refused = so_long_as(server, refusal)
    await outcome(judge)
    before = len(refused)
    other = RECORD.model_copy(
        update={"response": "The Quibblewick tower stands there. Vampires whitewashed windows."}
    )

    await outcome(judge, other)

    assert len(refused) == before


async def test_what_is_learned_is_said_without_the_record(
    server: JudgeServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="claimspan")
    for refusal in REFUSALS[:3]:
        so_long_as(server, refusal)
        await outcome(make_judge(server, f"model-{refusal.refused}"))

    assert caplog.records
    assert_silent(caplog.text)


COMBINED: Final = (
    (TEMPERATURE, MAX_TOKENS, JSON_SCHEMA),
    (JSON_SCHEMA, TEMPERATURE, MAX_TOKENS),
    (MAX_TOKENS, SYSTEM, TEMPERATURE),
    (TEMPERATURE, LOGPROBS),
    (JSON_SCHEMA, LM_STUDIO),
    (SYSTEM, ANY_FORM),
    (MAX_TOKENS, NO_ROOM),
    (TEMPERATURE, MAX_TOKENS, NO_ROOM),
)


@pytest.mark.parametrize(
    "refusals", COMBINED, ids=lambda each: " + ".join(one.refused for one in each)
)
async def test_refusals_are_answered_one_after_the_other(
    server: JudgeServer, refusals: Sequence[Refusal]
) -> None:
    so_long_as(server, *refusals)

    assert_right(await aevaluate(RECORD, judge=make_judge(server)))
    assert most_requests(server) <= MOST_REQUESTS


async def test_a_model_that_refuses_everything_gets_four_requests_a_call(
    server: JudgeServer,
) -> None:
    so_long_as(server, TEMPERATURE, MAX_TOKENS, SYSTEM, JSON_SCHEMA, ANY_FORM, LOGPROBS)

    result = await outcome(make_judge(server))

    if isinstance(result, Evaluation):
        assert_right(result)
    assert most_requests(server) <= MOST_REQUESTS


async def test_a_limit_by_one_name_alone_is_ever_sent(server: JudgeServer) -> None:
    so_long_as(server, MAX_TOKENS, TOO_HIGH, JSON_SCHEMA)

    assert_right(await aevaluate(RECORD, judge=make_judge(server, "deepseek-reasoner")))
    assert not any(
        "max_tokens" in each and "max_completion_tokens" in each for each in requests(server)
    )


# --- many at once ------------------------------------------------------------------------------


def many(count: int = 16) -> list[RagRecord]:
    return [
        RagRecord(
            query=f"Where does tower {number} stand?",
            response=f"Tower number {number} stands beside river {number}. Nobody painted it.",
            chunks=(Chunk(id="a", text=f"Tower number {number} stands beside river {number}."),),
        )
        for number in range(count)
    ]


CROWDED: Final = (
    ((MAX_TOKENS,), "max_completion_tokens"),
    ((JSON_SCHEMA,), "response_format"),
    ((TEMPERATURE, MAX_TOKENS, JSON_SCHEMA), "response_format"),
    ((TOO_HIGH,), "response_format"),
    ((named("vLLM", "too many top_logprobs"),), "response_format"),
    ((named("vLLM", "a keyword of the schema"),), "response_format"),
)


@pytest.mark.parametrize(
    ("refusals", "kept"),
    CROWDED,
    ids=[" + ".join(one.refused for one in each) for each, _ in CROWDED],
)
async def test_refusals_of_many_at_once_teach_one_thing(
    server: JudgeServer, refusals: Sequence[Refusal], kept: str
) -> None:
    refused = so_long_as(server, *refusals)
    model = refusals[0].model
    judge = make_judge(server, model)

    results = await aevaluate_many(many(), judge=judge, concurrency=16)

    assert [each.error for each in results] == [None] * 16
    assert {each.metrics["faithfulness"] for each in results} == {0.5}
    assert most_requests(server) <= MOST_REQUESTS
    assert len(refused) <= 16 * len(refusals) * 2  # extractions and checks may each be the first
    assert all(kept in each for each in requests(server)[-8:])


async def test_another_model_at_the_same_address_is_asked_for_all_again(
    server: JudgeServer,
) -> None:
    so_long_as(server, TEMPERATURE, JSON_SCHEMA)
    await aevaluate(RECORD, judge=make_judge(server, "one"))
    server.reset()

    assert_right(await aevaluate(RECORD, judge=make_judge(server, "two")))

    first = requests(server)[0]
    assert first["temperature"] == 0
    assert cast("Mapping[str, JsonValue]", first["response_format"])["type"] == "json_schema"


async def test_a_second_judge_of_the_same_model_ends_in_verdicts(server: JudgeServer) -> None:
    so_long_as(server, TEMPERATURE, MAX_TOKENS, JSON_SCHEMA)

    for _ in range(2):
        assert_right(await aevaluate(RECORD, judge=make_judge(server)))

    assert most_requests(server) <= MOST_REQUESTS


# --- texts that are too long -------------------------------------------------------------------


@pytest.mark.parametrize("window", WINDOWS, ids=str)
async def test_texts_that_are_too_long_are_judged_in_parts(
    server: JudgeServer, window: Refusal
) -> None:
    refused = so_long_as(server, window)

    evaluation = await aevaluate(LONG, judge=make_judge(server))

    assert refused
    assert evaluation.metrics["faithfulness"] == 0.5
    assert evaluation.metrics["recall"] == 0.5
    assert len(requests(server)) <= 40


async def test_a_text_that_fits_into_no_part_ends_in_an_error(server: JudgeServer) -> None:
    so_long_as(server, next(each for each in WINDOWS if each.provider == "OpenAI"))
    text = " ".join(f"Quibblewick number {number} is varnished." for number in range(3000))
    record = RECORD.model_copy(update={"chunks": (Chunk(id="a", text=text),)})

    result = await outcome(make_judge(server), record)

    if isinstance(result, JudgeError):
        assert re.search("(?i)long|window|context", str(result))
        assert_silent(str(result))
    else:
        assert "faithfulness" not in result.metrics
    assert len(requests(server)) <= 40


# --- busy, used up, closed, wrong --------------------------------------------------------------


@pytest.mark.parametrize("busy", BUSY, ids=str)
async def test_an_endpoint_that_is_busy_is_asked_again(server: JudgeServer, busy: Answer) -> None:
    seen: set[str] = set()

    async def behave(exchange: Exchange) -> None:
        call = str(asked(exchange.request)["call"])
        if is_check(exchange.request) and call not in seen:
            seen.add(call)
            await answer_with(exchange, busy)
            return
        await exchange.reply(right_reply(exchange.request))

    server.behave = behave

    assert_right(await aevaluate(RECORD, judge=make_judge(server)))
    assert most_requests(server) <= MOST_REQUESTS


async def test_a_long_wait_is_kept_to_wherever_it_stands() -> None:
    """Within two seconds nothing more is asked: the judge waits, or says that it is too long."""
    soon = Answer("nobody", 429, {"message": "slow down"})
    date = {"retry-after": formatdate(time.time() + 60, usegmt=True)}

    async def count(busy: Answer) -> tuple[str, int, str]:
        with judge_server() as server:

            async def behave(exchange: Exchange) -> None:
                await answer_with(exchange, busy)

            server.behave = behave
            only = RECORD.model_copy(update={"ground_truth": None})
            try:
                async with asyncio.timeout(2):
                    message = await failure(make_judge(server), only)
            except TimeoutError:
                message = "429: it waits"
            return busy.provider, len(server.exchanges), message

    cells = (soon, *SLOW_DOWN, Answer("a proxy, a date", 503, "", date))
    control, *others = await asyncio.gather(*map(count, cells))

    assert control[1] > 1, "a wait that was not kept to would be seen"
    assert [each for each in others if each[1] > 1] == []
    assert [each for each in others if not re.search("429|503", each[2])] == []


@pytest.mark.parametrize("answer", QUOTA, ids=str)
async def test_an_account_without_money_is_asked_once(
    server: JudgeServer, answer: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    await check_hopeless(server, answer, caplog)
    assert len(server.exchanges) <= 2  # the two texts may be asked about at the same time
    judge = make_judge(server)
    await failure(judge)
    await asyncio.sleep(0.05)  # a request that was under way may still arrive
    server.reset()

    message = await failure(judge)

    assert len(server.exchanges) == 0
    assert re.search(CAUSES["money"] + "|deactivated", message)


@pytest.mark.parametrize("answer", HOPELESS, ids=str)
async def test_an_answer_that_nothing_can_change_ends_in_an_error_that_says_why(
    server: JudgeServer, answer: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    await check_hopeless(server, answer, caplog)


CAUSES: Final = {
    "key": "(?i)key|credential|token|401|403",
    "model": "(?i)model|deployment",
    "filter": "(?i)filter|polic|moderat|safety|refus",
    "money": "(?i)quota|credit|balance|billing|budget|account|spend|paid|pay",
}
"""How a message may name a cause of the table."""


async def check_hopeless(
    server: JudgeServer, answer: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    async def behave(exchange: Exchange) -> None:
        await answer_with(exchange, answer)

    server.behave = behave

    caplog.set_level(logging.DEBUG, logger="claimspan")
    message = await failure(make_judge(server))

    assert_silent(message + caplog.text)
    assert re.search(CAUSES.get(answer.says, answer.says), message), message
    assert answer.says != "key" or re.search("(?i)check", message), message
    assert most_requests(server) <= MOST_REQUESTS


ECHOED: Final = (
    "The error insufficient_quota means: you exceeded your current quota.",
    "Unsupported value: 'temperature' does not support 0 with this model.",
    "This model's maximum context length is 10 tokens.",
    "Your account has been deactivated.",
    "Incorrect API key provided.",
    "Please try again in 90s.",
)


@pytest.mark.parametrize("text", ECHOED)
async def test_the_words_of_a_record_in_an_error_do_not_stop_the_next_record(
    server: JudgeServer, text: str
) -> None:
    """A gateway that quotes what it refuses must not let a text switch the judge off."""

    async def behave(exchange: Exchange) -> None:
        prompt = json.dumps(exchange.messages)
        if any(each in prompt for each in ECHOED):
            await send(exchange, 400, {"error": {"message": f"bad input: {prompt}"}})
            return
        await exchange.reply(right_reply(exchange.request))

    server.behave = behave
    judge = make_judge(server)

    texts = {"response": f"{text} It is so.", "ground_truth": None}

    result = await outcome(judge, RECORD.model_copy(update=texts))

    if isinstance(result, JudgeError):
        assert_silent(str(result))
    server.reset()
    assert_right(await aevaluate(RECORD, judge=judge))
    assert [each.get("temperature") for each in requests(server)] == [0] * len(requests(server))


QUOTES: Final = (
    ("as it is", "{0}"),
    ("in capitals", "{1}"),
    ("in small letters", "{2}"),
    ("in escapes", "{3}"),
    ("in escapes of escapes", "{4}"),
    ("in parts", "{5}"),
    ("as Python's text", "{6}"),
    ("reversed in a list", "{7}"),
)


@pytest.mark.parametrize("form", [form for _, form in QUOTES], ids=[name for name, _ in QUOTES])
@pytest.mark.parametrize("status", [400, 429, 500, 200])
async def test_no_way_to_quote_a_record_gets_into_messages_or_logs(
    server: JudgeServer, caplog: pytest.LogCaptureFixture, form: str, status: int
) -> None:
    caplog.set_level(logging.DEBUG, logger="claimspan")
    text = "Müllverbrennungsöfen qualmen überall. Zwölf Quibblewicks übernachten."
    record = RECORD.model_copy(update={"response": text, "ground_truth": None})

    async def behave(exchange: Exchange) -> None:
        escaped = json.dumps(text)
        quoted = form.format(
            text,
            text.upper(),
            text.lower(),
            escaped,
            json.dumps(escaped),
            " | ".join(text[n : n + 11] for n in range(0, len(text), 11)),
            ascii([text, KEY]),
            text.split()[::-1],
        )
        body: JsonValue = {"error": {"message": f"Cannot read {quoted}", "code": status}}
        await send(exchange, status, body, {"retry-after-ms": "10"})

    server.behave = behave

    message = await failure(make_judge(server, options={"call_seconds": 0.1}), record)

    for said in (message, caplog.text):
        assert_silent(said)
        assert not re.search("(?i)verbrennung|qualmen|wicks|bernacht|zw(ö|.{1,6})lf", said)
