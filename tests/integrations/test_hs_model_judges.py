"""A chat generator of Haystack is a judge, and nothing of what it asks is captured."""

# No postponed annotations: Haystack before 2.24 takes the types of a component as they stand.

import asyncio
import json
from collections.abc import Iterator
from typing import Any, List  # noqa: UP035 - OpenInference knows a generator by this very type

import pytest
from haystack import Pipeline, component
from haystack.components.builders import PromptBuilder
from haystack.components.generators.chat import AzureOpenAIChatGenerator, OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret

import claimspan_haystack
from claimspan import evaluate
from claimspan.errors import ConfigError
from claimspan.judges import judge_of
from claimspan_haystack.chat_model import as_chat_model
from claimspan_tracing import semconv

from hs_pipelines import Shelf, prompt
from judge_server import JudgeServer, reply_to
from model_judges import KEY, MODEL, RECORD, ModelJudgePromises, answer_both, server_of_judge
from support import MonitorFactory, Spans, attributes


def model_at(url: str, **options: Any) -> OpenAIChatGenerator:
    key = Secret.from_token(KEY)
    return OpenAIChatGenerator(api_key=key, model=MODEL, api_base_url=url, **options)


class TestPromises(ModelJudgePromises):
    provider = "openai"

    def model_at(self, url: str, *, limit: int | None = None, retries: int = 0) -> Any:
        arguments = {} if limit is None else {"max_completion_tokens": limit}
        return model_at(url, generation_kwargs=arguments, max_retries=retries)


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    yield from server_of_judge()


# --- never captured ---


def pipeline_of(model: OpenAIChatGenerator) -> Pipeline:
    pipeline = Pipeline()
    pipeline.add_component("shelf", Shelf())
    pipeline.add_component("prompt", prompt())
    pipeline.add_component("llm", model)
    pipeline.connect("shelf.documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "llm.messages")
    return pipeline


DATA = {"shelf": {"query": "Where is it?"}, "prompt": {"question": "Where is it?"}}


def test_a_pipeline_is_captured_and_the_same_generator_as_its_judge_is_not(
    server: JudgeServer, make_monitor: MonitorFactory, spans: Spans
) -> None:
    server.behave = answer_both
    model: Any = model_at(server.url)
    monitor = make_monitor(judge=model)
    undo = claimspan_haystack.instrument(monitor)
    try:
        pipeline_of(model).run(DATA)
        assert monitor.flush(20)
    finally:
        undo()

    assert monitor.stats.produced == monitor.stats.evaluated == 1
    assert len(spans.of_kind("LLM")) == 1
    assert server.calls > 1
    shown = [attributes(each) for each in spans.all]
    assert not any("JSON schema" in repr(dict(each)) for each in shown)
    assert {each[semconv.JUDGE_NAME] for each in shown if semconv.JUDGE_NAME in each} == {"openai"}


@component
class Scorer:
    """Evaluates a record while its pipeline runs."""

    def __init__(self, model: Any) -> None:
        self.model = model

    @component.output_types(score=float)
    def run(self, text: str) -> dict[str, Any]:
        return {"score": evaluate(RECORD, judge=self.model).metrics["faithfulness"]}


def test_an_evaluation_inside_of_a_component_is_no_part_of_its_pipeline(
    server: JudgeServer, make_monitor: MonitorFactory, spans: Spans
) -> None:
    pipeline = Pipeline()
    pipeline.add_component("prompt", PromptBuilder("{{ word }}", required_variables="*"))
    pipeline.add_component("scorer", Scorer(model_at(server.url)))
    pipeline.connect("prompt.prompt", "scorer.text")
    monitor = make_monitor()
    undo = claimspan_haystack.instrument(monitor)
    try:
        assert pipeline.run({"prompt": {"word": "it"}}) == {"scorer": {"score": 1.0}}
        assert monitor.flush(20)
    finally:
        undo()

    assert server.calls == 2
    assert spans.of_kind("LLM") == []


def test_the_streaming_callback_of_the_generator_is_not_called(server: JudgeServer) -> None:
    heard: list[object] = []
    model = model_at(server.url, streaming_callback=heard.append)

    assert evaluate(RECORD, judge=judge_of(model)).metrics["faithfulness"] == 1.0

    assert heard == []
    assert model.streaming_callback is not None
    assert "stream" not in {name for name, on in server.exchanges[0].request.items() if on}


def test_a_provider_is_named_as_opentelemetry_names_it() -> None:
    generator = AzureOpenAIChatGenerator(
        azure_endpoint="https://example.openai.azure.com", api_key=Secret.from_token(KEY)
    )

    assert judge_of(generator).name == "azure.ai.openai"


# --- components of the application's ---


@component
class Own:
    """A generator that inherits from nothing, and may have one way to be asked."""

    def __init__(self, *, is_async: bool = False) -> None:
        self.is_async = is_async
        self.warm = 0
        self.loops: list[object] = []

    def warm_up(self) -> None:
        self.warm += 1

    @component.output_types(replies=List[ChatMessage])  # noqa: UP006 - as above
    def run(self, messages: List[ChatMessage]) -> dict[str, Any]:  # noqa: UP006 - as above
        if self.is_async:
            raise NotImplementedError
        return self._replies(messages)

    @component.output_types(replies=List[ChatMessage])  # noqa: UP006 - as above
    async def run_async(self, messages: List[ChatMessage]) -> dict[str, Any]:  # noqa: UP006 - as above
        self.loops.append(asyncio.get_running_loop())
        return self._replies(messages)

    def _replies(self, messages: list[ChatMessage]) -> dict[str, Any]:
        said = reply_to(json.loads(messages[-1].text or ""))
        return {"replies": [ChatMessage.from_assistant(said)]}


def test_a_component_of_the_applications_own_is_a_judge_and_is_warmed_up_once() -> None:
    model = Own()
    found = evaluate(RECORD, judge=judge_of(model))

    assert found.metrics["faithfulness"] == 1.0
    assert (found.judge_name, found.judge_version[:4]) == ("Own", "Own/")
    assert model.warm == 1


def test_a_generator_with_an_asynchronous_client_alone_keeps_its_event_loop() -> None:
    model = Own(is_async=True)
    judge = judge_of(model)

    for _ in range(2):
        assert evaluate(RECORD, judge=judge).metrics["faithfulness"] == 1.0

    assert len(model.loops) >= 2
    assert len(set(map(id, model.loops))) == 1


@pytest.mark.parametrize("given", [Shelf(), prompt(), Pipeline(), OpenAIChatGenerator])
def test_what_takes_no_messages_is_no_judge_and_the_error_says_what_is(given: object) -> None:
    assert as_chat_model(given) is None
    with pytest.raises(ConfigError, match="chat model of LangChain, LlamaIndex or Haystack"):
        judge_of(given)
