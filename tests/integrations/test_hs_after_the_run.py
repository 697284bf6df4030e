"""What an application changes after the run of a Haystack pipeline changes no record."""

# No postponed annotations: Haystack before 2.24 takes the types of a component as they stand.

import threading
from typing import Any

import pytest
from haystack import Pipeline
from haystack.components.builders import AnswerBuilder
from haystack.dataclasses import ChatMessage

import claimspan_haystack
from claimspan_tracing.decide.sampling import Decision, Facts
from claimspan_tracing.job import GeneratorRun
from claimspan_tracing.testing import CapturedRecord, InMemoryMonitor

from buildings import FACTS, HIGH, TOWER
from captured import judged, read
from hs_scripts import Says, asking, every_way, plain_rag, run_in


class Gate:
    """A sampler that evaluates all, and holds the worker at its first record until it is opened."""

    def __init__(self) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()

    def decide(self, facts: Facts) -> Decision:
        self.entered.set()
        assert self.opened.wait(20)
        return Decision(sampled=True, rate=1.0, reason="all")


def shorten(outputs: dict[str, Any], data: dict[str, Any]) -> None:
    for document in outputs["shelf"]["documents"]:
        document.content = document.content[:10]
        document.meta.clear()


def change_answers(outputs: dict[str, Any], data: dict[str, Any]) -> None:
    answers = outputs["builder"]["answers"]
    answers[0].data = "changed"
    answers.append("another")
    outputs["builder"].clear()
    outputs.clear()


def reuse_data(outputs: dict[str, Any], data: dict[str, Any]) -> None:
    data["shelf"]["query"] = data["prompt"]["question"] = data["builder"]["query"] = "next"


def append_to_history(outputs: dict[str, Any], data: dict[str, Any]) -> None:
    history: list[ChatMessage] = data["llm"]["messages"]
    history.append(outputs["llm"]["replies"][0])
    history.append(ChatMessage.from_user("And the bridge?"))
    outputs["llm"]["replies"].append(ChatMessage.from_assistant("Something else."))


mutating = pytest.mark.filterwarnings("ignore:Mutating attribute")
"""Haystack warns of it since version 3, as applications did it before."""


def while_nobody_reads(run: Any, change: Any) -> CapturedRecord:
    """Run, change what went in and came out, and only then let the worker read it."""
    gate = Gate()
    with InMemoryMonitor(sample=gate) as monitor:
        undo = claimspan_haystack.instrument(monitor)
        try:
            plain_rag("First.").run(asking("first"))
            assert gate.entered.wait(20)
            change(*run())
        finally:
            undo()
            gate.opened.set()
        _, record = monitor.records()
    return record


@mutating
@every_way
@pytest.mark.parametrize("change", [shorten, change_answers, reuse_data])
def test_what_the_application_changes_after_the_run_leaves_the_record_as_it_was(
    way: str, change: Any
) -> None:
    pipeline = plain_rag()
    pipeline.add_component("builder", AnswerBuilder())
    pipeline.connect("llm.replies", "builder.replies")
    data = asking() | {"builder": {"query": TOWER}}

    def run() -> tuple[dict[str, Any], dict[str, Any]]:
        return run_in(way, pipeline, data, include_outputs_from={"shelf"}), data

    judged(while_nobody_reads(run, change), FACTS)


def test_a_history_that_is_appended_to_leaves_the_record_as_it_was() -> None:
    pipeline = Pipeline()
    pipeline.add_component("llm", Says(HIGH))
    data = {"llm": {"messages": [ChatMessage.from_user(TOWER)]}}

    record = while_nobody_reads(lambda: (pipeline.run(data), data), append_to_history)

    assert read(record)[:2] == (TOWER, HIGH)
    (generator,) = record.job.runs
    assert isinstance(generator, GeneratorRun)
    assert len(generator.messages) == 1
