"""The demo's questions, with what the company would answer itself.

The handbook does not answer all of them, and two of its sections contradict each other: a pipeline
of any quality meets such questions.
"""

from __future__ import annotations

from importlib.resources import files

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Question", "load_questions"]


class Question(BaseModel):
    """A question about the company with its ground truth."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(min_length=1)
    query: str = Field(min_length=1)
    ground_truth: str = Field(min_length=1)
    section: str | None
    """The id of the section that contains the answer; None if the handbook lacks it."""


def load_questions() -> list[Question]:
    """Read the questions that come with this package, in the order of the file."""
    text = files("claimspan_demo").joinpath("questions.jsonl").read_text(encoding="utf-8")
    return [Question.model_validate_json(line) for line in text.split("\n") if line]
