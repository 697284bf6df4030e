"""The chunks of a record are those that stood in the prompt of its answer, in every framework."""

# No postponed annotations: Haystack before 2.24 takes the types of a component as they stand.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUntypedFunctionDecorator=false
# The frameworks leave some of their generics open.

import html
import json
from collections.abc import Callable, Iterator
from typing import Any, TypedDict

import pytest
from haystack import Document as HaystackDocument
from haystack import Pipeline, component
from haystack.components.builders import ChatPromptBuilder
from langchain_classic.chains.combine_documents import create_stuff_documents_chain
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough
from langgraph.graph import END, START, StateGraph
from llama_index.core.schema import NodeWithScore
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step

import claimspan_haystack
import claimspan_llama_index
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing.testing import CapturedRecord, InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import texts
from hs_pipelines import Echo as HaystackEcho
from lc_buildings import PROMPT, documents, joined
from lc_pipelines import Shelf
from li_pipelines import Echo as LlamaEcho
from li_pipelines import Shelf as LlamaShelf


def says(*answers: str) -> GenericFakeChatModel:
    return GenericFakeChatModel(messages=iter([AIMessage(answer) for answer in answers]))


def chain(
    form: Callable[[list[Document]], str], found: list[Document] | None = None
) -> Runnable[str, str]:
    shelf = Shelf(documents=found or documents(*FACTS))
    inputs = {"context": shelf | RunnableLambda(form), "question": RunnablePassthrough[str]()}
    return inputs | PROMPT | says(HIGH) | StrOutputParser()


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with InMemoryMonitor() as made:
        yield made


def asked(monitor: InMemoryMonitor, pipeline: Runnable[Any, Any], given: object) -> CapturedRecord:
    pipeline.invoke(given, {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    (record,) = monitor.records(20)
    return record


def source(monitor: InMemoryMonitor) -> object:
    (root,) = [span for span in monitor.spans() if span.parent is None]
    return (root.attributes or {}).get("claimspan.context.source")


# --- LangChain ----------------------------------------------------------------------------------


def test_a_chunk_that_a_chain_drops_before_its_prompt_is_not_judged(
    monitor: InMemoryMonitor,
) -> None:
    record = asked(monitor, chain(lambda found: joined(found[1:2])), TOWER)

    assert texts(record) == FACTS[1:2]
    assert source(monitor) == "prompt"


def as_json(found: list[Document]) -> str:
    return json.dumps([each.page_content for each in found])


def as_html(found: list[Document]) -> str:
    return "".join(f"<doc>{html.escape(each.page_content)}</doc>" for each in found)


def on_one_line(found: list[Document]) -> str:
    return "\n".join(" ".join(each.page_content.split("\n")) for each in found)


def quoted(found: list[Document]) -> str:
    return "\n".join(f"> {line}" for each in found for line in each.page_content.split("\n"))


@pytest.mark.parametrize("form", [joined, as_json, as_html, on_one_line, quoted])
def test_a_chunk_counts_in_whatever_form_the_prompt_has_it(
    form: Callable[[list[Document]], str], monitor: InMemoryMonitor
) -> None:
    passages = [f'{FACTS[0]}\nSo says "Le Monde" & others.\n{FACTS[1]}', FACTS[2]]
    record = asked(monitor, chain(form, documents(*passages)), TOWER)

    assert texts(record) == passages
    assert source(monitor) == "prompt"


def test_of_a_chunk_that_was_cut_what_was_left_counts(monitor: InMemoryMonitor) -> None:
    def form(found: list[Document]) -> str:
        return joined([Document(page_content=each.page_content[:60]) for each in found])

    record = asked(monitor, chain(form), TOWER)

    assert texts(record) == [fact[:60].rstrip() for fact in FACTS]


def test_overlapping_chunks_do_not_prove_each_other(monitor: InMemoryMonitor) -> None:
    overlapping = [" ".join(FACTS[:2]), " ".join(FACTS[1:])]
    found = documents(*overlapping)
    record = asked(monitor, chain(lambda all_: joined(all_[:1]), found), TOWER)

    assert texts(record) == overlapping[:1]


def test_the_last_of_many_chunks_is_judged_where_the_prompt_has_it(
    monitor: InMemoryMonitor,
) -> None:
    many = [f"Entry {n}: the order with the number {n} was shipped on time." for n in range(120)]
    record = asked(monitor, chain(lambda all_: joined(all_[-3:]), documents(*many)), TOWER)

    assert texts(record) == many[-3:]


@pytest.mark.parametrize("letter", ["x", "ж", "文"])
def test_a_long_prompt_is_searched_to_its_end(letter: str, monitor: InMemoryMonitor) -> None:
    def far_apart(found: list[Document]) -> str:
        return f"{found[0].page_content}\n{letter * 150_000}\n{found[2].page_content}"

    record = asked(monitor, chain(far_apart), TOWER)

    assert texts(record) == [FACTS[0], FACTS[2]]


def test_a_prompt_that_is_too_long_to_be_searched_leaves_the_last_list_that_was_handed_on(
    monitor: InMemoryMonitor,
) -> None:
    record = asked(monitor, chain(lambda found: joined(found[:1]) + "x" * 300_000), TOWER)

    assert texts(record) == FACTS
    assert source(monitor) == "last_documents"


def test_documents_that_a_chain_is_called_with_are_its_context(monitor: InMemoryMonitor) -> None:
    stuff = create_stuff_documents_chain(says(HIGH), PROMPT)
    record = asked(monitor, stuff, {"context": documents(FACTS[0]), "question": TOWER})

    assert texts(record) == FACTS[:1]
    assert record.outcome.status == "evaluated"


def test_a_context_that_is_none_of_the_chunks_is_what_the_model_read(
    monitor: InMemoryMonitor,
) -> None:
    record = asked(monitor, chain(lambda found: "a summary of all"), TOWER)

    assert texts(record) == ["a summary of all"]
    assert record.job.record.chunks[0].metadata == {"claimspan.chunk.source": "prompt"}
    assert source(monitor) == "prompt"


def test_every_part_of_a_map_reduce_was_read(monitor: InMemoryMonitor) -> None:
    model = says("A tower of 330 metres stands there.", "A bridge was opened in 2004.", HIGH)

    def answer(found: list[Document]) -> str:
        parts = [str(model.invoke(f"Sum up: {each.page_content}").content) for each in found[:2]]
        return str(model.invoke(f"{' '.join(parts)}\nQ: {TOWER}").content)

    record = asked(monitor, Shelf(documents=documents(*FACTS)) | RunnableLambda(answer), TOWER)

    assert texts(record) == FACTS[:2]


def test_what_a_model_made_of_documents_is_followed_to_them(monitor: InMemoryMonitor) -> None:
    """The answering model has read a summary alone, and its words are no evidence."""
    summary = "A tower of 330 metres stands in Paris, and there is a bridge at Millau."
    model = says(summary, HIGH)

    def answer(found: list[Document]) -> str:
        each = "\n".join(document.page_content for document in found[:2])
        short = model.invoke(f"Sum up:\n{each}").content
        return str(model.invoke(f"Context:\n{short}\n\nQuestion: {TOWER}").content)

    record = asked(monitor, Shelf(documents=documents(*FACTS)) | RunnableLambda(answer), TOWER)

    assert texts(record) == FACTS[:2]


# --- LangGraph ----------------------------------------------------------------------------------


class State(TypedDict):
    question: str
    docs: list[Document]
    answer: str


def corrective() -> Any:
    """Corrective RAG as LangGraph's tutorial builds it: grade, search the web, answer, grade."""
    grader = says("no", "no", "yes")
    web = Document(page_content="A newspaper of today: the tower was measured, and is 330 metres.")

    def retrieve(state: State) -> dict[str, object]:
        return {"docs": Shelf(documents=documents(*FACTS[:2])).invoke(state["question"])}

    def grade(state: State) -> dict[str, object]:
        kept = [
            each
            for each in state["docs"]
            if grader.invoke(f"Is this relevant? {each.page_content}").content == "yes"
        ]
        return {"docs": kept}

    def search(state: State) -> dict[str, object]:
        return {"docs": [*state["docs"], web]}

    def generate(state: State) -> dict[str, object]:
        prompt = f"{joined(state['docs'])}\n{state['question']}"
        return {"answer": str(says(HIGH).invoke(prompt).content)}

    def check(state: State) -> dict[str, object]:
        grader.invoke(f"Is this an answer? {state['answer']}")
        return {}

    graph = StateGraph(State)
    graph.add_sequence([retrieve, grade, search, generate, check])
    graph.add_edge(START, "retrieve")
    graph.add_edge("check", END)
    return graph.compile()


def test_what_a_grader_drops_is_not_judged_and_what_a_search_adds_is(
    monitor: InMemoryMonitor,
) -> None:
    record = asked(monitor, corrective(), {"question": TOWER})

    assert [text[:11] for text in texts(record)] == ["A newspaper"]
    assert record.record.response == HIGH


# --- LlamaIndex and Haystack --------------------------------------------------------------------


class Found(Event):
    nodes: list[NodeWithScore]


class Filtering(Workflow):
    """Retrieves, keeps one node by itself, and asks the model."""

    @step
    async def retrieve(self, event: StartEvent) -> Found:
        return Found(nodes=await LlamaShelf().aretrieve(event.query))

    @step
    async def answer(self, event: Found) -> StopEvent:
        text = event.nodes[1].node.get_content()
        return StopEvent(result=str(await LlamaEcho().acomplete(f"{text}\nQuery: {TOWER}")))


async def test_a_node_that_a_workflow_drops_by_itself_is_not_judged(
    monitor: InMemoryMonitor,
) -> None:
    detach = claimspan_llama_index.instrument(monitor)
    try:
        await Filtering().run(query=TOWER)
    finally:
        detach()
    (record,) = monitor.records(20)

    assert texts(record) == [f"Something else about {TOWER}"]
    assert source(monitor) == "prompt"


@component
class KeepOne:
    """A component of the user's own, which drops documents and hands on texts."""

    @component.output_types(text=str)
    def run(self, documents: list[HaystackDocument]) -> dict[str, Any]:
        return {"text": str(documents[-1].content)}


@component
class HaystackShelf:
    @component.output_types(documents=list[HaystackDocument])
    def run(self, query: str) -> dict[str, Any]:
        return {"documents": [HaystackDocument(content=fact) for fact in FACTS]}


def test_a_document_that_a_component_drops_is_not_judged(monitor: InMemoryMonitor) -> None:
    pipeline = Pipeline()
    pipeline.add_component("shelf", HaystackShelf())
    pipeline.add_component("keep", KeepOne())
    builder = ChatPromptBuilder(
        template="{% message role='user' %}{{ text }}\n{{ question }}{% endmessage %}"
    )
    pipeline.add_component("prompt", builder)
    pipeline.add_component("llm", HaystackEcho())
    pipeline.connect("shelf.documents", "keep.documents")
    pipeline.connect("keep.text", "prompt.text")
    pipeline.connect("prompt.prompt", "llm.messages")
    undo = claimspan_haystack.instrument(monitor)
    try:
        pipeline.run({"shelf": {"query": TOWER}, "prompt": {"question": TOWER}})
    finally:
        undo()
    (record,) = monitor.records(20)

    assert texts(record) == FACTS[2:]


def shortened(text: str) -> str:
    return f"{text[:50]} [...] {text[-50:]}"


def begun(text: str) -> str:
    return f"{text[:30].rstrip()}..."


@pytest.mark.parametrize("short", [shortened, begun])
def test_of_chunks_that_were_shortened_what_was_left_counts(
    monitor: InMemoryMonitor, short: Callable[[str], str]
) -> None:
    whole = [" ".join(FACTS), " ".join(FACTS[::-1])]
    record = asked(
        monitor,
        chain(lambda found: "\n\n".join(short(d.page_content) for d in found), documents(*whole)),
        TOWER,
    )

    assert texts(record) == [short(text).removesuffix("...") for text in whole]
    assert record.record.chunks[0].id == "d0"
