"""Pipelines as their frameworks' documentation has them, traced by OpenInference."""

# No postponed annotations: OpenInference's Haystack instrumentor takes the types as they stand.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownArgumentType=false
# The frameworks leave some of their generics open.

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any, List, TypedDict  # noqa: UP035 - OpenInference knows a generator by this very type

import pytest
from haystack import Document, Pipeline, component
from haystack.components.agents import Agent
from haystack.components.builders import ChatPromptBuilder
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.tools import ComponentTool
from langchain_core.documents import Document as LangChainDocument
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages import ToolCall as ToolCallOfLangChain
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableConfig, RunnableLambda, RunnablePassthrough
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from llama_index.core import PromptTemplate as LlamaIndexPrompt
from llama_index.core.agent.workflow import FunctionAgent, ReActAgent
from llama_index.core.chat_engine import CondenseQuestionChatEngine
from llama_index.core.evaluation import FaithfulnessEvaluator
from llama_index.core.llms import ChatMessage as LlamaIndexMessage
from llama_index.core.llms import CompletionResponse, CompletionResponseGen, CustomLLM, LLMMetadata
from llama_index.core.postprocessor import LLMRerank
from llama_index.core.response_synthesizers import CompactAndRefine
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool, RetrieverTool
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from openinference.instrumentation.haystack import HaystackInstrumentor
from openinference.instrumentation.langchain import LangChainInstrumentor
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

from claimspan_tracing.testing import CapturedRecord, InMemoryMonitor

from lc_pipelines import Shelf as LangChainShelf
from li_agents import ToolUser, ask_agent
from li_pipelines import Shelf, engine_of, memory_of
from oi_spans import monitored, only_live, traced

pytestmark = [
    # OpenInference calls LangChain's texts like functions, which LangChain deprecates.
    pytest.mark.filterwarnings("ignore:Calling .text"),
    # LlamaIndex and its instrumentor look at every attribute of an object, deprecated ones too.
    pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecationWarning"),
    pytest.mark.filterwarnings("ignore:is_running called from within a step"),
]


class Asked(TypedDict):
    question: str
    context: list[LangChainDocument]
    answer: str


QUESTION = "How long is the Drava?"
ANSWER = "It is 725 kilometres long."
FACT = "The Drava rises in South Tyrol and is 725 kilometres long, and flows into the Danube."


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with (
        monitored() as made,
        traced(made, HaystackInstrumentor(), LangChainInstrumentor(), LlamaIndexInstrumentor()),
    ):
        yield made


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


def test_a_chain_that_grades_a_document_answers_no_question(monitor: InMemoryMonitor) -> None:
    asked = "You are a grader of documents.\nDocument: {document}\nQuestion: {question}"
    chain = PromptTemplate.from_template(asked) | scripted("yes")
    chain.invoke({"question": QUESTION, "document": FACT})

    assert monitor.records() == []


def test_a_prompt_that_tells_what_a_hand_written_search_has_found_is_judged_by_that(
    monitor: InMemoryMonitor,
) -> None:
    asked = "Answer from the documents.\nDocuments: {found}\nQuestion: {question}"
    search = RunnablePassthrough.assign(found=lambda _: FACT)
    chain = search | PromptTemplate.from_template(asked) | scripted(ANSWER)
    chain.invoke({"question": QUESTION})

    record = monitor.only_record()
    assert said(record) == (QUESTION, ANSWER)
    assert texts(record) == [FACT]


def interrupted_graph() -> Any:
    """A graph that asks a person before it answers."""
    model = scripted(ANSWER)

    def search(state: Asked) -> dict[str, list[LangChainDocument]]:
        return {"context": LangChainShelf().invoke(state["question"])}

    def review(state: Asked) -> dict[str, str]:
        interrupt("Go on?")
        return {}

    def answer(state: Asked) -> dict[str, str]:
        context = "\n".join(each.page_content for each in state["context"])
        return {"answer": str(model.invoke(f"{context}\n{state['question']}").content)}

    graph = StateGraph(Asked)
    graph.add_sequence([("search", search), ("review", review), ("answer", answer)])
    graph.add_edge(START, "search")
    return graph.compile(checkpointer=InMemorySaver())


def test_a_graph_that_goes_on_after_an_interrupt_answers_the_question_of_its_state(
    monitor: InMemoryMonitor,
) -> None:
    graph = interrupted_graph()
    config: RunnableConfig = {"configurable": {"thread_id": "one"}}
    graph.invoke({"question": QUESTION}, config)
    graph.invoke(Command(resume="yes"), config)

    answers = [said(each) for each in monitor.records() if each.record.response]
    assert (QUESTION, ANSWER) in answers
    assert {question for question, _ in answers} == {QUESTION}


def test_a_note_in_place_of_a_tools_result_is_no_chunk(monitor: InMemoryMonitor) -> None:
    model = scripted(ANSWER)
    calls = [ToolCallOfLangChain(name=n, args={}, id=n) for n in ("search", "write_todos")]
    told = [
        ToolMessage(FACT, tool_call_id="search"),
        ToolMessage("Updated todo list to [{'content': 'search'}]", tool_call_id="write_todos"),
    ]
    talk = [HumanMessage(QUESTION), AIMessage("", tool_calls=calls), *told]

    def answer(_: str) -> str:
        return str(model.invoke(talk).content)

    RunnableLambda(answer).invoke(QUESTION)

    assert texts(monitor.only_record()) == [FACT]


# --- Haystack -------------------------------------------------------------------------------------


@component
class ScriptedChatGenerator:
    """OpenInference takes a component for a generator by its name."""

    def __init__(self, *replies: str | ToolCall) -> None:
        self._replies = [*replies]

    @component.output_types(replies=List[ChatMessage])  # noqa: UP006 - as above
    def run(self, messages: list[ChatMessage], tools: Any = None) -> dict[str, Any]:
        reply = self._replies.pop(0)
        if isinstance(reply, ToolCall):
            return {"replies": [ChatMessage.from_assistant(tool_calls=[reply])]}
        return {"replies": [ChatMessage.from_assistant(reply)]}


@component
class WebSearch:
    """Finds documents, and is no retriever by its name."""

    @component.output_types(documents=list[Document])
    def run(self, query: str) -> dict[str, Any]:
        return {"documents": [Document(content=FACT)]}


TEMPLATE = """Answer the question based on the given context.
Context:
{% for each in documents %}{{ each.content }}{% endfor %}
Question: {{ question }}"""


def prompted_pipeline(*replies: str) -> Pipeline:
    """A pipeline that is given its documents."""
    template = [ChatMessage.from_user(TEMPLATE)]
    pipeline = Pipeline()
    pipeline.add_component("prompt", ChatPromptBuilder(template, required_variables="*"))
    pipeline.add_component("llm", ScriptedChatGenerator(*replies))
    pipeline.connect("prompt.prompt", "llm.messages")
    return pipeline


def test_documents_that_no_retriever_found_are_what_the_prompt_has_of_them(
    monitor: InMemoryMonitor,
) -> None:
    given = {"question": QUESTION, "documents": [Document(content=FACT)]}
    prompted_pipeline(ANSWER).run({"prompt": given})

    record = monitor.only_record()
    assert said(record) == (QUESTION, ANSWER)
    assert texts(record) == [FACT]
    assert record.job.context_source == "prompt"


def test_a_prompt_that_announces_nothing_makes_no_record(monitor: InMemoryMonitor) -> None:
    prompted_pipeline(ANSWER).run({"prompt": {"question": QUESTION, "documents": []}})

    assert monitor.records() == []
    assert monitor.stats.produced == 0


def test_an_agent_is_judged_by_the_documents_in_what_its_tool_has_told_its_model(
    monitor: InMemoryMonitor,
) -> None:
    given = {"question": QUESTION, "documents": [Document(content=FACT)]}
    prompted_pipeline(ANSWER).run({"prompt": given})  # from now on the model makes spans
    search = ComponentTool(WebSearch(), name="search", description="Searches the web.")
    model = ScriptedChatGenerator(ToolCall("search", {"query": "Drava length"}), ANSWER)
    Agent(chat_generator=model, tools=[search]).run(messages=[ChatMessage.from_user(QUESTION)])

    _, record = monitor.records()
    assert said(record) == (QUESTION, ANSWER)
    assert texts(record) == [FACT]


def test_an_answer_that_a_router_threw_away_is_none(monitor: InMemoryMonitor) -> None:
    store = InMemoryDocumentStore()
    store.write_documents([Document(content=FACT)])
    pipeline = prompted_pipeline("no_answer")
    pipeline.add_component("retriever", InMemoryBM25Retriever(store))
    pipeline.add_component("second", ScriptedChatGenerator(ANSWER))
    pipeline.add_component(
        "again",
        ChatPromptBuilder([ChatMessage.from_user(FACT + "{% if said %} Answer.{% endif %}")]),
    )
    pipeline.connect("retriever.documents", "prompt.documents")
    pipeline.connect("llm.replies", "again.said")
    pipeline.connect("again.prompt", "second.messages")
    given = {"retriever": {"query": QUESTION}, "prompt": {"question": QUESTION}}
    pipeline.run(given, include_outputs_from={"llm", "retriever"})

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


def test_an_evaluator_asks_nothing(monitor: InMemoryMonitor) -> None:
    evaluator = FaithfulnessEvaluator(llm=Scripted(replies=["YES"]))
    asyncio.run(evaluator.aevaluate(query=QUESTION, response=ANSWER, contexts=[FACT]))

    assert monitor.records() == []
    assert monitor.stats.produced == 0


def test_an_agent_that_thinks_in_text_is_asked_by_its_user_and_answers_without_its_thoughts(
    monitor: InMemoryMonitor,
) -> None:
    call = 'Thought: I need it.\nAction: rivers\nAction Input: {"input": "Drava length"}'
    model = Scripted(replies=[call, f"Thought: Now I know it.\nAnswer: {ANSWER}"])
    search = RetrieverTool.from_defaults(Shelf(), name="rivers", description="Rivers.")

    agent: Any = ReActAgent(tools=[search], llm=model, streaming=False)

    async def ask() -> None:
        await agent.run(user_msg=QUESTION, memory=memory_of([]))

    asyncio.run(ask())

    assert said(monitor.only_record()) == (QUESTION, ANSWER)


class Streaming(Workflow):
    """Has a model choose among what was found, and returns the stream of the answer."""

    @step
    async def answer(self, event: StartEvent) -> StopEvent:
        found = await Shelf().aretrieve(QUESTION)
        chosen = LLMRerank(top_n=1, llm=Scripted(replies=["Doc: 1, Relevance: 9"]))
        nodes = chosen.postprocess_nodes(found, query_str=QUESTION)
        answers = CompactAndRefine(llm=Scripted(replies=[ANSWER]), streaming=True)
        return StopEvent(result=await answers.asynthesize(QUESTION, nodes=nodes))


def test_what_a_model_said_before_the_stream_of_the_answer_is_not_the_answer(
    monitor: InMemoryMonitor,
) -> None:
    async def ask() -> str:
        response: Any = await Streaming().run()
        return "".join([text async for text in response.async_response_gen()])

    assert asyncio.run(ask()) == ANSWER

    only_live(monitor)  # the model begins after all else has ended, below a span that is gone
    assert [each.record.response for each in monitor.records()] in ([], [ANSWER])


INDEXING: dict[str, Callable[[list[LangChainDocument]], object]] = {
    "nothing": lambda found: None,
    "number": len,
    "sentence": lambda found: f"Indexed {len(found)} documents.",
    "ids": lambda found: [each.id for each in found],
    "dict": lambda found: {"ids": [each.id for each in found]},
}


@pytest.mark.parametrize("name", INDEXING)
def test_a_chain_that_builds_an_index_is_no_record(monitor: InMemoryMonitor, name: str) -> None:
    def load(path: str) -> list[LangChainDocument]:
        return [LangChainDocument(page_content=FACT, id="d0", metadata={"source": path})]

    (RunnableLambda(load) | RunnableLambda(INDEXING[name])).invoke("a.txt")

    assert monitor.records() == []


def test_a_result_of_a_tool_of_llama_index_is_its_text_and_not_its_json(
    monitor: InMemoryMonitor,
) -> None:
    asyncio.run(ask_agent([FunctionTool.from_defaults(rivers)], QUESTION, ANSWER))

    assert texts(monitor.only_record()) == [f"{FACT}\n{FACT.upper()}"]


def rivers(input: str) -> str:
    """Look up rivers."""
    return f"{FACT}\n{FACT.upper()}"


def test_an_agent_may_answer_from_what_its_memory_has_of_a_tool(monitor: InMemoryMonitor) -> None:
    used = [
        LlamaIndexMessage(role="user", content="Which rivers are there?"),
        LlamaIndexMessage(role="tool", content=FACT),
        LlamaIndexMessage(role="assistant", content="The Drava."),
    ]
    agent: Any = FunctionAgent(tools=[], llm=ToolUser(wanted=["rivers"], said=ANSWER))

    async def ask() -> None:
        await agent.run(user_msg=QUESTION, memory=memory_of(used))

    asyncio.run(ask())

    record = monitor.only_record()
    assert (said(record), texts(record)) == ((QUESTION, ANSWER), [FACT])


def test_nodes_that_no_retriever_has_found_are_evidence(monitor: InMemoryMonitor) -> None:
    prompt = LlamaIndexPrompt("{query_str}\nRows: {context_str}\nResponse: ")
    synthesizer = CompactAndRefine(llm=Scripted(replies=[ANSWER]), text_qa_template=prompt)

    synthesizer.synthesize(QUESTION, [NodeWithScore(node=TextNode(text="[('Drava', 725)]"))])

    record = monitor.only_record()
    assert (said(record), texts(record)) == ((QUESTION, ANSWER), ["[('Drava', 725)]"])
