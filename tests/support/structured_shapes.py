"""Answers that models give as JSON, in the shapes in which applications ask for them."""

from __future__ import annotations

import json
from typing import Final

import pytest

from buildings import HIGH

__all__ = ["every_grade", "every_shape"]

OLD: Final = "It is of iron, and old."

SHAPES: Final[dict[str, tuple[object, str]]] = {
    "named": ({"answer": HIGH, "sources": ["d0"], "confidence": "high"}, HIGH),
    "nested": ({"reasoning": "So it says.", "answer": {"text": HIGH, "quote": "330"}}, HIGH),
    "final": ({"answer": "A first draft.", "final_answer": HIGH}, HIGH),
    "camel case": ({"shortAnswer": HIGH, "whyItHolds": "So says the plaque."}, HIGH),
    "named like one": ({"short_answer": HIGH, "explanation": "So says the plaque."}, HIGH),
    "number": ({"answer": 330, "sources": ["d0"]}, "330"),
    "fields": ({"height": HIGH, "matter": OLD, "url": "https://tower.example"}, f"{HIGH}\n{OLD}"),
    "inner": ({"claims": [{"text": HIGH, "reason": "A"}, {"text": OLD}]}, f"{HIGH}\n{OLD}"),
    "list": ([{"answer": HIGH, "id": "a"}, {"answer": OLD, "id": "b"}], f"{HIGH}\n{OLD}"),
    "beside": ({"status": HIGH, "metres": 330}, HIGH),
}

GRADES: Final = (
    {"binary_score": "yes"},
    {"explanation": "All of it stands in the facts.", "isGrounded": True},
    {"scores": {"relevance": 4, "style": 0.9}, "feedback": "Be brief."},
)

every_shape = pytest.mark.parametrize(
    ("reply", "answer"),
    [
        *((json.dumps(said), answer) for said, answer in SHAPES.values()),
        (f"```json\n{json.dumps({'answer': HIGH}, indent=2)}\n```", HIGH),
    ],
    ids=[*SHAPES, "fenced"],
)
"""What a model says, and what of it is the answer."""

every_grade = pytest.mark.parametrize(
    "grade", [*map(json.dumps, GRADES)], ids=["binary", "grounded", "scores"]
)
"""What a grader says that is asked for JSON."""
