"""A ``ChatModel`` of the user's own: what is wrong with it is said, at set-up or in its error."""

from __future__ import annotations

import json

import pytest
from pydantic import JsonValue

from claimspan.errors import ConfigError, JudgeError
from claimspan.judges import ChatReply, ChatRequest, ModelJudge, OpenAIJudge, judge_of

from judge_server import reply_to


class Ours:
    model = "ours-7b"

    async def complete(self, request: ChatRequest) -> ChatReply:
        return ChatReply(reply_to(json.loads(request.messages[-1]["content"])))


class ReturnsText(Ours):
    async def complete(self, request: ChatRequest) -> ChatReply:
        return "text"  # type: ignore[return-value]  # pyright: ignore[reportReturnType] - wrong on purpose


class IsSynchronous(Ours):
    def complete(self, request: ChatRequest) -> ChatReply:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride] - wrong on purpose
        return ChatReply("text")


async def test_ten_lines_are_a_judge() -> None:
    judge = judge_of(Ours())

    assert len(await judge.extract_claims("The tower stands. The river flows.")) == 2


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (ReturnsText(), "returned a str: return a ChatReply"),
        (IsSynchronous(), "is not asynchronous: use async def"),
    ],
    ids=["returns a text", "is synchronous"],
)
async def test_a_model_of_another_form_says_what_to_write(model: Ours, told: str) -> None:
    with pytest.raises(JudgeError, match=told):
        await ModelJudge(model).extract_claims("The tower stands.")


@pytest.mark.parametrize("given", [object(), "gpt-4o-mini"], ids=["object", "text"])
def test_what_is_no_model_is_refused_at_set_up(given: object) -> None:
    with pytest.raises(ConfigError, match="give an object with model and complete"):
        ModelJudge(given)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - wrong on purpose


def test_the_class_of_a_model_is_no_model() -> None:
    with pytest.raises(ConfigError, match="judge is of type type: give an object"):
        judge_of(Ours)


def test_an_empty_address_is_no_address_of_openai() -> None:
    with pytest.raises(ConfigError, match="base_url is empty"):
        OpenAIJudge("m", base_url="", api_key="k")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"max_tokens": -5}, r"options\['max_tokens'\] is -5: give a whole number"),
        ({"max_completion_tokens": "many"}, "give a whole number"),
        ({"stream": True}, r"options\['stream'\] is for the judge to set"),
        ({"messages": []}, r"options\['messages'\] is for the judge to set"),
    ],
    ids=str,
)
def test_fields_that_cannot_work_are_refused_at_set_up(
    options: dict[str, JsonValue], told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        OpenAIJudge("m", base_url="http://127.0.0.1:9/v1", options=options)
