"""Pipelines within the components of a Haystack pipeline: one record, or one for each answer."""

# No postponed annotations: Haystack before 2.24 takes the types of a component as they stand.

import json
from collections.abc import Iterator
from typing import Any

import pytest
from haystack import Document, Pipeline, SuperComponent, component
from haystack.components.builders import PromptBuilder
from haystack.dataclasses import ChatMessage

import claimspan_haystack
from claimspan.testing import ScriptedJudge
from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import attached, judged, no_record, read
from hs_pipelines import ASYNC_PIPELINE
from hs_scripts import (
    Says,
    SaysText,
    Shelf,
    asking,
    chat_prompt,
    every_way,
    facts,
    plain_rag,
    run_in,
)


@pytest.fixture
def judge() -> ScriptedJudge:
    return ScriptedJudge()


@pytest.fixture
def monitor(judge: ScriptedJudge) -> Iterator[InMemoryMonitor]:
    with attached(claimspan_haystack.instrument, judge) as made:
        yield made


@every_way
def test_one_pipeline_in_a_component_is_one_record(monitor: InMemoryMonitor, way: str) -> None:
    whole = SuperComponent(
        pipeline=plain_rag(),
        input_mapping={"query": ["shelf.query", "prompt.question"]},
        output_mapping={"llm.replies": "replies"},
    )
    pipeline = ASYNC_PIPELINE()
    pipeline.add_component("rag", whole)
    run_in(way, pipeline, {"rag": {"query": TOWER}})

    judged(monitor.only_record(), FACTS)


@component
class Interview:
    """Asks an inner pipeline one question after the other."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline

    @component.output_types(report=str)
    def run(self, wishes: list[str]) -> dict[str, Any]:
        said = [self.pipeline.run(asking(wish))["llm"]["replies"][0].text for wish in wishes]
        return {"report": "\n".join(said)}


THREE = {"tower": facts(0), "bridge": facts(1), "tunnel": facts(2)}
ANSWERS = {
    "How high is the tower?": "It is 330 metres high.",
    "When was the bridge opened?": "It was opened in 2004.",
    "How long did the tunnel take?": "It took six years.",
}


@every_way
def test_each_answer_of_an_inner_pipeline_is_a_record_of_its_own(
    monitor: InMemoryMonitor, way: str
) -> None:
    inner = plain_rag(shelf=Shelf([], THREE), llm=Says(*ANSWERS.values()))
    pipeline = ASYNC_PIPELINE()
    pipeline.add_component("interview", Interview(inner))
    run_in(way, pipeline, {"interview": {"wishes": list(ANSWERS)}})

    outer, *records = monitor.records()
    assert outer.status == "several_answers"
    assert [read(record) for record in records] == [
        (question, answer, [FACTS[number]], "evaluated")
        for number, (question, answer) in enumerate(ANSWERS.items())
    ]


@component
class Imagines:
    """Embeds a passage that a model imagines, as the cookbook does for HyDE."""

    def __init__(self) -> None:
        self.pipeline = Pipeline()
        self.pipeline.add_component("prompt", PromptBuilder("Write a passage on {{ question }}"))
        self.pipeline.add_component("llm", SaysText("The tower is said to be 300 metres high."))
        self.pipeline.connect("prompt.prompt", "llm.prompt")

    @component.output_types(embedding=list[float])
    def run(self, question: str) -> dict[str, Any]:
        passage = self.pipeline.run({"prompt": {"question": question}})["llm"]["replies"][0]
        return {"embedding": [float(len(passage)), 0.5]}


@component
class Vectors:
    @component.output_types(documents=list[Document])
    def run(self, query_embedding: list[float]) -> dict[str, Any]:
        return {"documents": facts()}


@pytest.mark.parametrize("answers", [False, True])
def test_what_a_component_imagines_for_its_search_is_no_answer(
    monitor: InMemoryMonitor, judge: ScriptedJudge, answers: bool
) -> None:
    pipeline = Pipeline()
    pipeline.add_component("imagine", Imagines())
    pipeline.add_component("vectors", Vectors())
    pipeline.connect("imagine.embedding", "vectors.query_embedding")
    data: dict[str, Any] = {"imagine": {"question": TOWER}}
    if answers:
        pipeline.add_component("prompt", chat_prompt())
        pipeline.add_component("llm", Says(HIGH))
        pipeline.connect("vectors.documents", "prompt.documents")
        pipeline.connect("prompt.prompt", "llm.messages")
        data |= {"prompt": {"question": TOWER}}
    pipeline.run(data)

    if answers:
        judged(monitor.only_record(), FACTS)
    else:
        no_record(monitor, judge)


@component
class Pairs:
    """Searches for each of several questions, and returns them with the texts that it found."""

    @component.output_types(question_context_pairs=list[dict[str, Any]])
    def run(self, replies: list[ChatMessage]) -> dict[str, Any]:
        asked = json.loads(replies[0].text or "")["questions"]
        pairs = zip(asked, FACTS, strict=False)
        return {
            "question_context_pairs": [{"question": q, "documents": {fact}} for q, fact in pairs]
        }


def test_a_question_that_is_taken_apart_is_one_record(monitor: InMemoryMonitor) -> None:
    each = "{% for p in question_context_pairs %}{{ p.question }} {{ p.documents }}\n{% endfor %}"
    pipeline = Pipeline()
    pipeline.add_component("split", chat_prompt("Take apart: {{ question }}"))
    asked = ["How high is the tower in metres?", "When was the bridge at Millau opened?"]
    pipeline.add_component("splitter", Says(json.dumps({"questions": asked})))
    pipeline.add_component("pairs", Pairs())
    pipeline.add_component("prompt", chat_prompt(each + "{{ question }}"))
    pipeline.add_component("llm", Says("The tower has 330 metres, the bridge is of 2004."))
    pipeline.add_component("reason", chat_prompt("{{ parts[0].text }}\n{{ question }}"))
    pipeline.add_component("last", Says(HIGH))
    pipeline.connect("split.prompt", "splitter.messages")
    pipeline.connect("splitter.replies", "pairs.replies")
    pipeline.connect("pairs.question_context_pairs", "prompt.question_context_pairs")
    pipeline.connect("prompt.prompt", "llm.messages")
    pipeline.connect("llm.replies", "reason.parts")
    pipeline.connect("reason.prompt", "last.messages")
    pipeline.run({name: {"question": TOWER} for name in ("split", "prompt", "reason")})

    judged(monitor.only_record(), FACTS[:2])
