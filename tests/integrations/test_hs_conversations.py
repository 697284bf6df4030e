"""Turns of conversations in Haystack: the question is the last turn, and the answer is its own."""

# No postponed annotations: Haystack before 2.24 takes the types of a component as they stand.

from collections.abc import Iterator
from typing import Any

import pytest
from haystack import Pipeline, component
from haystack.components.builders import ChatPromptBuilder, PromptBuilder
from haystack.components.joiners import ListJoiner
from haystack.dataclasses import ChatMessage

import claimspan_haystack
from claimspan.testing import ScriptedJudge
from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import attached, judged, never_judged, read, searches
from hs_pipelines import ASYNC_PIPELINE
from hs_scripts import (
    DOCUMENTS,
    HISTORY,
    Says,
    SaysText,
    Shelf,
    adapter,
    chat_prompt,
    every_way,
    facts,
    run_in,
)


@pytest.fixture
def judge() -> ScriptedJudge:
    return ScriptedJudge()


@pytest.fixture
def monitor(judge: ScriptedJudge) -> Iterator[InMemoryMonitor]:
    with attached(claimspan_haystack.instrument, judge) as made:
        yield made


@pytest.mark.parametrize(
    "variables",
    [{"question": TOWER}, {"user": {"question": TOWER}, "filters": {"text": "x"}}],
)
def test_a_question_among_the_variables_of_a_template(
    monitor: InMemoryMonitor, variables: dict[str, Any]
) -> None:
    pipeline = Pipeline()
    name = "question" if "question" in variables else "user.question"
    template = [ChatMessage.from_user(DOCUMENTS + f"{{{{ {name} }}}}")]
    builder = ChatPromptBuilder(template, required_variables=["documents"])
    pipeline.add_component("prompt", builder)
    pipeline.add_component("llm", Says(HIGH))
    pipeline.connect("prompt.prompt", "llm.messages")
    pipeline.run({"prompt": {"template_variables": variables, "documents": facts()}})

    judged(monitor.only_record(), FACTS)


def conversational(*replies: str) -> Pipeline:
    """The tutorial on conversations: the question is rephrased by the history."""
    pipeline = ASYNC_PIPELINE()
    pipeline.add_component("rephrase", PromptBuilder("Rephrase: {{ query }}"))
    pipeline.add_component("rewriter", SaysText(replies[0]))
    pipeline.add_component("first", adapter("{{ replies[0] }}"))
    pipeline.add_component("shelf", Shelf(facts()))
    pipeline.add_component("history", ListJoiner(list[ChatMessage]))
    pipeline.add_component("prompt", chat_prompt())
    pipeline.add_component("llm", Says(replies[1]))
    pipeline.connect("rephrase.prompt", "rewriter.prompt")
    pipeline.connect("rewriter.replies", "first.replies")
    pipeline.connect("first.output", "shelf.query")
    pipeline.connect("shelf.documents", "prompt.documents")
    pipeline.connect("prompt.prompt", "history.values")
    pipeline.connect("history.values", "llm.messages")
    return pipeline


@every_way
def test_the_last_turn_is_the_question_and_its_rewriting_what_the_retriever_was_asked(
    monitor: InMemoryMonitor, way: str
) -> None:
    pipeline = conversational("height of the tower", HIGH)
    data = {
        "rephrase": {"query": TOWER},
        "prompt": {"question": TOWER},
        "history": {"values": HISTORY},
    }
    run_in(way, pipeline, data)

    record = monitor.only_record()
    judged(record, FACTS)
    assert searches(record) == ["height of the tower"]


def test_the_last_human_turn_of_a_history_is_the_question(monitor: InMemoryMonitor) -> None:
    pipeline = Pipeline()
    pipeline.add_component("llm", Says(HIGH))
    turns = [*HISTORY, ChatMessage.from_user(TOWER)]
    pipeline.run({"llm": {"messages": turns}})

    assert read(monitor.only_record())[:2] == (TOWER, HIGH)


@component
class Memory:
    """A store of messages that returns a conversation."""

    @component.output_types(messages=list[ChatMessage])
    def run(self, chat: str) -> dict[str, Any]:
        return {"messages": HISTORY}


@component
class Recall:
    """A store of conversations by their ids, which returns one with its new messages."""

    @component.output_types(messages=list[ChatMessage])
    def run(self, chat_history_id: str, current_messages: list[ChatMessage]) -> dict[str, Any]:
        return {"messages": [*HISTORY, *current_messages]}


def test_the_id_of_a_conversation_is_no_question(monitor: InMemoryMonitor) -> None:
    pipeline = Pipeline()
    pipeline.add_component("recall", Recall())
    pipeline.add_component("llm", Says(HIGH))
    pipeline.connect("recall.messages", "llm.messages")
    turn = [ChatMessage.from_user(TOWER)]
    pipeline.run({"recall": {"current_messages": turn, "chat_history_id": "user_1_session_3"}})

    assert read(monitor.only_record())[:2] == (TOWER, HIGH)


def test_a_turn_that_says_nothing_has_not_the_answer_of_the_one_before(
    monitor: InMemoryMonitor, judge: ScriptedJudge
) -> None:
    pipeline = conversational("height of the tower", "")
    pipeline.add_component("memory", Memory())
    pipeline.connect("memory.messages", "history.values")
    data = {
        "rephrase": {"query": TOWER},
        "prompt": {"question": TOWER},
        "memory": {"chat": "c1"},
    }
    pipeline.run(data, include_outputs_from={"memory"})

    never_judged(monitor, judge)
