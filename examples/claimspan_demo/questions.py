"""The demo's questions, with ground truths that were written and checked by hand.

Each ground truth was checked against the topic that it names in Python 3.11, 3.12 and 3.13. The
corpus cannot answer the last two questions: a good score there would point to an error.
"""

from __future__ import annotations

from importlib.resources import files

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Question", "load_questions"]


class Question(BaseModel):
    """A question about Python with its ground truth."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(min_length=1)
    query: str = Field(min_length=1)
    ground_truth: str = Field(min_length=1)
    topic: str = Field(min_length=1)
    """The topic of the corpus that contains the answer, or the closest one."""


def load_questions() -> list[Question]:
    """Read the questions that come with this package, in the order of the file."""
    text = files("claimspan_demo").joinpath("questions.jsonl").read_text(encoding="utf-8")
    return [Question.model_validate_json(line) for line in text.split("\n") if line]
