"""Which query finds which ground truth, where two queries or two ground truths are much alike."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from claimspan import GroundTruth

QUESTION: Final = "Where is the Eiffel Tower?"
PRIVATE: Final = "swordfish"


def found(
    truths: GroundTruth, query: str, metadata: Mapping[str, object] | None = None
) -> str | None:
    """The text that is found, whatever it was found by."""
    match = truths.find_known(query, metadata)
    return None if match is None else match.text


@pytest.mark.parametrize("key", ["ground_truth_id", "query_id", "question_id"])
def test_the_id_of_a_query_wins_over_the_query(key: str) -> None:
    truths = GroundTruth({QUESTION: "In Paris.", "q2": "In London."})

    assert found(truths, QUESTION, {key: "q2"}) == "In London."


def test_a_plain_id_which_may_be_that_of_a_user_never_wins_over_the_query() -> None:
    truths = GroundTruth({QUESTION: "In Paris.", "q2": "In London."})

    assert found(truths, QUESTION, {"id": "q2"}) == "In Paris."
    assert found(truths, QUESTION.upper(), {"id": "q2"}) == "In Paris."
    assert found(truths, "Where is Big Ben?", {"id": "q2"}) == "In London."


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Can it take -10 °C?", "Can it take 10 °C?"),
        ("Can it take \u221210 °C?", "Can it take 10 °C?"),
        ("What is 2³?", "What is 23?"),
        ("What is x²?", "What is x2?"),
        ("Is 10⁻³ small?", "Is 103 small?"),
        ("Are 2½ cups enough?", "Are 21/2 cups enough?"),
    ],
)
def test_another_quantity_is_another_query(one: str, other: str) -> None:
    assert found(GroundTruth({one: "Yes."}), other) is None
    assert found(GroundTruth({other: "Yes."}), one) is None


def test_the_same_quantity_in_another_spelling_is_the_same_query() -> None:
    assert found(
        GroundTruth({"Are 2½ cups of H₂O enough?": "Yes."}), "are 2 1/2 cups of h2o enough"
    )
    assert found(GroundTruth({"What is 2³?": "8"}), "what is 2^3") == "8"


def test_ground_truths_that_contradict_each_other_are_named_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [
        {"query": QUESTION, "ground_truth": "In Paris."},
        {"query": QUESTION.lower(), "ground_truth": f"In {PRIVATE}."},
        {"query": QUESTION, "ground_truth": "in paris"},
        {"id": "a", "query": "Where?", "ground_truth": "Here."},
        {"id": "a", "query": "Where else?", "ground_truth": "There."},
    ]
    path = tmp_path / "truths.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")

    truths = GroundTruth(path)

    assert found(truths, QUESTION) == "In Paris."
    (warning,) = caplog.messages
    assert warning.startswith("2 ground truths differ from an earlier one")
    assert "line 2 after" in warning
    assert "line 5 after" in warning
    assert PRIVATE not in warning


def test_equal_ground_truths_are_no_conflict(caplog: pytest.LogCaptureFixture) -> None:
    GroundTruth({QUESTION: "In Paris.", QUESTION.upper(): "in Paris", "Where?": ""})

    assert caplog.messages == []
