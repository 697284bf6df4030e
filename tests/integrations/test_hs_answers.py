"""Of all that a Haystack pipeline's models say, one text is the answer, judged by its prompt."""

# No postponed annotations: Haystack before 2.24 takes the types of a component as they stand.

import json
from collections.abc import Iterator
from typing import Any

import pytest
from haystack import Pipeline, component
from haystack.components.builders import AnswerBuilder, ChatPromptBuilder, PromptBuilder
from haystack.components.generators.chat import FallbackChatGenerator
from haystack.components.joiners import BranchJoiner
from haystack.components.routers import ConditionalRouter
from haystack.components.validators import JsonSchemaValidator
from haystack.dataclasses import ChatMessage, StreamingChunk

import claimspan_haystack
from claimspan_tracing.job import GeneratorRun
from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import attached, judged, read, searches
from hs_scripts import (
    DOCUMENTS,
    Says,
    SaysText,
    Shelf,
    adapter,
    asking,
    chat_prompt,
    every_way,
    facts,
    plain_rag,
    run_in,
)


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with attached(claimspan_haystack.instrument) as made:
        yield made


# --- the answer, and what is said beside it ------------------------------------------------------


@every_way
def test_the_answer_of_a_plain_pipeline_is_judged_by_its_prompt(
    monitor: InMemoryMonitor, way: str
) -> None:
    run_in(way, plain_rag(), asking())

    judged(monitor.only_record(), FACTS)


def test_a_streamed_answer_is_judged_as_any_other(monitor: InMemoryMonitor) -> None:
    words: list[str] = []

    def hear(chunk: StreamingChunk) -> None:
        words.append(chunk.content)

    plain_rag().run(asking() | {"llm": {"streaming_callback": hear}})

    assert "".join(words).strip() == HIGH
    judged(monitor.only_record(), FACTS)


def graded_rag(grade: str, *, builds_answer: bool) -> Pipeline:
    pipeline = plain_rag()
    template = "Is this in the documents?\n" + DOCUMENTS + "{{ replies[0].text }}"
    pipeline.add_component("question_back", chat_prompt(template))
    pipeline.add_component("second", Says(grade))
    pipeline.connect("shelf.documents", "question_back.documents")
    pipeline.connect("llm.replies", "question_back.replies")
    pipeline.connect("question_back.prompt", "second.messages")
    if builds_answer:
        pipeline.add_component("builder", AnswerBuilder())
        pipeline.connect("llm.replies", "builder.replies")
    return pipeline


@every_way
@pytest.mark.parametrize("shows", ["builder", "llm", "nothing"])
def test_what_a_grader_says_after_the_answer_is_not_the_answer(
    monitor: InMemoryMonitor, way: str, shows: str
) -> None:
    pipeline = graded_rag("yes", builds_answer=shows == "builder")
    data = asking() | ({"builder": {"query": TOWER}} if shows == "builder" else {})
    run_in(way, pipeline, data, include_outputs_from={"llm"} if shows == "llm" else set())

    judged(monitor.only_record(), FACTS)


@pytest.mark.parametrize("grade", ["Yes.", '{"binary_score": "yes", "reason": "It is in there."}'])
def test_a_grade_is_one_in_whatever_form_it_is_said(monitor: InMemoryMonitor, grade: str) -> None:
    graded_rag(grade, builds_answer=False).run(asking(), include_outputs_from={"llm"})

    judged(monitor.only_record(), FACTS)


def test_a_short_answer_after_a_rewritten_question_is_no_grade(monitor: InMemoryMonitor) -> None:
    pipeline = Pipeline()
    pipeline.add_component("rewrite", SaysText("tower metres"))
    pipeline.add_component("shelf", Shelf(facts()))
    pipeline.add_component("first", adapter("{{ replies[0] }}"))
    pipeline.add_component("prompt", PromptBuilder(DOCUMENTS + "{{ short }}\n{{ question }}"))
    pipeline.add_component("llm", SaysText("Yes"))
    pipeline.connect("rewrite.replies", "first.replies")
    pipeline.connect("first.output", "shelf.query")
    pipeline.connect("first.output", "prompt.short")
    pipeline.connect("shelf.documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "llm.prompt")
    pipeline.run({"rewrite": {"prompt": "Shorten it"}, "prompt": {"question": TOWER}})

    record = monitor.only_record()
    judged(record, FACTS, "Yes")
    assert searches(record) == ["tower metres"]


@every_way
def test_a_title_beside_the_answer_is_not_the_answer(monitor: InMemoryMonitor, way: str) -> None:
    pipeline = plain_rag()
    pipeline.add_component("titles", chat_prompt("A title for: {{ replies[0].text }}"))
    pipeline.add_component("title", Says("The height of a tower"))
    pipeline.connect("llm.replies", "titles.replies")
    pipeline.connect("titles.prompt", "title.messages")
    run_in(way, pipeline, asking(), include_outputs_from={"llm"})

    judged(monitor.only_record(), FACTS)


@every_way
def test_a_grade_of_the_documents_beside_the_answer_is_not_the_answer(
    monitor: InMemoryMonitor, way: str
) -> None:
    pipeline = plain_rag()
    pipeline.add_component("relevance", chat_prompt("Are these of use?\n" + DOCUMENTS))
    pipeline.add_component("z", Says("yes"))
    pipeline.connect("shelf.documents", "relevance.documents")
    pipeline.connect("relevance.prompt", "z.messages")
    run_in(way, pipeline, asking())

    judged(monitor.only_record(), FACTS)


# --- loops and fallbacks -------------------------------------------------------------------------


def test_a_draft_that_a_validator_sends_back_does_not_count(monitor: InMemoryMonitor) -> None:
    schema = {
        "type": "object",
        "required": ["answer"],
        "properties": {"answer": {"type": "string"}},
    }
    pipeline = Pipeline(max_runs_per_component=3)
    pipeline.add_component("shelf", Shelf(facts()))
    pipeline.add_component("prompt", chat_prompt())
    pipeline.add_component("again", BranchJoiner(list[ChatMessage]))
    pipeline.add_component("llm", Says("A draft of no use.", json.dumps({"answer": HIGH})))
    pipeline.add_component("validator", JsonSchemaValidator(schema))
    pipeline.connect("shelf.documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "again")
    pipeline.connect("again", "llm.messages")
    pipeline.connect("llm.replies", "validator.messages")
    pipeline.connect("validator.validation_error", "again")
    pipeline.run(asking())

    judged(monitor.only_record(), FACTS)


def test_a_fixed_text_in_place_of_a_draft_is_the_answer(monitor: InMemoryMonitor) -> None:
    sorry = "I am sorry, I cannot say."
    routes: list[Any] = [
        {
            "condition": "{{ 'draft' in replies[0].text }}",
            "output": sorry,
            "output_name": "fallback",
            "output_type": str,
        },
        {
            "condition": "{{ True }}",
            "output": "{{ replies[0].text }}",
            "output_name": "answer",
            "output_type": str,
        },
    ]
    pipeline = plain_rag("A draft of no use.")
    pipeline.add_component("router", ConditionalRouter(routes))
    pipeline.connect("llm.replies", "router.replies")
    pipeline.run(asking())

    assert read(monitor.only_record())[:2] == (TOWER, sorry)


@component
class Failing:
    @component.output_types(replies=list[ChatMessage])
    def run(
        self,
        messages: list[ChatMessage],
        generation_kwargs: Any = None,
        tools: Any = None,
        streaming_callback: Any = None,
    ) -> dict[str, Any]:
        raise RuntimeError("the model is down")


@component
class Spare:
    @component.output_types(replies=list[ChatMessage])
    def run(
        self,
        messages: list[ChatMessage],
        generation_kwargs: Any = None,
        tools: Any = None,
        streaming_callback: Any = None,
    ) -> dict[str, Any]:
        return {"replies": [ChatMessage.from_assistant(HIGH)]}


def test_the_model_that_another_one_falls_back_to_gives_the_answer(
    monitor: InMemoryMonitor,
) -> None:
    models: list[Any] = [Failing(), Spare()]
    pipeline = Pipeline()
    pipeline.add_component("llm", FallbackChatGenerator(models))
    pipeline.run({"llm": {"messages": [ChatMessage.from_user(TOWER)]}})

    record = monitor.only_record()
    assert read(record)[:2] == (TOWER, HIGH)
    completions = [run.completion for run in record.job.runs if isinstance(run, GeneratorRun)]
    assert completions == [HIGH]


def test_a_check_of_the_answer_that_begins_with_its_grade_is_not_the_answer(
    monitor: InMemoryMonitor,
) -> None:
    pipeline = plain_rag(HIGH)
    checked = "Is this true?\n{{ replies[0].text }}\nDocuments:\n" + DOCUMENTS
    pipeline.add_component("check", chat_prompt(checked))
    pipeline.add_component("second", Says("Yes, the documents say the same."))
    pipeline.connect("llm.replies", "check.replies")
    pipeline.connect("shelf.documents", "check.documents")
    pipeline.connect("check.prompt", "second.messages")
    pipeline.run(asking())

    assert read(monitor.only_record()) == (TOWER, HIGH, FACTS, "evaluated")


def test_an_answer_that_a_loop_has_corrected_is_no_check_of_the_first_one(
    monitor: InMemoryMonitor,
) -> None:
    routes: list[Any] = [
        {
            "condition": "{{ 'Yes' in replies[0].text }}",
            "output": "{{ replies[0].text }}",
            "output_name": "answer",
            "output_type": str,
        },
        {
            "condition": "{{ 'Yes' not in replies[0].text }}",
            "output": "{{ replies[0].text }}",
            "output_name": "rejected",
            "output_type": str,
        },
    ]
    rejected, corrected = "No, it is not that high.", "Yes, it is 330 metres high."
    pipeline = Pipeline()
    template = [ChatMessage.from_user("{{ question }}\nNot this: {{ rejected }}\n" + FACTS[0])]
    builder = ChatPromptBuilder(template, required_variables=["question"])
    pipeline.add_component("prompt", builder)
    pipeline.add_component("llm", Says(rejected, corrected))
    pipeline.add_component("router", ConditionalRouter(routes))
    pipeline.connect("prompt.prompt", "llm.messages")
    pipeline.connect("llm.replies", "router.replies")
    pipeline.connect("router.rejected", "prompt.rejected")
    pipeline.run({"prompt": {"question": TOWER}})

    assert read(monitor.only_record())[:2] == (TOWER, corrected)


def test_a_name_that_only_ends_like_an_id_may_be_the_question(monitor: InMemoryMonitor) -> None:
    pipeline = Pipeline()
    pipeline.add_component("prompt", chat_prompt("{{ bid }}"))
    pipeline.add_component("llm", Says(HIGH))
    pipeline.connect("prompt.prompt", "llm.messages")
    pipeline.run({"prompt": {"bid": TOWER}})

    assert read(monitor.only_record())[:2] == (TOWER, HIGH)
