"""A language model of LlamaIndex is a judge, and nothing of what it asks is captured."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false
# LlamaIndex leaves some generics and its decorators open.

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    TextBlock,
)
from llama_index.core.callbacks import CallbackManager, TokenCountingHandler
from llama_index.core.llms import MockLLM
from llama_index.core.settings import Settings

import claimspan_llama_index
from claimspan import evaluate
from claimspan.errors import ConfigError
from claimspan.judges import judge_of
from claimspan.judges.llm.chat import ChatRequest
from claimspan_llama_index.chat_model import as_chat_model
from claimspan_tracing import semconv

from judge_server import JudgeServer, reply_to
from li_pipelines import Shelf, engine_of
from li_served import Chatting, Served
from model_judges import RECORD, ModelJudgePromises, answer_both, server_of_judge
from support import MonitorFactory, Spans, attributes


class TestPromises(ModelJudgePromises):
    provider = "Served"

    def model_at(self, url: str, *, limit: int | None = None, retries: int = 0) -> Any:
        return Served(url=url, max_tokens=limit, max_retries=retries)


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    yield from server_of_judge()


# --- never captured ---


def test_an_engine_is_captured_and_the_same_model_as_its_judge_is_not(
    server: JudgeServer, make_monitor: MonitorFactory, spans: Spans
) -> None:
    server.behave = answer_both
    model: Any = Served(url=server.url)
    monitor = make_monitor(judge=model)
    undo = claimspan_llama_index.instrument(monitor)
    try:
        engine_of(Shelf(), model).query("Where is the library?")
        assert monitor.flush(20)
    finally:
        undo()

    assert monitor.stats.produced == monitor.stats.evaluated == 1
    assert len(spans.of_kind("LLM")) == 1
    assert server.calls > 1
    shown = [attributes(each) for each in spans.all]
    assert not any("JSON schema" in repr(dict(each)) for each in shown)
    assert {each[semconv.JUDGE_NAME] for each in shown if semconv.JUDGE_NAME in each} == {"Served"}


def test_handlers_of_the_model_and_of_the_process_are_not_called(
    server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, general = TokenCountingHandler(), TokenCountingHandler()
    monkeypatch.setattr(Settings, "_callback_manager", CallbackManager([general]))
    monkeypatch.setattr("llama_index.core.global_handler", general)
    manager = CallbackManager()
    manager.set_handlers([own])
    model = Served(url=server.url)
    model.callback_manager = manager

    assert evaluate(RECORD, judge=judge_of(model)).metrics["faithfulness"] == 1.0

    assert own.llm_token_counts == general.llm_token_counts == []
    assert model.callback_manager is manager


# --- other models of LlamaIndex's ---


class Said(Chatting):
    """Replies by a function, as the packages of providers do."""

    say: Callable[[Sequence[ChatMessage]], ChatResponse]
    loops: list[object] | None = None

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        if self.loops is not None:
            raise NotImplementedError
        return self.say(messages)

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        assert self.loops is not None
        self.loops.append(asyncio.get_running_loop())
        return self.say(messages)


def judged(messages: Sequence[ChatMessage]) -> ChatResponse:
    """The right reply, in two blocks."""
    text = reply_to(json.loads(str(messages[-1].content)))
    blocks = [TextBlock(text=text[:20]), TextBlock(text=text[20:])]
    return ChatResponse(message=ChatMessage(role="assistant", blocks=blocks))


def test_text_in_blocks_is_read_as_one() -> None:
    assert evaluate(RECORD, judge=judge_of(Said(say=judged))).metrics["faithfulness"] == 1.0


def test_a_model_with_an_asynchronous_client_alone_keeps_its_event_loop() -> None:
    model = Said(say=judged, loops=[])
    judge = judge_of(model)

    for _ in range(2):
        assert evaluate(RECORD, judge=judge).metrics["faithfulness"] == 1.0

    assert model.loops is not None
    assert len(model.loops) >= 2
    assert len(set(map(id, model.loops))) == 1


@pytest.mark.parametrize(
    ("raw", "additional"),
    [
        ({"usage": {"prompt_tokens": 7, "completion_tokens": 5}, "stop_reason": "end"}, {}),
        ({"usage": {"inputTokens": 7, "outputTokens": 5}, "stopReason": "end"}, {}),
        ({"prompt_eval_count": 7, "eval_count": 5, "done_reason": "end"}, {}),
        ({"finish_reason": "end"}, {"prompt_tokens": 7, "completion_tokens": 5}),
    ],
    ids=["openai and anthropic", "bedrock", "ollama", "counted by LlamaIndex"],
)
async def test_tokens_and_finish_reason_are_read_by_whatever_name_a_provider_has_for_them(
    raw: dict[str, Any], additional: dict[str, Any]
) -> None:
    said = ChatMessage(role="assistant", content="so")
    response = ChatResponse(message=said, raw=raw, additional_kwargs=additional)
    asked = as_chat_model(Said(say=lambda _: response))
    assert asked is not None

    reply = await asked.complete(ChatRequest([{"role": "user", "content": "q"}], None, 10, {}))

    assert reply.text == "so"
    assert (reply.input_tokens, reply.output_tokens, reply.finish_reason) == (7, 5, "end")


def test_an_engine_is_no_judge_and_the_error_says_what_is() -> None:
    with pytest.raises(ConfigError, match="chat model of LangChain, LlamaIndex or Haystack"):
        judge_of(engine_of(Shelf(), MockLLM()))
