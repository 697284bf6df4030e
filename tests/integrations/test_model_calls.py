"""What is said of a call of a model, by whatever names, and how it gets onto a span."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pytest
from haystack import Pipeline, component
from haystack.dataclasses import ChatMessage as HaystackMessage
from langchain_core.language_models import FakeListLLM
from langchain_core.messages import AIMessage, BaseMessage
from llama_index.core.llms import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.callbacks import llm_chat_callback  # pyright: ignore[reportUnknownVariableType] - untyped there
from opentelemetry.sdk.trace import ReadableSpan

import claimspan_haystack
import claimspan_llama_index
from claimspan import RagRecord
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Job
from claimspan_tracing.job import GeneratorRun
from claimspan_tracing.model_calls import ModelCall, provider_of, read_call
from claimspan_tracing.testing import InMemoryMonitor

from hs_pipelines import Shelf as HaystackShelf
from lc_pipelines import Echo, rag_chain
from li_pipelines import Echo as LlamaEcho
from li_pipelines import Shelf as LlamaShelf
from li_pipelines import engine_of
from support import attributes

PARAMETERS: Final = ("temperature", "top_p", "max_tokens")

SAID: Final = {
    "gen_ai.response.id": "chatcmpl-1",
    "gen_ai.response.model": "gpt-4o-mini-2024-07-18",
    "gen_ai.response.finish_reasons": ("stop",),
}


def model_span(monitor: InMemoryMonitor) -> ReadableSpan:
    """The span of the only model."""
    kind = "openinference.span.kind"
    (span,) = [each for each in monitor.spans() if attributes(each).get(kind) == "LLM"]
    return span


# --- providers ---


@pytest.mark.parametrize(
    ("said", "name", "openinference", "system"),
    [
        ("openai", "openai", "openai", "openai"),
        ("azure", "azure.ai.openai", "azure", "openai"),
        ("azure_openai", "azure.ai.openai", "azure", "openai"),
        ("amazon_bedrock", "aws.bedrock", "aws", ""),
        ("bedrock_converse", "aws.bedrock", "aws", ""),
        ("google_vertexai", "gcp.vertex_ai", "google", "vertexai"),
        ("google_genai", "gcp.gen_ai", "google", ""),
        ("gemini", "gcp.gemini", "google", ""),
        ("mistralai", "mistral_ai", "mistralai", "mistralai"),
        ("Mistral", "mistral_ai", "mistralai", "mistralai"),
        ("xai", "x_ai", "xai", ""),
        ("watsonx", "ibm.watsonx.ai", "ibm", ""),
        ("azure_inference", "azure.ai.inference", "azure", ""),
        ("anthropic", "anthropic", "anthropic", "anthropic"),
        ("cohere", "cohere", "cohere", "cohere"),
        ("groq", "groq", "groq", ""),
        ("aws.bedrock", "aws.bedrock", "aws", ""),
    ],
)
def test_a_provider_has_the_names_of_both_conventions(
    said: str, name: str, openinference: str, system: str
) -> None:
    assert provider_of(said) == (name, openinference, system)


def test_a_provider_that_the_conventions_do_not_name_stays_as_the_framework_says_it() -> None:
    assert provider_of("Our_Gateway") == ("Our_Gateway", "Our_Gateway", "")
    assert provider_of("") == ("", "", "")


# --- reading ---


class Raising:
    """A response of an application's own client."""

    id = "r-1"

    @property
    def model(self) -> str:
        raise RuntimeError("not loaded")


def test_what_cannot_be_read_costs_nothing_else() -> None:
    assert read_call([], [Raising()]) == ModelCall(response_id="r-1")


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), 2**70, "hot", True, None])
def test_a_parameter_is_a_finite_number(odd: object) -> None:
    call = read_call([{"temperature": odd, "max_tokens": odd, "top_p": odd}], [{"usage": odd}])

    assert call == ModelCall()


def test_a_temperature_of_zero_is_one() -> None:
    assert read_call([{"temperature": 0}], []).temperature == 0.0


# --- frameworks ---


class Told(Echo):
    """A chat model whose provider's package passes on what the provider says."""

    temperature: float = 0.2
    max_tokens: int = 800
    model: str = "gpt-4o-mini"

    @property
    def _identifying_params(self) -> Mapping[str, Any]:
        return {"top_p": 0.9}

    def _get_ls_params(self, *args: Any, **kwargs: Any) -> Any:
        return {**super()._get_ls_params(*args, **kwargs), "ls_provider": "azure"}

    def _say(self, messages: list[BaseMessage]) -> AIMessage:
        said = super()._say(messages)
        told = {"id": "chatcmpl-1", "model_name": "gpt-4o-mini-2024-07-18", "finish_reason": "stop"}
        return said.model_copy(update={"response_metadata": told})


@pytest.mark.parametrize("captures", [True, False])
def test_a_model_of_langchain_has_id_end_and_parameters_also_without_texts(
    *, captures: bool
) -> None:
    with InMemoryMonitor(capture_content=captures) as monitor:
        config: Any = {"callbacks": [ClaimspanCallbackHandler(monitor)]}
        rag_chain(model=Told()).invoke("q", config)
        found = attributes(model_span(monitor))

    asked = {"temperature": 0.2, "top_p": 0.9, "max_tokens": 800}
    assert json.loads(str(found["llm.invocation_parameters"])) == asked
    expected = {f"gen_ai.request.{name}": value for name, value in asked.items()} | SAID
    expected |= {"gen_ai.provider.name": "azure.ai.openai", "gen_ai.operation.name": "chat"}
    expected |= {"llm.provider": "azure", "llm.system": "openai"}
    assert {name: found.get(name) for name in expected} == expected
    assert ("input.value" in found) is captures


def test_a_completion_model_of_langchain_completes_a_text() -> None:
    with InMemoryMonitor() as monitor:
        config: Any = {"callbacks": [ClaimspanCallbackHandler(monitor)]}
        rag_chain(model=FakeListLLM(responses=["A."])).invoke("q", config)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - any model will do
        span = model_span(monitor)

    assert attributes(span)["gen_ai.operation.name"] == "text_completion"
    assert span.name.startswith("text_completion")


class Served(LlamaEcho):
    """A chat model with what a provider has sent."""

    temperature: float = 0.2
    top_p: float = 0.9

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="unknown", is_chat_model=True)

    @llm_chat_callback()  # pyright: ignore[reportUntypedFunctionDecorator] - as above
    def chat(self, messages: Any, **kwargs: Any) -> ChatResponse:
        raw: dict[str, Any] = {"id": "chatcmpl-1", "model": SAID["gen_ai.response.model"]}
        raw |= {"choices": [{"finish_reason": "stop"}], "usage": {"prompt_tokens": 3}}
        return ChatResponse(message=ChatMessage(role="assistant", content="A."), raw=raw)


Served.__module__ = "llama_index.llms.mistralai.base"


def test_a_model_of_llama_index_has_what_its_provider_has_sent() -> None:
    with InMemoryMonitor() as monitor:
        detach = claimspan_llama_index.instrument(monitor)
        engine_of(LlamaShelf(), Served()).query("q")
        detach()
        found = attributes(model_span(monitor))

    expected = SAID | {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "mistral_ai",
        "gen_ai.request.temperature": 0.2,
        "gen_ai.request.top_p": 0.9,
        "gen_ai.usage.input_tokens": 3,
    }
    assert {name: found.get(name) for name in expected} == expected
    assert "gen_ai.request.model" not in found  # LlamaIndex says "unknown"


@component
class Generator:
    """A text generator with what a provider has sent."""

    @component.output_types(replies=list[str], meta=list[dict[str, Any]])
    def run(self, prompt: str, generation_kwargs: dict[str, Any] | None = None) -> dict[str, Any]:
        meta = {"id": "chatcmpl-1", "model": SAID["gen_ai.response.model"]}
        return {"replies": ["A."], "meta": [meta | {"finish_reason": "stop"}]}


@component
class ChatGenerator:
    """As above, of messages."""

    @component.output_types(replies=list[HaystackMessage])
    def run(
        self, messages: list[HaystackMessage], generation_kwargs: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        meta = {"id": "chatcmpl-1", "model": SAID["gen_ai.response.model"]}
        said = HaystackMessage.from_assistant("A.", meta=meta | {"finish_reason": "stop"})
        return {"replies": [said]}


@pytest.mark.parametrize(
    ("kind", "given", "operation"),
    [
        (Generator, {"prompt": "q"}, "text_completion"),
        (ChatGenerator, {"messages": [HaystackMessage.from_user("q")]}, "chat"),
    ],
)
def test_a_generator_of_haystack_has_what_its_provider_has_sent(
    kind: Any, given: dict[str, Any], operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # For this test alone: instrumentors import the modules of all components that they know.
    package = "haystack_integrations.components.generators.amazon_bedrock.chat"
    monkeypatch.setattr(kind, "__module__", package)
    pipeline = Pipeline()
    pipeline.add_component("retriever", HaystackShelf())
    pipeline.add_component("model", kind())
    asked = given | {"generation_kwargs": {"temperature": 0, "max_tokens": 5}}
    with InMemoryMonitor() as monitor:
        detach = claimspan_haystack.instrument(monitor)
        pipeline.run({"retriever": {"query": "q"}, "model": asked})
        detach()
        found = attributes(model_span(monitor))

    expected = SAID | {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": "aws.bedrock",
        "gen_ai.request.temperature": 0.0,
        "gen_ai.request.max_tokens": 5,
    }
    assert {name: found.get(name) for name in expected} == expected


# --- values that are handed on ---


def test_a_conversation_is_named_on_root_and_model_for_both_conventions() -> None:
    with InMemoryMonitor() as monitor:
        config: Any = {
            "callbacks": [ClaimspanCallbackHandler(monitor)],
            "metadata": {"thread_id": "talk 7"},
        }
        rag_chain().invoke("q", config)
        (root,) = [each for each in monitor.spans() if each.name.startswith("invoke_workflow")]
        model = attributes(model_span(monitor))

    assert attributes(root)["session.id"] == "talk 7"
    assert attributes(root)["gen_ai.conversation.id"] == "talk 7"
    assert model["gen_ai.conversation.id"] == "talk 7"


def test_a_job_of_an_older_version_has_none_of_it_and_is_read() -> None:
    run = GeneratorRun(started=1, ended=2, model="m", finish_reason="stop", temperature=0.0)
    job = Job(
        record=RagRecord(query="q", response="r"),
        trace_id="1" * 32,
        span_id="1" * 16,
        trace_flags=1,
        route="bot",
        started=1,
        ended=5,
        runs=(run,),
    )
    assert Job.from_json(job.to_json()) == job

    row = json.loads(job.to_json())
    for name in ("operation", "response_id", "response_model", "finish_reason", *PARAMETERS):
        del row["runs"][0][name]
    (old,) = Job.from_json(json.dumps(row)).runs

    assert old == replace(run, finish_reason="", temperature=None)
