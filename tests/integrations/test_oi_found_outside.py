"""Pipelines as their frameworks' documentation has them, traced by OpenInference's instrumentors."""

# No postponed annotations: OpenInference's Haystack instrumentor takes the types as they stand.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownArgumentType=false
# The frameworks leave some of their generics open.

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langgraph.graph import START, MessagesState, StateGraph
from llama_index.core.chat_engine import CondenseQuestionChatEngine
from llama_index.core.llms import CompletionResponse, CompletionResponseGen, CustomLLM, LLMMetadata
from openinference.instrumentation.haystack import HaystackInstrumentor
from openinference.instrumentation.langchain import LangChainInstrumentor
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

import claimspan_openinference
from claimspan_tracing.testing import CapturedRecord, InMemoryMonitor

from lc_pipelines import Shelf as LangChainShelf
from li_pipelines import Shelf, engine_of, memory_of

pytestmark = [
    # OpenInference calls LangChain's texts like functions, which LangChain deprecates.
    pytest.mark.filterwarnings("ignore:Calling .text"),
    # LlamaIndex and its instrumentor look at every attribute of an object, deprecated ones too.
    pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecationWarning"),
]

QUESTION = "How long is the Drava?"
ANSWER = "It is 725 kilometres long."
FACT = "The Drava rises in South Tyrol and is 725 kilometres long, and flows into the Danube."


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with InMemoryMonitor() as made:
        undo = claimspan_openinference.instrument(made, tracer_provider=made.provider)
        instrumentors = HaystackInstrumentor(), LangChainInstrumentor(), LlamaIndexInstrumentor()
        for each in instrumentors:
            each.instrument(tracer_provider=made.provider)
        yield made
        for each in instrumentors:
            each.uninstrument()
        undo()
        assert made.stats.faults == 0


def texts(record: CapturedRecord) -> list[str]:
    return [chunk.text for chunk in record.record.chunks]


def said(record: CapturedRecord) -> tuple[str, str]:
    return record.record.query, record.record.response


# --- LangChain ------------------------------------------------------------------------------------


def scripted(*replies: str | AIMessage) -> GenericFakeChatModel:
    made = [AIMessage(each) if isinstance(each, str) else each for each in replies]
    return GenericFakeChatModel(messages=iter(made))


def conversational_graph() -> Any:
    """A graph that answers the last message of a conversation."""
    model = scripted(ANSWER)

    def answer(state: MessagesState) -> dict[str, list[AnyMessage]]:
        found = LangChainShelf().invoke(str(state["messages"][-1].content))
        context = "\n".join(each.page_content for each in found)
        return {"messages": [model.invoke([SystemMessage(context), *state["messages"]])]}

    graph = StateGraph(MessagesState)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    return graph.compile()


TALKS: dict[str, Sequence[object]] = {
    "objects": [
        HumanMessage("How long is the Sava?"),
        AIMessage("990 km."),
        HumanMessage(QUESTION),
    ],
    "tuples": [("user", "How long is the Sava?"), ("ai", "990 km."), ("user", QUESTION)],
    "dicts": [
        {"role": "user", "content": "How long is the Sava?"},
        {"role": "assistant", "content": "990 km."},
        {"role": "user", "content": QUESTION},
    ],
}


@pytest.mark.parametrize("talk", TALKS.values(), ids=TALKS.keys())
def test_the_last_turn_of_a_conversation_is_the_question(
    talk: Sequence[object], monitor: InMemoryMonitor
) -> None:
    conversational_graph().invoke({"messages": talk})

    assert said(monitor.only_record()) == (QUESTION, ANSWER)


# --- LlamaIndex -----------------------------------------------------------------------------------


class Scripted(CustomLLM):
    """Says what it was told to, one completion after another."""

    replies: list[str]

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="scripted")

    def complete(
        self, prompt: str, formatted: bool = False, **kwargs: object
    ) -> CompletionResponse:
        return CompletionResponse(text=self.replies.pop(0))

    def stream_complete(
        self, prompt: str, formatted: bool = False, **kwargs: object
    ) -> CompletionResponseGen:
        text = self.replies.pop(0)
        yield CompletionResponse(text=text, delta=text)


def test_a_turn_of_a_chat_is_asked_what_its_user_said_and_not_what_a_model_made_of_it(
    monitor: InMemoryMonitor,
) -> None:
    model = Scripted(replies=["First.", QUESTION, ANSWER])
    engine = engine_of(Shelf(), model)
    chat = CondenseQuestionChatEngine.from_defaults(engine, llm=model, memory=memory_of([]))
    chat.chat("How long is the Sava?")
    chat.chat("And the Drava?")

    first, second = monitor.records()
    assert said(first) == ("How long is the Sava?", "First.")
    assert said(second) == ("And the Drava?", ANSWER)
    assert all(QUESTION in text for text in texts(second))
