"""A text that a prompt only points back to is what its answer is judged by, in every framework."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUntypedFunctionDecorator=false, reportUnknownArgumentType=false
# The frameworks leave some of their generics and decorators open.

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from haystack import Pipeline
from haystack.components.builders import PromptBuilder
from langchain_core.prompts import ChatPromptTemplate
from llama_index_instrumentation import get_dispatcher

import claimspan_haystack
import claimspan_langchain
import claimspan_llama_index
from claimspan_tracing.testing import CapturedRecord, InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import attached, judged
from hs_scripts import SaysText
from lc_buildings import Way, every_way
from lc_pipelines import Script
from li_pipelines import Script as LlamaScript

span = get_dispatcher("app_of_test_unnamed_evidence").span

ABOVE = "{found}\n\nAnswer the question based on the text above.\n\nQuestion: {question}"
BACKTICKS = "Answer from the text between the backticks.\n```\n{found}\n```\n{question}"
TAGS = "<doc>{found}</doc>\n\n{question}"
POLITE = "{found} is not what you should talk about.\n\n{question}"

every_prompt = pytest.mark.parametrize(
    "prompt", [ABOVE, BACKTICKS, TAGS], ids=["above", "backticks", "tags"]
)
GIVEN = {"found": FACTS[0], "question": TOWER}


def is_from_prompt(record: CapturedRecord) -> None:
    """Check that the first fact is the one chunk, and marked as a text of the prompt."""
    judged(record, FACTS[:1])
    assert record.record.chunks[0].metadata == {"claimspan.chunk.source": "prompt"}


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with attached(claimspan_langchain.instrument) as made:
        yield made


def chain(prompt: str) -> Any:
    return ChatPromptTemplate.from_template(prompt) | Script(lines=[HIGH])


@every_way
@every_prompt
def test_a_text_in_the_prompt_of_a_chain(monitor: InMemoryMonitor, prompt: str, way: Way) -> None:
    way(chain(prompt), GIVEN, {})

    is_from_prompt(monitor.only_record())


@every_prompt
def test_a_text_in_a_prompt_that_a_model_is_called_with_alone(
    monitor: InMemoryMonitor, prompt: str
) -> None:
    asked = prompt.replace("{question}", "Question: {question}") if prompt != ABOVE else prompt
    Script(lines=[HIGH]).invoke(asked.format(**GIVEN))

    is_from_prompt(monitor.only_record())


def test_a_prompt_that_points_to_nothing_has_no_evidence(monitor: InMemoryMonitor) -> None:
    chain(POLITE).invoke(GIVEN)

    assert monitor.only_record().status == "no_context"


@every_prompt
def test_a_text_in_the_prompt_of_a_function_of_llama_index(prompt: str) -> None:
    @span
    def answer(question: str) -> str:
        given = prompt.format(found=FACTS[0], question=question)
        return str(LlamaScript(said=HIGH).complete(given))

    with attached(claimspan_llama_index.instrument) as monitor:
        answer(TOWER)

        is_from_prompt(monitor.only_record())


def haystack(prompt: str) -> None:
    pipeline = Pipeline()
    template = prompt.replace("{found}", FACTS[0]).replace("{question}", "{{ question }}")
    pipeline.add_component("prompt", PromptBuilder(template, required_variables="*"))
    pipeline.add_component("llm", SaysText(HIGH))
    pipeline.connect("prompt.prompt", "llm.prompt")
    pipeline.run({"prompt": {"question": TOWER}})


@every_prompt
def test_a_text_in_the_template_of_a_haystack_pipeline(prompt: str) -> None:
    with attached(claimspan_haystack.instrument) as monitor:
        haystack(prompt)

        is_from_prompt(monitor.only_record())


def test_the_messages_of_an_earlier_turn_are_no_evidence(monitor: InMemoryMonitor) -> None:
    """The question of an earlier turn had a text with it, which this one does not point to."""
    before = [
        ("human", ABOVE.format(found=FACTS[1], question="How old is the bridge?")),
        ("ai", "It was opened in December 2004."),
    ]
    Script(lines=[HIGH]).invoke([*before, ("human", TOWER)])

    assert monitor.only_record().status == "no_context"
