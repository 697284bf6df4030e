"""Haystack's pipeline, and who observes it: a part of ``overhead.py``."""

# OpenInference finds a component by the name of its module, and its types as they stand: so the
# components are public, and no annotation is postponed.

from importlib import import_module
from typing import Any

import overhead_host
from haystack import Document, Pipeline, component
from haystack.components.builders import AnswerBuilder, ChatPromptBuilder
from haystack.dataclasses import ChatMessage
from haystack.tracing.tracer import enable_tracing, tracer
from overhead_host import SAMPLED_OUT, Host, Subjects, claimspan_subjects, instrumented, sampled_out
from overhead_texts import answer_to, passages, places_for

import claimspan_haystack
from claimspan_tracing import Monitor

__all__ = ["InstantChatGenerator", "StoreRetriever", "pipeline", "subjects"]

_SYSTEM = """Answer from the documents only.
{% for each in documents %}{{ each.content }}

{% endfor %}"""

_DOCUMENTS = [
    Document(id=each.id, content=each.text, meta=each.metadata, score=0.8) for each in passages()
]


@component
class StoreRetriever:
    @component.output_types(documents=list[Document])
    def run(self, query: str) -> dict[str, Any]:
        return {"documents": [_DOCUMENTS[place] for place in places_for(query)]}

    @component.output_types(documents=list[Document])
    async def run_async(self, query: str) -> dict[str, Any]:
        return {"documents": [_DOCUMENTS[place] for place in places_for(query)]}


@component
class InstantChatGenerator:
    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, Any]:
        return {"replies": [_reply(messages)]}

    @component.output_types(replies=list[ChatMessage])
    async def run_async(self, messages: list[ChatMessage]) -> dict[str, Any]:
        return {"replies": [_reply(messages)]}


def _reply(messages: list[ChatMessage]) -> ChatMessage:
    usage = {"prompt_tokens": 2_000, "completion_tokens": 90, "total_tokens": 2_090}
    meta = {"model": "instant", "finish_reason": "stop", "usage": usage}
    return ChatMessage.from_assistant(answer_to(messages[-1].text or ""), meta=meta)


def pipeline() -> overhead_host.Pipeline:
    """Retriever, prompt builder, chat generator and answer builder."""
    built = Pipeline()
    template = [ChatMessage.from_system(_SYSTEM), ChatMessage.from_user("{{query}}")]
    builder = ChatPromptBuilder(template=template, required_variables=["documents", "query"])
    built.add_component("retriever", StoreRetriever())
    built.add_component("prompt", builder)
    built.add_component("model", InstantChatGenerator())
    built.add_component("answer", AnswerBuilder())
    built.connect("retriever.documents", "prompt.documents")
    built.connect("prompt.prompt", "model.messages")
    built.connect("model.replies", "answer.replies")
    built.connect("retriever.documents", "answer.documents")

    def inputs(query: str) -> dict[str, Any]:
        return {name: {"query": query} for name in ("retriever", "prompt", "answer")}

    def ask(query: str, _: list[Any]) -> str:
        return str(built.run(inputs(query))["answer"]["answers"][0].data)

    async def aask(query: str, _: list[Any]) -> str:
        return str((await built.run_async(inputs(query)))["answer"]["answers"][0].data)

    return overhead_host.Pipeline(ask, aask)


def subjects() -> Subjects:
    """Who observes the pipeline."""
    openinference = instrumented("openinference.instrumentation.haystack", "HaystackInstrumentor")
    return {
        **claimspan_subjects(_observe),
        "OpenInference": openinference,
        "opentelemetry-haystack": _native,
        f"OpenInference, {SAMPLED_OUT}": sampled_out(openinference),
    }


def _observe(_: Host, monitor: Monitor) -> None:
    claimspan_haystack.instrument(monitor)


def _native(host: Host) -> None:
    """The tracer of Haystack's authors, with the contents of documents and messages."""
    integration = import_module("haystack_integrations.tracing.opentelemetry")
    tracer.is_content_tracing_enabled = True
    enable_tracing(integration.OpenTelemetryTracer(host.provider.get_tracer("haystack")))
