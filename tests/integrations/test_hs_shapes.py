"""Query, chunks, context and response in Haystack pipelines of every shape."""

# No postponed annotations: Haystack before 2.24 takes the types of a component as they stand.

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from haystack import Document, Pipeline, SuperComponent
from haystack.components.agents import Agent
from haystack.components.builders import AnswerBuilder
from haystack.components.joiners import DocumentJoiner
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.dataclasses import ChatMessage
from haystack.dataclasses.breakpoints import Breakpoint
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.tools import ComponentTool
from opentelemetry.trace import StatusCode

import claimspan_haystack
from claimspan_tracing import Monitor
from claimspan_tracing.adapters import Key

from hs_components import Caller, CutOff, Embedder, Extractor, Oracle, VectorShelf, Wordsmith
from hs_pipelines import ASYNC_PIPELINE, Echo, Shelf, prompt, rag_pipeline
from pipelines import AppError, Passage, Recipe, answer_to
from support import MonitorFactory, ScriptedJudge, Spans, attributes, ids

QUERY = "the question"
DATA: Final = {"shelf": {"query": QUERY}, "prompt": {"question": QUERY}}

TOOLS_HAVE_SPANS: Final = hasattr(Pipeline, "stream")
"""Whether tools have spans: since Haystack 3. Before, only documents in an agent's state show."""


@pytest.fixture
def judge() -> ScriptedJudge:
    return ScriptedJudge()


@pytest.fixture
def monitor(make_monitor: MonitorFactory, judge: ScriptedJudge) -> Iterator[Monitor]:
    monitor = make_monitor(judge=judge)
    undo = claimspan_haystack.instrument(monitor)
    yield monitor
    undo()


def found_ids(spans: Spans) -> list[list[object]]:
    """The ids of the documents on each retriever span, in order of their start."""
    retrievers = sorted(spans.of_kind("RETRIEVER"), key=lambda span: span.start_time or 0)
    return [
        [
            attributes(span)[f"retrieval.documents.{n}.document.id"]
            for n in range(int(str(attributes(span)["claimspan.chunks.recorded"])))
        ]
        for span in retrievers
    ]


def root(spans: Spans) -> tuple[object, object, object]:
    """Query, response and status."""
    found = attributes(spans.root)
    return found["input.value"], found["output.value"], found["claimspan.evaluation.status"]


# --- retrieved, read, answered ------------------------------------------------------------------


def test_a_real_store_with_a_real_retriever(
    monitor: Monitor, spans: Spans, judge: ScriptedJudge
) -> None:
    store = InMemoryDocumentStore()
    store.write_documents(
        [
            Document(id="paris", content="The capital of France is Paris.", meta={"page": 7}),
            Document(id="rome", content="The capital of Italy is Rome."),
            Document(id="bread", content="Bread is baked."),
        ]
    )
    pipeline = Pipeline(metadata={"name": "capitals"})
    pipeline.add_component("bm25", InMemoryBM25Retriever(store, top_k=2))
    pipeline.add_component("prompt", prompt())
    pipeline.add_component("llm", Echo(Recipe(answer="The capital of France is Paris.")))
    pipeline.add_component("builder", AnswerBuilder())
    pipeline.connect("bm25", "prompt.documents")
    pipeline.connect("prompt", "llm")
    pipeline.connect("llm.replies", "builder.replies")
    pipeline.connect("bm25", "builder.documents")
    query = "What is the capital of France?"

    out = pipeline.run(
        {"bm25": {"query": query}, "prompt": {"question": query}, "builder": {"query": query}}
    )
    assert monitor.flush()

    (answer,) = out["builder"]["answers"]
    assert root(spans) == (query, answer.data, "evaluated")
    assert attributes(spans.root)["gen_ai.workflow.name"] == "capitals"
    assert found_ids(spans) == [["paris", "rome"]]
    first = attributes(spans.one("RETRIEVER"))
    assert first["retrieval.documents.0.document.score"] == answer.documents[0].score
    assert '"page":7' in str(first["retrieval.documents.0.document.metadata"])
    assert judge.checked[0] == ("The capital of France is Paris.", "The capital of Italy is Rome.")


def test_the_generators_prompt_model_and_tokens(monitor: Monitor, spans: Spans) -> None:
    rag_pipeline().run(DATA)
    assert monitor.flush()

    generator = attributes(spans.one("LLM"))
    (message,) = json.loads(str(generator["input.value"]))["messages"]
    assert message["role"] == "user"
    assert message["content"].endswith(QUERY)
    assert generator["output.value"] == answer_to(QUERY)
    assert generator["gen_ai.request.model"] == "echo"
    assert generator["gen_ai.usage.input_tokens"] == 11
    assert generator["gen_ai.usage.output_tokens"] == 7


@pytest.mark.parametrize("top_k", [1, 0])
def test_what_a_cut_off_leaves_is_judged_and_what_was_found_is_kept(
    monitor: Monitor, spans: Spans, judge: ScriptedJudge, top_k: int
) -> None:
    pipeline = Pipeline()
    pipeline.add_component("shelf", Shelf())
    pipeline.add_component("cut", CutOff(top_k))
    pipeline.add_component("prompt", prompt())
    pipeline.add_component("llm", Echo())
    pipeline.connect("shelf", "cut")
    pipeline.connect("cut", "prompt.documents")
    pipeline.connect("prompt", "llm")

    pipeline.run(DATA)
    assert monitor.flush()

    assert attributes(spans.one("RETRIEVER"))["claimspan.chunks.count"] == 2
    if top_k:
        assert judge.checked[0] == (f"Answer to {QUERY}. More on {QUERY}",)
        assert attributes(spans.root)["claimspan.chunks.recorded"] == 1
    else:
        assert root(spans)[2] == "no_context"
        assert judge.checked == []


def test_the_documents_of_two_retrievers_that_are_joined(
    monitor: Monitor, spans: Spans, judge: ScriptedJudge
) -> None:
    pipeline = Pipeline()
    passages = [Passage("A third text", "third", 0.5), Passage("A fourth text", "fourth", 0.1)]
    pipeline.add_component("keywords", Shelf())
    pipeline.add_component("vectors", Shelf(Recipe(passages=passages)))
    pipeline.add_component("join", DocumentJoiner(top_k=3))
    pipeline.add_component("prompt", prompt())
    pipeline.add_component("llm", Echo())
    pipeline.connect("keywords", "join")
    pipeline.connect("vectors", "join")
    pipeline.connect("join", "prompt.documents")
    pipeline.connect("prompt", "llm")

    pipeline.run(
        {"keywords": {"query": QUERY}, "vectors": {"query": QUERY}, "prompt": {"question": QUERY}}
    )
    assert monitor.flush()

    assert [len(each) for each in found_ids(spans)] == [2, 2]
    assert root(spans) == (QUERY, answer_to(QUERY), "evaluated")
    read = judge.checked[0]
    assert len(read) == 3
    assert set(read) >= {"A third text", f"Answer to {QUERY}. More on {QUERY}"}


def test_components_whose_names_say_nothing(
    monitor: Monitor, spans: Spans, judge: ScriptedJudge
) -> None:
    pipeline = Pipeline()
    pipeline.add_component("a", Embedder())
    pipeline.add_component("b", VectorShelf())
    pipeline.add_component("c", Wordsmith())
    pipeline.add_component("d", Oracle())
    pipeline.connect("a.embedding", "b.query_embedding")
    pipeline.connect("b.nearest", "c.material")
    pipeline.connect("c.wording", "d.wording")

    pipeline.run({"a": {"text": "a rewritten question"}, "c": {"wish": QUERY}}, {"d"})
    assert monitor.flush()

    assert found_ids(spans)[0][0] == f"doc-{QUERY}"
    asked = attributes(spans.one("RETRIEVER"))["gen_ai.retrieval.query.text"]
    assert asked == "a rewritten question"
    assert judge.checked[0] == (f"Answer to {QUERY}. More on {QUERY}",)
    assert root(spans)[1:] == (answer_to(QUERY), "evaluated")


def test_the_users_question_and_the_retrievers_are_both_kept(
    monitor: Monitor, spans: Spans
) -> None:
    pipeline = rag_pipeline()
    pipeline.run({"shelf": {"query": "rewritten"}, "prompt": {"question": QUERY}})
    claimspan_haystack.instrument(monitor)()
    claimspan_haystack.instrument(monitor, query_key="prompt.question")
    pipeline.run({"shelf": {"query": "rewritten"}, "prompt": {"question": QUERY}})
    claimspan_haystack.instrument(monitor)()
    assert monitor.flush()

    roots = sorted(spans.roots, key=lambda span: span.start_time or 0)
    assert [attributes(span)["input.value"] for span in roots] == ["rewritten", QUERY]
    for retriever in spans.of_kind("RETRIEVER"):
        assert attributes(retriever)["gen_ai.retrieval.query.text"] == "rewritten"


def replies(outputs: dict[str, Any]) -> object:
    return outputs["llm"]["replies"]


@pytest.mark.parametrize("key", ["llm.replies", "llm.replies.0", "llm.replies.0.text", replies])
def test_where_the_answer_is_can_be_said(
    make_monitor: MonitorFactory, spans: Spans, key: Key
) -> None:
    monitor = make_monitor()
    undo = claimspan_haystack.instrument(monitor, response_key=key)
    rag_pipeline().run(DATA)
    undo()
    assert monitor.flush()

    assert root(spans) == (QUERY, answer_to(QUERY), "evaluated")


def test_an_answer_that_is_extracted(monitor: Monitor, spans: Spans, judge: ScriptedJudge) -> None:
    pipeline = Pipeline()
    pipeline.add_component("shelf", Shelf())
    pipeline.add_component("cut", CutOff(1))
    pipeline.add_component("extract", Extractor())
    pipeline.connect("shelf", "cut")
    pipeline.connect("cut", "extract.documents")

    pipeline.run({"shelf": {"query": QUERY}, "extract": {"query": QUERY}})
    assert monitor.flush()

    assert root(spans) == (QUERY, f"Answer to {QUERY}", "evaluated")
    assert judge.checked[0] == (f"Answer to {QUERY}. More on {QUERY}",)


def test_a_pipeline_without_a_retriever(monitor: Monitor, spans: Spans) -> None:
    pipeline = Pipeline()
    pipeline.add_component("llm", Echo())
    pipeline.run({"llm": {"messages": [ChatMessage.from_user(QUERY)]}})
    assert monitor.flush()

    assert root(spans) == (QUERY, answer_to(QUERY), "no_context")
    assert spans.of_kind("RETRIEVER") == []


# --- pipelines in components, and agents --------------------------------------------------------


def test_a_whole_pipeline_in_a_component(
    monitor: Monitor, spans: Spans, judge: ScriptedJudge
) -> None:
    whole = SuperComponent(
        pipeline=rag_pipeline(),
        input_mapping={"query": ["shelf.query", "prompt.question"]},
        output_mapping={"llm.replies": "replies"},
    )
    pipeline = Pipeline()
    pipeline.add_component("rag", whole)

    pipeline.run({"rag": {"query": QUERY}})
    assert monitor.flush()

    assert root(spans) == (QUERY, answer_to(QUERY), "evaluated")
    assert found_ids(spans)[0][0] == f"doc-{QUERY}"
    assert len(spans.of_kind("RETRIEVER")) == len(spans.of_kind("LLM")) == 1
    assert len({ids(span).trace_id for span in spans.all}) == 1


def test_a_retriever_that_is_a_pipeline_itself_counts_once(monitor: Monitor, spans: Spans) -> None:
    inner = Pipeline()
    inner.add_component("one", Shelf())
    inner.add_component("two", Shelf(Recipe(passages=[Passage("Another text", "another")])))
    inner.add_component("join", DocumentJoiner())
    inner.connect("one", "join")
    inner.connect("two", "join")
    hybrid = SuperComponent(
        pipeline=inner,
        input_mapping={"query": ["one.query", "two.query"]},
        output_mapping={"join.documents": "documents"},
    )
    pipeline = Pipeline()
    pipeline.add_component("shelf", hybrid)
    pipeline.add_component("prompt", prompt())
    pipeline.add_component("llm", Echo())
    pipeline.connect("shelf.documents", "prompt.documents")
    pipeline.connect("prompt", "llm")

    pipeline.run(DATA)
    assert monitor.flush()

    assert attributes(spans.one("RETRIEVER"))["claimspan.chunks.count"] == 3
    assert root(spans) == (QUERY, answer_to(QUERY), "evaluated")


def agent(*, keeps: bool, wishes: list[str]) -> Agent:
    """With a retriever for its tool, and documents in its state if it keeps them."""
    state: dict[str, Any] = {"documents": {"type": list[Document]}} if keeps else {}
    tool = ComponentTool(
        Shelf(),
        name="look_up",
        description="Looks something up",
        outputs_to_state={"documents": {"source": "documents"}} if keeps else None,
    )
    generator: Any = Caller(wishes)
    return Agent(chat_generator=generator, tools=[tool], state_schema=state)


@pytest.mark.parametrize("keeps", [False, True], ids=["forgets", "keeps documents in its state"])
def test_an_agent_that_looks_up_twice(monitor: Monitor, spans: Spans, keeps: bool) -> None:
    pipeline = Pipeline()
    pipeline.add_component("agent", agent(keeps=keeps, wishes=["first", "second"]))

    pipeline.run({"agent": {"messages": [ChatMessage.from_user(QUERY)]}})
    assert monitor.flush()

    if TOOLS_HAVE_SPANS:
        assert [each[0] for each in found_ids(spans)] == ["doc-first", "doc-second"]
        asked = [attributes(s)["gen_ai.retrieval.query.text"] for s in spans.of_kind("RETRIEVER")]
        assert sorted(map(str, asked)) == ["first", "second"]
    # Where tools have no spans, what they returned stands in the messages of the next prompt.
    assert root(spans) == (QUERY, answer_to(QUERY), "evaluated")
    assert len(spans.of_kind("LLM")) == 3
    assert len({ids(span).trace_id for span in spans.all}) == 1


def test_an_agent_reads_what_it_was_given_and_what_it_looked_up(
    monitor: Monitor, spans: Spans, judge: ScriptedJudge
) -> None:
    pipeline = Pipeline()
    pipeline.add_component("shelf", Shelf())
    pipeline.add_component("cut", CutOff(1))
    pipeline.add_component("prompt", prompt())
    pipeline.add_component("agent", agent(keeps=False, wishes=["more"]))
    pipeline.connect("shelf", "cut")
    pipeline.connect("cut", "prompt.documents")
    pipeline.connect("prompt.prompt", "agent.messages")

    pipeline.run(DATA)
    assert monitor.flush()

    assert root(spans) == (QUERY, answer_to(QUERY), "evaluated")
    given = (f"Answer to {QUERY}. More on {QUERY}",)
    looked_up = ("Answer to more. More on more", "Something else about more")
    if TOOLS_HAVE_SPANS:
        assert judge.checked[0] == given + looked_up
    else:
        assert judge.checked[0][:1] == given
        assert all(text in judge.checked[0][1] for text in looked_up)


def test_an_agent_by_itself(monitor: Monitor, spans: Spans) -> None:
    alone = agent(keeps=True, wishes=["first"])
    alone.warm_up()

    alone.run(messages=[ChatMessage.from_user(QUERY)])
    assert monitor.flush()

    # Where tools have no spans, the documents are in the agent's state, and stand in its prompt.
    assert root(spans) == (QUERY, answer_to(QUERY), "evaluated")


# --- ways to run and to end ---------------------------------------------------------------------


async def test_an_asynchronous_generator_that_is_read(monitor: Monitor, spans: Spans) -> None:
    pipeline: Any = rag_pipeline(kind=ASYNC_PIPELINE)

    parts = [part async for part in pipeline.run_async_generator(DATA)]
    assert await monitor.aflush()

    assert parts[-1]["llm"]["replies"][0].text == answer_to(QUERY)
    assert root(spans) == (QUERY, answer_to(QUERY), "evaluated")


async def test_an_asynchronous_generator_that_is_left(monitor: Monitor, spans: Spans) -> None:
    pipeline: Any = rag_pipeline(kind=ASYNC_PIPELINE)
    parts = pipeline.run_async_generator(DATA)
    await anext(parts)
    await parts.aclose()
    assert await monitor.aflush()

    assert root(spans)[2] == "abandoned"


async def test_generators_that_are_read_in_turn_stay_apart(monitor: Monitor, spans: Spans) -> None:
    pipeline: Any = rag_pipeline(kind=ASYNC_PIPELINE)
    queries = ["one", "two", "three"]
    running = [
        pipeline.run_async_generator({"shelf": {"query": q}, "prompt": {"question": q}})
        for q in queries
    ]
    while running:
        for parts in list(running):
            if await anext(parts, None) is None:
                running.remove(parts)
    assert await monitor.aflush()

    assert {attributes(s)["input.value"]: attributes(s)["output.value"] for s in spans.roots} == {
        query: answer_to(query) for query in queries
    }
    assert len({ids(span).trace_id for span in spans.all}) == 3


async def test_a_cancelled_run_is_no_stream_that_was_left(monitor: Monitor, spans: Spans) -> None:
    pipeline: Any = rag_pipeline(Recipe(retriever_seconds=60), ASYNC_PIPELINE)
    task = asyncio.create_task(pipeline.run_async(DATA))
    await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await monitor.aflush()

    assert root(spans)[2] == "interrupted"


@pytest.mark.parametrize(
    ("recipe", "kind"),
    [
        (Recipe(retriever_error=AppError("quotes sk-canary")), "RETRIEVER"),
        (Recipe(generator_error=AppError("quotes sk-canary")), "LLM"),
    ],
    ids=["retriever", "generator"],
)
def test_the_component_that_failed_says_so(
    monitor: Monitor, spans: Spans, recipe: Recipe, kind: str
) -> None:
    with pytest.raises(Exception, match="sk-canary"):
        rag_pipeline(recipe).run(DATA)
    assert monitor.flush()

    assert spans.one(kind).status.status_code is StatusCode.ERROR
    assert root(spans)[::2] == (QUERY, "app_error")


def test_a_pipeline_that_stops_at_a_breakpoint_waits_for_a_person(
    monitor: Monitor, spans: Spans, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # where Haystack leaves its snapshot
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Exception, match="Breaking at"):
        rag_pipeline().run(DATA, break_point=Breakpoint(component_name="llm"))
    assert monitor.flush()

    assert root(spans)[2] == "interrupted"
