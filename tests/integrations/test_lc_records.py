"""One record for each answer, with what the model read: LangChain's and LangGraph's shapes."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# The frameworks leave some of their generics open.

import asyncio
import operator
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ModelRequest, dynamic_prompt
from langchain_classic.chains import create_history_aware_retriever, create_retrieval_chain
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.output_parsers.openai_tools import PydanticToolsParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough
from langchain_core.tools import tool
from langchain_core.tools.retriever import create_retriever_tool
from langchain_core.vectorstores import InMemoryVectorStore
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from opentelemetry.sdk.trace import ReadableSpan
from pydantic import BaseModel

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing.testing import CapturedRecord, InMemoryMonitor

from lc_pipelines import Shelf
from lc_scripts import Script, calls

TOWER = "How high is the tower?"
BRIDGE = "When was the bridge opened?"
HIGH = "The tower is 330 metres high, by the newest measurement."
OPENED = "The bridge was opened to traffic in December 2004."

FACTS = [
    "The tower in Paris is 330 metres high since an antenna was added to it in March 2022.",
    "The bridge at Millau was opened in December 2004 and carries a motorway over the Tarn.",
    "The tunnel under the Channel took six years to dig and was opened to trains in 1994.",
]


def documents(*texts: str) -> list[Document]:
    return [Document(page_content=text, id=f"d{index}") for index, text in enumerate(texts)]


def joined(found: list[Document]) -> str:
    return "\n\n".join(each.page_content for each in found)


PROMPT = ChatPromptTemplate.from_messages([("human", "Use this:\n{context}\n\nQ: {question}")])


def about(word: str) -> RunnableLambda[str, list[Document]]:
    return RunnableLambda(lambda query: documents(*(text for text in FACTS if word in text)))


def rag(model: Script | None = None, found: Runnable[str, list[Document]] | None = None) -> Any:
    retriever = found or Shelf(documents=documents(*FACTS[:2]))
    inputs = {"context": retriever | joined, "question": RunnablePassthrough[str]()}
    return inputs | PROMPT | (model or Script(rules={TOWER: HIGH, BRIDGE: OPENED})) | parser()


def parser() -> StrOutputParser:
    return StrOutputParser()


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with InMemoryMonitor() as made:
        yield made


def config(monitor: InMemoryMonitor, **more: Any) -> Any:
    return {"callbacks": [ClaimspanCallbackHandler(monitor)], **more}


def texts(record: CapturedRecord) -> list[str]:
    return [chunk.text for chunk in record.job.record.chunks]


def asked(record: CapturedRecord) -> tuple[str, str]:
    return record.job.record.query, record.job.record.response


def kind(span: ReadableSpan) -> object:
    return (span.attributes or {}).get("openinference.span.kind")


def invoke(pipeline: Any, given: object, config: Any) -> object:
    return pipeline.invoke(given, config)


def ainvoke(pipeline: Any, given: object, config: Any) -> object:
    return asyncio.run(pipeline.ainvoke(given, config))


def stream(pipeline: Any, given: object, config: Any) -> object:
    return list(pipeline.stream(given, config))


def astream(pipeline: Any, given: object, config: Any) -> object:
    async def read() -> list[object]:
        return [part async for part in pipeline.astream(given, config)]

    return asyncio.run(read())


def batch(pipeline: Any, given: object, config: Any) -> object:
    return pipeline.batch([given], config)


Way = Callable[[Any, object, Any], object]
every_way = pytest.mark.parametrize("way", [invoke, ainvoke, stream, astream, batch])


# --- thrown-away attempts ------------------------------------------------------------------------


@every_way
def test_a_chain_with_fallbacks_is_one_record_with_the_attempt_that_answered(
    way: Way, monitor: InMemoryMonitor
) -> None:
    failing = rag(Script(lines=[ValueError("overloaded")]), Shelf(documents=documents(FACTS[2])))
    way(failing.with_fallbacks([rag()]), TOWER, config(monitor))

    (record,) = monitor.records(20)
    assert asked(record) == (TOWER, HIGH)
    assert texts(record) == FACTS[:2]
    assert record.outcome.status == "evaluated"


def test_the_chunks_of_an_attempt_that_failed_do_not_count_where_no_prompt_is_seen(
    monitor: InMemoryMonitor,
) -> None:
    found = [documents(FACTS[2]), documents(FACTS[0])]

    def attempt(query: str) -> str:
        Shelf(documents=found.pop(0)).invoke(query)
        if found:
            raise ValueError("try again")
        return HIGH

    (
        RunnableLambda(attempt).with_retry(stop_after_attempt=2, wait_exponential_jitter=False)
    ).invoke(TOWER, config(monitor))

    (record,) = monitor.records(20)
    assert texts(record) == FACTS[:1]
    assert asked(record) == (TOWER, HIGH)


# --- one answer, one record ----------------------------------------------------------------------


def test_each_answer_of_a_mapped_chain_is_a_record_of_its_own(monitor: InMemoryMonitor) -> None:
    model = Script(rules={TOWER: HIGH, BRIDGE: OPENED})
    find = RunnableLambda[str, list[Document]](
        lambda query: Shelf(documents=documents(FACTS[query == BRIDGE])).invoke(query)
    )
    rag(model, find).map().invoke([TOWER, BRIDGE], config(monitor))

    records = monitor.records(20)
    ended = {asked(record): (texts(record), record.outcome.status) for record in records}
    assert ended == {
        (TOWER, HIGH): (FACTS[:1], "evaluated"),
        (BRIDGE, OPENED): (FACTS[1:2], "evaluated"),
        ("", f"{HIGH}\n{OPENED}"): ([], "several_answers"),
    }


@pytest.mark.parametrize("returns", [list, "\n".join, lambda said: dict(enumerate(said))])
def test_each_answer_of_a_loop_in_a_function_is_a_record_of_its_own(
    returns: Callable[[list[str]], object], monitor: InMemoryMonitor
) -> None:
    chain = rag()

    def both(topic: str) -> object:
        return returns([chain.invoke(query) for query in (TOWER, BRIDGE)])

    RunnableLambda(both).invoke("buildings", config(monitor))

    judged = [record for record in monitor.records(20) if record.outcome.status == "evaluated"]
    assert sorted(map(asked, judged)) == sorted([(TOWER, HIGH), (BRIDGE, OPENED)])
    assert monitor.stats.skipped["several_answers"] == 1


def test_the_spans_of_an_inner_answer_stand_below_its_own_root(monitor: InMemoryMonitor) -> None:
    rag().map().invoke([TOWER, BRIDGE], config(monitor))

    monitor.records(20)
    spans = {span.context.span_id: span for span in monitor.spans() if span.context}
    parents = {id_: span.parent and span.parent.span_id for id_, span in spans.items()}
    roots = [id_ for id_, span in spans.items() if kind(span) == "CHAIN"]
    (outer,) = [id_ for id_ in roots if parents[id_] is None]
    inner = [id_ for id_ in roots if parents[id_] == outer]
    assert len(inner) == 2
    below = [parents[id_] for id_, span in spans.items() if kind(span) in ("LLM", "RETRIEVER")]
    assert sorted(below, key=str) == sorted(inner * 2, key=str)


def test_answers_that_cannot_be_told_apart_are_not_judged(monitor: InMemoryMonitor) -> None:
    model, shelf = Script(rules={TOWER: HIGH, BRIDGE: OPENED}), Shelf(documents=documents(*FACTS))

    def both(topic: str) -> list[str]:
        said: list[str] = []
        for query in (TOWER, BRIDGE):
            found = shelf.invoke(query)
            said.append(str(model.invoke(f"{joined(found)}\n{query}").content))
        return said

    RunnableLambda(both).invoke("buildings", config(monitor))

    (record,) = monitor.records(20)
    assert record.outcome.status == "several_answers"
    assert "cannot be told" in record.outcome.reason


class Hostile(Mapping[str, object]):
    """An output of the user's that lets nobody look into it."""

    def __getitem__(self, key: str) -> object:
        raise RuntimeError("not for you")

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("not for you")

    def __len__(self) -> int:
        return 1


def test_an_output_that_cannot_be_looked_into_loses_no_record(monitor: InMemoryMonitor) -> None:
    chain = rag()

    def both(topic: str) -> list[object]:
        chain.invoke(TOWER)
        chain.invoke(BRIDGE)
        return [Hostile(), Hostile()]

    RunnableLambda(both).invoke("buildings", config(monitor))

    (record,) = monitor.records(20)
    assert record.outcome.status != "judge_error"
    assert monitor.stats.faults > 0


def test_sub_questions_that_one_answer_is_made_of_are_one_record(monitor: InMemoryMonitor) -> None:
    chain, final = rag(), f"{HIGH} {OPENED} Both are in France."
    model = Script(lines=[final])

    def answer(question: str) -> str:
        said = "\n".join(chain.invoke(query) for query in (TOWER, BRIDGE))
        return str(model.invoke(f"Put together:\n{said}\nQ: {question}").content)

    RunnableLambda(answer).invoke("Tell me about both.", config(monitor))

    (record,) = monitor.records(20)
    assert asked(record) == ("Tell me about both.", final)
    assert texts(record) == FACTS[:2]


# --- what is no query ----------------------------------------------------------------------------


def history_aware() -> Any:
    prompt = ChatPromptTemplate.from_messages(
        [MessagesPlaceholder("chat_history"), ("human", "{input}")]
    )
    return create_history_aware_retriever(
        Script(lines=["height of the tower"]), Shelf(documents=documents(*FACTS)), prompt
    )


HISTORY = {"input": TOWER, "chat_history": [HumanMessage("Hello"), AIMessage("Good day")]}


@pytest.mark.parametrize(
    ("pipeline", "given"),
    [
        pytest.param(lambda: Shelf(documents=documents(*FACTS)), TOWER, id="retriever"),
        pytest.param(history_aware, HISTORY, id="history-aware retriever"),
        pytest.param(lambda: history_aware() | joined, HISTORY, id="joined chunks"),
        pytest.param(lambda: Shelf(documents=documents(*FACTS)) | joined, TOWER, id="format"),
        pytest.param(
            lambda: create_retriever_tool(Shelf(documents=documents(*FACTS)), "search", "Finds."),
            {"query": TOWER},
            id="retriever tool",
        ),
        pytest.param(
            lambda: (
                RunnablePassthrough.assign(
                    documents=lambda _: Shelf(documents=documents(*FACTS)).invoke(
                        "height of the tower"
                    )
                )
                | (lambda state: [(each, 0.5) for each in state["documents"]])
            ),
            {"question": TOWER},
            id="documents with scores",
        ),
    ],
)
def test_what_only_retrieves_is_not_judged(
    pipeline: Callable[[], Any], given: object, monitor: InMemoryMonitor
) -> None:
    pipeline().invoke(given, config(monitor))

    (record,) = monitor.records(20)
    assert record.outcome.status == "no_answer"


# --- structured answers --------------------------------------------------------------------------


class Height(BaseModel):
    answer: str
    metres: int
    sources: list[str] = []


class Parts(BaseModel):
    first: str
    rest: list[str]


def test_a_pydantic_answer_is_read_by_its_field_of_that_name(monitor: InMemoryMonitor) -> None:
    model = Script(lines=[calls("Height", answer=HIGH, metres=330, sources=["d0"])])
    structure = PydanticToolsParser(tools=[Height], first_tool_only=True)
    inputs = {
        "context": Shelf(documents=documents(*FACTS[:2])) | joined,
        "question": RunnablePassthrough[str](),
    }
    (inputs | PROMPT | model | structure).invoke(TOWER, config(monitor))

    (record,) = monitor.records(20)
    assert asked(record) == (TOWER, HIGH)
    assert texts(record) == FACTS[:2]


def test_a_structure_without_such_a_field_is_all_of_its_texts(monitor: InMemoryMonitor) -> None:
    chain = rag() | (lambda text: Parts(first=text, rest=["It stands in Paris.", "Since 1889."]))
    chain.invoke(TOWER, config(monitor))

    (record,) = monitor.records(20)
    assert record.job.record.response == f"{HIGH}\nIt stands in Paris.\nSince 1889."


def test_the_structured_response_of_an_agent_is_its_answer(monitor: InMemoryMonitor) -> None:
    @tool
    def search(query: str) -> str:
        """Search."""
        return FACTS[0]

    model = Script(
        lines=[calls("search", query="height"), calls("Height", answer=HIGH, metres=330)]
    )
    agent: Any = create_agent(model, [search], response_format=Height)
    agent.invoke({"messages": [HumanMessage(TOWER)]}, config(monitor))

    (record,) = monitor.records(20)
    assert asked(record) == (TOWER, HIGH)
    assert texts(record) == FACTS[:1]
    assert record.outcome.status == "evaluated"


# --- evidence that is no document ----------------------------------------------------------------


@tool(response_format="content_and_artifact")
def retrieve(query: str) -> tuple[str, list[Document]]:
    """Search the store."""
    found = documents(*FACTS[:2])
    return "\n\n".join(f"Source: {d.metadata}\nContent: {d.page_content}" for d in found), found


@every_way
def test_an_agent_has_read_the_documents_that_its_tool_keeps(
    way: Way, monitor: InMemoryMonitor
) -> None:
    agent: Any = create_agent(Script(lines=[calls("retrieve", query="tower"), HIGH]), [retrieve])
    way(agent, {"messages": [{"role": "user", "content": TOWER}]}, config(monitor))

    (record,) = monitor.records(20)
    assert asked(record) == (TOWER, HIGH)
    assert texts(record) == FACTS[:2]
    assert [chunk.id for chunk in record.job.record.chunks] == ["d0", "d1"]


def test_the_plain_text_of_a_tool_is_a_chunk_and_says_so(monitor: InMemoryMonitor) -> None:
    @tool
    def search(query: str) -> str:
        """Search the web."""
        return FACTS[0]

    agent: Any = create_agent(Script(lines=[calls("search", query="tower"), HIGH]), [search])
    agent.invoke({"messages": [HumanMessage(TOWER)]}, config(monitor))

    (record,) = monitor.records(20)
    assert texts(record) == FACTS[:1]
    assert record.job.record.chunks[0].metadata == {"claimspan.chunk.source": "prompt"}
    assert record.job.context_source == "prompt"
    assert record.outcome.status == "evaluated"


def test_a_context_that_was_put_in_by_hand_is_the_chunk(monitor: InMemoryMonitor) -> None:
    chain = PROMPT | Script(lines=[HIGH]) | parser()
    chain.invoke({"context": FACTS[0], "question": TOWER}, config(monitor))

    (record,) = monitor.records(20)
    assert asked(record) == (TOWER, HIGH)
    assert texts(record) == FACTS[:1]


def test_a_search_beside_the_retriever_was_read_as_well(monitor: InMemoryMonitor) -> None:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(documents(FACTS[2]))

    def search(query: str) -> str:
        return joined(store.similarity_search(query, k=1))

    prompt = ChatPromptTemplate.from_messages(
        [("human", "{context}\n{search_results}\nQ: {question}")]
    )
    inputs = {
        "context": Shelf(documents=documents(FACTS[0])) | joined,
        "search_results": RunnableLambda(search),
        "question": RunnablePassthrough[str](),
    }
    (inputs | prompt | Script(lines=[HIGH]) | parser()).invoke(TOWER, config(monitor))

    (record,) = monitor.records(20)
    assert texts(record) == [FACTS[0], FACTS[2]]


def test_the_context_of_a_dynamic_prompt_is_the_chunk(monitor: InMemoryMonitor) -> None:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(documents(*FACTS[:2]))

    @dynamic_prompt
    def prompt_with_context(request: ModelRequest) -> str:
        query = str(request.state["messages"][-1].content)
        content = joined(store.similarity_search(query, k=2))
        return (
            f"You are a helpful assistant. Use the following context in your response:\n\n{content}"
        )

    agent: Any = create_agent(Script(lines=[HIGH]), tools=[], middleware=[prompt_with_context])
    agent.invoke({"messages": [HumanMessage(TOWER)]}, config(monitor))

    (record,) = monitor.records(20)
    assert asked(record) == (TOWER, HIGH)
    (text,) = texts(record)
    assert sorted(text.split("\n\n")) == sorted(FACTS[:2])


def test_a_chat_without_any_evidence_is_not_judged(monitor: InMemoryMonitor) -> None:
    agent: Any = create_agent(
        Script(lines=[HIGH]), tools=[], system_prompt="You are a polite assistant. Be brief. " * 5
    )
    agent.invoke({"messages": [HumanMessage(TOWER)]}, config(monitor))

    (record,) = monitor.records(20)
    assert record.outcome.status == "no_context"


def test_an_empty_context_in_the_output_hides_nothing_that_was_read(
    monitor: InMemoryMonitor,
) -> None:
    chain = rag() | (lambda text: {"answer": text, "context": []})
    chain.invoke(TOWER, config(monitor))

    (record,) = monitor.records(20)
    assert texts(record) == FACTS[:2]
    assert record.outcome.status == "evaluated"


# --- conversations and states --------------------------------------------------------------------


class Messages(TypedDict):
    messages: Annotated[list[AnyMessage], operator.add]


def test_a_turn_that_says_nothing_has_no_answer(monitor: InMemoryMonitor) -> None:
    agent: Any = create_agent(
        Script(lines=[calls("retrieve", query="tower"), HIGH, ""]),
        [retrieve],
        checkpointer=InMemorySaver(),
    )
    thread = {"configurable": {"thread_id": "1"}}
    agent.invoke({"messages": [HumanMessage(TOWER)]}, config(monitor, **thread))
    agent.invoke({"messages": [HumanMessage(BRIDGE)]}, config(monitor, **thread))

    first, second = monitor.records(20)
    assert asked(first) == (TOWER, HIGH)
    assert asked(second) == (BRIDGE, "")
    assert second.outcome.status == "no_answer"


def test_a_second_turn_has_read_what_the_conversation_holds(monitor: InMemoryMonitor) -> None:
    agent: Any = create_agent(
        Script(lines=[calls("retrieve", query="tower"), HIGH, OPENED]),
        [retrieve],
        checkpointer=InMemorySaver(),
    )
    thread = {"configurable": {"thread_id": "1"}}
    agent.invoke({"messages": [HumanMessage(TOWER)]}, config(monitor, **thread))
    agent.invoke({"messages": [HumanMessage(BRIDGE)]}, config(monitor, **thread))

    second = monitor.records(20)[1]
    assert asked(second) == (BRIDGE, OPENED)
    assert texts(second) == FACTS[:2]


class State(TypedDict):
    question: str
    documents: list[Document]
    grade: str
    final_answer: str


def graph(*nodes: Any, **options: Any) -> Any:
    builder = StateGraph(State)
    builder.add_sequence(list(nodes))
    builder.add_edge(START, nodes[0].__name__)
    builder.add_edge(nodes[-1].__name__, END)
    return builder.compile(**options)


def test_the_answer_of_a_state_is_not_what_a_grader_said_after_it(monitor: InMemoryMonitor) -> None:
    model = Script(rules={"Grade": "yes", TOWER: HIGH})

    def find(state: State) -> dict[str, object]:
        return {"documents": Shelf(documents=documents(*FACTS[:2])).invoke(state["question"])}

    def answer(state: State) -> dict[str, object]:
        prompt = f"{joined(state['documents'])}\n{state['question']}"
        return {"final_answer": str(model.invoke(prompt).content)}

    def grade(state: State) -> dict[str, object]:
        return {"grade": str(model.invoke(f"Grade this: {state['final_answer']}").content)}

    graph(find, answer, grade).invoke({"question": TOWER}, config(monitor))

    (record,) = monitor.records(20)
    assert asked(record) == (TOWER, HIGH)
    assert texts(record) == FACTS[:2]


def test_documents_that_a_command_puts_into_the_state_were_read(monitor: InMemoryMonitor) -> None:
    def find(state: State) -> Command[str]:
        return Command(update={"documents": documents(*FACTS[:2])})

    def answer(state: State) -> dict[str, object]:
        prompt = f"{state['documents'][0].page_content}\n{state['question']}"
        return {"final_answer": str(Script(lines=[HIGH]).invoke(prompt).content)}

    graph(find, answer).invoke({"question": TOWER}, config(monitor))

    (record,) = monitor.records(20)
    assert texts(record) == FACTS[:1]
    assert record.outcome.status == "evaluated"


def waiting(monitor: InMemoryMonitor) -> tuple[Any, Any]:
    def find(state: State) -> dict[str, object]:
        return {"documents": documents(*FACTS[:2])}

    def approve(state: State) -> dict[str, object]:
        return {"grade": interrupt("May I?")}

    def answer(state: State) -> dict[str, object]:
        prompt = f"{joined(state['documents'])}\n{state['question']}"
        return {"final_answer": str(Script(lines=[HIGH]).invoke(prompt).content)}

    made = graph(find, approve, answer, checkpointer=InMemorySaver())
    return made, config(monitor, configurable={"thread_id": "1"})


@every_way
def test_a_graph_that_goes_on_after_an_interrupt_is_one_record_with_the_users_question(
    way: Way, monitor: InMemoryMonitor
) -> None:
    made, options = waiting(monitor)
    way(made, {"question": TOWER}, options)
    way(made, Command(resume="yes"), options)

    first, second = monitor.records(20)
    assert first.outcome.status == "interrupted"
    assert asked(second) == (TOWER, HIGH)
    assert texts(second) == FACTS[:2]
    assert second.outcome.status == "evaluated"


def test_a_function_that_resumes_its_graph_itself_is_evaluated(monitor: InMemoryMonitor) -> None:
    made, options = waiting(monitor)

    def both(question: str) -> str:
        thread = {"configurable": options["configurable"]}
        made.invoke({"question": question}, thread)
        return str(made.invoke(Command(resume="yes"), thread)["final_answer"])

    RunnableLambda(both).invoke(TOWER, config(monitor))

    (record,) = monitor.records(20)
    assert asked(record) == (TOWER, HIGH)
    assert record.outcome.status == "evaluated"


def test_what_a_rewriter_asked_the_retriever_stands_beside_the_question(
    monitor: InMemoryMonitor,
) -> None:
    answering = ChatPromptTemplate.from_messages([("human", "{context}\n{input}")])
    stuff = create_stuff_documents_chain(Script(lines=[HIGH]), answering)
    create_retrieval_chain(history_aware(), stuff).invoke(HISTORY, config(monitor))

    (record,) = monitor.records(20)
    assert asked(record) == (TOWER, HIGH)
    assert record.job.rewritten == "height of the tower"
    root = next(span for span in monitor.spans() if span.parent is None)
    assert (root.attributes or {})["claimspan.query.rewritten"] == "height of the tower"


# --- what happens after the call, or beside it ---------------------------------------------------


def test_what_the_application_changes_after_the_call_changes_no_record(
    monitor: InMemoryMonitor,
) -> None:
    prompt = ChatPromptTemplate.from_messages(
        [MessagesPlaceholder("chat_history"), ("human", "{context}\n{input}")]
    )
    stuff = create_stuff_documents_chain(Script(lines=[HIGH]), prompt)
    chain = create_retrieval_chain(Shelf(documents=documents(*FACTS[:2])), stuff)
    given: dict[str, Any] = {"input": TOWER, "chat_history": []}
    result = chain.invoke(given, config(monitor))
    for document in result["context"]:
        document.page_content = document.page_content[:30]
    result["context"].pop()
    given["chat_history"].append(HumanMessage(BRIDGE))
    given["input"] = BRIDGE
    result["answer"] = "shortened"

    (record,) = monitor.records(20)
    assert asked(record) == (TOWER, HIGH)
    assert texts(record) == FACTS[:2]


def test_a_history_that_grows_after_the_call_does_not_change_the_question(
    monitor: InMemoryMonitor,
) -> None:
    agent: Any = create_agent(Script(lines=[calls("retrieve", query="tower"), HIGH]), [retrieve])
    history: list[Any] = [HumanMessage(TOWER)]
    result = agent.invoke({"messages": history}, config(monitor))
    history += [AIMessage(HIGH), HumanMessage(BRIDGE)]
    result["messages"].append(HumanMessage(BRIDGE))

    (record,) = monitor.records(20)
    assert asked(record) == (TOWER, HIGH)


def test_a_model_that_runs_on_in_the_background_leaves_the_answer_whole(
    monitor: InMemoryMonitor,
) -> None:
    go_on, chain = threading.Event(), rag()
    title = Script(lines=["A title"], before=lambda: go_on.wait(10))
    threads: list[threading.Thread] = []

    def answer(question: str, config: Any) -> str:
        said = str(chain.invoke(question, config))
        thread = threading.Thread(target=title.invoke, args=("Name this chat", config))
        thread.start()
        threads.append(thread)
        return said

    RunnableLambda(answer).invoke(TOWER, config(monitor))
    (record,) = monitor.records(20)
    go_on.set()
    threads[0].join()

    assert asked(record) == (TOWER, HIGH)
    assert record.outcome.status == "evaluated"


def test_a_chain_that_returns_none_has_no_answer(monitor: InMemoryMonitor) -> None:
    def quiet(text: str) -> None:
        return None

    (rag() | RunnableLambda(quiet)).invoke(TOWER, config(monitor))

    (record,) = monitor.records(20)
    assert record.outcome.status == "no_answer"


def test_events_that_nobody_reads_to_the_end_are_an_abandoned_stream(
    monitor: InMemoryMonitor,
) -> None:
    async def read() -> None:
        events = rag().astream_events(TOWER, config(monitor), version="v2")
        async for event in events:
            if event["event"] == "on_chat_model_stream":
                break
        await events.aclose()

    asyncio.run(read())

    (record,) = monitor.records(20)
    assert record.outcome.status == "abandoned"


def test_of_a_thousand_chunks_those_in_the_prompt_are_judged(monitor: InMemoryMonitor) -> None:
    many = documents(
        *(f"Fact number {n}: house {n} of the long street has {n} windows." for n in range(1000))
    )
    chain = rag(found=Shelf(documents=many) | (lambda found: found[-3:]))
    chain.invoke(TOWER, config(monitor))

    (record,) = monitor.records(20)
    assert texts(record) == [each.page_content for each in many[-3:]]
