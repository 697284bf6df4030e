"""vLLM and Ollama as their documentation and their users' reports have them, down to the words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Final

import pytest
from pydantic import JsonValue

from claimspan.errors import JudgeError
from claimspan.evaluation.evaluate import aevaluate
from claimspan.judges import Judge, OpenAIJudge
from claimspan.judges.choice import default_judge
from claimspan.judges.llm.refusals import TooLongError
from claimspan.text.tokens import count_tokens
from claimspan.verdicts import Label

from judge_server import Exchange, JudgeServer, completion, judge_server, reply_to
from judged import RECORD

SECRET: Final = "The cathedral of Ljubljana was built by Andrea Pozzo."  # noqa: S105 - of a record
THOUGHTS: Final = 'The user wants JSON, such as {"claims": []}. Let me think about each sentence.'


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with judge_server() as server:
        yield server


def vllm(server: JudgeServer, **more: JsonValue) -> OpenAIJudge:
    given: dict[str, JsonValue] = {"base_url": server.url, "call_seconds": 5.0, **more}
    return OpenAIJudge("Qwen/Qwen3-32B", **given)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - the caller's to know


@pytest.fixture
def ollama(server: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> Judge:
    monkeypatch.setenv("OLLAMA_HOST", server.url.removeprefix("http://").removesuffix("/v1"))
    return default_judge("ollama:qwen3:8b")


async def scored(judge: Judge) -> None:
    evaluation = await aevaluate(RECORD, judge=judge)
    assert evaluation.metrics["faithfulness"] == 1.0


async def error_of(judge: Judge, kind: type[JudgeError] = JudgeError) -> str:
    with pytest.raises(kind) as caught:
        await judge.extract_claims(SECRET)
    said = str(caught.value)
    assert not {"cathedral", "Ljubljana", "Pozzo"} & set(said.split())
    return said


async def send_error(exchange: Exchange, status: int, message: str, kind: str) -> None:
    """An error as vLLM has it since 0.10; before, its fields had no ``error`` around them."""
    error = {"message": message, "type": kind, "param": None, "code": status}
    await exchange.send(json.dumps({"error": error}).encode(), status=status)


def limit_of(exchange: Exchange) -> int:
    limits = (exchange.request.get(name) for name in ("max_tokens", "max_completion_tokens"))
    return next(each for each in limits if isinstance(each, int))


# --- vLLM ---

WINDOW: Final = 8192

TOO_LONG: Final = {
    "0.6": "This model's maximum context length is {window} tokens. However, you requested {total} "
    "tokens ({sent} in the messages, {limit} in the completion). Please reduce the length of the "
    "messages or completion.",
    "0.9": "'max_tokens' or 'max_completion_tokens' is too large: {limit}. This model's maximum "
    "context length is {window} tokens and your request has {sent} input tokens ({limit} > "
    "{window} - {sent}).",
    "0.20": "This model's maximum context length is {window} tokens. However, you requested "
    "{limit} output tokens and your prompt contains at least {sent} input tokens, for a total of "
    "at least {total} tokens. Please reduce the length of the input prompt or the number of "
    "requested output tokens.",
}
"""The refusal of a prompt that leaves no room for the reply, by the version."""


@pytest.mark.parametrize("version", TOO_LONG)
async def test_vllm_gets_a_shorter_limit_if_prompt_and_reply_do_not_fit_together(
    server: JudgeServer, version: str
) -> None:
    async def behave(exchange: Exchange) -> None:
        sent = sum(map(count_tokens, exchange.messages))
        limit = limit_of(exchange)
        if sent + limit <= WINDOW:
            # A model that thinks: its first reply is cut, and the next has room for 25,000 tokens.
            finish = "stop" if limit > 2000 else "length"
            await exchange.reply(
                reply_to(exchange.asked) if finish == "stop" else None, finish_reason=finish
            )
            return
        words = TOO_LONG[version].format(window=WINDOW, sent=sent, limit=limit, total=sent + limit)
        await send_error(exchange, 400, words, "BadRequestError")

    server.behave = behave

    await scored(vllm(server))


@pytest.mark.parametrize("version", TOO_LONG)
async def test_texts_that_do_not_fit_into_vllms_window_are_told(
    server: JudgeServer, version: str
) -> None:
    async def behave(exchange: Exchange) -> None:
        limit = limit_of(exchange)
        words = TOO_LONG[version].format(window=WINDOW, sent=9000, limit=limit, total=9000 + limit)
        await send_error(exchange, 400, words, "BadRequestError")

    server.behave = behave

    said = await error_of(vllm(server), TooLongError)

    assert "the texts are too long for the model" in said


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_vllms_reasoning_is_no_reply(server: JudgeServer, field: str) -> None:
    async def behave(exchange: Exchange) -> None:
        body = completion(None)
        body["choices"] = [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {
                    "role": "assistant",
                    "content": f"\n\n{reply_to(exchange.asked)}",
                    field: THOUGHTS,
                    "tool_calls": [],
                },
            }
        ]
        await exchange.send_json(body)

    server.behave = behave

    await scored(vllm(server))


async def test_without_a_reasoning_parser_vllms_thoughts_stand_before_the_reply(
    server: JudgeServer,
) -> None:
    async def behave(exchange: Exchange) -> None:
        # The template has the opening tag.
        await exchange.reply(f"{THOUGHTS}\n</think>\n\n{reply_to(exchange.asked)}")

    server.behave = behave

    await scored(vllm(server))


@pytest.mark.parametrize(
    "words",
    [
        "The provided JSON schema contains features not supported by xgrammar.",
        "Failed to convert the grammar from GBNF to EBNF: the JSON schema is not supported.",
        'Grammar error: Unimplemented keys: ["prefixItems"]',
        "lm-format-enforcer does not support the response_format",
    ],
)
async def test_a_schema_that_vllm_cannot_guide_by_is_left_out(
    server: JudgeServer, words: str
) -> None:
    async def behave(exchange: Exchange) -> None:
        form = exchange.request.get("response_format")
        if isinstance(form, dict) and form["type"] == "json_schema":
            await send_error(exchange, 400, words, "BadRequestError")
            return
        await exchange.reply(reply_to(exchange.asked))

    server.behave = behave

    await scored(vllm(server, exact_schema=True))


async def test_a_model_that_vllm_does_not_serve_is_told(server: JudgeServer) -> None:
    async def behave(exchange: Exchange) -> None:
        await send_error(
            exchange, 404, "The model `Qwen/Qwen3-32B` does not exist.", "NotFoundError"
        )

    server.behave = behave

    assert "check base_url and the model's name" in await error_of(vllm(server))


async def test_a_system_message_that_the_template_refuses_goes_with_the_users(
    server: JudgeServer,
) -> None:
    async def behave(exchange: Exchange) -> None:
        if len(exchange.messages) == 2:
            await send_error(exchange, 400, "System role not supported", "BadRequestError")
            return
        asked = json.loads(exchange.messages[0].rpartition("\n\n")[2])
        await exchange.reply(reply_to(asked))

    server.behave = behave

    await scored(vllm(server))


# --- Ollama ---


async def ollama_error(exchange: Exchange, status: int, message: str) -> None:
    error = {"message": message, "type": "api_error", "param": None, "code": None}
    await exchange.send(json.dumps({"error": error}).encode(), status=status)


@pytest.mark.parametrize(
    "words", ['model "qwen3:8b" not found, try pulling it first', "model 'qwen3:8b' not found"]
)
async def test_a_model_that_ollama_has_not_pulled_is_told(
    server: JudgeServer, ollama: Judge, words: str
) -> None:
    async def behave(exchange: Exchange) -> None:
        await ollama_error(exchange, 404, words)

    server.behave = behave

    said = await error_of(ollama)

    assert "not found" in said
    assert "check base_url and the model's name" in said


async def test_an_ollama_model_that_thinks_gets_room_for_its_reply(
    server: JudgeServer, ollama: Judge
) -> None:
    async def behave(exchange: Exchange) -> None:
        is_cut = limit_of(exchange) < 3000
        body = completion(None)
        message: JsonValue = {
            "role": "assistant",
            "content": "" if is_cut else reply_to(exchange.asked),
            "reasoning": THOUGHTS,
        }
        finish = "length" if is_cut else "stop"
        body["choices"] = [{"index": 0, "finish_reason": finish, "message": message}]
        await exchange.send_json(body)

    server.behave = behave

    await scored(ollama)


async def test_an_ollama_model_that_ends_in_its_thoughts_is_told(
    server: JudgeServer, ollama: Judge
) -> None:
    async def behave(exchange: Exchange) -> None:
        body = completion(None)
        message: JsonValue = {"role": "assistant", "content": "", "reasoning": THOUGHTS}
        body["choices"] = [{"index": 0, "finish_reason": "stop", "message": message}]
        await exchange.send_json(body)

    server.behave = behave

    assert "the reply is empty" in await error_of(ollama)


@pytest.mark.parametrize("content", ['{"claims": []}', "The cathedral is old.", ""])
async def test_a_prompt_that_ollama_has_cut_to_its_window_is_told(
    server: JudgeServer, ollama: Judge, content: str
) -> None:
    window = 2048

    async def behave(exchange: Exchange) -> None:
        if sum(map(count_tokens, exchange.messages)) <= window:
            await exchange.reply(reply_to(exchange.asked))
            return
        # The middle of the prompt is lost, and with it what the reply has to repeat.
        body = completion(content)
        body["usage"] = {
            "prompt_tokens": window,
            "completion_tokens": 5,
            "total_tokens": window + 5,
        }
        await exchange.send_json(body)

    server.behave = behave
    claims = await ollama.extract_claims(SECRET)

    with pytest.raises(TooLongError, match=r"raise its context window .*num_ctx") as caught:
        await ollama.check(claims, [" ".join([SECRET] * 800)])

    assert "Pozzo" not in str(caught.value)


async def test_passages_that_ollama_has_cut_together_are_asked_about_in_halves(
    server: JudgeServer, ollama: Judge
) -> None:
    window = 2048

    async def behave(exchange: Exchange) -> None:
        sent = sum(map(count_tokens, exchange.messages))
        content = reply_to(exchange.asked) if sent <= window else "It is so."
        body = completion(content)
        read = min(sent, window)
        body["usage"] = {"prompt_tokens": read, "completion_tokens": 5, "total_tokens": read + 5}
        await exchange.send_json(body)

    server.behave = behave
    claims = await ollama.extract_claims(SECRET)

    matrix = await ollama.check(claims, [f"{SECRET} Number {i}. " * 20 for i in range(10)])

    assert all(cell is not None and cell.label is Label.ENTAILED for cell in matrix.rows[0])


@pytest.mark.parametrize(
    "words",
    [
        '"qwen3:8b" does not support thinking',
        'think value "medium" is not supported for this model',
    ],
)
async def test_an_effort_that_an_ollama_model_does_not_take_is_told(
    server: JudgeServer, monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    async def behave(exchange: Exchange) -> None:
        if "reasoning_effort" in exchange.request:
            await ollama_error(exchange, 400, words)
            return
        await exchange.reply(reply_to(exchange.asked))

    server.behave = behave
    monkeypatch.setenv("OLLAMA_HOST", server.url)
    judge = default_judge("ollama:qwen3:8b", options={"reasoning_effort": "medium"})

    said = await error_of(judge)

    assert "give other options=" in said


async def test_a_model_that_ollama_is_loading_is_waited_for(
    server: JudgeServer, ollama: Judge
) -> None:
    async def behave(exchange: Exchange) -> None:
        if exchange.number == 1:
            await ollama_error(
                exchange, 503, "server busy, please try again. maximum pending requests exceeded"
            )
            return
        await asyncio.sleep(0.2)
        await exchange.reply(reply_to(exchange.asked))

    server.behave = behave

    await scored(ollama)


async def test_a_model_too_large_for_the_machine_of_ollama_is_told(
    server: JudgeServer, ollama: Judge
) -> None:
    words = "model requires more system memory (42.0 GiB) than is available (15.2 GiB)"

    async def behave(exchange: Exchange) -> None:
        await ollama_error(exchange, 500, words)

    server.behave = behave

    assert "model requires more system memory" in await error_of(ollama)
