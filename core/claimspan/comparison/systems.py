"""Reads the scores of systems, with what shows whether they can be compared at all.

Only what a comparison needs is read of each line: verdict matrices, which are most of a line, are
not built.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, JsonValue

from claimspan.errors import ConfigError, FileError
from claimspan.evaluation.judgement import LOW_SCORE
from claimspan.files.jsonl import unreadable
from claimspan.files.record_files import RecordFile
from claimspan.metrics.catalogue import CATALOGUE, LOW_RECORDS
from claimspan.results.rows import WANTED, ResultRow, read_lines

__all__ = [
    "CLAIMS_PER_RESPONSE",
    "ScoredRow",
    "System",
    "lower_is_better",
    "read_system",
    "read_systems",
    "system_names",
    "system_of_rows",
]


CLAIMS_PER_RESPONSE: Final = "claims_per_response"
"""The column of the number of claims in a response. It is compared like a metric."""


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """The scores of one record."""

    key: str
    """The record's id, else its query: both are the same in another system's file."""

    scores: Mapping[str, float]
    metadata: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    error: str | None = None
    """Why there are no scores; None if there are."""

    query: str | None = None
    judge: str = ""
    own_metrics: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """Criterion or function of the user's to whether its lower end is better."""


@dataclass(frozen=True)
class System:
    """The scores of one system over a dataset."""

    name: str
    rows: tuple[ScoredRow, ...]
    """One row a record, in the order of the file."""

    undefined_is_zero: bool = False
    """Whether a metric without a value counts as 0, as in RAGChecker's results."""

    @cached_property
    def queries(self) -> Mapping[str, str]:
        """Key of a record to its query, as far as they are known."""
        return {row.key: row.query for row in self.rows if row.query is not None}

    @cached_property
    def judges(self) -> frozenset[str]:
        """Names of the judges, with their versions; results of different judges differ by them."""
        return frozenset(row.judge for row in self.rows if row.judge)

    @cached_property
    def own_metrics(self) -> Mapping[str, bool]:
        """Criterion or function of the user's to whether its lower end is better."""
        return {name: is_lower for row in self.rows for name, is_lower in row.own_metrics.items()}

    @property
    def failed(self) -> int:
        """Number of records without an evaluation."""
        return sum(row.error is not None for row in self.rows)


class _Record(BaseModel):
    query: str
    metadata: Mapping[str, JsonValue] = {}


class _Evaluation(BaseModel):
    metrics: Mapping[str, object] = {}
    lower_is_better: tuple[str, ...] = ()
    response_claims: tuple[object, ...] = ()
    judge_name: str = ""
    judge_version: str = ""


class _Line(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False)

    id: str | None
    metrics: Mapping[str, float]
    label: str | None = None
    error: str | None
    record: _Record
    evaluation: _Evaluation

    def scored(self) -> ScoredRow:
        """The scores, with the label and the number of claims as two of them."""
        found, scores = self.evaluation, dict(self.metrics)
        if self.label is not None and self.label in LOW_SCORE:
            scores[LOW_RECORDS] = LOW_SCORE[self.label]
        if self.error is None:
            scores[CLAIMS_PER_RESPONSE] = float(len(found.response_claims))
        return ScoredRow(
            # Records without ids are paired by their queries.
            key=self.id or self.record.query,
            scores=scores,
            metadata=self.record.metadata,
            error=self.error,
            query=self.record.query,
            judge=f"{found.judge_name} {found.judge_version}".strip(),
            own_metrics={
                name: name in found.lower_is_better
                for name in found.metrics
                if name not in CATALOGUE
            },
        )


def lower_is_better(systems: Iterable[System], metric: str) -> bool | None:
    """Return the direction of a metric's scale; None if neither end is known to be better."""
    if metric in CATALOGUE:
        return CATALOGUE[metric].lower_is_better
    if metric == LOW_RECORDS:
        return True
    said = {each.own_metrics[metric] for each in systems if metric in each.own_metrics}
    return said.pop() if len(said) == 1 else None


def read_systems(paths: Sequence[Path]) -> list[System]:
    """Read a file of results for each system, with the names of ``system_names``.

    Raises:
        ConfigError: A file is given twice.
    """
    names = system_names(paths)
    return [read_system(path, name=name) for path, name in zip(paths, names, strict=True)]


def system_names(paths: Sequence[Path]) -> list[str]:
    """Name each system after its file, or by its path if two files share a name.

    Raises:
        ConfigError: A file is given twice.
    """
    # By the file that a path leads to: a system beside itself would differ in nothing.
    if len({path.resolve() for path in paths}) < len(paths):
        raise ConfigError("a file is given twice: give each system once")
    # Runs often lie in a folder each, with files of one name.
    stems = [path.stem for path in paths]
    return [path.stem if stems.count(path.stem) == 1 else str(path) for path in paths]


def read_system(path: Path, *, name: str | None = None) -> System:
    """Read the results of one system, ours or RAGChecker's; without a name it has the file's.

    Raises:
        FileError: The file cannot be read, or a line is no result; names the line.
    """
    name = name or path.stem
    try:
        file = RecordFile(path)
        if file.document is not None:
            system = System(name, tuple(_rag_results(file)), undefined_is_zero=True)
        else:
            system = System(name, tuple(line.scored() for line in read_lines(path, _Line)))
    except OSError as error:
        raise unreadable(path, error, wanted=WANTED) from None
    if not system.rows:
        raise FileError(f"{str(path)!r} holds no results: give a {WANTED}")
    return system


def system_of_rows(name: str, rows: Sequence[ResultRow]) -> System:
    """Return the system with these results, as if they had been read from a file."""
    lines = (_Line.model_validate(row, from_attributes=True) for row in rows)
    return System(name, tuple(line.scored() for line in lines))


def _rag_results(file: RecordFile) -> Iterator[ScoredRow]:
    for row in file.every_record():
        record, recorded = row.record, row.recorded
        scores = dict(recorded.metrics)
        if recorded.response_claims is not None:
            scores[CLAIMS_PER_RESPONSE] = float(len(recorded.response_claims))
        error = None if recorded.metrics else "not evaluated yet"
        yield ScoredRow(record.id or record.query, scores, record.metadata, error, record.query)
