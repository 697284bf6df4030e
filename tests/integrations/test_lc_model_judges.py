"""A chat model of LangChain is a judge, and nothing of what it asks is captured."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import langsmith
import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.globals import set_llm_cache
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableLambda
from langchain_openai import AzureChatOpenAI, ChatOpenAI
from langsmith.utils import get_env_var
from pydantic import SecretStr

import claimspan_langchain
from claimspan import evaluate
from claimspan.errors import ConfigError
from claimspan.judges import default_judge, judge_of
from claimspan.judges.llm.chat import ChatRequest
from claimspan.judges.llm.judge import ModelJudge
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_langchain.chat_model import as_chat_model
from claimspan_tracing import semconv

from judge_server import Exchange, JudgeServer, reply_to
from lc_pipelines import Shelf, rag_chain
from model_judges import KEY, MODEL, RECORD, ModelJudgePromises, answer_both, server_of_judge
from support import MonitorFactory, Spans, attributes

SUPPORT: Final = Path(__file__).parents[1] / "support"


def model_at(url: str, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(model=MODEL, api_key=SecretStr(KEY), base_url=url, **options)


class TestPromises(ModelJudgePromises):
    provider = "openai"

    def model_at(self, url: str, *, limit: int | None = None, retries: int = 0) -> Any:
        return model_at(url, max_completion_tokens=limit, max_retries=retries)


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    yield from server_of_judge()


# --- never captured ---


class Hearing(BaseCallbackHandler):
    """A handler of the application's, which notes that it was called."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_chat_model_start(self, *args: Any, **kwargs: Any) -> None:
        self.heard.append("start")

    def on_llm_end(self, *args: Any, **kwargs: Any) -> None:
        self.heard.append("end")


def prompts(spans: Spans) -> list[str]:
    """Whatever the spans show, by span."""
    return [repr(dict(attributes(span))) for span in spans.all]


@pytest.mark.parametrize("way", ["instrument", "config", "model"])
def test_a_chain_is_captured_and_the_same_model_as_its_judge_is_not(
    server: JudgeServer, make_monitor: MonitorFactory, spans: Spans, way: str
) -> None:
    server.behave = answer_both
    model = model_at(server.url)
    judge: Any = model
    monitor = make_monitor(judge=judge)
    handler = ClaimspanCallbackHandler(monitor)
    undo: Callable[[], None] | None = None
    if way == "instrument":
        undo = claimspan_langchain.instrument(monitor)
    if way == "model":
        model.callbacks = [handler]
    chain = rag_chain(Shelf(), model)

    chain.invoke("Where is the library?", {"callbacks": [] if way == "instrument" else [handler]})
    assert monitor.flush(20)
    if undo is not None:
        undo()

    assert monitor.stats.produced == monitor.stats.evaluated == 1
    assert len(spans.of_kind("LLM")) == 1
    assert server.calls > 1
    assert not any("JSON schema" in each for each in prompts(spans))
    scored = [attributes(each) for each in spans.all if semconv.JUDGE_NAME in attributes(each)]
    assert scored
    assert {each[semconv.JUDGE_NAME] for each in scored} == {"openai"}
    assert all(str(each[semconv.JUDGE_VERSION]).startswith(f"{MODEL}/") for each in scored)


def test_an_evaluation_in_the_middle_of_a_traced_chain_is_no_part_of_its_trace(
    server: JudgeServer, make_monitor: MonitorFactory, spans: Spans
) -> None:
    model = model_at(server.url)
    monitor = make_monitor()
    heard = Hearing()
    handlers: list[BaseCallbackHandler] = [ClaimspanCallbackHandler(monitor), heard]

    def score(question: str) -> str:
        return str(evaluate(RECORD, judge=model).metrics["faithfulness"])

    chain = RunnableLambda(score)
    undo = claimspan_langchain.instrument(monitor)
    try:
        assert chain.invoke("How good is it?", {"callbacks": handlers}) == "1.0"
    finally:
        undo()
    assert monitor.flush(20)

    assert server.calls == 2
    assert heard.heard == []
    assert spans.of_kind("LLM") == []


def test_handlers_and_caches_of_the_model_are_left_alone(server: JudgeServer) -> None:
    heard = Hearing()
    model = model_at(server.url, callbacks=[heard], verbose=True)

    class Cache:
        """Raises where it is asked."""

    set_llm_cache(Cache())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - one that cannot be used
    try:
        assert evaluate(RECORD, judge=judge_of(model)).metrics["faithfulness"] == 1.0
    finally:
        set_llm_cache(None)

    assert heard.heard == []
    assert model.callbacks == [heard]


def forget_environment() -> None:
    """Have LangSmith read its variables again, which it does once for each process."""
    cached: Any = get_env_var
    cached.cache_clear()


def test_langsmith_hears_nothing_of_a_judge(
    server: JudgeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[object] = []

    def hear(*args: object, **kwargs: object) -> None:
        heard.append(args)

    for name in ("create_run", "update_run"):
        monkeypatch.setattr(langsmith.Client, name, hear)
    # By the environment: that holds on every thread, in every context.
    for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):
        monkeypatch.setenv(name, "true")
    monkeypatch.setenv("LANGSMITH_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("LANGSMITH_API_KEY", "k")
    server.behave = answer_both
    model = model_at(server.url)
    forget_environment()
    try:
        model.invoke("Where is the library?")
        seen = len(heard)
        assert evaluate(RECORD, judge=judge_of(model)).metrics["faithfulness"] == 1.0
    finally:
        monkeypatch.undo()
        forget_environment()

    assert seen > 0
    assert len(heard) == seen


# --- other models of LangChain's ---


class Said(BaseChatModel):
    """Replies by a function, and counts as a provider's own package does."""

    say: Callable[[list[BaseMessage]], AIMessage]

    @property
    def _llm_type(self) -> str:
        return "said"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.say(messages))])


class AsyncOnly(Said):
    """A model whose client is asynchronous."""

    loops: list[object]

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        self.loops.append(asyncio.get_running_loop())
        return ChatResult(generations=[ChatGeneration(message=self.say(messages))])


def judged(messages: list[BaseMessage]) -> str:
    return reply_to(json.loads(str(messages[-1].content)))


def test_text_in_parts_is_read_without_the_thoughts_beside_it() -> None:
    def say(messages: list[BaseMessage]) -> AIMessage:
        text = judged(messages)
        parts: list[Any] = [
            {"type": "thinking", "thinking": '{"call": "no"}', "signature": "s"},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "{}"}]},
            {"type": "text", "text": text[:20]},
            {"type": "text", "text": text[20:]},
        ]
        return AIMessage(parts)

    assert evaluate(RECORD, judge=judge_of(Said(say=say))).metrics["faithfulness"] == 1.0


@pytest.mark.parametrize("field", ["finish_reason", "stop_reason", "stopReason", "done_reason"])
async def test_a_finish_reason_is_read_by_whatever_name_a_provider_has_for_it(field: str) -> None:
    model = Said(say=lambda _: AIMessage("so", response_metadata={field: "max_tokens"}))
    asked = as_chat_model(model)
    assert asked is not None

    reply = await asked.complete(ChatRequest([{"role": "user", "content": "q"}], None, 10, {}))

    assert (reply.text, reply.finish_reason) == ("so", "max_tokens")
    assert (reply.input_tokens, reply.output_tokens) == (None, None)


def test_a_model_with_an_asynchronous_client_alone_keeps_its_event_loop() -> None:
    model = AsyncOnly(say=lambda messages: AIMessage(judged(messages)), loops=[])
    judge = judge_of(model)

    for _ in range(2):
        assert evaluate(RECORD, judge=judge).metrics["faithfulness"] == 1.0

    assert len(model.loops) >= 2
    assert len(set(map(id, model.loops))) == 1


def test_arguments_that_are_bound_to_a_model_are_sent(server: JudgeServer) -> None:
    bound = model_at(server.url).bind(temperature=0.5).with_config(tags=["t"])

    assert evaluate(RECORD, judge=judge_of(bound)).metrics["faithfulness"] == 1.0
    assert server.exchanges[0].request["temperature"] == 0.5


def test_a_provider_is_named_as_opentelemetry_names_it() -> None:
    model = AzureChatOpenAI(
        model=MODEL,
        azure_endpoint="https://example.openai.azure.com/path?key=1",
        api_key=SecretStr(KEY),
        api_version="2024-10-21",
    )

    judge = judge_of(model)

    assert isinstance(judge, ModelJudge)
    assert (judge.name, judge.model) == ("azure.ai.openai", MODEL)
    assert judge.chat_model.traits.address == "https://example.openai.azure.com"


def test_a_chain_is_no_judge_and_the_error_says_what_is() -> None:
    with pytest.raises(ConfigError, match="a chat model of LangChain"):
        judge_of(rag_chain())


# --- files and processes ---

FILE: Final = """
from langchain_openai import ChatOpenAI
model = ChatOpenAI(model={model!r}, api_key="k", base_url={url!r})
def make():
    return model
"""


@pytest.mark.parametrize("name", ["model", "make"])
def test_a_file_names_a_model_object_and_a_judge_takes_its_own_options(
    server: JudgeServer, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "models.py"
    path.write_text(FILE.format(model=MODEL, url=server.url))

    judge = default_judge(f"{path}:{name}", options={"chunks_per_call": 1})
    assert evaluate(RECORD, judge=judge).usage.calls == 4  # not 2

    with pytest.raises(ConfigError, match=r"'temperature' is not for .* a model object"):
        default_judge(f"{path}:{name}", options={"temperature": 1})


HANGING: Final = """
import sys
from langchain_openai import ChatOpenAI
from claimspan import Chunk, RagRecord, evaluate
from claimspan.judges.llm.judge import ModelJudge
from claimspan_langchain.chat_model import as_chat_model

model = ChatOpenAI(model="m", api_key="k", base_url=sys.argv[1], timeout=600)
chunks = (Chunk(id="1", text="It is so."),)
try:
    evaluate(
        RagRecord(query="q", response="It is so.", chunks=chunks),
        judge=ModelJudge(as_chat_model(model), call_seconds=0.5),
    )
except Exception as error:
    print(error)
"""


def test_a_process_ends_while_a_call_hangs(server: JudgeServer) -> None:
    async def hang(exchange: Exchange) -> None:
        await asyncio.sleep(30)

    server.behave = hang
    script = subprocess.run(
        [sys.executable, "-c", HANGING, server.url], capture_output=True, text=True, timeout=25
    )

    assert script.returncode == 0, script.stderr
    assert "no reply within 0.5 s" in script.stdout
