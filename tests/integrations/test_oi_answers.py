"""What OpenInference's spans show of the pipeline's output is the answer, and no model's words."""

# No postponed annotations: OpenInference's Haystack instrumentor takes the types as they stand.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUntypedFunctionDecorator=false
# The frameworks leave some of their generics open.

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from haystack import Pipeline, component
from haystack.components.builders import ChatPromptBuilder
from haystack.components.routers import ConditionalRouter
from haystack.dataclasses import ChatMessage
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import NodeWithScore
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from openinference.instrumentation.haystack import HaystackInstrumentor
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from pydantic import BaseModel

from claimspan_tracing.decide.status import Status
from claimspan_tracing.testing import InMemoryMonitor

from hs_pipelines import Shelf as HaystackShelf
from hs_pipelines import prompt
from li_agents import Filling, ask_graded
from li_pipelines import Script as Scripted
from li_pipelines import Shelf
from oi_spans import monitored, traced

# LlamaIndex and its instrumentor look at every attribute of an object, deprecated ones too.
pytestmark = pytest.mark.filterwarnings("ignore::pydantic.PydanticDeprecationWarning")

QUESTION = "How long is the Drava?"
SORRY = "Sorry, the handbook says nothing of that river."
DRAFT = "The Drava is 900 kilometres long."


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with (
        monitored() as made,
        traced(made, HaystackInstrumentor(), LlamaIndexInstrumentor()),
    ):
        yield made


@component
class ShelfRetriever(HaystackShelf):
    """OpenInference takes a component for a retriever by its name."""


@component
class GradingChatGenerator:
    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, Any]:
        return {"replies": [ChatMessage.from_assistant("no")]}


@component
class DraftingChatGenerator:
    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, Any]:
        return {"replies": [ChatMessage.from_assistant(DRAFT)]}


@component
class Withholding:
    """Returns a sentence in place of a reply, under a name of its own."""

    @component.output_types(answer=str)
    def run(self, replies: list[ChatMessage]) -> dict[str, Any]:
        return {"answer": SORRY}


@component
class Citing:
    """Adds the number of sources to a reply, under a name that nobody knows."""

    @component.output_types(with_sources=str)
    def run(self, replies: list[ChatMessage]) -> dict[str, Any]:
        return {"with_sources": f"{replies[0].text}\n\nSources: 2"}


def pipeline_to(last: Any) -> Pipeline:
    """A RAG pipeline whose reply goes to a last component, which gives the answer."""
    pipeline = Pipeline()
    pipeline.add_component("retriever", ShelfRetriever())
    pipeline.add_component("prompt_builder", prompt())
    pipeline.add_component("llm", DraftingChatGenerator())
    pipeline.add_component("last", last)
    pipeline.connect("retriever.documents", "prompt_builder.documents")
    pipeline.connect("prompt_builder.prompt", "llm.messages")
    pipeline.connect("llm.replies", "last.replies")
    return pipeline


def graded_pipeline() -> Pipeline:
    """A pipeline in which a model checks what was found, and a router answers where it is none."""
    routes: Any = [
        {
            "condition": "{{ replies[0].text == 'no' }}",
            "output": SORRY,
            "output_name": "answer",
            "output_type": str,
        },
        {
            "condition": "{{ replies[0].text != 'no' }}",
            "output": "{{ replies }}",
            "output_name": "passed",
            "output_type": list[ChatMessage],
        },
    ]
    check = "Do these answer it? yes or no\n{% for d in documents %}{{ d.content }}\n{% endfor %}"
    asked = ChatMessage.from_user(check + "{{ question }}")
    pipeline = Pipeline()
    pipeline.add_component("retriever", ShelfRetriever())
    pipeline.add_component("prompt_builder", ChatPromptBuilder([asked], required_variables="*"))
    pipeline.add_component("grader", GradingChatGenerator())
    pipeline.add_component("router", ConditionalRouter(routes))
    pipeline.connect("retriever.documents", "prompt_builder.documents")
    pipeline.connect("prompt_builder.prompt", "grader.messages")
    pipeline.connect("grader.replies", "router.replies")
    return pipeline


@pytest.mark.parametrize(
    ("pipeline", "answer"),
    [
        (lambda: pipeline_to(Withholding()), SORRY),
        (lambda: pipeline_to(Citing()), f"{DRAFT}\n\nSources: 2"),
        (graded_pipeline, SORRY),
    ],
    ids=["withheld", "unknown-name", "graded"],
)
def test_the_answer_of_haystack_is_what_its_last_component_returned(
    pipeline: Any, answer: str, monitor: InMemoryMonitor
) -> None:
    asked = {"retriever": {"query": QUESTION}, "prompt_builder": {"question": QUESTION}}
    pipeline().run(asked)

    assert monitor.only_record().record.response == answer


def test_the_answer_of_a_workflow_is_its_result_and_not_the_verdict_of_a_grader(
    monitor: InMemoryMonitor,
) -> None:
    asyncio.run(ask_graded(Shelf(), QUESTION, SORRY))

    assert monitor.only_record().record.response == SORRY


def test_a_long_result_of_a_workflow_that_no_model_gave_is_not_judged_by_its_beginning(
    monitor: InMemoryMonitor,
) -> None:
    asyncio.run(ask_graded(Shelf(), QUESTION, f"{SORRY} {SORRY} {SORRY}"))

    record = monitor.only_record()
    assert (record.record.response, record.status) == ("", Status.NO_ANSWER)


LONG = "The Drava is 725 kilometres long, and flows from South Tyrol to the Danube [1]."


class Start(StartEvent):
    question: str


class Stop(StopEvent):
    reply: str
    metres: int


def told(found: list[NodeWithScore], question: str) -> str:
    return "\n".join(each.text for each in found) + f"\n\nQuestion: {question}"


class Edited(Workflow):
    """Returns what a model has said with its mark of a source put otherwise."""

    @step
    async def answer(self, event: Start) -> Stop:
        found = await Shelf().aretrieve(event.question)
        said = await Scripted(said="It is 725 km [1].").acomplete(told(found, event.question))
        return Stop(reply=str(said).replace("[1]", "(page 3)"), metres=725_000)


def test_the_answer_of_a_workflow_is_what_its_own_event_shows(monitor: InMemoryMonitor) -> None:
    asyncio.run(ran(Edited(), start_event=Start(question=QUESTION)))

    record = monitor.only_record()
    assert record.record.query == QUESTION
    assert record.record.response == "It is 725 km (page 3)."


class Cited(Workflow):
    """Edits the beginning of a long answer, of which a span shows no more."""

    @step
    async def answer(self, event: StartEvent) -> StopEvent:
        found = await Shelf().aretrieve(event.query)
        said = await Scripted(said=LONG).acomplete(told(found, event.query))
        return StopEvent(result=str(said).replace("725", event.number))


def test_a_workflow_whose_answer_its_span_has_cut_off_is_judged_only_by_a_text_that_begins_so(
    monitor: InMemoryMonitor,
) -> None:
    asyncio.run(ran(Cited(), query=QUESTION, number="725"))
    asyncio.run(ran(Cited(), query=QUESTION, number="seven hundred"))

    whole, edited = monitor.records()
    assert (whole.record.response, whole.status) == (LONG, Status.EVALUATED)
    assert (edited.record.response, edited.status) == ("", Status.NO_ANSWER)
    assert "claimspan_llama_index" in edited.job.reason


class Report(BaseModel):
    """A report on a river."""

    title: str
    findings: list[str]


FINDINGS = [
    "The Drava is 725 kilometres long.",
    "It flows from South Tyrol to the Danube, which takes it past Maribor, and then past Osijek. "
    "It is colder than the Mura, and a good deal longer than that one, too.",
]


class Filled(Workflow):
    """Returns the fields that a model has filled in, of which a span shows the beginning."""

    @step
    async def answer(self, event: StartEvent) -> StopEvent:
        found = await Shelf().aretrieve(event.query)
        fields = json.dumps({"title": "The Drava", "findings": FINDINGS})
        said = await Scripted(said=fields).acomplete(told(found, event.query))
        return StopEvent(result=Report.model_validate_json(str(said)))


def test_a_long_question_of_a_workflow_is_read_whole(
    monitor: InMemoryMonitor,
) -> None:
    asked = f"{QUESTION} Tell me as well where it comes from, and into which river it flows."
    asyncio.run(ran(Edited(), start_event=Start(question=asked)))

    assert monitor.only_record().record.query == asked


def test_fields_that_the_span_of_a_workflow_has_cut_are_those_that_a_model_filled_in(
    monitor: InMemoryMonitor,
) -> None:
    asyncio.run(ran(Filled(), query=QUESTION))

    record = monitor.only_record()
    assert record.record.response == "\n".join(["The Drava", *FINDINGS])
    assert record.status == Status.EVALUATED


class Parted(Workflow):
    """Searches the parts of a question, and has a model answer all of it."""

    @step
    async def answer(self, event: StartEvent) -> StopEvent:
        found = [each for part in ("Drava", "the length") for each in await Shelf().aretrieve(part)]
        prompt = told(found, event.query)
        prompt = prompt if event.is_labelled else prompt.replace("Question: ", "")
        return StopEvent(result=str(await Scripted(said="It is 725 km.").acomplete(prompt)))


def test_a_part_of_a_question_that_was_searched_for_is_not_taken_for_the_question(
    monitor: InMemoryMonitor,
) -> None:
    asyncio.run(ran(Parted(), query=QUESTION, is_labelled=True))
    asyncio.run(ran(Parted(), query=QUESTION, is_labelled=False))

    labelled, other = monitor.records()
    assert (labelled.record.query, labelled.status) == (QUESTION, Status.EVALUATED)
    assert (other.record.query, other.status) == ("", Status.NO_ANSWER)
    assert "query_key" in other.job.reason


async def ran(workflow: Workflow, **given: Any) -> None:
    await workflow.run(**given)


@component
class EchoingChatGenerator:
    """Answers with what the prompt ends with."""

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage]) -> dict[str, Any]:
        return {"replies": [ChatMessage.from_assistant(f"To {messages[-1].text}: 725 km.")]}


def test_no_question_of_two_branches_gets_the_answer_to_the_other_one(
    monitor: InMemoryMonitor,
) -> None:
    pipeline, asked = Pipeline(), dict[str, Any]()
    for branch, question in {"1": QUESTION, "2": "How deep is the Mura in summer?"}.items():
        pipeline.add_component(f"retriever{branch}", ShelfRetriever())
        pipeline.add_component(f"prompt{branch}", prompt())
        pipeline.add_component(f"llm{branch}", EchoingChatGenerator())
        pipeline.connect(f"retriever{branch}.documents", f"prompt{branch}.documents")
        pipeline.connect(f"prompt{branch}.prompt", f"llm{branch}.messages")
        asked[f"retriever{branch}"] = {"query": question}
        asked[f"prompt{branch}"] = {"question": question}
    pipeline.run(asked)

    assert monitor.only_record().status == Status.SEVERAL_ANSWERS


def test_the_answer_of_an_engine_is_what_its_model_fills_in_and_not_its_prompt(
    monitor: InMemoryMonitor,
) -> None:
    fields = {"title": "The Drava", "findings": ["It is 725 km long.", "It is cold."]}
    model = Filling(wanted=[], said="", tool="Report", fields=fields)
    engine = RetrieverQueryEngine.from_args(Shelf(), llm=model.as_structured_llm(Report))
    engine.query(QUESTION)

    record = monitor.only_record()
    assert record.record.response == "The Drava\nIt is 725 km long.\nIt is cold."
    assert record.status == Status.EVALUATED
