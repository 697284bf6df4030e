"""OpenInference sees what an application asks its model, and not what a judge asks the same one."""

# No postponed annotations: OpenInference's Haystack instrumentor takes the types as they stand.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# The frameworks leave some of their generics open.

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from haystack import Pipeline
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage as HaystackMessage
from haystack.utils import Secret
from langchain_openai import ChatOpenAI
from llama_index.core.llms import ChatMessage
from openinference.instrumentation.haystack import HaystackInstrumentor
from openinference.instrumentation.langchain import LangChainInstrumentor
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from pydantic import SecretStr

from claimspan import evaluate
from claimspan.judges import judge_of

from judge_server import JudgeServer
from li_served import Served
from model_judges import KEY, MODEL, RECORD, answer_both, server_of_judge
from support import Spans

pytestmark = [
    # OpenInference calls LangChain's texts like functions, which LangChain deprecates.
    pytest.mark.filterwarnings("ignore:Calling .text"),
    # LlamaIndex and its instrumentor look at every attribute of an object, deprecated ones too.
    pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecationWarning"),
]

INSTRUMENTORS = (LangChainInstrumentor, LlamaIndexInstrumentor, HaystackInstrumentor)


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    for server in server_of_judge():
        server.behave = answer_both
        yield server


@pytest.fixture(autouse=True)
def instrumented(provider: TracerProvider) -> Iterator[None]:
    made: list[Any] = [each() for each in INSTRUMENTORS]
    for each in made:
        each.instrument(tracer_provider=provider)
    yield
    for each in made:
        each.uninstrument()


def ask_langchain(url: str) -> object:
    model = ChatOpenAI(model=MODEL, api_key=SecretStr(KEY), base_url=url)
    model.invoke("Where is it?")
    return model


def ask_llama_index(url: str) -> object:
    model = Served(url=url)
    model.chat([ChatMessage("Where is it?")])
    return model


def ask_haystack(url: str) -> object:
    key = Secret.from_token(KEY)
    model = OpenAIChatGenerator(api_key=key, model=MODEL, api_base_url=url)
    pipeline = Pipeline()
    pipeline.add_component("llm", model)
    pipeline.run({"llm": {"messages": [HaystackMessage.from_user("Where is it?")]}})
    return model


@pytest.mark.parametrize("ask", [ask_langchain, ask_llama_index, ask_haystack])
def test_a_judge_that_the_application_asks_as_well_is_not_seen(
    server: JudgeServer, spans: Spans, ask: Callable[[str], object]
) -> None:
    model = ask(server.url)
    seen = len(spans.all)

    assert evaluate(RECORD, judge=judge_of(model)).metrics["faithfulness"] == 1.0

    assert seen > 0
    assert len(spans.all) == seen
