"""The table of a run: one row a record, for spreadsheets and data frames."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import Final, TextIO

from claimspan.metrics.compute import METRICS
from claimspan.results.rows import ResultRow

__all__ = ["write_table"]

_BEFORE: Final = ("index", "id", "query", "response")
_AFTER: Final = ("abstained", "claims", "undecided_claims", "judge", "cost_usd", "seconds", "error")

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula
(https://owasp.org/www-community/attacks/CSV_Injection)."""


def write_table(file: TextIO, rows: Iterable[ResultRow], metrics: Iterable[str]) -> None:
    """Write a row for each record, with a header.

    A cell is empty where a metric has no value. A text that a spreadsheet would run as a formula
    has an apostrophe in front.

    Args:
        file: Takes the table as CSV.
        rows: The records with their evaluations.
        metrics: Names of the metrics that a record may have beside those of ``METRICS``.
    """
    others = sorted(set(metrics) - set(METRICS))
    writer = csv.DictWriter(file, [*_BEFORE, *METRICS, *others, *_AFTER], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow(_cells(row))


def _cells(row: ResultRow) -> dict[str, str | float | None]:
    found = row.evaluation
    return {
        "index": row.index,
        "id": _shown(row.id),
        "query": _shown(row.record.query),
        "response": _shown(row.record.response),
        **row.metrics,
        "abstained": str(found.abstained).lower(),
        "claims": len(found.response_claims),
        "undecided_claims": found.undecided_claims,
        "judge": _shown(found.judge_name),
        "cost_usd": found.usage.cost_usd,
        "seconds": round(found.usage.seconds, 3),
        "error": _shown(row.error),
    }


def _shown(text: str | None) -> str | None:
    return f"'{text}" if text is not None and text.startswith(_FORMULA) else text
