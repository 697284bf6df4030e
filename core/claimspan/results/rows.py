"""The fields of one line of a file of results, and the table and the summary of many."""

from __future__ import annotations

import codecs
import csv
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, TextIO, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from claimspan.errors import FileError
from claimspan.evaluation.diagnosis import Part
from claimspan.evaluation.judgement import RecordLabel, judgement_of
from claimspan.evaluation.result import Cell, Columns, Evaluation, table_columns, table_row
from claimspan.files.arrow import ParquetFormat
from claimspan.files.jsonl import unreadable
from claimspan.metrics.catalogue import METRICS, in_order
from claimspan.metrics.compute import Undefined, measure
from claimspan.records import RagRecord
from claimspan.results.recorded_judge import RECORDED
from claimspan.text.encodable import encodable

__all__ = [
    "MAX_FAILED",
    "WANTED",
    "Mean",
    "ResultRow",
    "Summary",
    "digest",
    "harmless",
    "holds_results",
    "read_lines",
    "write_parquet",
    "write_table",
]

WANTED: Final = "file of results (claimspan evaluate -o)"

MAX_FAILED: Final = 1_000
"""Failed records that are listed; the others are counted."""

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula
(https://owasp.org/www-community/attacks/CSV_Injection)."""


_LOOKED_AT: Final = 5
"""Lines that tell the format of a file: the first ones may be torn."""

_T = TypeVar("_T", bound=BaseModel)
_C = TypeVar("_C")


class ResultRow(BaseModel):
    """One line: a record with its evaluation, so that a file of results stands for itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    index: int = Field(ge=0)
    """Place of the record in its file, from 0."""

    id: str | None
    digest: str
    """Of the record, so that results of another file, or of a changed one, are noticed."""

    metrics: Mapping[str, float]
    """The scores again, at the place that a reader looks at first."""

    label: RecordLabel | None = None
    """The record's label; None in files of before claimspan wrote it."""

    summary: str = ""
    blame: Part | None = None
    """The part of the pipeline that a low record comes from; None as ``label`` is."""

    error: str | None
    """Why there are no scores; None if there are."""

    record: RagRecord
    evaluation: Evaluation

    @classmethod
    def of(cls, index: int, record: RagRecord, evaluation: Evaluation) -> ResultRow:
        """Return the line of a record."""
        judged = judgement_of(evaluation, chunk_ids=[chunk.id for chunk in record.chunks])
        return cls(
            index=index,
            id=record.id,
            digest=digest(record),
            metrics=evaluation.metrics,
            label=judged.label,
            summary=judged.summary,
            blame=judged.part,
            error=evaluation.error,
            record=record,
            evaluation=evaluation,
        )

    def measured(self, undefined: Undefined) -> ResultRow:
        """Return the row with its metrics by a rule for those without a value."""
        chosen = {*self.evaluation.metrics, *self.evaluation.undefined}
        found = measure(self.evaluation.matrices, metrics=chosen, undefined=undefined)
        others = {name: value for name, value in self.metrics.items() if name not in METRICS}
        metrics = {**found.metrics, **others}
        # Most rows of a file follow the rule already, and copying a model takes longer than
        # looking.
        if self.error is not None or metrics == self.metrics:
            return self
        whys = {n: why for n, why in self.evaluation.undefined.items() if n not in METRICS}
        undefined_here = {**found.undefined, **whys}
        evaluation = self.evaluation.model_copy(
            update={"metrics": metrics, "undefined": undefined_here}
        )
        return self.model_copy(update={"metrics": metrics, "evaluation": evaluation})


def digest(record: RagRecord) -> str:
    """Return 16 hexadecimal digits that tell one record from another."""
    # Sorted keys: the digest must not change with the order in which a file has its metadata.
    # Which part of its context was kept does not make it another record.
    dumped = record.model_dump(mode="json", exclude={"context_cut"})
    text = json.dumps(dumped, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def holds_results(path: Path) -> bool:
    """Whether one of the first lines of a file is a result.

    Raises:
        FileError: The file cannot be read.
    """
    try:
        with path.open("rb") as file:
            return any(map(_is_result, islice(filter(bytes.strip, file), _LOOKED_AT)))
    except OSError as error:
        raise unreadable(path, error, wanted="file of records or of results") from None


def _is_result(line: bytes) -> bool:
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):  # a line of brackets alone nests too deep to be parsed
        return False
    return isinstance(value, dict) and {"record", "evaluation"} <= value.keys()


def read_lines(
    path: Path, kind: type[_T], broken: Callable[[int, bool], None] | None = None
) -> Iterator[_T]:
    """Yield the lines of a file of results as models, which may have a part of ``ResultRow`` alone.

    Args:
        path: The file.
        kind: The model.
        broken: Takes the number of each line that is no result, from 1, and whether it may be torn:
            it has no end. None raises at the first.

    Raises:
        FileError: A line is no result; names the line.
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            # Editors on Windows begin a file with a mark that JSON does not allow.
            text = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            if not text.strip():
                continue
            try:
                row = kind.model_validate_json(text)
            except ValidationError:
                if broken is None:
                    # Without the cause: it quotes the input, which may be private.
                    raise FileError(
                        f"{str(path)!r} line {number} is no result: give a {WANTED}"
                    ) from None
                broken(number, not line.endswith(b"\n"))
                continue
            yield row


@dataclass(slots=True)
class Mean:
    """The mean of a metric, over the records that have one."""

    total: float = 0.0
    n: int = 0

    def add(self, value: float) -> None:
        """Count one more value."""
        self.total += value
        self.n += 1

    @property
    def mean(self) -> float:
        """The mean; there is at least one value."""
        return self.total / self.n


@dataclass(slots=True)
class Summary:
    """Counts, means and cost of the records that were evaluated."""

    evaluated: int = 0
    failed: int = 0
    errors: dict[int, str] = field(default_factory=dict[int, str])
    """Place to reason, of the first records that failed."""

    reasons: Counter[str] = field(default_factory=Counter[str])
    """Reason to the number of records that failed for it."""

    labels: Counter[str] = field(default_factory=Counter[str])
    low: Counter[str] = field(default_factory=Counter[str])
    """Metric to the number of records with it as their most telling low score."""

    means: dict[str, Mean] = field(default_factory=dict[str, Mean])
    undefined: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    """Metric that some record was to have and has not, to its reasons with their records."""

    judges: Counter[str] = field(default_factory=Counter[str])
    cost_usd: float = 0.0
    """US dollars that the judge has reported."""

    def add(self, row: ResultRow) -> None:
        """Count a row."""
        # A record that failed has cost something all the same, so this comes before its error is
        # looked at.
        self.cost_usd += row.evaluation.usage.cost_usd
        if row.error is not None:
            self.failed += 1
            if len(self.errors) < MAX_FAILED:
                self.errors[row.index] = row.error
            _count(self.reasons, row.error)
            return
        self.evaluated += 1
        # What a file held beside the judge's labels makes it no other judge; empty if every label
        # was recorded, by whatever judge.
        name = row.evaluation.judge_name.removesuffix(RECORDED).rstrip("+")
        if judge := f"{name} {row.evaluation.judge_version}".strip():
            self.judges[judge] += 1
        judged = judgement_of(row.evaluation, quotes=False)
        self.labels[judged.label] += 1
        self.low.update(each.name for each in judged.low[:1])
        for name, why in row.evaluation.undefined.items():
            _count(self.undefined.setdefault(name, Counter()), why)
        for name, value in row.metrics.items():
            self.means.setdefault(name, Mean()).add(value)

    @property
    def metrics(self) -> list[str]:
        """The metrics that a record has or was to have, in the order of all scores."""
        return in_order((*self.means, *sorted(self.undefined)))

    @property
    def records(self) -> int:
        """All records, evaluated or failed."""
        return self.evaluated + self.failed


def _count(reasons: Counter[str], reason: str) -> None:
    # A function or a judge may say something else of each record.
    reasons[reason if len(reasons) < MAX_FAILED or reason in reasons else "others"] += 1


def write_table(file: TextIO, rows: Iterable[ResultRow], metrics: Iterable[str]) -> None:
    """Write a row for each record as CSV, with a header of ``table_columns``.

    A cell is empty if a metric has no value. A number has four digits. A text that a spreadsheet
    would run as a formula has an apostrophe in front.
    """
    columns = table_columns(metrics)
    writer = csv.DictWriter(file, list(columns), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: _shown(cell) for name, cell in _cells(row, columns).items()})


def write_parquet(
    parquet: ParquetFormat, file: BinaryIO, rows: Iterable[ResultRow], metrics: Iterable[str]
) -> None:
    """Write the same table as a Parquet file, with its types; a metric without a value is null."""
    columns = table_columns(metrics)
    # A reason of a judge's own may have half of a surrogate pair, which Parquet cannot hold.
    cells = (
        {n: encodable(each) if isinstance(each, str) else each for n, each in found.items()}
        for found in (_cells(row, columns) for row in rows)
    )
    parquet.write(file, cells, columns)


def _cells(row: ResultRow, columns: Columns) -> dict[str, Cell]:
    found = table_row(row.index, row.record, row.evaluation, columns)
    # The scores of the row count: a file of results may have metrics that the evaluation lacks.
    return {**found, **{name: row.metrics[name] for name in columns if name in row.metrics}}


def _shown(cell: Cell) -> Cell:
    if isinstance(cell, bool):
        return str(cell).lower()
    if isinstance(cell, float):
        return f"{cell:.4g}"
    return harmless(cell)


def harmless(cell: _C) -> _C | str:
    """A cell that is no formula: a spreadsheet would run one in a query or an answer."""
    # The apostrophe is what spreadsheets themselves mark a text by.
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
