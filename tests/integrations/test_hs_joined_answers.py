"""Answers of several models that a pipeline of Haystack joins: never one of them for all."""

# No postponed annotations: Haystack before 2.24 takes the types of a component as they stand.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportMissingTypeStubs=false
# pyright: reportUntypedFunctionDecorator=false
# The framework leaves some of its generics open.

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from haystack import Pipeline, component
from haystack.components.builders import AnswerBuilder
from haystack.components.joiners import AnswerJoiner, BranchJoiner, ListJoiner, StringJoiner
from haystack.components.routers import ConditionalRouter
from haystack.dataclasses import ChatMessage

import claimspan_haystack
from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import attached, judged
from hs_pipelines import ASYNC_PIPELINE, Echo, Shelf, prompt
from pipelines import Passage, Recipe

NEWER = "An antenna was added to the tower in March 2022."
SAID = {"old": HIGH, "new": NEWER}


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with attached(claimspan_haystack.instrument) as made:
        yield made


def two_models(kind: type[Pipeline] = Pipeline) -> Pipeline:
    """Build a pipeline with two retrievers, and a model behind each."""
    pipeline = kind()
    for number, (name, said) in enumerate(SAID.items()):
        recipe = Recipe(passages=[Passage(FACTS[number], None, None)], answer=said)
        pipeline.add_component(f"shelf_{name}", Shelf(recipe))
        pipeline.add_component(f"prompt_{name}", prompt())
        pipeline.add_component(f"llm_{name}", Echo(recipe))
        pipeline.connect(f"shelf_{name}.documents", f"prompt_{name}.documents")
        pipeline.connect(f"prompt_{name}.prompt", f"llm_{name}.messages")
    return pipeline


def asking() -> dict[str, Any]:
    parts = {"shelf": "query", "prompt": "question"}
    return {f"{part}_{name}": {key: TOWER} for name in SAID for part, key in parts.items()}


@component
class Text:
    """Takes the text of a reply."""

    @component.output_types(text=str)
    def run(self, replies: list[ChatMessage]) -> dict[str, Any]:
        return {"text": replies[0].text}


def as_answers(pipeline: Pipeline) -> dict[str, Any]:
    pipeline.add_component("joiner", AnswerJoiner())
    for name in SAID:
        pipeline.add_component(f"answers_{name}", AnswerBuilder())
        pipeline.connect(f"llm_{name}.replies", f"answers_{name}.replies")
        pipeline.connect(f"shelf_{name}.documents", f"answers_{name}.documents")
        pipeline.connect(f"answers_{name}.answers", "joiner.answers")
    return asking() | {f"answers_{name}": {"query": TOWER} for name in SAID}


def as_messages(pipeline: Pipeline) -> dict[str, Any]:
    pipeline.add_component("joiner", ListJoiner(list[ChatMessage]))
    for name in SAID:
        pipeline.connect(f"llm_{name}.replies", "joiner.values")
    return asking()


def as_texts(pipeline: Pipeline) -> dict[str, Any]:
    pipeline.add_component("joiner", StringJoiner())
    for name in SAID:
        pipeline.add_component(f"text_{name}", Text())
        pipeline.connect(f"llm_{name}.replies", f"text_{name}.replies")
        pipeline.connect(f"text_{name}.text", "joiner.strings")
    return asking()


@pytest.mark.parametrize("how", ["sync", "async"])
@pytest.mark.parametrize("join", [as_answers, as_messages, as_texts])
def test_answers_of_two_models_that_are_joined_are_not_judged_as_one(
    monitor: InMemoryMonitor, join: Any, how: str
) -> None:
    pipeline = two_models(ASYNC_PIPELINE if how == "async" else Pipeline)
    data = join(pipeline)
    if how == "async":
        asyncio.run(pipeline.run_async(data))
    else:
        pipeline.run(data)

    record = monitor.only_record()
    assert record.status == "several_answers"
    assert sorted(record.record.response.split("\n")) == sorted(SAID.values())


def two_models_on_one_shelf() -> Pipeline:
    pipeline = Pipeline()
    pipeline.add_component("shelf", Shelf(Recipe(passages=[Passage(FACTS[0], None, None)])))
    pipeline.add_component("prompt", prompt())
    pipeline.connect("shelf.documents", "prompt.documents")
    for name, said in SAID.items():
        pipeline.add_component(f"llm_{name}", Echo(Recipe(answer=said)))
        pipeline.connect("prompt.prompt", f"llm_{name}.messages")
    return pipeline


@pytest.mark.parametrize("joiner", [AnswerJoiner, ListJoiner])
def test_answers_of_two_models_that_have_read_the_same_are_not_judged_as_one(
    monitor: InMemoryMonitor, joiner: type[Any]
) -> None:
    pipeline = two_models_on_one_shelf()
    is_builder = joiner is AnswerJoiner
    pipeline.add_component("joiner", AnswerJoiner() if is_builder else joiner(list[ChatMessage]))
    data: dict[str, Any] = {"shelf": {"query": TOWER}, "prompt": {"question": TOWER}}
    for name in SAID:
        if is_builder:
            pipeline.add_component(f"answers_{name}", AnswerBuilder())
            pipeline.connect(f"llm_{name}.replies", f"answers_{name}.replies")
            pipeline.connect(f"answers_{name}.answers", "joiner.answers")
            data[f"answers_{name}"] = {"query": TOWER}
        else:
            pipeline.connect(f"llm_{name}.replies", "joiner.values")
    pipeline.run(data)

    record = monitor.only_record()
    assert record.status == "several_answers"
    assert sorted(record.record.response.split("\n")) == sorted(SAID.values())


def test_of_two_models_the_one_answers_whose_branch_was_taken(monitor: InMemoryMonitor) -> None:
    pipeline = two_models()
    pipeline.add_component("joiner", BranchJoiner(list[ChatMessage]))
    conditions = {"old": "{{ 'high' in query }}", "new": "{{ 'high' not in query }}"}
    routes: list[Any] = [
        {"condition": each, "output": "{{query}}", "output_name": name, "output_type": str}
        for name, each in conditions.items()
    ]
    pipeline.add_component("router", ConditionalRouter(routes))
    for name in SAID:
        pipeline.connect(f"router.{name}", f"shelf_{name}.query")
        pipeline.connect(f"router.{name}", f"prompt_{name}.question")
        pipeline.connect(f"llm_{name}.replies", "joiner.value")
    pipeline.run({"router": {"query": TOWER}})

    judged(monitor.only_record(), FACTS[:1])


def test_a_draft_in_a_list_with_the_answer_is_no_second_answer(monitor: InMemoryMonitor) -> None:
    """The second model goes on from what the first one has said."""
    pipeline = two_models()
    pipeline.add_component("text", Text())
    pipeline.add_component("joiner", ListJoiner(list[ChatMessage]))
    pipeline.connect("llm_new.replies", "text.replies")
    pipeline.connect("text.text", "prompt_old.question")
    for name in ("new", "old"):
        pipeline.connect(f"llm_{name}.replies", "joiner.values")
    data = asking()
    del data["prompt_old"]
    pipeline.run(data)

    assert monitor.only_record().status == "evaluated"
