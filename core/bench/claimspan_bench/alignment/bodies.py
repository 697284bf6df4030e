"""The request and response bodies of Pinecone's Evaluation API, and the files that hold them.

The shapes are those of its OpenAPI description, version 2026-04, which are the same since 2025-01.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar, cast

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from claimspan.errors import FileError
from claimspan.files.jsonl import parse_json_lines, read_text
from claimspan.records import RagRecord
from claimspan.verdicts import Label

__all__ = [
    "AlignmentResponse",
    "EvaluatedFact",
    "Fact",
    "Metrics",
    "Reasoning",
    "TokenCounts",
    "read_requests",
    "read_responses",
]

_OURS: Final = ("results", "records")
"""Names under which an object may hold the rows: RAGChecker's, and ours."""


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Metrics(_Body):
    """The three metrics; the API has a number for each, 0.0 where a metric is undefined."""

    correctness: float
    """Share of the facts that the answer takes up which it has right."""

    completeness: float
    """Share of the facts that the answer states."""

    alignment: float
    """Harmonic mean of both."""


class Fact(_Body):
    """A fact of the ground truth."""

    content: str
    """The fact, as a sentence."""


class EvaluatedFact(_Body):
    """A fact with what the answer says of it."""

    fact: Fact
    """The fact."""

    entailment: Label
    """Entailed, contradicted or neutral."""


class Reasoning(_Body):
    """What the metrics rest on."""

    evaluated_facts: tuple[EvaluatedFact, ...]
    """Every fact that was decided."""


class TokenCounts(_Body):
    """Tokens of the judge; 0 for one that works without a model behind an endpoint."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class AlignmentResponse(_Body):
    """The body of a response."""

    metrics: Metrics
    """The three metrics."""

    reasoning: Reasoning
    """The facts that they rest on."""

    usage: TokenCounts
    """What it has cost."""


class _Request(BaseModel):
    """A request body, or a record of ours or RAGChecker's; other fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    question: str = Field(validation_alias=AliasChoices("question", "query"))
    answer: str = Field(validation_alias=AliasChoices("answer", "response"))
    ground_truth_answer: str = Field(
        validation_alias=AliasChoices(
            "ground_truth_answer", "ground_truth", "gt_answer", "reference"
        )
    )
    id: str | int | None = Field(default=None, validation_alias=AliasChoices("id", "query_id"))

    def record(self) -> RagRecord:
        return RagRecord(
            id=None if self.id is None else str(self.id),
            query=self.question,
            response=self.answer,
            ground_truth=self.ground_truth_answer,
            chunks=(),
        )


class _Recorded(BaseModel):
    """A line with a response, as it is or beside its request."""

    model_config = ConfigDict(extra="ignore")

    response: AlignmentResponse


_Parsed = TypeVar("_Parsed", bound=BaseModel)


def read_requests(path: str | Path) -> list[RagRecord]:
    """Read requests as records without chunks.

    Args:
        path: JSON lines, or a list, of ``{question, answer, ground_truth_answer}``, each as it is
            or as the ``request`` of an object that also has the response; records of ours and
            RAGChecker's names are understood as well.

    Raises:
        FileError: The file cannot be read, is empty, or a row lacks a text; names the row.
    """
    wanted = "give question, answer and ground_truth_answer (texts)"
    return [
        # A record of ours may have other fields, but only a log of the API has a request as one.
        _parsed(_Request, row.get("request", row), place, wanted).record()
        for place, row in _rows(Path(path))
    ]


def read_responses(path: str | Path) -> list[AlignmentResponse]:
    """Read recorded responses.

    Args:
        path: JSON lines, or a list, of response bodies, each as it is or as the ``response`` of an
            object that also has the request.

    Raises:
        FileError: The file cannot be read, is empty, or a row is no response; names the row.
    """
    wanted = "give the response bodies of Pinecone's Evaluation API"
    found: list[AlignmentResponse] = []
    for place, row in _rows(Path(path)):
        wrapped = row if "response" in row else {"response": row}
        found.append(_parsed(_Recorded, wrapped, place, wanted).response)
    return found


def _parsed(kind: type[_Parsed], row: object, place: str, wanted: str) -> _Parsed:
    try:
        return kind.model_validate(row)
    except ValidationError as error:
        field = ".".join(map(str, error.errors(include_input=False)[0]["loc"]))
        # Without the cause: a validation error quotes the input, which may be private.
        raise FileError(f"{place}: {field or 'the row'} cannot be used; {wanted}") from None


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Each row of a file, and its place for an error message.

    Raises:
        FileError: The file cannot be read, or holds no row.
    """
    text = read_text(path, wanted="JSON or JSON-lines file of requests or responses")
    n_rows = 0
    for place, row in _rows_of(text, path):
        if not isinstance(row, dict):
            raise FileError(f"{place} is not a JSON object: write one object a row")
        n_rows += 1
        yield place, cast("Mapping[str, object]", row)
    if not n_rows:
        raise FileError(f"{str(path)!r} holds nothing: write one JSON object a line")


def _rows_of(text: str, path: Path) -> Iterator[tuple[str, object]]:
    # A file of several lines is no JSON as a whole, and fails at its second line.
    try:
        whole: object = json.loads(text)
    except (ValueError, RecursionError):
        lines = parse_json_lines(text, path)
        yield from ((f"{str(path)!r} line {number}", row) for number, row in lines)
        return
    rows = enumerate(_listed(whole), start=1)
    yield from ((f"{str(path)!r} row {number}", row) for number, row in rows)


def _listed(whole: object) -> Sequence[object]:
    if isinstance(whole, dict):
        fields = cast("Mapping[str, object]", whole)
        held = [fields[name] for name in _OURS if isinstance(fields.get(name), list)]
        return cast("Sequence[object]", held[0]) if held else [fields]
    return cast("Sequence[object]", whole) if isinstance(whole, list) else [whole]
