"""The demo's questions, with answers that were written and checked by hand.

Each answer was checked against the topic it names in Python 3.11, 3.12 and 3.13. The last two
questions are ones that the corpus cannot answer: a good score there would be suspicious.
"""

from __future__ import annotations

from importlib.resources import files

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Question", "load_questions"]


class Question(BaseModel):
    """A question about Python and its correct answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(min_length=1)
    query: str = Field(min_length=1)
    ground_truth: str = Field(min_length=1)
    topic: str = Field(min_length=1)
    """The topic of the corpus that holds the answer, or comes closest to it."""


def load_questions() -> list[Question]:
    """Read the questions that are shipped with this package, in their order."""
    text = files("claimspan_demo").joinpath("questions.jsonl").read_text(encoding="utf-8")
    return [Question.model_validate_json(line) for line in text.split("\n") if line]
