"""One answer of LangChain's or LangGraph's pipelines is one record, and no other call is one."""

# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false
# The frameworks leave some of their generics open.

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.tools.retriever import create_retriever_tool
from opentelemetry.sdk.trace import ReadableSpan

from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import no_record, texts
from lc_buildings import (
    BRIDGE,
    HISTORY,
    OPENED,
    Way,
    asked,
    config,
    documents,
    every_way,
    history_aware,
    joined,
    rag,
)
from lc_pipelines import Script, Shelf


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with InMemoryMonitor() as made:
        yield made


def kind(span: ReadableSpan) -> object:
    return (span.attributes or {}).get("openinference.span.kind")


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
def test_what_only_retrieves_is_no_record(
    pipeline: Callable[[], Any], given: object, monitor: InMemoryMonitor
) -> None:
    pipeline().invoke(given, config(monitor))

    no_record(monitor)


def test_an_answer_that_was_edited_and_has_its_passages_below_is_judged(
    monitor: InMemoryMonitor,
) -> None:
    def show(said: str) -> str:
        shown = "\n".join(f"- {fact}" for fact in FACTS[:2])
        return f"{said.removesuffix('.')} (tower.pdf).\n\nSources:\n{shown}"

    (rag() | RunnableLambda(show)).invoke(TOWER, config(monitor))

    (record,) = monitor.records(20)
    assert record.outcome.status == "evaluated"
    assert asked(record) == (TOWER, show(HIGH))


def test_a_chain_that_returns_none_has_no_answer(monitor: InMemoryMonitor) -> None:
    def quiet(text: str) -> None:
        return None

    (rag() | RunnableLambda(quiet)).invoke(TOWER, config(monitor))

    (record,) = monitor.records(20)
    assert record.outcome.status == "no_answer"
