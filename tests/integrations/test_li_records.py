"""One record for each answer, with what the model read: LlamaIndex's shapes."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false, reportDeprecated=false
# LlamaIndex leaves some of its generics and decorators open.

import asyncio
import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from llama_index.core import MockEmbedding, Settings, VectorStoreIndex
from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.evaluation import GuidelineEvaluator, RelevancyEvaluator
from llama_index.core.indices.query.query_transform.base import (
    HyDEQueryTransform,
    StepDecomposeQueryTransform,
)
from llama_index.core.llms import ChatMessage
from llama_index.core.postprocessor import LLMRerank, SimilarityPostprocessor
from llama_index.core.query_engine import (
    CitationQueryEngine,
    CustomQueryEngine,
    FLAREInstructQueryEngine,
    MultiStepQueryEngine,
    RetryGuidelineQueryEngine,
    RetryQueryEngine,
    RetrySourceQueryEngine,
    RouterQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.response_synthesizers import ResponseMode
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore
from llama_index.core.selectors import LLMMultiSelector
from llama_index.core.tools import FunctionTool, RetrieverTool
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step
from llama_index_instrumentation import get_dispatcher
from pydantic import BaseModel

import claimspan_llama_index
from claimspan_tracing.testing import CapturedRecord, InMemoryMonitor

from li_agents import ask_agent, tool_of
from li_pipelines import Shelf, engine_of, memory_of, read, synthesizer_of, text_of, word_counter
from li_scripts import FACTS, Script, Turns, facts, rag

TOWER = "How high is the tower?"
TUNNEL = "When was the tunnel opened?"
HIGH = "The tower is 330 metres high, by the newest measurement."
OPENED = "The tunnel was opened to trains in 1994, after six years."
WRONG = "Nobody knows of any tower that is made of iron."
NEWS = "A newspaper of today: the tower was measured once more, and is 330 metres high."

span = get_dispatcher("app_of_test_li_records").span


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with InMemoryMonitor() as made:
        undo = claimspan_llama_index.instrument(made)
        yield made
        undo()


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """What LlamaIndex takes where it is given nothing; its own would ask the network."""
    monkeypatch.setattr(Settings, "_llm", Script(said=HIGH))
    monkeypatch.setattr(Settings, "_embed_model", MockEmbedding(embed_dim=2))
    monkeypatch.setattr(Settings, "_prompt_helper", word_counter())


def texts(record: CapturedRecord) -> list[str]:
    return [chunk.text for chunk in record.record.chunks]


def seen(monitor: InMemoryMonitor) -> tuple[str, str, list[str], str]:
    """Query, answer, chunks and status of the one record."""
    record = monitor.only_record()
    answer = record.record.response.strip()
    return record.record.query, answer, texts(record), str(record.status)


async def ask(engine: BaseQueryEngine, how: str) -> str:
    asked = engine.aquery(TOWER) if how.startswith("a") else None
    return await text_of(engine.query(TOWER) if asked is None else await asked)


HOWS = ["plain", "async", "stream", "astream"]


# --- answers that were thrown away ----------------------------------------------------------------


class Found(Event):
    nodes: list[NodeWithScore]


class OnceMore:
    """A policy of retries as both the newest and the oldest LlamaIndex take them."""

    def next(self, *args: Any, **kwargs: Any) -> float:
        return 0.01


class Failing(Workflow):
    """Its step fails after its first answer, and is tried again."""

    @step(retry_policy=OnceMore())
    async def answer(self, event: StartEvent) -> StopEvent:
        engine = event.engines.pop(0)
        answer = await engine.aquery(event.query)
        if event.engines:
            raise ConnectionError("once more")
        return StopEvent(result=answer if event.whole else str(answer))


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_failed_attempt_of_a_step_leaves_nothing_in_the_record(
    monitor: InMemoryMonitor, streaming: bool
) -> None:
    engines = [rag(WRONG, 1, streaming=streaming), rag(HIGH, 0, streaming=streaming)]

    result = await Failing().run(query=TOWER, engines=engines, whole=streaming)
    if streaming:
        await text_of(result)

    assert seen(monitor) == (TOWER, HIGH, FACTS[:1], "evaluated")


def relevancy(*verdicts: str) -> RelevancyEvaluator:
    return RelevancyEvaluator(llm=Script(rules={"is in line with": list(verdicts)}))


def retrying(kind: str, streaming: bool = False) -> BaseQueryEngine:
    model = Script(said="unused", rules={"Query: ": [WRONG, HIGH]})
    engine = engine_of(Turns((1,), (0,)), model, streaming=streaming)
    if kind == "query":
        return RetryQueryEngine(engine, relevancy("NO", "YES"))
    said = [f'{{"passing": {each}, "feedback": "Be precise."}}' for each in ("false", "true")]
    guideline = GuidelineEvaluator(llm=Script(rules={"guideline": said}), guidelines="guidelines")
    return RetryGuidelineQueryEngine(engine, guideline)


@pytest.mark.parametrize("how", ["plain", "async"])
@pytest.mark.parametrize("kind", ["query", "guideline"])
async def test_an_answer_that_an_engine_rejects_is_not_in_the_record(
    monitor: InMemoryMonitor, kind: str, how: str
) -> None:
    assert await ask(retrying(kind), how) == HIGH

    assert seen(monitor) == (TOWER, HIGH, FACTS[:1], "evaluated")


def test_sources_that_an_engine_rejects_are_not_in_the_record(
    monitor: InMemoryMonitor,
) -> None:
    engine = engine_of(Shelf(facts(0, 1)), Script(said=WRONG))
    evaluator = relevancy("NO", "YES", "NO", "YES")

    retry = RetrySourceQueryEngine(engine, evaluator, llm=Script())
    assert str(retry.query(TOWER)) == HIGH

    query, answer, chunks, status = seen(monitor)
    assert (query, answer, status) == (TOWER, HIGH, "evaluated")
    # LlamaIndex takes every result of its evaluator for a pass, and gives both sources once more.
    assert sorted(chunks) == sorted(FACTS[:2])


# --- several queries in one function --------------------------------------------------------------


@pytest.mark.parametrize("streaming", [False, True])
def test_queries_in_a_function_are_records_of_their_own(
    monitor: InMemoryMonitor, streaming: bool
) -> None:
    @span
    def answer_all(questions: list[str]) -> list[str]:
        engines = [rag(HIGH, 0, streaming=streaming), rag(OPENED, 2, streaming=streaming)]
        responses = [engine.query(asked) for engine, asked in zip(engines, questions, strict=True)]
        return ["".join(read(each)) if streaming else str(each) for each in responses]

    answer_all([TOWER, TUNNEL])

    whole, *inner = monitor.records()
    assert whole.status == "several_answers"
    assert [(r.record.query, r.record.response.strip(), texts(r)) for r in inner] == [
        (TOWER, HIGH, FACTS[:1]),
        (TUNNEL, OPENED, FACTS[2:]),
    ]


async def test_concurrent_queries_in_a_function_are_records_of_their_own(
    monitor: InMemoryMonitor,
) -> None:
    @span
    async def answer_all(questions: list[str]) -> list[str]:
        engines = [rag(HIGH, 0), rag(OPENED, 2)]
        asked = [engine.aquery(each) for engine, each in zip(engines, questions, strict=True)]
        return [str(each) for each in await asyncio.gather(*asked)]

    await answer_all([TOWER, TUNNEL])

    _, *inner = monitor.records()
    assert {(r.record.query, r.record.response) for r in inner} == {(TOWER, HIGH), (TUNNEL, OPENED)}


def test_a_question_never_gets_the_answer_to_another_one(monitor: InMemoryMonitor) -> None:
    @span
    def answer_all(questions: list[str]) -> dict[str, int]:
        answers = [rag(HIGH, 0).query(questions[0]), rag(OPENED, 2).query(questions[1])]
        return {"answered": len(answers)}

    answer_all([TOWER, TUNNEL])

    assert not [r for r in monitor.records() if r.record.query == TOWER and r.record.response]


def test_a_function_may_hand_on_the_stream_of_an_engine(monitor: InMemoryMonitor) -> None:
    @span
    def answer(question: str) -> Iterator[str]:
        return read(rag(HIGH, 0, streaming=True).query(question))

    assert "".join(answer(TOWER)).strip() == HIGH

    assert seen(monitor) == (TOWER, HIGH, FACTS[:1], "evaluated")


def test_an_engine_of_the_users_own_is_judged_on_what_its_prompt_holds(
    monitor: InMemoryMonitor,
) -> None:
    class Own(CustomQueryEngine):
        retriever: BaseRetriever

        def custom_query(self, query_str: str) -> str:
            found = self.retriever.retrieve(query_str)
            return str(Script(said=HIGH).complete(f"{found[0].text}\n{query_str}"))

    Own(retriever=Shelf(facts(0, 1))).query(TOWER)

    assert seen(monitor) == (TOWER, HIGH, FACTS[:1], "evaluated")


@pytest.mark.parametrize("how", ["plain", "async"])
async def test_a_retriever_and_a_synthesizer_called_by_hand_are_one_right_record(
    monitor: InMemoryMonitor, how: str
) -> None:
    synthesizer = synthesizer_of(Script(said=HIGH))
    if how == "plain":
        synthesizer.synthesize(TOWER, nodes=Shelf(facts(0, 1)).retrieve(TOWER)[:1])
    else:
        nodes = await Shelf(facts(0, 1)).aretrieve(TOWER)
        await synthesizer.asynthesize(TOWER, nodes=nodes[:1])

    retrieved, answered = monitor.records()
    assert (retrieved.status, retrieved.record.response) == ("no_answer", "")
    assert answered.status == "evaluated"
    assert (answered.record.query, answered.record.response) == (TOWER, HIGH)
    assert texts(answered) == FACTS[:1]


# --- engines --------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("mode", ["refine", "compact", "tree_summarize", "simple_summarize"])
async def test_a_mode_of_answering_reads_what_a_cut_off_has_left(
    monitor: InMemoryMonitor, mode: str, how: str
) -> None:
    cut_off = SimilarityPostprocessor(similarity_cutoff=0.75)
    engine = engine_of(
        Shelf(facts(0, 1, 2)),
        Script(said=HIGH),
        mode=ResponseMode(mode),
        streaming=how.endswith("stream"),
        postprocessors=[cut_off],
    )

    await ask(engine, how)

    assert seen(monitor) == (TOWER, HIGH, FACTS[:2], "evaluated")


def test_accumulated_answers_rest_on_all_that_each_of_them_read(monitor: InMemoryMonitor) -> None:
    model = Script(rules={FACTS[0]: HIGH, FACTS[2]: OPENED})

    engine_of(Shelf(facts(0, 2)), model, mode=ResponseMode.ACCUMULATE).query(TOWER)

    assert texts(monitor.only_record()) == [FACTS[0], FACTS[2]]


def multi_step() -> BaseQueryEngine:
    return MultiStepQueryEngine(
        rag("An answer in between, of 330 metres.", 0),
        StepDecomposeQueryTransform(llm=Script(said="How high is it?")),
        synthesizer_of(Script(said=HIGH)),
        num_steps=2,
        index_summary="towers",
    )


def router() -> BaseQueryEngine:
    tools = [tool_of(rag(HIGH, 0), "towers"), tool_of(rag(OPENED, 2), "tunnels")]
    choice = '[{"choice": 1, "reason": "it is"}, {"choice": 2, "reason": "it is"}]'
    return RouterQueryEngine.from_defaults(
        tools,
        llm=Script(said="The tower has 330 metres, the tunnel is of 1994."),
        selector=LLMMultiSelector.from_defaults(llm=Script(said=choice)),
    )


def flare() -> BaseQueryEngine:
    rules = {"Lookahead": HIGH, "Skill 1": ["It is [Search(How high?)] metres.", "done"]}
    return FLAREInstructQueryEngine(rag("It is 330 metres.", 0), Script(rules=rules, said=HIGH))


def reranked() -> BaseQueryEngine:
    reranker = LLMRerank(llm=Script(said="Doc: 1, Relevance: 9\n"), top_n=1)
    return engine_of(Shelf(facts(0, 1)), Script(said=HIGH), postprocessors=[reranker])


def transformed() -> BaseQueryEngine:
    imagined = Script(said="An imagined document about a tower of iron in Paris.")
    return TransformQueryEngine(rag(HIGH, 0), HyDEQueryTransform(llm=imagined))


ENGINES = [
    (multi_step, FACTS[:1]),
    (router, [FACTS[0], FACTS[2]]),
    (flare, FACTS[:1]),
    (reranked, FACTS[:1]),
    (transformed, FACTS[:1]),
]


@pytest.mark.parametrize(
    ("make", "chunks"), ENGINES, ids=["multi-step", "router", "flare", "reranked", "hyde"]
)
def test_an_engine_of_engines_is_judged_on_the_sources_that_its_answer_rests_on(
    monitor: InMemoryMonitor,
    make: Callable[[], BaseQueryEngine],
    chunks: list[str],
) -> None:
    said = str(make().query(TOWER)).strip()

    assert seen(monitor) == (TOWER, said, chunks, "evaluated")


def test_citations_are_judged_on_the_numbered_sources(
    monitor: InMemoryMonitor,
) -> None:
    index = VectorStoreIndex([found.node for found in facts(0)])
    engine = CitationQueryEngine.from_args(
        index,
        llm=Script(said=f"{HIGH} [1]"),
        response_synthesizer=synthesizer_of(Script(said=f"{HIGH} [1]")),
        retriever=Shelf(facts(0, 1)),
    )

    engine.query(TOWER)

    query, answer, chunks, status = seen(monitor)
    assert (query, answer, status) == (TOWER, f"{HIGH} [1]", "evaluated")
    assert [text.strip() for text in chunks] == [
        f"Source 1:\n{FACTS[0]}",
        f"Source 2:\n{FACTS[1]}",
    ]


# --- workflows of the tutorials -------------------------------------------------------------------


class Kept(Event):
    nodes: list[NodeWithScore]


class Reranking(Workflow):
    """RAG with reranking, as the tutorial has it; its result is a stream."""

    @step
    async def retrieve(self, event: StartEvent) -> Found:
        return Found(nodes=await Shelf(facts(0, 1, 2)).aretrieve(event.query))

    @step
    async def rerank(self, event: Found) -> Kept:
        ranker = LLMRerank(llm=Script(said="Doc: 1, Relevance: 9\n"), top_n=1)
        return Kept(nodes=ranker.postprocess_nodes(event.nodes, query_str=TOWER))

    @step
    async def synthesize(self, event: Kept) -> StopEvent:
        synthesizer = synthesizer_of(Script(said=HIGH), streaming=True)
        return StopEvent(result=await synthesizer.asynthesize(TOWER, nodes=event.nodes))


async def test_a_workflow_with_reranking_is_judged_on_what_the_reranker_has_left(
    monitor: InMemoryMonitor,
) -> None:
    await text_of(await Reranking().run(query=TOWER))

    assert seen(monitor) == (TOWER, HIGH, FACTS[:1], "evaluated")


class Relevant(Event):
    text: str


class Searched(Event):
    relevant_text: str
    search_text: str


class Corrective(Workflow):
    """Corrective RAG: grades what was found, searches the web, and answers from plain texts."""

    @step
    async def retrieve(self, event: StartEvent) -> Found:
        return Found(nodes=await Shelf(facts(0, 1, 2)).aretrieve(event.query_str))

    @step
    async def grade(self, event: Found) -> Relevant:
        grader = Script(said="no", rules={"Paris": "yes"})
        graded = [(each.text, await grader.acomplete(f"Good? {each.text}")) for each in event.nodes]
        return Relevant(text="\n".join(text for text, grade in graded if str(grade) == "yes"))

    @step
    async def search(self, event: Relevant) -> Searched:
        return Searched(relevant_text=event.text, search_text=NEWS)

    @step
    async def answer(self, event: Searched) -> StopEvent:
        prompt = f"Context: {event.relevant_text}\n{event.search_text}\n{TOWER}"
        return StopEvent(result=str(await Script(said=HIGH).acomplete(prompt)))


async def test_a_plain_text_that_a_step_has_found_is_evidence(monitor: InMemoryMonitor) -> None:
    await Corrective().run(query_str=TOWER)

    assert seen(monitor) == (TOWER, HIGH, [FACTS[0], NEWS], "evaluated")


class Drafting(Workflow):
    """Hands its prompt, the question and a draft from step to step: none of them is evidence."""

    @step
    async def draft(self, event: StartEvent) -> Searched:
        found = await Shelf(facts(0)).aretrieve(event.query)
        draft = await Script(said="A draft of an answer that is longer than a name.").acomplete(
            f"{found[0].text}\n{event.query}"
        )
        prompt = f"{found[0].text}\nDraft: {draft}\n{event.query}"
        return Searched(relevant_text=str(draft), search_text=prompt)

    @step
    async def answer(self, event: Searched) -> StopEvent:
        said = await Script(said=HIGH).acomplete(f"{event.search_text}\n{event.relevant_text}")
        return StopEvent(result=str(said))


async def test_drafts_and_prompts_that_steps_hand_on_are_no_evidence(
    monitor: InMemoryMonitor,
) -> None:
    await Drafting().run(query=TOWER)

    assert seen(monitor) == (TOWER, HIGH, FACTS[:1], "evaluated")


# --- agents ---------------------------------------------------------------------------------------

# LlamaIndex looks through all attributes of its own agents, deprecated ones among them.
agents_look_around = pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecationWarning")


def news(input: str) -> str:
    return NEWS


def found_nodes(input: str) -> list[NodeWithScore]:
    return facts(0)


def tool(kind: str) -> Any:
    match kind:
        case "text":
            return FunctionTool.from_defaults(news, name="find", description="find")
        case "nodes":
            return FunctionTool.from_defaults(found_nodes, name="find", description="find")
        case "retriever":
            return RetrieverTool.from_defaults(Shelf(facts(0)), name="find", description="find")
        case _:
            return tool_of(rag("An inner answer of 330 metres.", 0), "find")


@agents_look_around
@pytest.mark.parametrize("in_workflow", [False, True])
@pytest.mark.parametrize(
    ("kind", "chunks"),
    [("text", [NEWS]), ("nodes", FACTS[:1]), ("retriever", FACTS[:1]), ("engine", FACTS[:1])],
)
async def test_an_agent_is_judged_on_what_its_tools_returned(
    monitor: InMemoryMonitor, kind: str, chunks: list[str], in_workflow: bool
) -> None:
    await ask_agent([tool(kind)], TOWER, HIGH, in_workflow=in_workflow)

    assert seen(monitor) == (TOWER, HIGH, chunks, "evaluated")


@agents_look_around
@pytest.mark.filterwarnings("ignore:is_running:DeprecationWarning")  # by its own agent
async def test_an_observation_of_a_reasoning_agent_is_evidence(monitor: InMemoryMonitor) -> None:
    acting = 'Thought: I search.\nAction: find\nAction Input: {"input": "tower"}'
    model = Script(
        said=acting, rules={"Observation: A newspaper": f"Thought: Done.\nAnswer: {HIGH}"}
    )

    await ReActAgent(tools=[tool("text")], llm=model).run(user_msg=TOWER, memory=memory_of([]))

    assert seen(monitor) == (TOWER, HIGH, [NEWS], "evaluated")


# --- structured answers ---------------------------------------------------------------------------


class Reasoned(BaseModel):
    certainty: str
    answer: str


class Listed(BaseModel):
    title: str
    findings: list[str]
    pages: int


STRUCTURED = [
    (Reasoned, '{"certainty": "high", "answer": "It is 330 metres."}', "It is 330 metres."),
    (
        Listed,
        '{"title": "The tower", "findings": ["It is high.", "It is of iron."], "pages": 3}',
        "The tower\nIt is high.\nIt is of iron.",
    ),
]


@pytest.mark.parametrize("how", ["class", "model"])
@pytest.mark.parametrize(("kind", "said", "text"), STRUCTURED, ids=["answer", "fields"])
def test_a_structured_answer_is_read_as_its_texts(
    monitor: InMemoryMonitor,
    kind: type[BaseModel],
    said: str,
    text: str,
    how: str,
) -> None:
    index = VectorStoreIndex([found.node for found in facts(0)])
    model = Script(said=said)
    if how == "class":
        engine = index.as_query_engine(llm=model, output_cls=kind)
    else:
        engine = index.as_query_engine(llm=model.as_structured_llm(kind))

    engine.query(TOWER)

    assert seen(monitor) == (TOWER, text, FACTS[:1], "evaluated")


@agents_look_around
async def test_a_structured_answer_of_an_agent_is_read_as_its_texts(
    monitor: InMemoryMonitor,
) -> None:
    def structure(messages: list[ChatMessage]) -> dict[str, Any]:
        return {"certainty": "high", "answer": "It is 330 metres."}

    await ask_agent([tool("retriever")], TOWER, HIGH, structure=structure)

    assert seen(monitor) == (TOWER, "It is 330 metres.", FACTS[:1], "evaluated")


# --- what happens after the call ------------------------------------------------------------------


def test_what_is_done_with_a_response_changes_no_record(monitor: InMemoryMonitor) -> None:
    response = rag(HIGH, 0, 1).query(TOWER)
    for found in response.source_nodes:
        found.node.set_content("shortened")
        found.node.metadata.clear()
        found.score = 0.0
    response.source_nodes.clear()
    response.metadata = None
    setattr(response, "response", "changed")  # noqa: B010 - not all kinds of response have it

    assert seen(monitor) == (TOWER, HIGH, FACTS[:2], "evaluated")
    first = monitor.only_record().record.chunks[0]
    assert (first.score, first.metadata["source"]) == (0.9, "shelf")


def test_what_is_done_with_nodes_that_were_given_changes_no_record(
    monitor: InMemoryMonitor,
) -> None:
    nodes = facts(0, 1)
    synthesizer_of(Script(said=HIGH)).synthesize(TOWER, nodes=nodes)
    nodes.pop().node.set_content("shortened")
    nodes.pop().node.set_content("shortened")

    assert seen(monitor) == (TOWER, HIGH, FACTS[:2], "evaluated")


def test_what_is_done_with_a_history_changes_no_record(monitor: InMemoryMonitor) -> None:
    history = [ChatMessage(f"Use this: {FACTS[0]}"), ChatMessage(TOWER)]

    @span
    def answer(chat_history: list[ChatMessage]) -> str:
        Shelf(facts(0, 1)).retrieve(TOWER)
        return str(Script(said=HIGH).chat(chat_history).message.content)

    answer(history)
    history[0].blocks = []
    history[1].blocks = []
    history.append(ChatMessage("And the bridge?"))

    assert seen(monitor) == (TOWER, HIGH, FACTS[:1], "evaluated")


def test_a_structured_answer_that_is_changed_later_changes_no_record(
    monitor: InMemoryMonitor,
) -> None:
    @span
    def answer(question: str) -> Reasoned:
        return Reasoned(certainty="high", answer=str(rag(HIGH, 0).query(question)))

    answer(TOWER).answer = "changed"

    assert seen(monitor) == (TOWER, HIGH, FACTS[:1], "evaluated")


def test_a_response_can_be_freed_before_its_record_is_read(monitor: InMemoryMonitor) -> None:
    responses = [rag(HIGH, 0, streaming=True).query(TOWER)]
    "".join(read(responses[0]))
    responses.clear()
    gc.collect()

    assert seen(monitor) == (TOWER, HIGH, FACTS[:1], "evaluated")
