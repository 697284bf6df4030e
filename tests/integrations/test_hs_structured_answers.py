"""A structured answer of a Haystack pipeline is read as its texts."""

# No postponed annotations: Haystack before 2.24 takes the types of a component as they stand.

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel

import claimspan_haystack
from claimspan_tracing.testing import InMemoryMonitor

from buildings import FACTS, HIGH
from captured import attached, judged
from hs_scripts import adapter, asking, first_reply, plain_rag


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with attached(claimspan_haystack.instrument) as made:
        yield made


class Height(BaseModel):
    answer: str
    metres: int


def as_model(replies: Any) -> Height:
    return Height(answer=first_reply(replies), metres=330)


def as_dict(replies: Any) -> dict[str, Any]:
    return {"metres": 330, "answer": first_reply(replies)}


def test_an_answer_that_is_json_is_read_as_its_text(monitor: InMemoryMonitor) -> None:
    reply = json.dumps({"metres": 330, "answer": HIGH})
    plain_rag(reply).run(asking())

    judged(monitor.only_record(), FACTS)


def test_an_answer_without_a_known_field_is_all_of_its_texts(monitor: InMemoryMonitor) -> None:
    plain_rag('```json\n{"height": "330 metres", "since": "March 2022", "n": 3}\n```').run(asking())

    judged(monitor.only_record(), FACTS, "330 metres\nMarch 2022")


@pytest.mark.parametrize(
    ("template", "kind"),
    [("{{ replies | as_dict }}", dict), ("{{ replies | as_model }}", Height)],
)
def test_a_structured_output_is_read_as_its_text(
    monitor: InMemoryMonitor, template: str, kind: type
) -> None:
    pipeline = plain_rag()
    made = adapter(template, kind, as_dict=as_dict, as_model=as_model)
    pipeline.add_component("adapter", made)
    pipeline.connect("llm.replies", "adapter.replies")
    pipeline.run(asking())

    judged(monitor.only_record(), FACTS)
