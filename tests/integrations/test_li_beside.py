"""What LlamaIndex does beside answering is no query: it is never judged, and never in a record."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false
# LlamaIndex leaves some of its generics and decorators open.

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import pytest
from llama_index.core import (
    Document,
    DocumentSummaryIndex,
    KnowledgeGraphIndex,
    PromptTemplate,
    PropertyGraphIndex,
    TreeIndex,
    VectorStoreIndex,
)
from llama_index.core import __version__ as VERSION  # noqa: N812 - compared as a constant
from llama_index.core.agent.workflow.prompts import DEFAULT_HANDOFF_OUTPUT_PROMPT
from llama_index.core.base.response.schema import Response
from llama_index.core.chat_engine import ContextChatEngine, SimpleChatEngine
from llama_index.core.evaluation import (
    BaseEvaluator,
    BatchEvalRunner,
    CorrectnessEvaluator,
    DatasetGenerator,
    EvaluationResult,
    FaithfulnessEvaluator,
    RelevancyEvaluator,
)
from llama_index.core.extractors import (
    KeywordExtractor,
    QuestionsAnsweredExtractor,
    SummaryExtractor,
    TitleExtractor,
)
from llama_index.core.indices.property_graph import SimpleLLMPathExtractor
from llama_index.core.indices.query.query_transform import HyDEQueryTransform
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatSummaryMemoryBuffer
from llama_index.core.node_parser import TokenTextSplitter
from llama_index.core.node_parser.relational.base_element import BaseElementNodeParser, Element
from llama_index.core.prompts.mixin import PromptDictType
from llama_index.core.retrievers import QueryFusionRetriever, RouterRetriever
from llama_index.core.schema import BaseNode, TextNode, TransformComponent
from llama_index.core.selectors import LLMSingleSelector
from llama_index.core.tools import FunctionTool, RetrieverTool
from llama_index.core.tools.tool_spec.load_and_search import LoadAndSearchToolSpec
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llama_index_instrumentation import get_dispatcher

from claimspan_tracing.read.passages import finds_nothing
from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import no_record
from li_agents import ToolUser
from li_buildings import facts, monitored, rag, seen
from li_pipelines import Script, Shelf, memory_of, synthesizer_of

span = get_dispatcher("app_of_test_li_beside").span


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with monitored("A text about towers.") as made:
        yield made


def documents() -> list[Document]:
    return [Document(text=fact) for fact in FACTS]


def nodes() -> list[TextNode]:
    return [TextNode(text=fact) for fact in FACTS]


# --- indices and extractors -----------------------------------------------------------------------


def summaries(use_async: bool = False) -> DocumentSummaryIndex:
    synthesizer = synthesizer_of(Script(said="A summary of a document."))
    setattr(synthesizer, "_use_async", use_async)  # noqa: B010 - private
    return DocumentSummaryIndex.from_documents(documents(), response_synthesizer=synthesizer)


def inserted() -> object:
    index = summaries()
    index.insert(Document(text="Another text."))
    return index


def graph() -> object:
    triplets = Script(said="(Tower, is in, Paris)")
    extractors = [SimpleLLMPathExtractor(llm=triplets)]
    PropertyGraphIndex.from_documents(documents(), kg_extractors=extractors, embed_kg_nodes=False)
    return KnowledgeGraphIndex.from_documents(documents(), llm=triplets)


def tree() -> object:
    return TreeIndex.from_documents(documents(), num_children=2)


EXTRACTORS = [TitleExtractor, KeywordExtractor, QuestionsAnsweredExtractor, SummaryExtractor]


def extracted() -> object:
    steps: list[TransformComponent] = [each(llm=Script(said="Words.")) for each in EXTRACTORS]
    IngestionPipeline(transformations=steps).run(nodes=nodes())
    TitleExtractor(llm=Script(said="Words.")).extract([TextNode(text=FACTS[0])])
    split: list[TransformComponent] = [TokenTextSplitter(tokenizer=str.split), *steps]
    return VectorStoreIndex.from_documents(documents(), transformations=split)


async def extracted_async() -> object:
    steps: list[TransformComponent] = [each(llm=Script(said="Words.")) for each in EXTRACTORS]
    return await IngestionPipeline(transformations=steps).arun(nodes=nodes())


def table_elements() -> list[Element]:
    return [Element(id=fact, type="table_text", element=fact) for fact in FACTS]


class Tables(BaseElementNodeParser):
    """Asks a query engine for a summary of each table, as the parser of Markdown does."""

    def get_nodes_from_node(self, node: TextNode) -> list[BaseNode]:
        elements = [
            Element(id=str(n), type="table_text", element=fact) for n, fact in enumerate(FACTS)
        ]
        self.extract_table_summaries(elements)
        return []

    async def aget_nodes_from_node(self, node: TextNode) -> list[BaseNode]:
        elements = [
            Element(id=str(n), type="table_text", element=fact) for n, fact in enumerate(FACTS)
        ]
        await self.aextract_table_summaries(elements)
        return []

    def extract_elements(self, text: str, **kwargs: Any) -> list[Element]:
        return []


def tables() -> object:
    said = '{"summary": "A table.", "columns": []}'
    return Tables(llm=Script(said=said)).get_nodes_from_documents(documents()[:1])


async def tables_async() -> object:
    said = '{"summary": "A table.", "columns": []}'
    return await Tables(llm=Script(said=said)).aget_nodes_from_documents(documents()[:1])


async def summaries_in_a_loop() -> object:
    return summaries(use_async=True)


def generator() -> DatasetGenerator:
    model = Script(said="1. What is it?")
    return DatasetGenerator([*documents()], llm=model, num_questions_per_chunk=1)


def questions() -> object:
    return generator().generate_questions_from_nodes()


def chats() -> None:
    SimpleChatEngine.from_defaults(llm=Script(), memory=memory_of([])).reset()


def transformed() -> object:
    return HyDEQueryTransform(llm=Script(said="An imagined text.")).run(TOWER)


WORK: Sequence[Callable[[], object]] = [
    summaries,
    inserted,
    summaries_in_a_loop,
    graph,
    tree,
    extracted,
    extracted_async,
    tables,
    tables_async,
    questions,
    chats,
    transformed,
]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("work", WORK, ids=lambda each: each.__name__)
def test_what_builds_something_makes_no_record(
    monitor: InMemoryMonitor, work: Callable[[], object]
) -> None:
    if inspect.iscoroutinefunction(work):
        asyncio.run(work())
    else:
        work()

    assert monitor.records() == []


def built(shows: str) -> object:
    index = VectorStoreIndex.from_documents(documents())
    said: dict[str, object] = {
        "index": index,
        "number": len(index.docstore.docs),
        "nothing": None,
        "sentence": f"Indexed {len(index.docstore.docs)} documents.",
    }
    return said[shows]


class Ingest(Workflow):
    """Builds an index, as the ingestion of the documentation's RAG workflow does."""

    @step
    async def load(self, event: StartEvent) -> StopEvent:
        return StopEvent(result=built(event.shows))


every_result = pytest.mark.parametrize("shows", ["index", "number", "nothing", "sentence"])


@every_result
def test_an_index_that_is_built_within_a_function_makes_no_record(
    monitor: InMemoryMonitor, shows: str
) -> None:
    @span
    def ingest(folder: str) -> object:
        return built(shows)

    ingest("some/folder")

    no_record(monitor)


# A workflow of llama-index-core 0.12 that returns nothing ends as one that was cancelled.
RETURNED = ["index", "number", "sentence"] + ["nothing"] * (not VERSION.startswith("0.12."))


@pytest.mark.parametrize("shows", RETURNED)
async def test_an_index_that_is_built_within_a_workflow_makes_no_record(
    monitor: InMemoryMonitor, shows: str
) -> None:
    await Ingest().run(dirname="some/folder", shows=shows)

    no_record(monitor)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_index_of_summaries_that_is_built_within_a_function_makes_no_record(
    monitor: InMemoryMonitor,
) -> None:
    @span
    def ingest(folder: str) -> int:
        return len(summaries().index_struct.summary_id_to_node_ids)

    ingest("some/folder")

    no_record(monitor)


def test_an_engine_that_finds_nothing_is_a_query_without_context(monitor: InMemoryMonitor) -> None:
    @span
    def answer(question: str) -> str:
        return str(rag(HIGH).query(question))

    answer(TOWER)

    assert monitor.only_record().status == "no_context"


PROMPT = PromptTemplate("Say it by {context_str}: {query_str}")

CHANGED: dict[str, Callable[[], object]] = {
    "shown": lambda: rag(HIGH, 0).get_prompts(),
    "changed": lambda: rag(HIGH, 0).update_prompts(
        {"response_synthesizer:text_qa_template": PROMPT}
    ),
    "of a retriever": lambda: Shelf(facts(0)).get_prompts(),
    "of a synthesizer": lambda: synthesizer_of(Script(said=HIGH)).update_prompts({}),
}


@pytest.mark.parametrize("what", CHANGED)
def test_looking_at_prompts_or_changing_them_is_no_run(monitor: InMemoryMonitor, what: str) -> None:
    CHANGED[what]()

    assert monitor.spans() == ()


# --- evaluators -----------------------------------------------------------------------------------


class Own(BaseEvaluator):
    """An evaluator of the user's own, which asks a query engine."""

    async def aevaluate(self, *args: Any, **kwargs: Any) -> EvaluationResult:
        said = await rag("YES", 0).aquery("Is it supported?")
        return EvaluationResult(passing=str(said) == "YES")

    def _get_prompts(self) -> PromptDictType:
        return {}

    def _update_prompts(self, prompts_dict: PromptDictType) -> None:
        pass


def evaluators() -> dict[str, BaseEvaluator]:
    model = Script(said="YES")
    return {
        "faithfulness": FaithfulnessEvaluator(llm=model),
        "relevancy": RelevancyEvaluator(llm=model),
        "correctness": CorrectnessEvaluator(llm=Script(said="4.0\nIt is right.")),
        "own": Own(),
    }


@pytest.mark.parametrize("name", evaluators())
async def test_an_evaluator_makes_no_record(monitor: InMemoryMonitor, name: str) -> None:
    evaluator = evaluators()[name]
    given: dict[str, Any] = {"query": TOWER, "response": HIGH, "contexts": FACTS, "reference": HIGH}

    assert (await evaluator.aevaluate(**given)).passing
    assert (await asyncio.to_thread(evaluator.evaluate, **given)).passing

    assert monitor.records() == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_questions_that_are_generated_in_tasks_are_never_judged(
    monitor: InMemoryMonitor,
) -> None:
    await generator().agenerate_questions_from_nodes()

    assert monitor.records() == []


@pytest.mark.filterwarnings("ignore:asyncio_module:DeprecationWarning")  # by its own runner
async def test_a_batch_of_evaluations_records_the_queries_alone(monitor: InMemoryMonitor) -> None:
    judged = {name: each for name, each in evaluators().items() if name != "correctness"}
    runner = BatchEvalRunner(judged, workers=2)

    await runner.aevaluate_response_strs([TOWER], [HIGH], [FACTS])
    await runner.aevaluate_responses([TOWER], [Response(HIGH, facts(0))])
    assert monitor.records() == []

    await runner.aevaluate_queries(rag(HIGH, 0), [TOWER])
    record = monitor.only_record().record
    assert (record.query, record.response) == (TOWER, HIGH)


@pytest.mark.parametrize("shows", ["text", "fields"])
def test_a_check_of_the_answer_is_no_part_of_the_record(
    monitor: InMemoryMonitor, shows: str
) -> None:
    @span
    def answer(question: str) -> object:
        response = rag(HIGH, 0).query(question)
        checked = FaithfulnessEvaluator(llm=Script(said="YES")).evaluate_response(
            question, Response(str(response), facts(1, 2))
        )
        return (
            str(response) if shows == "text" else {"answer": str(response), "ok": checked.passing}
        )

    answer(TOWER)

    record = monitor.only_record()
    assert (record.status, record.record.response) == ("evaluated", HIGH)
    assert [chunk.text for chunk in record.record.chunks] == FACTS[:1]


# --- retrieval and models alone -------------------------------------------------------------------


def routed() -> RouterRetriever:
    choosing = Script(said='[{"choice": 1, "reason": "it is"}]')
    tools = [RetrieverTool.from_defaults(Shelf(facts(n)), description=str(n)) for n in (0, 1)]
    selector = LLMSingleSelector.from_defaults(llm=choosing)
    return RouterRetriever(selector=selector, retriever_tools=tools, llm=choosing)


RETRIEVERS = {
    "index": lambda: VectorStoreIndex.from_documents(documents()).as_retriever(),
    "fusion": lambda: QueryFusionRetriever(
        [Shelf(facts(0))], llm=Script(said="Another question?"), num_queries=2, use_async=False
    ),
    "router": routed,
}


@pytest.mark.parametrize("how", ["plain", "async"])
@pytest.mark.parametrize("name", RETRIEVERS)
async def test_retrieval_alone_is_no_record(monitor: InMemoryMonitor, name: str, how: str) -> None:
    retriever = RETRIEVERS[name]()
    found = retriever.retrieve(TOWER) if how == "plain" else await retriever.aretrieve(TOWER)

    no_record(monitor)
    assert found


ASKED: dict[str, Callable[[Script], object]] = {
    "complete": lambda model: model.complete(TOWER),
    "predict": lambda model: model.predict(PromptTemplate("Say it: {it}"), it=TOWER),
    "acomplete": lambda model: model.acomplete(TOWER),
}


@pytest.mark.parametrize("name", ASKED)
async def test_a_model_alone_is_never_judged(monitor: InMemoryMonitor, name: str) -> None:
    asked = ASKED[name](Script(said=HIGH))
    if isinstance(asked, Awaitable):
        await asked

    record = monitor.only_record()
    assert (record.status, record.record.response) == ("no_context", HIGH)


def test_a_model_that_is_given_tools_by_hand_is_one_record(monitor: InMemoryMonitor) -> None:
    tool = FunctionTool.from_defaults(built)
    ToolUser(wanted=[], said=HIGH).chat_with_tools([tool], chat_history=[ChatMessage(TOWER)])

    assert seen(monitor) == (TOWER, HIGH, [], "no_context")


async def test_a_summary_of_the_chat_is_not_its_answer(monitor: InMemoryMonitor) -> None:
    summing_up = Script(said="A summary of all that was said so far in the chat.")
    memory = ChatSummaryMemoryBuffer.from_defaults(
        llm=summing_up, token_limit=3, tokenizer_fn=str.split
    )
    chat = ContextChatEngine.from_defaults(
        retriever=Shelf(facts(0)), llm=Script(said=HIGH), memory=memory
    )
    for turn in ("Where is the tower?", TOWER):
        chat.chat(turn)
    await chat.achat("And who built it?")

    records = [each.record for each in monitor.records()]
    assert [(each.query, each.response) for each in records] == [
        ("Where is the tower?", HIGH),
        (TOWER, HIGH),
        ("And who built it?", HIGH),
    ]
    assert all([c.text for c in each.chunks] == FACTS[:1] for each in records)


def test_the_note_of_a_tool_that_has_loaded_something_is_llamaindexes_own(
    monitor: InMemoryMonitor,
) -> None:
    def loaded(page: str) -> list[Document]:
        """Load a page."""
        return documents()

    spec = LoadAndSearchToolSpec.from_defaults(FunctionTool.from_defaults(loaded))
    note = spec.to_tool_list()[0](page="towers").content

    assert finds_nothing(note)


def test_the_note_of_a_hand_over_between_agents_is_llamaindexes_own() -> None:
    note = DEFAULT_HANDOFF_OUTPUT_PROMPT.format(to_agent="writer", reason="the facts are there")

    assert finds_nothing(note)
    assert not finds_nothing("The tower is 330 metres high.")
