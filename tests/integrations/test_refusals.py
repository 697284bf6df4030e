"""A refusal that code wrote, after models had dropped all that was found, is judged by nothing."""

# No postponed annotations: Haystack and LlamaIndex's workflows read them from the functions.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUntypedFunctionDecorator=false, reportMissingTypeArgument=false
# pyright: reportMissingTypeStubs=false, reportUnknownLambdaType=false
# The frameworks leave some of their generics and decorators open.

import asyncio
from typing import Any, TypedDict

from haystack import Pipeline
from haystack.components.builders import PromptBuilder
from haystack.components.routers import ConditionalRouter
from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, StateGraph
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step

import claimspan_haystack
import claimspan_llama_index
from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import attached, judged, read
from hs_scripts import SaysText, facts
from hs_scripts import Shelf as HaystackShelf
from lc_buildings import config, documents, joined
from lc_pipelines import Script, Shelf
from li_pipelines import Script as LlamaScript
from li_pipelines import Shelf as LlamaShelf

SORRY = "Sorry, the handbook says nothing of that building."
GRADE = "Do these texts answer the question? Say yes or no.\n{texts}\n{question}"


class Talk(TypedDict):
    question: str
    documents: list[Any]
    generation: str


def corrective(verdict: str) -> Any:
    """The graph of the tutorial on corrective RAG, with a refusal where nothing is left."""
    grader, writer = Script(lines=[verdict]), Script(lines=[HIGH])

    def retrieve(state: Talk) -> dict[str, Any]:
        return {"documents": Shelf(documents=documents(*FACTS)).invoke(state["question"])}

    def grade(state: Talk) -> dict[str, Any]:
        asked = GRADE.format(texts=joined(state["documents"]), question=state["question"])
        is_kept = grader.invoke(asked).content == "yes"
        return {"documents": state["documents"] if is_kept else []}

    def generate(state: Talk) -> dict[str, Any]:
        asked = f"Use this:\n{joined(state['documents'])}\n\nQ: {state['question']}"
        return {"generation": str(writer.invoke(asked).content)}

    def refuse(state: Talk) -> dict[str, Any]:
        return {"generation": SORRY}

    graph = StateGraph(Talk)
    for node in (retrieve, grade, generate, refuse):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "retrieve")
    graph.add_edge("retrieve", "grade")
    graph.add_conditional_edges("grade", lambda s: "generate" if s["documents"] else "refuse")
    graph.add_edge("generate", END)
    graph.add_edge("refuse", END)
    return graph.compile()


def test_the_refusal_of_a_graph_whose_grader_has_dropped_everything() -> None:
    with InMemoryMonitor() as monitor:
        corrective("no").invoke({"question": TOWER}, config(monitor))

    assert read(monitor.only_record()) == (TOWER, SORRY, [], "no_context")


def test_what_the_same_graph_answers_is_judged_by_what_its_grader_has_kept() -> None:
    with InMemoryMonitor() as monitor:
        corrective("yes").invoke({"question": TOWER}, config(monitor))

    judged(monitor.only_record(), FACTS)


def test_the_refusal_of_a_function_that_retrieves_and_grades_itself() -> None:
    def answer(question: str) -> str:
        found = joined(Shelf(documents=documents(*FACTS)).invoke(question))
        grade = Script(lines=["No."]).invoke(GRADE.format(texts=found, question=question))
        return HIGH if grade.content == "Yes." else SORRY

    with InMemoryMonitor() as monitor:
        RunnableLambda(answer).invoke(TOWER, config(monitor))

    assert read(monitor.only_record()) == (TOWER, SORRY, [], "no_context")


def test_a_function_that_asks_a_model_which_is_not_seen_keeps_what_its_grader_has_read() -> None:
    def unseen(state: dict[str, Any]) -> str:
        return HIGH

    with InMemoryMonitor() as monitor:

        def graded(question: str) -> dict[str, Any]:
            found = Shelf(documents=documents(*FACTS)).invoke(question)
            Script(lines=["yes"]).invoke(GRADE.format(texts=joined(found), question=question))
            return {"documents": found, "question": question}

        (RunnableLambda(graded) | RunnableLambda(unseen)).invoke(TOWER, config(monitor))

    judged(monitor.only_record(), FACTS)


def test_the_refusal_of_a_router_of_haystack() -> None:
    routes: list[Any] = [
        {
            "condition": "{{ 'no' in replies[0] }}",
            "output": SORRY,
            "output_name": "answer",
            "output_type": str,
        },
        {
            "condition": "{{ 'yes' in replies[0] }}",
            "output": "{{documents}}",
            "output_name": "kept",
            "output_type": list,
        },
    ]
    prompt = GRADE.format(
        texts="{% for d in documents %}{{ d.content }}\n{% endfor %}", question="{{question}}"
    )
    pipeline = Pipeline()
    pipeline.add_component("retriever", HaystackShelf(documents=facts()))
    pipeline.add_component("prompt", PromptBuilder(prompt, required_variables="*"))
    pipeline.add_component("grader", SaysText("no"))
    pipeline.add_component("router", ConditionalRouter(routes, unsafe=True))
    pipeline.connect("retriever.documents", "prompt.documents")
    pipeline.connect("retriever.documents", "router.documents")
    pipeline.connect("prompt", "grader")
    pipeline.connect("grader.replies", "router.replies")

    with attached(claimspan_haystack.instrument) as monitor:
        pipeline.run({"retriever": {"query": TOWER}, "prompt": {"question": TOWER}})

    assert read(monitor.only_record()) == (TOWER, SORRY, [], "no_context")


class Graded(Workflow):
    @step
    async def answer(self, event: StartEvent) -> StopEvent:
        nodes = [NodeWithScore(node=TextNode(text=fact)) for fact in FACTS]
        found = await LlamaShelf(nodes).aretrieve(event.query)
        texts = "\n".join(each.text for each in found)
        asked = GRADE.format(texts=texts, question=event.query)
        grade = await LlamaScript(said="no").acomplete(asked)
        return StopEvent(result=HIGH if grade.text == "yes" else SORRY)


def test_the_refusal_of_a_workflow_of_llama_index() -> None:
    async def run() -> None:
        await Graded().run(query=TOWER)

    with attached(claimspan_llama_index.instrument) as monitor:
        asyncio.run(run())

    assert read(monitor.only_record()) == (TOWER, SORRY, [], "no_context")
