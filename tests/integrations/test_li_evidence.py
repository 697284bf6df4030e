"""The chunks of a record are what its answer rests on: in engines, workflows and agents."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportDeprecated=false
# LlamaIndex leaves some of its generics and decorators open.

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from llama_index.core import PromptHelper, VectorStoreIndex
from llama_index.core.agent.workflow import CodeActAgent, ReActAgent
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.indices.query.query_transform.base import (
    HyDEQueryTransform,
    StepDecomposeQueryTransform,
)
from llama_index.core.postprocessor import (
    LLMRerank,
    MetadataReplacementPostProcessor,
    SimilarityPostprocessor,
)
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import (
    CitationQueryEngine,
    FLAREInstructQueryEngine,
    MultiStepQueryEngine,
    RouterQueryEngine,
    TransformQueryEngine,
)
from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.selectors import LLMMultiSelector
from llama_index.core.tools import FunctionTool, RetrieverTool
from llama_index.core.workflow import Event, StartEvent, StopEvent, Workflow, step

from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import texts
from li_agents import agents_look_around, ask_agent, tool_of
from li_buildings import ask, facts, monitored, rag, seen
from li_pipelines import Script, Shelf, engine_of, memory_of, synthesizer_of, text_of

OPENED = "The tunnel was opened to trains in 1994, after six years."
NEWS = "A newspaper of today: the tower was measured once more, and is 330 metres high."


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with monitored() as made:
        yield made


# --- engines -------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["plain", "async", "stream", "astream"])
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


RIVERS = {
    "drava": "The Drava is 725 km long and rises in Toblach.",
    "sava": "The Sava is 990 km long and ends in Belgrade.",
    "mura": "The Mura is 464 km long and crosses Graz.",
    "krka": "The Krka is 94 km long and passes Novo Mesto.",
    "soca": "The Soca is 138 km long and flows to Monfalcone.",
}


def page_about(river: str) -> str:
    return (
        f"{RIVERS[river]}\n\nMore on {river}: it's well known, see the note in the guide for"
        f" {river.upper()}, where 50 % of all visitors begin.\n- first point about {river}, which"
        f" guides repeat to each group\n- second point about {river}: open daily, 9 to 17 h\n\n"
        f"| {river} | value |\n|---|---|\n| length | as above |"
    )


@pytest.mark.parametrize("words", [230, 260, 290])
def test_a_node_that_is_split_between_prompts_is_one_chunk(
    monitor: InMemoryMonitor, words: int
) -> None:
    synthesizer = get_response_synthesizer(
        llm=Script(said=HIGH),
        response_mode=ResponseMode.TREE_SUMMARIZE,
        prompt_helper=PromptHelper(words, 64, tokenizer=str.split),
    )
    nodes = [TextNode(id_=river, text=page_about(river)) for river in RIVERS]

    synthesizer.synthesize(TOWER, [NodeWithScore(node=node) for node in nodes])

    assert [chunk.id for chunk in monitor.only_record().record.chunks] == [*RIVERS]


def test_a_window_takes_the_place_of_the_sentence_in_it(monitor: InMemoryMonitor) -> None:
    """Sentences end in a space, as LlamaIndex's parser leaves them, and prompts lack it."""
    window = f"Paris has a tower.  {FACTS[0]}  It was painted again last year. "
    node = TextNode(text=f"{FACTS[0]} ", id_="s1", metadata={"window": window})
    replaced = MetadataReplacementPostProcessor(target_metadata_key="window")
    shelf = Shelf([NodeWithScore(node=node, score=0.9)])

    engine_of(shelf, Script(said=HIGH), postprocessors=[replaced]).query(TOWER)

    question, answer, chunks, status = seen(monitor)
    assert (question, answer, status) == (TOWER, HIGH, "evaluated")
    assert [chunk.strip() for chunk in chunks] == [window.strip()]


def test_a_model_that_is_called_by_itself_is_asked_what_its_prompt_asks(
    monitor: InMemoryMonitor,
) -> None:
    prompt = f"Context:\n{FACTS[0]}\n\nQuestion: {TOWER}"
    Script(said=HIGH).complete(prompt)

    assert seen(monitor) == (TOWER, HIGH, [FACTS[0]], "evaluated")


def test_answers_of_a_workflow_to_several_questions_are_not_judged_as_one(
    monitor: InMemoryMonitor,
) -> None:
    class Many(Workflow):
        @step
        async def answer(self, ev: StartEvent) -> StopEvent:
            model = Script(rules={TOWER: HIGH, "tunnel": OPENED})
            found = {q: Shelf(facts(0)).retrieve(q)[0].text for q in ev.questions}
            said = {q: await model.acomplete(f"{text}\n{q}") for q, text in found.items()}
            return StopEvent(result={question: str(each) for question, each in said.items()})

    asked = [TOWER, "When was the tunnel opened?"]
    asyncio.run(run_workflow(Many(), questions=asked))

    record = monitor.records(20)[-1]
    assert record.status == "several_answers"
    assert HIGH in record.record.response
    assert OPENED in record.record.response


async def run_workflow(workflow: Workflow, **given: Any) -> object:
    return await workflow.run(**given)


@pytest.mark.parametrize("first", [HIGH, f"{HIGH} No other document says that it was measured."])
def test_accumulated_answers_rest_on_all_that_each_of_them_read(
    monitor: InMemoryMonitor, first: str
) -> None:
    model = Script(rules={FACTS[0]: first, FACTS[2]: OPENED})

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


# --- workflows of the tutorials ------------------------------------------------------------------


class Found(Event):
    nodes: list[NodeWithScore]


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


# --- agents --------------------------------------------------------------------------------------


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


def reflect(input: str) -> str:
    return f"Reflection recorded: {input}"


def fail(input: str) -> str:
    raise ConnectionError(f"{input} has no connection to its index at the moment")


@agents_look_around
@pytest.mark.parametrize("idle", [reflect, fail])
async def test_errors_of_tools_and_what_they_repeat_are_no_evidence(
    monitor: InMemoryMonitor, idle: Callable[[str], str]
) -> None:
    other = FunctionTool.from_defaults(idle, name="look_for_the_tower_first", description="other")
    await ask_agent([other, tool("text")], TOWER, HIGH)

    assert seen(monitor) == (TOWER, HIGH, [NEWS], "evaluated")


@agents_look_around
@pytest.mark.filterwarnings("ignore:is_running:DeprecationWarning")  # by its own agent
async def test_an_observation_of_a_reasoning_agent_is_evidence(monitor: InMemoryMonitor) -> None:
    acting = 'Thought: I search.\nAction: find\nAction Input: {"input": "tower"}'
    model = Script(
        said=acting, rules={"Observation: A newspaper": f"Thought: Done.\nAnswer: {HIGH}"}
    )

    await ReActAgent(tools=[tool("text")], llm=model).run(user_msg=TOWER, memory=memory_of([]))

    assert seen(monitor) == (TOWER, HIGH, [NEWS], "evaluated")


@agents_look_around
async def test_the_instructions_of_an_agent_that_writes_code_are_no_evidence(
    monitor: InMemoryMonitor,
) -> None:
    agent = CodeActAgent(code_execute_fn=reflect, llm=Script(said=HIGH), tools=[])

    await agent.run(user_msg=TOWER, memory=memory_of([]))

    assert seen(monitor) == (TOWER, HIGH, [], "no_context")


class Cutting(BaseNodePostprocessor):
    """Makes new nodes of the beginnings of those that were found."""

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        cut = [TextNode(text=node.node.get_content()[:CUT]) for node in nodes]
        return [NodeWithScore(node=node, score=1.0) for node in cut]


CUT = 48
"""Characters at which the last fact is cut within a word."""


def test_a_node_that_was_cut_is_one_chunk(monitor: InMemoryMonitor) -> None:
    engine_of(Shelf(facts(0, 2)), Script(said=HIGH), postprocessors=[Cutting()]).query(TOWER)

    assert FACTS[2][CUT - 1 : CUT + 1].isalpha()
    assert texts(monitor.only_record()) == [FACTS[0][:CUT], FACTS[2][:CUT]]


@agents_look_around
@pytest.mark.filterwarnings("ignore:is_running:DeprecationWarning")  # by its own agent
async def test_the_last_thought_of_an_agent_is_no_evidence(monitor: InMemoryMonitor) -> None:
    thought = "I can answer without using any more tools. I'll use the user's language to answer"
    acting = 'Thought: I search.\nAction: find\nAction Input: {"input": "tower"}'
    model = Script(
        said=acting, rules={"Observation: A newspaper": f"Thought: {thought}\nAnswer: {HIGH}"}
    )

    await ReActAgent(tools=[tool("text")], llm=model).run(user_msg=TOWER, memory=memory_of([]))

    assert seen(monitor) == (TOWER, HIGH, [NEWS], "evaluated")
