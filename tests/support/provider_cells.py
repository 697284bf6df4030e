"""What the tests of providers ask of each cell: verdicts, or an error that says why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest
from pydantic import JsonValue

from claimspan import Evaluation, RagRecord
from claimspan.errors import JudgeError
from claimspan.evaluation.evaluate import aevaluate
from claimspan.judges import OpenAIJudge

from judge_providers import KEY, PRIVATE, RECORD, REFUSALS, Refusal, Request, calls
from judge_server import JudgeServer

MOST_REQUESTS: Final = 4
"""Requests of one call: the first, and at most three more."""


def make_judge(
    server: JudgeServer, model: str = "judge-prod", options: Mapping[str, JsonValue] | None = None
) -> OpenAIJudge:
    defaults: dict[str, JsonValue] = {"base_url": server.url, "api_key": KEY, "call_seconds": 10}
    return OpenAIJudge(model, **(defaults | dict(options or {})))  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - a table holds the options


def assert_right(evaluation: Evaluation) -> None:
    """The scores that ``RECORD`` has if each reply is read as it was meant."""
    metrics = evaluation.metrics
    assert evaluation.error is None
    assert not evaluation.undecided
    assert (metrics["faithfulness"], metrics["recall"], metrics["precision"]) == (0.5, 0.5, 0.5)
    assert metrics["groundedness"] == 0.5


def assert_silent(text: str) -> None:
    """A message shows no word of the record, and no part of the key."""
    assert [word for word in PRIVATE if word.lower() in text.lower()] == []


def assert_no_scores(result: Evaluation | JudgeError) -> None:
    if isinstance(result, JudgeError):
        assert_silent(str(result))
        return
    assert [
        name for name in ("faithfulness", "recall", "precision") if name in result.metrics
    ] == []


async def outcome(judge: OpenAIJudge, record: RagRecord = RECORD) -> Evaluation | JudgeError:
    try:
        return await aevaluate(record, judge=judge)
    except JudgeError as error:
        return error


async def failure(judge: OpenAIJudge, record: RagRecord = RECORD) -> str:
    with pytest.raises(JudgeError) as caught:
        await aevaluate(record, judge=judge)
    return str(caught.value)


def requests(server: JudgeServer) -> list[Request]:
    return [each.request for each in server.exchanges]


def most_requests(server: JudgeServer) -> int:
    return max(calls(server).values())


def named(provider: str, refused: str) -> Refusal:
    return next(each for each in REFUSALS if str(each) == f"{provider}: {refused}")


TEMPERATURE: Final = named("OpenAI", "temperature")
MAX_TOKENS: Final = named("OpenAI", "max_tokens")
JSON_SCHEMA: Final = named("OpenAI", "json_schema")
ANY_FORM: Final = named("Bedrock", "response_format (gpt-oss)")
LOGPROBS: Final = named("OpenAI", "logprobs by its name")
SYSTEM: Final = named("OpenAI", "system message (o1-mini)")
TOO_HIGH: Final = named("DeepSeek", "a limit that is too high")
NO_ROOM: Final = named("OpenAI", "a limit that reasoning has used up")
LM_STUDIO: Final = named("LM Studio", "json_object")
