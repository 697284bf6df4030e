"""Reads answers that people have graded, in FinanceBench's format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError, field_validator

from claimspan.errors import FileError
from claimspan.files.jsonl import parse_json_lines, read_text
from claimspan.files.names import TextOrScalar
from claimspan.records import RagRecord

__all__ = ["Grade", "GradedAnswer", "read_graded"]

_WANTED: Final = "JSON-lines file of graded answers"
_USUAL_NAME: Final = "human_labeled_answers.jsonl"
"""The file that is read of a folder, where it has one of this name."""


class Grade(StrEnum):
    """What people say of an answer."""

    CORRECT = "correct"
    """It is right."""

    INCORRECT = "incorrect"
    """It is wrong."""

    REFUSAL = "refusal"
    """It declines to answer."""

    @classmethod
    def parse(cls, spelling: str) -> Self:
        """Parse a grade, in FinanceBench's spelling (``Correct Answer``) or in ours.

        Raises:
            ValueError: The spelling is no grade.
        """
        return cls(spelling.strip().lower().removesuffix(" answer"))


class GradedAnswer(BaseModel):
    """One system's answer to one question, with the right answer and the grade."""

    model_config = ConfigDict(frozen=True, extra="ignore", protected_namespaces=())

    question: str = Field(min_length=1)
    """The question; answers to it are never on both sides of a split."""

    ground_truth: Annotated[TextOrScalar, Field(min_length=1)] = Field(
        validation_alias=AliasChoices("gold_answer", "ground_truth", "answer")
    )
    """The right answer; a number of the file stands here as a text."""

    response: TextOrScalar = Field(validation_alias=AliasChoices("model_answer", "response"))
    """What the system has answered, likewise; may be empty."""

    grade: Grade = Field(validation_alias=AliasChoices("label", "grade"))
    """What people say of it."""

    model: str = Field(default="", validation_alias=AliasChoices("model_name", "model", "system"))
    """Name of the model."""

    mode: str = Field(default="", validation_alias=AliasChoices("eval_mode", "mode"))
    """How the model was used, such as with which retrieval."""

    id: str | None = Field(default=None, validation_alias=AliasChoices("financebench_id", "id"))
    """The id of the question; None where the file gives none."""

    @field_validator("response", mode="before")
    @classmethod
    def _never_null(cls, value: object) -> object:
        return "" if value is None else value

    @field_validator("grade", mode="before")
    @classmethod
    def _in_any_spelling(cls, value: object) -> object:
        return Grade.parse(value) if isinstance(value, str) else value

    @property
    def system(self) -> str:
        """Model and mode: what people's grades rank."""
        return " ".join(filter(None, (self.model, self.mode))) or "(unnamed)"

    @property
    def record(self) -> RagRecord:
        """The answer as a record: with its question and the right answer, without chunks."""
        return RagRecord(
            id=self.id,
            query=self.question,
            response=self.response,
            ground_truth=self.ground_truth,
            metadata={"system": self.system, "grade": self.grade.value},
        )


def read_graded(paths: Iterable[Path]) -> list[GradedAnswer]:
    """Read graded answers.

    Args:
        paths: Files of JSON lines, or folders. Of a folder ``human_labeled_answers.jsonl`` is read,
            or else every file that ends in ``.jsonl``.

    Returns:
        The answers, in the order of the files.

    Raises:
        FileError: A file cannot be read, or a line is no graded answer; names the line.
    """
    answers = [each for path in paths for file in _files(path) for each in _answers(file)]
    if not answers:
        given = ", ".join(repr(str(path)) for path in paths)
        raise FileError(f"no graded answers were found in {given}: give a {_WANTED}")
    return answers


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    # FinanceBench's folder has other JSON lines beside the graded answers.
    usual = path / _USUAL_NAME
    return [usual] if usual.exists() else sorted(path.glob("*.jsonl"))


def _answers(file: Path) -> Iterator[GradedAnswer]:
    text = read_text(file, wanted=_WANTED)
    for number, row in parse_json_lines(text, file, wanted="one graded answer"):
        yield _answer(row, f"{str(file)!r} line {number}")


def _answer(row: Mapping[str, object], place: str) -> GradedAnswer:
    try:
        return GradedAnswer.model_validate(row)
    except ValidationError as error:
        field = ".".join(str(part) for part in error.errors(include_input=False)[0]["loc"])
        # Without the cause: a validation error quotes the input, which may be private.
        raise FileError(
            f"{place}: {field} cannot be used; a graded answer has question, gold_answer, "
            "model_answer, model_name, and a label: Correct Answer, Incorrect Answer or Refusal"
        ) from None
