"""What LangChain's pipelines do beside answering is no query, such as building an index."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# langgraph leaves its generics open.

from collections.abc import Callable, Iterator
from typing import Any, TypedDict

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.indexing import InMemoryRecordManager, index
from langchain_core.output_parsers import CommaSeparatedListOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import CharacterTextSplitter
from langgraph.graph import END, START, StateGraph

import claimspan_langchain
from claimspan.testing import ScriptedJudge
from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import attached, no_record, read
from lc_buildings import Way, documents, every_way, joined
from lc_pipelines import Script, Shelf


@pytest.fixture
def judge() -> ScriptedJudge:
    return ScriptedJudge()


@pytest.fixture
def monitor(judge: ScriptedJudge) -> Iterator[InMemoryMonitor]:
    with attached(claimspan_langchain.instrument, judge) as made:
        yield made


def store() -> InMemoryVectorStore:
    return InMemoryVectorStore(DeterministicFakeEmbedding(size=4))


def split(found: list[Document]) -> list[Document]:
    return CharacterTextSplitter(separator=" ", chunk_size=60, chunk_overlap=0).split_documents(
        found
    )


def load(path: str) -> list[Document]:
    return documents(*FACTS, source=path)


def indexing(added: Callable[[list[Document]], object]) -> Any:
    return RunnableLambda(load) | RunnableLambda(split) | RunnableLambda(added)


def counted(found: list[Document]) -> str:
    return f"Indexed {len(store().add_documents(found))} documents."


def situated(found: list[Document]) -> list[str]:
    """Put words of a model before each chunk, as contextual retrieval does."""
    model = Script(lines=["Of buildings."] * len(found))
    told = [f"{model.invoke(f'Situate: {d.page_content}').content} {d.page_content}" for d in found]
    return store().add_documents(documents(*told))


class Loaded(TypedDict):
    path: str
    found: list[Document]
    ids: list[str]
    status: str


def ingesting(**more: object) -> Any:
    def read(state: Loaded) -> dict[str, object]:
        return {"found": split(load(state["path"]))}

    def add(state: Loaded) -> dict[str, object]:
        return {"ids": store().add_documents(state["found"]), **more}

    graph = StateGraph(Loaded)
    graph.add_node("load", read)
    graph.add_node("add", add)
    graph.add_edge(START, "load")
    graph.add_edge("load", "add")
    graph.add_edge("add", END)
    return graph.compile()


BUILDING: dict[str, tuple[Callable[[], Any], object]] = {
    "ids": (lambda: indexing(lambda found: store().add_documents(found)), "a.txt"),
    "nothing": (lambda: indexing(lambda found: None), "a.txt"),
    "a number": (lambda: indexing(len), "a.txt"),
    "a sentence": (lambda: indexing(counted), "a.txt"),
    "a dict": (lambda: indexing(lambda found: {"ids": store().add_documents(found)}), "a.txt"),
    "documents": (lambda: RunnableLambda(load) | RunnableLambda(split), "a.txt"),
    "a graph": (ingesting, {"path": "a.txt"}),
    "a graph with a status": (lambda: ingesting(status="done"), {"path": "a.txt"}),
}


@every_way
@pytest.mark.parametrize("name", BUILDING)
def test_building_an_index_is_no_record_and_its_corpus_is_on_no_span(
    monitor: InMemoryMonitor, judge: ScriptedJudge, name: str, way: Way
) -> None:
    build, given = BUILDING[name]
    way(build(), given, {})

    no_record(monitor, judge)
    assert not any(text[:30] in str(span.attributes) for span in monitor.spans() for text in FACTS)


def test_an_index_whose_chunks_a_model_situates_is_no_record(
    monitor: InMemoryMonitor, judge: ScriptedJudge
) -> None:
    indexing(situated).invoke("a.txt")

    no_record(monitor, judge)


def test_what_a_store_is_told_by_itself_is_not_even_seen(monitor: InMemoryMonitor) -> None:
    kept = InMemoryRecordManager(namespace="buildings")
    kept.create_schema()
    index(load("a.txt"), kept, store(), cleanup=None, key_encoder="sha256")
    store().add_documents(load("a.txt"))

    assert monitor.records() == []
    assert (monitor.stats.produced, monitor.stats.unasked) == (0, 0)


def test_what_was_no_record_says_so_on_its_root(monitor: InMemoryMonitor) -> None:
    indexing(counted).invoke("a.txt")

    (root,) = monitor.spans()
    assert str((root.attributes or {})["claimspan.evaluation.reason"]).startswith("no question")


# --- what is a query all the same -----------------------------------------------------------------


def asking(model: Any, found: list[Document] | None = None) -> Any:
    shelf = Shelf(documents=documents(*FACTS[:2]) if found is None else found)
    inputs = {"context": shelf | joined, "question": RunnablePassthrough[str]()}
    return inputs | ChatPromptTemplate.from_template("{context}\n{question}") | model


@every_way
def test_a_model_that_says_nothing_gives_no_answer(monitor: InMemoryMonitor, way: Way) -> None:
    way(asking(Script(lines=[""])) | StrOutputParser(), TOWER, {})

    assert read(monitor.only_record()) == (TOWER, "", FACTS[:2], "no_answer")


def test_a_model_that_no_callback_hears_is_judged(monitor: InMemoryMonitor) -> None:
    asking(RunnableLambda(lambda prompt: HIGH)).invoke(TOWER)

    assert read(monitor.only_record()) == (TOWER, HIGH, FACTS[:2], "evaluated")


def test_a_list_of_codes_that_a_model_has_said_is_an_answer(monitor: InMemoryMonitor) -> None:
    (asking(Script(lines=["A1, B2"])) | CommaSeparatedListOutputParser()).invoke(TOWER)

    assert read(monitor.only_record()) == (TOWER, "A1\nB2", FACTS[:2], "evaluated")


def test_a_search_that_finds_nothing_is_a_question_without_context(
    monitor: InMemoryMonitor,
) -> None:
    asking(RunnableLambda(lambda prompt: None), []).invoke(TOWER)

    assert read(monitor.only_record()) == (TOWER, "", [], "no_context")


def test_a_chain_that_fails_has_failed_whatever_it_was_to_do(monitor: InMemoryMonitor) -> None:
    def broken(found: list[Document]) -> object:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        indexing(broken).invoke("a.txt")

    assert monitor.only_record().status == "app_error"
