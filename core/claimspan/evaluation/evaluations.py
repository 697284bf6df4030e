"""The evaluations of many records, with the records, as a sequence and as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, overload

from claimspan.errors import ConfigError, MissingExtraError
from claimspan.evaluation.display import table_of
from claimspan.evaluation.judgement import GOOD, LOW, UNKNOWN, judgement_of
from claimspan.evaluation.result import Evaluation
from claimspan.evaluation.table import Cell, Columns, table_columns, table_row
from claimspan.metrics.catalogue import in_order
from claimspan.records import RagRecord

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Evaluations"]


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
        """Put each evaluation beside its record.

        Args:
            records: The records.
            evaluations: One for each record, in the same order.
            metrics: Metrics that have a column, beside those that a record has or lacks.

        Raises:
            ConfigError: There are more of the one than of the other.
        """
        if len(records) != len(evaluations):
            raise ConfigError(
                f"{len(records)} records and {len(evaluations)} evaluations: give one for each"
            )
        found = (n for each in evaluations for n in (*each.metrics, *each.undefined))
        self._metrics = in_order((*metrics, *found))
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
        columns = self._columns
        pairs = zip(self._records, self._evaluations, strict=True)
        return [table_row(index, *pair, columns) for index, pair in enumerate(pairs)]

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a data frame of pandas; an undefined metric is NaN.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingExtraError("pandas", "pandas") from error
        columns = self._columns
        frame = pd.DataFrame(self.table(), columns=list(columns))
        # By type, not by what the rows hold: a metric that no record has is a column of numbers as
        # well, and an empty table can be joined with a full one.
        plain = {name: kind for name, kind in columns.items() if kind is not str}
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

    @property
    def _columns(self) -> Columns:
        return table_columns(self._metrics)
