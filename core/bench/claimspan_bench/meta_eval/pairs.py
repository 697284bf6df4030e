"""Reads RAGChecker's data of its meta-evaluation: pairs of answers that people have compared.

``human_labeled_data.json`` has each pair twice, once from each of two annotators, who say from -2
to 2 how much better the second answer is. ``baseline_ragchecker.json`` has RAGChecker's own scores
of both answers.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from claimspan.errors import FileError
from claimspan.files.jsonl import read_text

__all__ = ["ASPECTS", "HUMAN_FILE", "RAGCHECKER_FILE", "Pair", "Pairs", "read_pairs"]

ASPECTS: Final = ("correctness", "completeness", "overall")
"""What people compared two answers by; RAGChecker's precision, recall and F1 stand for them."""

HUMAN_FILE: Final = "human_labeled_data.json"
RAGCHECKER_FILE: Final = "baseline_ragchecker.json"

_ANNOTATORS: Final = 2

_Preference = Annotated[int, Field(ge=-2, le=2)]
_Id = str | int


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", protected_namespaces=())

    model_name: str
    response: str


class _Scores(BaseModel):
    """RAGChecker's scores of an answer; NaN or null where it has none."""

    model_config = ConfigDict(extra="ignore")

    correctness_label: float | None
    completeness_label: float | None
    overall_label: float | None

    def by_aspect(self) -> Mapping[str, float | None]:
        return {
            "correctness": self.correctness_label,
            "completeness": self.completeness_label,
            "overall": self.overall_label,
        }


class _ScoredAnswer(_Answer):
    ragchecker: _Scores


class _HumanRow(BaseModel):
    model_config = ConfigDict(extra="ignore")

    instance_id: _Id
    query: str
    gt_answer: str
    model1: _Answer
    model2: _Answer
    correctness_label: _Preference
    completeness_label: _Preference
    overall_label: _Preference

    def by_aspect(self) -> Mapping[str, int]:
        return {
            "correctness": self.correctness_label,
            "completeness": self.completeness_label,
            "overall": self.overall_label,
        }


class _RecordedRow(BaseModel):
    model_config = ConfigDict(extra="ignore")

    instance_id: _Id
    model1: _ScoredAnswer
    model2: _ScoredAnswer


_Row = TypeVar("_Row", _HumanRow, _RecordedRow)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two answers to a query, and what two people and RAGChecker say of them."""

    id: str
    """RAGChecker's ``instance_id``."""

    query: str
    """The query."""

    ground_truth: str
    """The right answer."""

    answers: tuple[str, str]
    """The two answers."""

    preferences: tuple[Mapping[str, int], Mapping[str, int]]
    """Aspect to -2 (the first answer is much better) to 2 (the second is), of each annotator."""

    ragchecker: tuple[Mapping[str, float | None], Mapping[str, float | None]]
    """Aspect to RAGChecker's score of each answer, 0 to 1; None where it has none."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """The pairs that both files hold."""

    pairs: tuple[Pair, ...]
    """In the order of the file of people's labels, on which Human's correlation depends."""

    only_in_one: int
    """Number of pairs that only one of the two files holds; they are left out."""


def read_pairs(directory: str | Path) -> Pairs:
    """Read the two files of a folder.

    Args:
        directory: RAGChecker's ``data/meta_evaluation``, or a part of it.

    Raises:
        FileError: A file is absent or holds something else, a pair has not two annotators, or the
            two files name other answers.
    """
    directory = Path(directory)
    human = _by_id(_rows(directory / HUMAN_FILE, _HumanRow))
    recorded = _by_id(_rows(directory / RAGCHECKER_FILE, _RecordedRow))
    both = [key for key in human if key in recorded]
    if not both:
        raise FileError(
            f"{HUMAN_FILE} and {RAGCHECKER_FILE} of {str(directory)!r} have no pair in common: "
            "give a folder like RAGChecker's data/meta_evaluation"
        )
    pairs = tuple(_pair(key, human[key], recorded[key]) for key in both)
    return Pairs(pairs, only_in_one=len(human.keys() ^ recorded.keys()))


def _rows(path: Path, kind: type[_Row]) -> list[_Row]:
    text = read_text(path, wanted="JSON file of RAGChecker's meta-evaluation")
    try:
        # By Python's own parser: RAGChecker's file may hold NaN, which other parsers refuse.
        return TypeAdapter(list[kind]).validate_python(json.loads(text))  # type: ignore[valid-type]  # a class made of the argument
    except ValidationError as error:
        place = ".".join(map(str, error.errors(include_input=False)[0]["loc"]))
        # Without the cause: a validation error quotes the input, which may be private.
        raise FileError(
            f"{str(path)!r} cannot be used at {place or 'its top'}: give RAGChecker's {path.name}"
        ) from None
    except (ValueError, RecursionError):
        raise FileError(f"{str(path)!r} is not JSON: give RAGChecker's {path.name}") from None


def _by_id(rows: Sequence[_Row]) -> dict[str, list[_Row]]:
    found: dict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        found[str(row.instance_id)].append(row)
    return dict(found)


def _pair(key: str, human: Sequence[_HumanRow], recorded: Sequence[_RecordedRow]) -> Pair:
    if len(human) != _ANNOTATORS or len(recorded) != 1:
        raise FileError(
            f"pair {key} has {len(human)} annotators and {len(recorded)} rows of RAGChecker: each "
            f"pair needs {_ANNOTATORS} and 1"
        )
    (row, other), (scores,) = human, recorded
    answers = {(each.model1.response, each.model2.response) for each in (row, other, scores)}
    if len(answers) > 1:
        raise FileError(
            f"pair {key} has other answers, or another order of them, in {RAGCHECKER_FILE}: give "
            "files that belong together"
        )
    return Pair(
        id=key,
        query=row.query,
        ground_truth=row.gt_answer,
        answers=(row.model1.response, row.model2.response),
        preferences=(row.by_aspect(), other.by_aspect()),
        ragchecker=(scores.model1.ragchecker.by_aspect(), scores.model2.ragchecker.by_aspect()),
    )
