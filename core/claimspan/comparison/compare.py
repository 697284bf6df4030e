"""Compares systems over one dataset with one of them, record by record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from claimspan.comparison.comparison import (
    PAPER_METRICS,
    SIGNIFICANCE,
    Comparison,
    Difference,
    Finding,
    MetricResult,
    Slice,
    SystemResult,
)
from claimspan.comparison.notes import notes_on
from claimspan.comparison.pairs import (
    PairedMetric,
    compare_pairs,
    estimates,
    paired_rows,
)
from claimspan.comparison.slices import slices_of
from claimspan.comparison.systems import System, read_systems
from claimspan.errors import ConfigError
from claimspan.metrics.catalogue import lower_is_better
from claimspan.progress import progress_bar
from claimspan.statistics import Estimate, holm

__all__ = ["ALL_METRICS", "compare_files", "compare_systems"]

ALL_METRICS: Final = "all"
"""In place of the names of metrics: every metric that a system has."""


def compare_files(
    paths: Sequence[Path],
    *,
    baseline: str | None = None,
    metrics: Sequence[str] | None = None,
    slice_by: str | None = None,
    group_by: str | None = None,
    progress: bool | None = None,
) -> Comparison:
    """Compare the systems whose results are in files.

    Args:
        paths: Files that ``claimspan evaluate -o`` has written, one a system.
        baseline: Name or path of one of them; None for the first.
        metrics: As for ``compare_systems``.
        slice_by: As for ``compare_systems``.
        group_by: As for ``compare_systems``.
        progress: As for ``evaluate_many``.

    Raises:
        ConfigError: There are fewer than two files, or ``compare_systems`` raises it.
        FileError: A file cannot be read, or a line is no result; names the line.
    """
    systems = read_systems(paths)
    names = {str(path): system.name for path, system in zip(paths, systems, strict=True)}
    return compare_systems(
        systems,
        baseline=None if baseline is None else names.get(str(Path(baseline)), baseline),
        metrics=metrics,
        slice_by=slice_by,
        group_by=group_by,
        progress=progress,
    )


def compare_systems(
    systems: Sequence[System],
    *,
    baseline: str | None = None,
    metrics: Sequence[str] | None = None,
    slice_by: str | None = None,
    group_by: str | None = None,
    progress: bool | None = None,
) -> Comparison:
    """Compare systems over one dataset.

    The p-values of the table are adjusted for all its tests, those of the slices for the tests of
    all slices.

    Args:
        systems: At least two, of different names.
        baseline: Name of the one that the others are compared with; None for the first.
        metrics: Names of metrics, or ``["all"]``; None for the columns of RAGChecker's paper.
        slice_by: Metadata key: the same is done for the records of each of its values.
        group_by: Metadata key: records with the same value, such as those of one document, are
            resampled together. None where each record stands for itself.
        progress: As for ``evaluate_many``.

    Raises:
        ConfigError: There are too few systems, the baseline or a metric is not among them, two
            systems have no record in common, or the key of the slices has too many values.
        MissingExtraError: scipy is not installed.
    """
    before = _baseline(systems, baseline)
    chosen = _metrics(systems, metrics)
    parts = {} if slice_by is None else slices_of(systems, slice_by)
    steps = len(systems) + sum(map(len, parts.values()))
    with progress_bar("comparing", total=steps, show=progress) as advance:

        def figures(of: Sequence[System]) -> list[_Figures]:
            # A slice may hold no record of the baseline.
            first = next((each for each in of if each.name == before.name), None)
            found: list[_Figures] = []
            for system in of:
                found.append(_figures(system, first, chosen, group_by))
                advance()
            return found

        table = figures(systems)
        sliced = {value: figures(part) for value, part in parts.items()}
    _require_common(table, before)
    (whole,), tests = _adjusted([table])
    per_slice, slice_tests = _adjusted(sliced.values())
    return Comparison(
        baseline=before.name,
        metrics=tuple(chosen),
        systems=whole,
        tests=tests,
        slices=tuple(
            Slice(key=str(slice_by), value=value, systems=each)
            for value, each in zip(sliced, per_slice, strict=True)
        ),
        slice_tests=slice_tests,
        notes=tuple(notes_on(systems, before, whole, metrics)),
    )


@dataclass(frozen=True, slots=True)
class _Figures:
    """What is found out of one system before the p-values are adjusted."""

    system: System
    means: Mapping[str, Estimate]
    pairs: Mapping[str, PairedMetric]
    common: int
    metrics: Sequence[str]
    in_baseline: int

    def result(self, adjusted: Mapping[str, float]) -> SystemResult:
        """Return the row of the table, with adjusted p-values by metric."""
        n = len(self.system.rows)
        return SystemResult(
            name=self.system.name,
            records=n,
            failed=self.system.failed,
            common=self.common,
            only_here=n - self.common,
            only_in_baseline=self.in_baseline - self.common,
            metrics={
                name: MetricResult(
                    metric=name,
                    estimate=self.means.get(name),
                    difference=_difference(name, self.pairs[name], adjusted[name])
                    if name in self.pairs
                    else None,
                )
                for name in self.metrics
            },
        )


def _figures(
    system: System, before: System | None, metrics: Sequence[str], group_by: str | None
) -> _Figures:
    is_baseline = system is before
    pairs = [] if before is None or is_baseline else paired_rows(before, system)
    return _Figures(
        system=system,
        means=estimates(system.rows, metrics, group_by),
        pairs=compare_pairs(pairs, metrics, group_by),
        common=len(system.rows) if is_baseline else len(pairs),
        metrics=metrics,
        in_baseline=0 if before is None else len(before.rows),
    )


def _adjusted(
    tables: Iterable[Sequence[_Figures]],
) -> tuple[list[tuple[SystemResult, ...]], int]:
    """The results of some tables, whose tests are all adjusted together, and their number."""
    tables = list(tables)
    found = [figures for table in tables for figures in table]
    # A metric has a test for each system, so that its name alone would not be a key.
    p_values = {
        f"{place}/{name}": pair.p_value
        for place, figures in enumerate(found)
        for name, pair in figures.pairs.items()
    }
    adjusted = holm(p_values)
    results = iter(
        [
            figures.result({name: adjusted[f"{place}/{name}"] for name in figures.pairs})
            for place, figures in enumerate(found)
        ]
    )
    return [tuple(next(results) for _ in table) for table in tables], len(p_values)


def _difference(metric: str, pair: PairedMetric, adjusted_p_value: float) -> Difference:
    return Difference(
        before=pair.before,
        after=pair.after,
        difference=pair.difference,
        p_value=pair.p_value,
        adjusted_p_value=adjusted_p_value,
        finding=_finding(
            pair.difference.value, adjusted_p_value, lower_is_better=lower_is_better(metric)
        ),
        only_in_baseline=pair.only_in_baseline,
        only_in_system=pair.only_in_system,
    )


def _baseline(systems: Sequence[System], name: str | None) -> System:
    names = [system.name for system in systems]
    if len(set(names)) < max(2, len(names)):
        raise ConfigError("give the results of at least two systems, each once and by its own name")
    if name is not None and name not in names:
        raise ConfigError(f"the baseline {name!r} is not among {', '.join(names)}")
    return systems[0 if name is None else names.index(name)]


def _metrics(systems: Sequence[System], wanted: Sequence[str] | None) -> list[str]:
    """The metrics of the table, in the order of the paper or in that given."""
    # A dict keeps the order in which the files name their metrics; a set would not.
    there = list(
        dict.fromkeys(name for each in systems for row in each.rows for name in row.scores)
    )
    if wanted is None or list(wanted) == [ALL_METRICS]:
        paper: list[str] = [name for name in PAPER_METRICS if name in there]
        return paper if wanted is None else paper + [name for name in there if name not in paper]
    unknown = [name for name in wanted if name not in there]
    if unknown:
        raise ConfigError(
            f"no system has a score called {', '.join(unknown)}: choose among {', '.join(there)}"
        )
    return list(dict.fromkeys(wanted))


def _require_common(table: Sequence[_Figures], before: System) -> None:
    # Asked of the whole table alone: a slice may well hold no common record.
    for figures in table:
        if not figures.common:
            raise ConfigError(
                f"{before.name} and {figures.system.name} have no record in common"
                f"{_but_queries(before, figures.system)}"
            )


def _but_queries(before: System, system: System) -> str:
    """What the records do have in common, and what to do."""
    queries = len(set(before.queries.values()) & set(system.queries.values()))
    if not queries:
        return (
            ": compare results of the same dataset, whose records have the same ids, or the same "
            "queries"
        )
    many = "1 query" if queries == 1 else f"{queries} queries"
    return (
        f", but {many}: records with ids are paired by these, so give both files the same ids, or "
        "neither of them any"
    )


def _finding(
    difference: float, adjusted_p_value: float, *, lower_is_better: bool | None
) -> Finding:
    """Name a difference in a word: what the test has not shown is no difference.

    Args:
        difference: System minus baseline.
        adjusted_p_value: Of the test of this difference.
        lower_is_better: Direction of the metric's scale.
    """
    if adjusted_p_value >= SIGNIFICANCE or not difference:
        return "no difference shown"
    if lower_is_better is None:
        return "different"
    return "better" if (difference < 0) is lower_is_better else "worse"
