"""Query, chunks, context and response in LlamaIndex's query engines and retrievers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from llama_index.core import Settings
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RouterQueryEngine, SubQuestionQueryEngine
from llama_index.core.response_synthesizers import ResponseMode
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.selectors import LLMSingleSelector

import claimspan_llama_index
from claimspan_tracing import Monitor

from li_agents import tool_of
from li_pipelines import Echo, Shelf, Splitting, engine_of, nodes_of, synthesizer_of, text_of
from pipelines import Passage, answer_to
from support import MonitorFactory, ScriptedJudge, Spans, attributes

QUERY = "the question"


@pytest.fixture
def judge() -> ScriptedJudge:
    return ScriptedJudge()


@pytest.fixture
def attached(make_monitor: MonitorFactory, judge: ScriptedJudge) -> Iterator[Monitor]:
    monitor = make_monitor(judge=judge)
    undo = claimspan_llama_index.instrument(monitor)
    yield monitor
    undo()


def seen(spans: Spans, monitor: Monitor) -> tuple[object, object, object]:
    """Query, response and status on the one root."""
    assert monitor.flush()
    root = attributes(spans.root)
    return root["input.value"], root["output.value"], root["claimspan.evaluation.status"]


def reason(spans: Spans) -> object:
    return attributes(spans.root).get("claimspan.evaluation.reason")


@pytest.mark.parametrize("how", ["plain", "async", "stream", "astream"])
@pytest.mark.parametrize(
    "mode",
    [
        ResponseMode.REFINE,
        ResponseMode.COMPACT,
        ResponseMode.SIMPLE_SUMMARIZE,
        ResponseMode.TREE_SUMMARIZE,
    ],
)
async def test_every_mode_of_answering_is_evaluated(
    attached: Monitor, spans: Spans, mode: ResponseMode, how: str
) -> None:
    said = answer_to(QUERY)
    streaming = how.endswith("stream")
    engine = engine_of(Shelf(), Echo(said=said), mode=mode, streaming=streaming)

    response = await engine.aquery(QUERY) if how.startswith("a") else engine.query(QUERY)
    await text_of(response)

    query, answer, status = seen(spans, attached)
    assert (query, str(answer).strip(), status) == (QUERY, said, "evaluated")
    assert attributes(spans.root)["claimspan.chunks.recorded"] == 2
    assert len(spans.of_kind("RETRIEVER")) == 1


@pytest.mark.parametrize("mode", [ResponseMode.ACCUMULATE, ResponseMode.COMPACT_ACCUMULATE])
def test_accumulated_answers_are_one(attached: Monitor, spans: Spans, mode: ResponseMode) -> None:
    response = engine_of(Shelf(), Echo(said="One claim."), mode=mode).query(QUERY)

    assert seen(spans, attached) == (QUERY, str(response), "evaluated")


def test_a_mode_that_reads_no_node_has_no_context(attached: Monitor, spans: Spans) -> None:
    engine_of(Shelf(), Echo(said="By heart."), mode=ResponseMode.GENERATION).query(QUERY)

    assert seen(spans, attached) == (QUERY, "By heart.", "no_context")
    assert reason(spans) == "no chunk reached the generator"


def test_a_mode_without_text_has_no_answer(
    attached: Monitor, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Settings, "_llm", Echo())  # this mode takes no other, though it asks none

    engine_of(Shelf(), Echo(), mode=ResponseMode.NO_TEXT).query(QUERY)

    assert seen(spans, attached) == (QUERY, "", "no_answer")


def test_a_model_is_one_span_with_model_prompt_and_tokens(attached: Monitor, spans: Spans) -> None:
    engine_of(Shelf(), Echo()).query(QUERY)
    assert attached.flush()

    model = attributes(spans.one("LLM"))
    assert model["llm.model_name"] == "echo"
    assert model["gen_ai.usage.input_tokens"] == 11
    assert model["gen_ai.usage.output_tokens"] == 7
    assert f"Query: {QUERY}" in str(model["input.value"])
    assert model["output.value"] == answer_to(QUERY)


# --- post-processors ---


class Rewriting(BaseNodePostprocessor):
    """Changes nodes and scores in place, as rerankers do."""

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        for found in nodes:
            found.score = 0.1
        nodes[0].node.set_content("rewritten")
        return nodes[:1]


def test_what_was_read_after_a_cut_off_is_kept_apart_from_what_was_found(
    attached: Monitor, judge: ScriptedJudge, spans: Spans
) -> None:
    shelf = Shelf(nodes_of([Passage("kept", "a", 0.9), Passage("cut", "b", 0.2)]))
    cut_off = SimilarityPostprocessor(similarity_cutoff=0.5)

    engine_of(shelf, Echo(said="An answer."), postprocessors=[cut_off]).query(QUERY)
    assert attached.flush()

    assert judge.checked == [("kept",)]
    retriever = attributes(spans.one("RETRIEVER"))
    assert retriever["retrieval.documents.1.document.content"] == "cut"
    model = attributes(spans.one("LLM"))
    assert model["retrieval.documents.0.document.id"] == "a"
    assert "retrieval.documents.1.document.id" not in model


def test_what_was_found_stays_as_it_was_found(attached: Monitor, spans: Spans) -> None:
    shelf = Shelf(nodes_of([Passage("found", "a", 0.9), Passage("cut", "b", 0.2)]))

    engine_of(shelf, Echo(said="An answer."), postprocessors=[Rewriting()]).query(QUERY)
    assert attached.flush()

    retriever = attributes(spans.one("RETRIEVER"))
    assert retriever["retrieval.documents.0.document.content"] == "found"
    assert retriever["retrieval.documents.0.document.score"] == 0.9
    model = attributes(spans.one("LLM"))
    assert model["retrieval.documents.0.document.content"] == "rewritten"


def test_a_cut_off_that_leaves_nothing_is_no_context(attached: Monitor, spans: Spans) -> None:
    cut_off = SimilarityPostprocessor(similarity_cutoff=0.99)

    engine_of(Shelf(), Echo(), postprocessors=[cut_off]).query(QUERY)

    assert seen(spans, attached) == (QUERY, "", "no_context")
    assert reason(spans) == "no chunk reached the generator"


# --- several parts ---


def test_nested_retrievers_are_one_retrieval(attached: Monitor, spans: Spans) -> None:
    fusion = QueryFusionRetriever([Shelf(), Shelf()], llm=Echo(), num_queries=1, use_async=False)

    engine_of(fusion, Echo()).query(QUERY)

    assert seen(spans, attached) == (QUERY, answer_to(QUERY), "evaluated")
    assert len(spans.of_kind("RETRIEVER")) == 1


def test_a_router_answers_with_the_engine_that_it_chose(attached: Monitor, spans: Spans) -> None:
    tools = [tool_of(engine_of(Shelf(), Echo()), name) for name in ("one", "two")]
    choosing = Echo(said='[{"choice": 2, "reason": "it is"}]')
    router = RouterQueryEngine.from_defaults(
        tools, llm=Echo(), selector=LLMSingleSelector.from_defaults(llm=choosing)
    )

    router.query(QUERY)

    assert seen(spans, attached) == (QUERY, answer_to(QUERY), "evaluated")
    assert len(spans.of_kind("RETRIEVER")) == 1


@pytest.mark.parametrize("use_async", [False, True])
def test_sub_questions_are_judged_on_their_sources_not_on_their_answers(
    attached: Monitor, judge: ScriptedJudge, spans: Spans, use_async: bool
) -> None:
    engine = SubQuestionQueryEngine.from_defaults(
        [tool_of(engine_of(Shelf(), Echo()), name) for name in ("one", "two")],
        llm=Echo(),
        question_gen=Splitting("one", "two"),
        response_synthesizer=synthesizer_of(Echo(said="Both.")),
        use_async=use_async,
        verbose=False,
    )

    engine.query(QUERY)

    assert seen(spans, attached) == (QUERY, "Both.", "evaluated")
    queries = {attributes(s)["gen_ai.retrieval.query.text"] for s in spans.of_kind("RETRIEVER")}
    assert queries == {"one", "two"}
    (read,) = judge.checked
    assert len(read) == 4
    assert "Answer to one. More on one" in read
    assert not any("Sub question" in text for text in read)


# --- parts by themselves ---


async def test_a_retriever_alone_is_traced_and_no_record(attached: Monitor, spans: Spans) -> None:
    Shelf().retrieve(QUERY)
    await Shelf().aretrieve(QUERY)
    assert attached.flush()

    roots = [attributes(root) for root in spans.roots]
    assert not any("claimspan.evaluation.status" in root for root in roots)
    assert (attached.stats.produced, attached.stats.unasked) == (0, 2)
    assert [root["input.value"] for root in roots] == [QUERY] * 2
    assert len(spans.of_kind("RETRIEVER")) == 2


def test_a_synthesizer_alone_is_judged_on_the_nodes_it_was_given(
    attached: Monitor, spans: Spans
) -> None:
    nodes = nodes_of([Passage("A claim. More.", "a")])

    synthesizer_of(Echo(said="A claim.")).synthesize(QUERY, nodes=nodes)

    assert seen(spans, attached) == (QUERY, "A claim.", "evaluated")
    assert attributes(spans.root)["claimspan.score.faithfulness"] == 1.0


def test_splitting_and_embedding_are_no_queries(attached: Monitor) -> None:
    from llama_index.core import Document, MockEmbedding, VectorStoreIndex
    from llama_index.core.ingestion import IngestionPipeline
    from llama_index.core.node_parser import TokenTextSplitter

    documents = [Document(text="One text.")]
    IngestionPipeline(transformations=[TokenTextSplitter()]).run(documents=documents)
    VectorStoreIndex.from_documents(documents, embed_model=MockEmbedding(embed_dim=2))

    assert attached.flush()
    assert attached.stats.produced == 0


def test_a_vector_index_is_captured_whole(attached: Monitor, spans: Spans) -> None:
    from llama_index.core import Document, MockEmbedding, VectorStoreIndex

    documents = [Document(text="One text.", doc_id="d")]
    index = VectorStoreIndex.from_documents(documents, embed_model=MockEmbedding(embed_dim=2))

    engine_of(index.as_retriever(), Echo(said="One text.")).query(QUERY)

    assert seen(spans, attached) == (QUERY, "One text.", "evaluated")
    found = attributes(spans.one("RETRIEVER"))
    assert found["retrieval.documents.0.document.content"] == "One text."
    assert isinstance(found["retrieval.documents.0.document.score"], float)
