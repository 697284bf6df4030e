"""``claimspan bench ragchecker``: RAGChecker's figures, recomputed from the labels in its files.

Systems are shown in the columns of the paper's table 3 (arXiv 2408.08067), beside the figures that
their files hold.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

import typer
from pydantic import JsonValue

from claimspan.cli.evaluate_command import UndefinedRule
from claimspan.errors import ConfigError
from claimspan.files.record_files import Account, RecordFile
from claimspan.files.record_rows import InputRow, Recorded
from claimspan.metrics.compute import Undefined, compute_metrics
from claimspan.results.rag_results import RAGCHECKER_METRICS, per_cent
from claimspan.results.rows import Mean
from claimspan.text.visible import visible
from claimspan_bench.shown import SOME_FAILED, AsJson, piped

__all__ = ["RecomputedSystem", "ragchecker_command", "recompute"]

TOLERANCE: Final = 1e-12
"""Largest difference between two values of a record that are called equal: some steps of the last
bit, by which another order of the same sums may differ."""

_HALF_STEP: Final = 0.05 + 1e-9
"""Means are recorded with one decimal, so the recorded one may be this far from what it was."""

_COLUMNS: Final[Mapping[str, str]] = dict(
    zip(
        RAGCHECKER_METRICS,
        ("P", "R", "F1", "CR", "CP", "CU", "NS(I)", "NS(II)", "Hallu", "SK", "Faith"),
        strict=True,
    )
)
"""Metric to the paper's short name, in the paper's order; I is noise in relevant chunks."""

_LAST_OF_GROUP: Final = frozenset({"F1", "CP", "Faith"})
"""Columns after which the paper draws a line."""

_RECORDED: Final = "as recorded"
_WIDTH: Final = 6


def ragchecker_command(
    files: Annotated[
        list[Path], typer.Argument(help="RAGChecker's results with labels, one file a system.")
    ],
    undefined: Annotated[
        UndefinedRule,
        typer.Option(
            help="A metric without a value is 0 as in ragchecker 0.1.9, or left out of the mean."
        ),
    ] = UndefinedRule.ZERO,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the table in Markdown.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Recompute RAGChecker's metrics from recorded labels.

    Shows each system in the columns of the paper's table 3, in per cent, beside the figures in its
    file. Exits with 1 where one of these is not equal, or a record cannot be read. No judge is
    asked.
    """
    systems = [recompute(file, undefined=undefined.value) for file in files]
    if as_json:
        found = [_system_as_json(system) for system in systems]
        typer.echo(json.dumps({"undefined": undefined.value, "systems": found}))
    else:
        typer.echo(visible(_as_markdown(systems) if markdown else _as_text(systems)))
    # Leaving values out gives other figures on purpose.
    is_compared = undefined is UndefinedRule.ZERO
    if any(each.account.skipped or (is_compared and not each.is_equal) for each in systems):
        raise typer.Exit(SOME_FAILED)


@dataclass(slots=True)
class RecomputedSystem:
    """The metrics of one system's file, recomputed, beside those that the file holds."""

    name: str
    """Name of the system: the file's, without its ending."""

    account: Account

    recorded_means: Mapping[str, float]
    """The means that the file holds, in per cent; empty where it holds none."""

    labelled: int = 0
    means: dict[str, Mean] = field(default_factory=dict[str, Mean])
    claims: Mean = field(default_factory=Mean)

    compared: int = 0
    """Values of single records that the file holds, and that could be recomputed."""

    largest_difference: float = 0.0
    """Largest difference between such a value and ours."""

    @property
    def per_cent(self) -> dict[str, float]:
        """Metric to our mean, in per cent with one decimal as RAGChecker rounds."""
        return {
            name: per_cent(self.means[name]) for name in RAGCHECKER_METRICS if name in self.means
        }

    @property
    def unequal_means(self) -> list[str]:
        """The metrics whose recorded mean is not ours, to one decimal."""
        return [
            name
            for name, recorded in self.recorded_means.items()
            # Not by rounding ours: numpy rounds a tie to the even digit, and the order of a sum may
            # decide on which side of a tie a mean is.
            if name in self.means and abs(self.means[name].mean * 100 - recorded) > _HALF_STEP
        ]

    @property
    def is_equal(self) -> bool:
        """Whether every figure in the file is ours."""
        return self.largest_difference <= TOLERANCE and not self.unequal_means

    def add(self, recorded: Recorded, undefined: Undefined) -> None:
        """Count the labels of a record, if it has any; ``undefined`` is as in ``recompute``."""
        # Never from the metrics in the file, which are what is checked here.
        metrics = compute_metrics(
            response_vs_ground_truth=recorded.answer2response,
            ground_truth_vs_response=recorded.response2answer,
            response_vs_chunks=recorded.retrieved2response,
            ground_truth_vs_chunks=recorded.retrieved2answer,
            undefined=undefined,
        )
        values = {name: metrics[name] for name in RAGCHECKER_METRICS if name in metrics}
        if not values:
            return
        self.labelled += 1
        # A file may have labels without claims; there is one label for each claim.
        labels = recorded.answer2response or recorded.retrieved2response or ()
        claims = recorded.response_claims
        self.claims.add(len(labels if claims is None else claims))
        for name, value in values.items():
            self.means.setdefault(name, Mean()).add(value)
            if name in recorded.metrics:
                self.compared += 1
                difference = abs(recorded.metrics[name] - value)
                self.largest_difference = max(self.largest_difference, difference)


def recompute(path: Path, *, undefined: Undefined = "zero") -> RecomputedSystem:
    """Recompute the metrics of a system from the labels in its file.

    Args:
        path: RAGChecker's results, of either format, or another file of records with its labels.
        undefined: ``"zero"`` counts a metric without a value as 0.0, as ragchecker 0.1.9 does;
            ``"omit"`` leaves it out of the mean, as the code of 2024-06 did.

    Raises:
        FileError: The file cannot be read.
        ConfigError: No record of the file has labels.
    """
    file = RecordFile(path)
    system = RecomputedSystem(path.stem, Account(), file.recorded_means)
    for row in file.rows():
        system.account.add(row)
        if isinstance(row, InputRow):
            system.add(row.recorded, undefined)
    if not system.labelled:
        raise ConfigError(
            f"{str(path)!r} has no labels to compute metrics from: check its claims first, with "
            f"claimspan evaluate {path} -o {path.stem}_checked.json"
        )
    return system


# --- what is shown ---


def _table(systems: Sequence[RecomputedSystem], recorded: str) -> Iterator[list[str]]:
    """The heads, one row a system, and one called ``recorded`` for what its file says."""
    yield ["", *_COLUMNS.values(), "#claims"]
    for system in systems:
        yield [system.name, *_figures(system.per_cent), f"{system.claims.mean:.1f}"]
        if system.recorded_means:
            yield [recorded, *_figures(system.recorded_means), ""]


def _figures(means: Mapping[str, float]) -> Iterator[str]:
    return (f"{means[name]:.1f}" if name in means else "-" for name in _COLUMNS)


def _as_text(systems: Sequence[RecomputedSystem]) -> str:
    rows = list(_table(systems, f"  {_RECORDED}"))
    width = max(len(_RECORDED) + 2, *(len(system.name) for system in systems))
    lines: list[str] = []
    for name, *cells in rows:
        parts = [f"{name:<{width}}"]
        for column, cell in zip(rows[0][1:], cells, strict=True):
            parts.append(f"{cell:>{max(_WIDTH, len(column))}}")
            parts += [" |"] * (column in _LAST_OF_GROUP)
        lines.append(" ".join(parts).rstrip())
    return "\n".join([*lines, "", *map(_verdict, systems)])


def _as_markdown(systems: Sequence[RecomputedSystem]) -> str:
    (_, *heads), *rows = _table(systems, f"*{_RECORDED}*")
    table = piped([["system", *heads], *rows], figures=True)
    return "\n".join([table, "", *(f"- {_verdict(system)}" for system in systems)])


def _system_as_json(system: RecomputedSystem) -> dict[str, JsonValue]:
    return {
        "name": system.name,
        "records": system.account.records,
        "skipped": system.account.skipped,
        "labelled": system.labelled,
        "claims_per_response": system.claims.mean,
        "metrics": {
            name: {"mean": each.mean, "per_cent": system.per_cent[name], "n": each.n}
            for name, each in system.means.items()
        },
        "recorded_per_cent": dict[str, JsonValue](system.recorded_means),
        "values_compared": system.compared,
        "largest_difference": system.largest_difference,
        "unequal_means": list[JsonValue](system.unequal_means),
        "equal": system.is_equal,
    }


def _verdict(system: RecomputedSystem) -> str:
    """What the comparison with the file's own figures has shown, in one line."""
    n = system.labelled
    left_out = [
        f"{count} {what}"
        for count, what in (
            (system.account.records - n, "without"),
            (system.account.skipped, "that cannot be read"),
        )
        if count
    ]
    told = f"{system.name}: {n} record{'s' * (n != 1)} with labels"
    told += f" (left out: {', '.join(left_out)})" * bool(left_out)
    values = "no values of single records in the file"
    if system.compared:
        largest = system.largest_difference
        equal = "equal" if largest <= TOLERANCE else "NOT equal"
        values = (
            f"{system.compared} recorded values, {equal} to 1e-12 "
            f"(largest difference {largest:.1e})"
        )
    means = "no means in the file"
    if unequal := system.unequal_means:
        means = f"recorded means NOT equal to one decimal: {', '.join(unequal)}"
    elif system.recorded_means:
        means = f"{len(system.recorded_means)} recorded means, equal to one decimal"
    return f"{told}; {values}; {means}"
