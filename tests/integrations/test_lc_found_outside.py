"""Shapes of LangChain's pipelines that somebody tried who had not seen the code."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# The frameworks leave some of their generics open.

import operator
from collections.abc import Callable, Iterator
from typing import Annotated, Any, TypedDict
from xml.sax.saxutils import escape

import pytest
from langchain.agents import create_agent
from langchain_classic.evaluation import load_evaluator
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.tools import tool
from langgraph.graph import END, START, StateGraph

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing.testing import CapturedRecord, InMemoryMonitor

from captured import no_record, texts
from lc_buildings import PROMPT, documents, joined
from lc_pipelines import Script, Shelf, calls

QUERY = "How long is the Drava?"
ANSWER = "The Drava is 725 km long."

FACTS = [
    "The Drava is 725 km long and rises in Italy, close to the border with Austria.",
    "The Mura is a tributary of the Drava, and 464 km long from its source to its mouth.",
]


def chain(found: list[Document], form: Callable[[list[Document]], str] = joined) -> Any:
    inputs = {
        "context": Shelf(documents=found) | RunnableLambda(form),
        "question": RunnablePassthrough[str](),
    }
    return inputs | PROMPT | Script(lines=[ANSWER]) | StrOutputParser()


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with InMemoryMonitor() as made:
        yield made


def run(monitor: InMemoryMonitor, pipeline: Any, given: object) -> Any:
    return pipeline.invoke(given, {"callbacks": [ClaimspanCallbackHandler(monitor)]})


def one(monitor: InMemoryMonitor, pipeline: Any, given: object = QUERY) -> CapturedRecord:
    run(monitor, pipeline, given)
    (record,) = monitor.records(20)
    return record


def said(record: CapturedRecord) -> tuple[str, str, str]:
    return record.job.record.query, record.job.record.response, record.outcome.status.value


def test_a_model_that_is_called_by_itself_is_asked_by_its_last_human_message(
    monitor: InMemoryMonitor,
) -> None:
    told = [SystemMessage(f"Answer from this context:\n{FACTS[0]}"), HumanMessage(QUERY)]
    record = one(monitor, Script(lines=[ANSWER]), told)

    assert said(record) == (QUERY, ANSWER, "evaluated")
    assert texts(record) == FACTS[:1]


def test_what_a_threshold_drops_to_nothing_was_not_read(monitor: InMemoryMonitor) -> None:
    record = one(monitor, chain(documents(*FACTS), lambda found: joined(found[:0])))

    assert record.outcome.status == "no_context"
    assert texts(record) == []


@pytest.mark.parametrize(
    "form",
    [
        pytest.param(lambda text: escape(text, {"'": "&#39;", '"': "&quot;"}), id="xml"),
        pytest.param(lambda text: text.upper(), id="upper"),
        pytest.param(lambda text: text.replace("km", "**km**"), id="markdown"),
        pytest.param(lambda text: "> " + text.replace("\n", "\n> "), id="quoted"),
        pytest.param(lambda text: text.replace('"', "\N{LEFT DOUBLE QUOTATION MARK}"), id="quotes"),
    ],
)
def test_a_chunk_with_other_signs_was_read_beside_one_that_stands_as_it_is(
    form: Callable[[str], str], monitor: InMemoryMonitor
) -> None:
    marked = 'The "Drava" is < 800 km long & rises in Italy.\nIt ends in the Danube near Osijek.'
    found = documents(marked, FACTS[1])
    record = one(monitor, chain(found, lambda d: f"{form(d[0].page_content)}\n\n{joined(d[1:])}"))

    assert texts(record) == [marked, FACTS[1]]


def test_the_window_around_a_sentence_is_what_was_read(monitor: InMemoryMonitor) -> None:
    window = f"Rivers of Carinthia. {FACTS[0]} The source is near Toblach."
    found = documents(FACTS[0], window=window)
    record = one(monitor, chain(found, lambda d: str(d[0].metadata["window"])))

    assert texts(record) == [window]


def test_an_evaluator_is_no_query(monitor: InMemoryMonitor) -> None:
    evaluator: Any = load_evaluator("qa", llm=Script(lines=["GRADE: CORRECT"]))  # type: ignore[arg-type]  # of any model
    evaluator.evaluate_strings(
        input=QUERY,
        prediction=ANSWER,
        reference=FACTS[0],
        callbacks=[ClaimspanCallbackHandler(monitor)],
    )

    no_record(monitor)


def test_two_models_side_by_side_are_two_records(monitor: InMemoryMonitor) -> None:
    other = "It has 464 km."
    second = (
        {
            "context": Shelf(documents=documents(FACTS[1])) | joined,
            "question": RunnablePassthrough[str](),
        }
        | PROMPT
        | Script(lines=[other])
        | StrOutputParser()
    )
    run(monitor, RunnableParallel(a=chain(documents(FACTS[0])), b=second), QUERY)

    judged = [each for each in monitor.records(20) if each.outcome.status == "evaluated"]
    assert sorted((said(each)[1], *texts(each)) for each in judged) == sorted(
        [(ANSWER, FACTS[0]), (other, FACTS[1])]
    )


def test_a_tool_that_answers_by_itself_gives_the_answer(monitor: InMemoryMonitor) -> None:
    answering = chain(documents(FACTS[0]))

    @tool(return_direct=True)
    def ask(query: str) -> str:
        """Ask the library."""
        return str(answering.invoke(QUERY))

    agent: Any = create_agent(Script(lines=[calls("ask", query=QUERY)]), [ask])
    record = one(monitor, agent, {"messages": [HumanMessage(QUERY)]})

    assert said(record) == (QUERY, ANSWER, "evaluated")
    assert texts(record) == FACTS[:1]


def test_failures_of_tools_are_no_evidence(monitor: InMemoryMonitor) -> None:
    @tool
    def search(query: str) -> str:
        """Search."""
        return FACTS[0]

    agent: Any = create_agent(
        Script(lines=[calls("unknown", query=QUERY), "I could not find it."]), [search]
    )
    record = one(monitor, agent, {"messages": [HumanMessage(QUERY)]})

    assert record.outcome.status == "no_context"


class Messages(TypedDict):
    messages: Annotated[list[AnyMessage], operator.add]


def graph(*nodes: Any) -> Any:
    builder = StateGraph(Messages)
    builder.add_sequence(list(nodes))
    builder.add_edge(START, nodes[0].__name__)
    builder.add_edge(nodes[-1].__name__, END)
    return builder.compile()


def test_a_critique_that_an_agent_writes_as_a_human_is_not_the_question(
    monitor: InMemoryMonitor,
) -> None:
    model = Script(lines=["The Drava is 700 km long, I think.", "Check the number again.", ANSWER])
    shelf = Shelf(documents=documents(FACTS[0]))

    def generate(state: Messages) -> dict[str, object]:
        found = joined(shelf.invoke(QUERY))
        return {"messages": [model.invoke([SystemMessage(found), *state["messages"]])]}

    def reflect(state: Messages) -> dict[str, object]:
        critique = model.invoke([SystemMessage("Criticise."), *state["messages"]])
        return {"messages": [HumanMessage(str(critique.content))]}

    def again(state: Messages) -> dict[str, object]:
        return generate(state)

    record = one(monitor, graph(generate, reflect, again), {"messages": [HumanMessage(QUERY)]})
    assert said(record) == (QUERY, ANSWER, "evaluated")
    assert texts(record) == FACTS[:1]


def test_the_report_of_a_worker_is_the_answer_though_it_is_a_human_message(
    monitor: InMemoryMonitor,
) -> None:
    answering = chain(documents(FACTS[0]))

    def research(state: Messages) -> dict[str, object]:
        return {"messages": [HumanMessage(str(answering.invoke(QUERY)), name="researcher")]}

    record = one(monitor, graph(research), {"messages": [HumanMessage(QUERY)]})
    assert said(record) == (QUERY, ANSWER, "evaluated")


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(lambda text: (text, documents(*FACTS)), id="with documents"),
        pytest.param(lambda text: (text, ["rivers.txt"]), id="with sources"),
        pytest.param(lambda text: {"status": "ok", "data": {"answer": text}}, id="nested"),
        pytest.param(
            lambda text: {"messages": [AIMessage(text), AIMessage("Was this helpful?")]},
            id="with a fixed message",
        ),
    ],
)
def test_the_answer_is_found_in_the_shapes_of_outputs(
    shape: Callable[[str], object], monitor: InMemoryMonitor
) -> None:
    record = one(monitor, chain(documents(FACTS[0])) | RunnableLambda(shape))

    assert said(record) == (QUERY, ANSWER, "evaluated")


@pytest.mark.parametrize(
    "block_of",
    [
        lambda text: {"type": "search_result", "content": [{"type": "text", "text": text}]},
        lambda text: {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": text},
        },
        lambda text: {"type": "text-plain", "mime_type": "text/plain", "text": text},
    ],
    ids=["search result", "document", "plain text"],
)
def test_documents_in_blocks_of_their_own_kind_were_read(
    block_of: Callable[[str], dict[str, Any]], monitor: InMemoryMonitor
) -> None:
    picture = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo" * 300_000}

    def told(query: str) -> list[AnyMessage]:
        found = Shelf(documents=documents(*FACTS)).invoke(query)
        blocks: list[Any] = [block_of(each.page_content) for each in found]
        blocks += [{"type": "image", "source": picture}, {"type": "text", "text": query}]
        return [HumanMessage(content=blocks)]

    record = one(monitor, RunnableLambda(told) | Script(lines=[ANSWER]) | StrOutputParser())

    assert said(record) == (QUERY, ANSWER, "evaluated")
    assert texts(record) == FACTS
    assert record.job.context_source == "prompt"


def test_a_prompt_that_is_edited_after_the_call_is_known_as_it_was(
    monitor: InMemoryMonitor,
) -> None:
    prompt = SystemMessage(f"Context: {FACTS[0]}")

    def told(query: str) -> list[AnyMessage]:
        Shelf(documents=documents(*FACTS)).invoke(query)
        return [prompt, HumanMessage(query)]

    run(monitor, RunnableLambda(told) | Script(lines=[ANSWER]) | StrOutputParser(), QUERY)
    prompt.content = "changed"

    (record,) = monitor.records(20)
    assert texts(record) == FACTS[:1]


def test_messages_that_are_edited_after_the_call_leave_the_record_as_it_was(
    monitor: InMemoryMonitor,
) -> None:
    question = HumanMessage(QUERY)

    def told(state: Messages) -> list[AnyMessage]:
        return [SystemMessage(f"Context: {FACTS[0]}"), *state["messages"]]

    answer = run(monitor, RunnableLambda(told) | Script(lines=[ANSWER]), {"messages": [question]})
    answer.content += "\n\nSources: rivers.txt"
    question.content = "changed"

    (record,) = monitor.records(20)
    assert said(record) == (QUERY, ANSWER, "evaluated")
