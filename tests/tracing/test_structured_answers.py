"""What a structured answer says, which structures are grades, and how far one is looked into."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest
from pydantic import BaseModel

from claimspan_tracing.adapters import (
    arguments_of,
    begins_with_grade,
    fields_of,
    filled_in,
    is_grade,
    says_grade,
    structured_text,
    texts_in,
)

HIGH = "It is 330 metres high."


class Model(BaseModel):
    answer: str = HIGH
    source: str = "d0"


@dataclass
class Record:
    text: Model
    note: str = "A note."


# --- answers ---


@pytest.mark.parametrize(
    "text",
    [
        HIGH,
        "",
        " ",
        "{not JSON}",
        "[1] It is 330 metres high. [2]",
        "```python\nprint(330)\n```",
        '{"cut": "in the mid',
        "{" * 50_000 + "}" * 50_000,
        "[" * 50_000 + "]" * 50_000,
    ],
    ids=lambda text: text[:12],
)
def test_a_text_that_is_no_json_of_a_structure_stays_as_it_is(text: str) -> None:
    assert structured_text(text) == text


def test_a_text_that_is_too_long_for_json_stays_as_it_is() -> None:
    text = json.dumps({"answer": "x" * 300_000})

    assert structured_text(text) == text


@pytest.mark.parametrize(
    "answer",
    [
        Model(),
        Record(Model()),
        {"a": Record(Model())},
        [Model()],
        {"args": {"answer": HIGH, "metres": 330}, "type": "Height", "id": "call-1"},
        {"answer": None, "response": HIGH},
        {"answers": [HIGH], "why": "Why."},
    ],
)
def test_the_field_that_is_named_as_an_answer_is_the_answer(answer: object) -> None:
    assert structured_text(answer) == HIGH


def test_a_class_or_a_number_has_no_text() -> None:
    assert structured_text(Record) == structured_text(330) == structured_text(None) == ""


@pytest.mark.parametrize("said", ["{}", "[]", '{"answer": ""}', '{"a": {"b": [null, ""]}}'])
def test_json_that_says_nothing_has_no_text(said: str) -> None:
    assert structured_text(said) == ""


@pytest.mark.parametrize("said", ['{"score": 3}', '{"is_high": false}', "[330]"])
def test_json_of_numbers_is_the_answer_as_it_stands(said: str) -> None:
    assert structured_text(said) == said


def test_what_says_only_where_an_answer_is_from_is_left_out_of_its_texts() -> None:
    answer = {"title": "The tower", "Sources": ["d0"], "parts": [{"summary": HIGH, "id": "p1"}]}

    assert [*texts_in(answer)] == ["The tower", HIGH]


def test_of_a_wide_and_of_a_deep_structure_a_part_is_read() -> None:
    wide = {f"field {n}": f"{n}" for n in range(1_000)}
    deep: object = "the bottom"
    for _ in range(10):
        deep = {"inner": deep, "beside": "a level"}

    assert len(structured_text(wide).split("\n")) == 100
    assert structured_text(deep).split("\n") == ["a level"] * 5


def test_a_structure_that_holds_itself_is_read_to_an_end() -> None:
    answer: dict[str, object] = {"title": HIGH}
    answer["self"] = answer

    assert set(structured_text(answer).split("\n")) == {HIGH}


def test_a_framework_may_say_what_its_objects_hold() -> None:
    def of_bytes(value: object) -> dict[str, object]:
        return {"answer": value.decode()} if isinstance(value, bytes) else dict(fields_of(value))

    assert structured_text({"said": b"yes"}, of_bytes) == "yes"


# --- what a model has filled in ---


REPORT = {
    "title": "The tower",
    "parts": [{"text": HIGH}, {"text": 'It is "old",\nthey say: né 1889.'}],
}


@pytest.mark.parametrize("is_ascii", [True, False])
def test_fields_that_came_in_one_completion_are_one_answer(is_ascii: bool) -> None:
    returned = {**REPORT, "route": "reports", "question": "How high?"}
    said = ["The tower", json.dumps(REPORT, ensure_ascii=is_ascii), "It is high."]

    assert filled_in(returned, said) == REPORT


def test_a_field_with_a_text_that_no_model_has_given_is_not_filled_in() -> None:
    edited = {"title": "The tower", "parts": [HIGH, "Read more in our handbook."]}

    assert filled_in(edited, [json.dumps(REPORT)]) == {"title": "The tower"}
    assert filled_in(edited, []) == {}


def test_the_arguments_of_several_calls_are_read_as_all_of_their_texts() -> None:
    calls = [{"name": "The tower"}, json.dumps({"height": "330 metres"})]

    assert structured_text(arguments_of(calls)) == "The tower\n330 metres"
    assert json.loads(arguments_of(calls[:1])) == calls[0]
    assert arguments_of([]) == ""


# --- grades ---


@pytest.mark.parametrize(
    "grade",
    [
        {"binary_score": "yes"},
        {"score": "4/5", "rationale": "Good."},
        {"isValid": False, "errors": ["It is too long."], "id": "e1"},
        {"statements": ["A", "B"], "statement_scores": [1, 0]},
        '{"verdict": "Pass.", "feedback": "Go on."}',
    ],
)
def test_what_says_how_good_something_is_and_why_is_a_grade(grade: object) -> None:
    assert is_grade(grade)


@pytest.mark.parametrize(
    "answer",
    [
        "yes",
        "",
        None,
        [],
        {},
        [{"score": 1}],
        {"verdict": "guilty"},
        {"score": 0.9, "answer": HIGH},
        {"graduates": 412},
        {"reason": "It is in there."},
        {"scores": [HIGH]},
    ],
)
def test_what_says_anything_else_is_no_grade(answer: object) -> None:
    assert not is_grade(answer)


def test_a_text_of_graders_words_alone_says_a_grade() -> None:
    assert all(map(says_grade, ("Yes.", "**Relevant**", "pass, valid")))
    assert not any(map(says_grade, ("", "...", "Yes, it is.", "330", "yes " * 1_000)))


def test_a_text_may_begin_with_its_grade() -> None:
    assert begins_with_grade("**Yes**, all of it is in the context.")
    assert not begins_with_grade("Yes it is.")
    assert not begins_with_grade(HIGH)
