"""Prompts with roles: the messages of every framework come with OpenInference's four roles."""

from __future__ import annotations

import pytest
from haystack.components.builders import ChatPromptBuilder
from haystack.dataclasses import ChatMessage as HaystackMessage
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.runnables import RunnableLambda
from llama_index.core.chat_engine import ContextChatEngine
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.llms import ChatMessage as LlamaMessage
from llama_index.core.llms import LLMMetadata, MessageRole
from openinference.instrumentation import using_attributes
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.trace import format_span_id

import claimspan_haystack
import claimspan_llama_index
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_openinference import ClaimspanSpanProcessor
from claimspan_tracing.job import GeneratorRun
from claimspan_tracing.testing import InMemoryMonitor

from hs_pipelines import rag_pipeline
from lc_pipelines import Shelf, rag_chain
from li_pipelines import Echo as LlamaEcho
from li_pipelines import Shelf as LlamaShelf
from li_pipelines import memory_of
from support import ids

QUERY = "the question"


def read(monitor: InMemoryMonitor) -> list[tuple[str, str]]:
    """Role and text of each message of the one model call."""
    (run,) = [r for r in monitor.only_record().job.runs if isinstance(r, GeneratorRun)]
    return [(message.role, message.text) for message in run.messages]


def ask_langchain(monitor: InMemoryMonitor, messages: list[BaseMessage]) -> None:
    model = GenericFakeChatModel(messages=iter([AIMessage("said")]))
    chain = Shelf() | RunnableLambda(lambda found: messages) | model
    chain.invoke(QUERY, {"callbacks": [ClaimspanCallbackHandler(monitor)]})


@pytest.mark.parametrize(
    ("message", "role"),
    [
        (SystemMessage("text"), "system"),
        (HumanMessage("text"), "user"),
        (AIMessage("text"), "assistant"),
        (AIMessageChunk(content="text"), "assistant"),
        (ToolMessage("text", tool_call_id="1"), "tool"),
        (ChatMessage(content="text", role="developer"), "system"),
        (ChatMessage(content="text", role="oracle"), ""),
        (HumanMessage([{"type": "text", "text": "te"}, {"type": "image"}, "xt"]), "user"),
    ],
)
def test_langchains_messages_have_roles(message: BaseMessage, role: str) -> None:
    with InMemoryMonitor() as monitor:
        ask_langchain(monitor, [message, HumanMessage(QUERY)])

        assert read(monitor) == [(role, "text"), ("user", QUERY)]


class ChatEcho(LlamaEcho):
    """A model that is given messages instead of one text."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="echo", is_chat_model=True, context_window=10_000_000)


def chat_with(engine: BaseChatEngine) -> None:
    assert str(engine.chat(QUERY)) == "said"


def test_llama_indexs_messages_have_roles() -> None:
    history = [
        LlamaMessage(role=MessageRole.USER, content="before"),
        LlamaMessage(role=MessageRole.CHATBOT, content="said"),
    ]
    with InMemoryMonitor() as monitor:
        detach = claimspan_llama_index.instrument(monitor)
        engine = ContextChatEngine.from_defaults(
            retriever=LlamaShelf(), llm=ChatEcho(said="said"), memory=memory_of(history)
        )
        chat_with(engine)
        detach()

        (system, *rest) = read(monitor)
    assert system[0] == "system"
    assert f"Answer to {QUERY}" in system[1]
    assert rest == [("user", "before"), ("assistant", "said"), ("user", QUERY)]


def test_haystacks_messages_have_roles() -> None:
    pipeline = rag_pipeline()
    builder = pipeline.get_component("prompt")
    assert isinstance(builder, ChatPromptBuilder)
    template = [
        HaystackMessage.from_system("rules"),
        HaystackMessage.from_assistant("said"),
        HaystackMessage.from_user("{{ question }} of {{ documents|length }}"),
    ]
    with InMemoryMonitor() as monitor:
        detach = claimspan_haystack.instrument(monitor)
        inputs = {"question": QUERY, "template": template}
        pipeline.run({"shelf": {"query": QUERY}, "prompt": inputs})
        detach()

        assert read(monitor) == [
            ("system", "rules"),
            ("assistant", "said"),
            ("user", f"{QUERY} of 2"),
        ]


# --- spans of OpenInference's instrumentation ---


@pytest.mark.filterwarnings("ignore:Calling .text")
def test_spans_of_others_give_their_ids_and_their_session_to_the_job() -> None:
    with InMemoryMonitor() as monitor:
        monitor.provider.add_span_processor(ClaimspanSpanProcessor(monitor))
        instrumentor = LangChainInstrumentor()
        instrumentor.instrument(tracer_provider=monitor.provider)
        with using_attributes(session_id="s-1", user_id="u-1", tags=["t"]):
            rag_chain().invoke(QUERY)
        instrumentor.uninstrument()

        job = monitor.only_record().job
        theirs = {format_span_id(ids(s).span_id): s.name for s in monitor.spans()}
    assert [theirs[run.span_id] for run in job.runs] == ["Shelf", "Echo"]
    assert job.record.metadata["session.id"] == "s-1"
    assert job.record.metadata["user.id"] == "u-1"
    assert job.record.metadata["tag.tags"] == ["t"]


def test_runs_of_ours_have_the_ids_of_their_spans_when_sinks_get_the_job() -> None:
    with InMemoryMonitor() as monitor:
        rag_chain().invoke(QUERY, {"callbacks": [ClaimspanCallbackHandler(monitor)]})

        job = monitor.only_record().job
        ours = {format_span_id(ids(s).span_id): s.name for s in monitor.spans()}
    assert [ours[run.span_id] for run in job.runs] == ["retrieval", "chat"]
