"""The results of evaluations: of one record, of many, and as a table of plain values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, overload

from claimspan.errors import ConfigError, MissingExtraError
from claimspan.evaluation.display import line_of, page_of, table_of
from claimspan.evaluation.judgement import GOOD, LOW, UNKNOWN, Judgement, judgement_of
from claimspan.evaluation.measured import Measured
from claimspan.metrics.catalogue import in_order
from claimspan.records import RagRecord

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Cell", "Columns", "Evaluation", "Evaluations", "table_columns", "table_row"]


class Evaluation(Measured):
    """Metrics of one record, with the claims and verdicts that they rest on.

    An evaluation travels between processes as JSON, and equals itself after it. The properties
    are derived from the verdicts, and are no part of the JSON.
    """

    def __repr__(self) -> str:
        """Label and scores in one line: ``<Evaluation low: faithfulness 0.50, ...>``."""
        return line_of(self)

    __str__ = __repr__

    def _repr_html_(self) -> str:
        """What a notebook shows: the scores, why they are low, and the claims."""
        return page_of(self)

    @property
    def judgement(self) -> Judgement:
        """The judgement on the answer: its label, the reasons, and the part to blame.

        The same as on spans, in reports and in backends, with chunks named by their places.
        """
        return judgement_of(self)


Cell = str | int | float | bool | None
"""A value of a table; None if the record has none."""

Columns = Mapping[str, type[str] | type[int] | type[float] | type[bool]]
"""Column to the type of its values, in the order of the table."""

_BEFORE: Final[Columns] = {
    **{"index": int, "id": str, "query": str, "response": str},
    **{"label": str, "reason": str, "blame": str},
}
_AFTER: Final[Columns] = {
    **{"abstained": bool, "claims": int, "undecided_claims": int, "judge": str},
    **{"cost_usd": float, "seconds": float, "error": str},
}


def table_columns(metrics: Iterable[str]) -> Columns:
    """The columns of a table, with each metric that a record has, or was to have.

    A program that reads the table of the same run again finds the same columns.
    """
    return {**_BEFORE, **dict.fromkeys(in_order(metrics), float), **_AFTER}


def table_row(
    index: int, record: RagRecord, evaluation: Evaluation, columns: Columns
) -> dict[str, Cell]:
    """Return the row of the record at a place, from 0; a metric that is undefined here is None."""
    judged = judgement_of(evaluation, chunk_ids=[chunk.id for chunk in record.chunks])
    known: dict[str, Cell] = {
        "index": index,
        "id": record.id,
        "query": record.query,
        "response": record.response,
        "label": judged.label,
        "reason": judged.summary or None,
        "blame": judged.part.value,
        **evaluation.metrics,
        "abstained": evaluation.abstained,
        "claims": len(evaluation.response_claims),
        "undecided_claims": evaluation.undecided_claims,
        "judge": evaluation.judge_name,
        "cost_usd": evaluation.usage.cost_usd,
        "seconds": round(evaluation.usage.seconds, 6),
        "error": evaluation.error,
    }
    return {name: known.get(name) for name in columns}


class Evaluations(Sequence[Evaluation]):
    """The evaluations of many records, in the order of the records.

    A sequence that does not change, so that each evaluation stays with its record.
    """

    def __init__(
        self,
        records: Sequence[RagRecord],
        evaluations: Sequence[Evaluation],
        metrics: Iterable[str] = (),
    ) -> None:
        """Put each evaluation beside its record; ``metrics`` have a column in any case."""
        if len(records) != len(evaluations):
            raise ConfigError(
                f"{len(records)} records and {len(evaluations)} evaluations: give one for each"
            )
        found = (n for each in evaluations for n in (*each.metrics, *each.undefined))
        self._metrics = in_order((*metrics, *found))
        self._columns = table_columns(self._metrics)
        self._records = tuple(records)
        self._evaluations = tuple(evaluations)

    @property
    def records(self) -> tuple[RagRecord, ...]:
        """The records, in the order of their evaluations."""
        return self._records

    def table(self) -> list[dict[str, Cell]]:
        """Return one flat dict a record, with the same keys in each.

        The keys are ``index``, ``id``, ``query``, ``response``, ``label`` (``low``, ``good`` or
        ``unknown``), ``reason`` (the low scores in one line), ``blame`` (the part of the pipeline
        that a low record comes from), each metric that a record has or lacks, ``abstained``,
        ``claims`` (how many the response makes), ``undecided_claims``, ``judge``, ``cost_usd``,
        ``seconds`` and ``error``. A metric that is undefined for a record is None, never 0.
        ``error`` says why a record has no scores, and is None if it has.
        """
        pairs = zip(self._records, self._evaluations, strict=True)
        return [table_row(index, *pair, self._columns) for index, pair in enumerate(pairs)]

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a data frame of pandas; an undefined metric is NaN.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("pandas", "pandas") from error
        frame = pd.DataFrame(self.table(), columns=list(self._columns))
        # By type, not by what the rows hold: a metric that no record has is a column of numbers as
        # well, and an empty table can be joined with a full one.
        plain = {name: kind for name, kind in self._columns.items() if kind is not str}
        return frame.astype(plain)

    def __len__(self) -> int:
        return len(self._evaluations)

    @overload
    def __getitem__(self, index: int) -> Evaluation: ...

    @overload
    def __getitem__(self, index: slice) -> Evaluations: ...

    def __getitem__(self, index: int | slice) -> Evaluation | Evaluations:
        if isinstance(index, slice):
            return Evaluations(self._records[index], self._evaluations[index], self._metrics)
        return self._evaluations[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Evaluations):
            return NotImplemented
        mine, theirs = (self._records, self._evaluations), (other.records, tuple(other))
        return mine == theirs

    def __repr__(self) -> str:
        told = Counter(
            "failed" if each.error is not None else judgement_of(each).label
            for each in self._evaluations
        )
        parts = [f"{told[word]} {word}" for word in (LOW, GOOD, UNKNOWN, "failed") if told[word]]
        return f"<Evaluations of {len(self)} records: {', '.join(parts) or 'none'}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: a table of the first records."""
        return table_of(self._records, self._evaluations)
