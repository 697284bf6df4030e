"""Compares systems over one dataset with one of them, record by record."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from claimspan.comparison.systems import (
    CLAIMS_PER_RESPONSE,
    ScoredRow,
    System,
    lower_is_better,
    read_systems,
)
from claimspan.errors import ConfigError
from claimspan.metrics.catalogue import (
    CATALOGUE,
    DEFAULT_METRICS,
    LOW_RECORDS,
    METRICS,
    unknown_metric,
)
from claimspan.progress import progress_bar
from claimspan.results.rag_results import RAGCHECKER_METRICS
from claimspan.statistics import Estimate, holm, mean_estimates, sign_flip_p_values

__all__ = [
    "PAPER_METRICS",
    "SIGNIFICANCE",
    "Comparison",
    "Difference",
    "Finding",
    "MetricResult",
    "Slice",
    "SystemResult",
    "chosen_metrics",
    "compare_files",
    "compare_systems",
    "estimates",
]

SIGNIFICANCE: Final = 0.05
"""Adjusted p-value below which a difference counts as shown, the convention of the field."""

PAPER_METRICS: Final = (*RAGCHECKER_METRICS, CLAIMS_PER_RESPONSE)
"""The columns of table 3 in RAGChecker's paper (arXiv 2408.08067), in its order."""

Finding = Literal["better", "worse", "different", "no difference shown"]
"""A difference in a word. ``different``: it is shown, and neither end of the scale is better."""


class Difference(BaseModel):
    """One metric of a system against the baseline, over the records with a value in both."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    before: float
    after: float
    difference: Estimate
    """Mean of system minus baseline with its 95 % interval; ``n`` is the number of pairs."""

    p_value: float
    adjusted_p_value: float
    finding: Finding
    only_in_baseline: int = 0
    """Common records with a value in the baseline alone, which no test can use."""

    only_in_system: int = 0
    """Common records with a value in the system alone."""


class MetricResult(BaseModel):
    """One metric of one system."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    metric: str
    estimate: Estimate | None
    """Mean with its 95 % interval, over the records that define it; None without any."""

    difference: Difference | None = None
    """Against the baseline; None for the baseline itself, and if no record has both values."""


class SystemResult(BaseModel):
    """One system: its metrics, and how far its records are those of the baseline."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    records: int
    failed: int
    common: int
    """Records that the baseline has as well; for the baseline its own."""

    only_here: int = 0
    only_in_baseline: int = 0
    metrics: Mapping[str, MetricResult]


class Slice(BaseModel):
    """The same systems over the records that have one value of a metadata key."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: str
    value: str
    systems: tuple[SystemResult, ...]


class Comparison(BaseModel):
    """Several systems over one dataset, compared with one of them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    baseline: str
    metrics: tuple[str, ...]
    systems: tuple[SystemResult, ...] = Field(min_length=1)

    tests: int
    """Number of tests that the p-values of ``systems`` are adjusted for."""

    slices: tuple[Slice, ...] = ()

    slice_tests: int = 0
    """Number of tests that the p-values of all slices together are adjusted for."""

    notes: tuple[str, ...] = ()
    """A sentence for each thing that is not comparable."""


# --- the comparison ---

MAX_SLICES: Final = 50
"""Values that a key may have: more would be an id, and each slice a handful of records."""

NO_VALUE: Final = "(none)"
"""The slice of the records that lack the key."""


def compare_files(
    paths: Sequence[Path],
    *,
    baseline: str | None = None,
    metrics: Sequence[str] | None = None,
    slice_by: str | None = None,
    group_by: str | None = None,
    progress: bool | None = None,
) -> Comparison:
    """Compare systems by their files of results, one a system, as ``compare_systems`` does.

    The baseline is named, or given by its path.

    Raises:
        ConfigError: As ``compare_systems``.
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
        metrics: Names of metrics, or sets of them: ``default``, ``paper`` (the columns of
            RAGChecker's paper), ``all``. None is ``default``: what is measured by default, the
            metrics of the user's own, and ``low``, the share of low records; and ``paper`` if
            results are RAGChecker's.
        slice_by: Metadata key: the same is done for the records of each of its values.
        group_by: Metadata key: records with the same value, such as those of one document, are
            resampled together. None if each record stands for itself.
        progress: As for ``evaluate_many``.

    Raises:
        ConfigError: There are too few systems, the baseline or a metric is not among them, two
            systems have no record in common, or the key of the slices has too many values.
        MissingExtraError: scipy is not installed.
    """
    names = [system.name for system in systems]
    if len(set(names)) < max(2, len(names)):
        raise ConfigError("give the results of at least two systems, each once and by its own name")
    if baseline is not None and baseline not in names:
        raise ConfigError(f"the baseline {baseline!r} is not among {', '.join(names)}")
    before = systems[0 if baseline is None else names.index(baseline)]
    chosen = chosen_metrics(systems, metrics)
    parts = {} if slice_by is None else _slices_of(systems, slice_by)
    steps = len(systems) + sum(map(len, parts.values()))
    with progress_bar("comparing", total=steps, show=progress) as advance:

        def measured(of: Sequence[System]) -> list[SystemResult]:
            # A slice may hold no record of the baseline.
            first = next((each for each in of if each.name == before.name), None)
            found: list[SystemResult] = []
            for system in of:
                found.append(_measure(system, first, chosen, group_by))
                advance()
            return found

        table = measured(systems)
        sliced = [measured(part) for part in parts.values()]
    _require_common(systems, table, before)
    directions = {name: lower_is_better(systems, name) for name in chosen}
    (whole,), tests = _adjusted([table], directions)
    per_slice, slice_tests = _adjusted(sliced, directions)
    return Comparison(
        baseline=before.name,
        metrics=tuple(chosen),
        systems=whole,
        tests=tests,
        slices=tuple(
            Slice(key=str(slice_by), value=value, systems=each)
            for value, each in zip(parts, per_slice, strict=True)
        ),
        slice_tests=slice_tests,
        notes=tuple(_notes_on(systems, before, whole, metrics or ())),
    )


def _measure(
    system: System, before: System | None, metrics: Sequence[str], group_by: str | None
) -> SystemResult:
    """The row of a system, whose p-values are not adjusted and say nothing so far."""
    pairs = [] if before is None or system is before else _paired_rows(before, system)
    common = len(system.rows) if system is before else len(pairs)
    means = estimates(system.rows, metrics, group_by)
    differences = _compare_pairs(pairs, metrics, group_by)
    return SystemResult(
        name=system.name,
        records=len(system.rows),
        failed=system.failed,
        common=common,
        only_here=len(system.rows) - common,
        only_in_baseline=0 if before is None else len(before.rows) - common,
        metrics={
            name: MetricResult(
                metric=name, estimate=means.get(name), difference=differences.get(name)
            )
            for name in metrics
        },
    )


def _adjusted(
    tables: Sequence[Sequence[SystemResult]], directions: Mapping[str, bool | None]
) -> tuple[list[tuple[SystemResult, ...]], int]:
    """The results with their findings, all tests adjusted together, and the number of tests."""
    adjusted = holm(
        {
            (place, row.name, name): found.difference.p_value
            for place, table in enumerate(tables)
            for row in table
            for name, found in row.metrics.items()
            if found.difference is not None
        }
    )

    def told(place: int, row: SystemResult, found: MetricResult) -> MetricResult:
        """The metric with its finding: a difference that the test does not show does not count."""
        if found.difference is None:
            return found
        p_value, is_lower = adjusted[place, row.name, found.metric], directions[found.metric]
        change = found.difference.difference.value
        finding: Finding = "no difference shown"
        if p_value < SIGNIFICANCE and change:
            finding = "better" if (change < 0) is is_lower else "worse"
            finding = "different" if is_lower is None else finding
        update = {"adjusted_p_value": p_value, "finding": finding}
        return found.model_copy(update={"difference": found.difference.model_copy(update=update)})

    return [
        tuple(
            row.model_copy(
                update={"metrics": {n: told(place, row, m) for n, m in row.metrics.items()}}
            )
            for row in table
        )
        for place, table in enumerate(tables)
    ], len(adjusted)


def chosen_metrics(systems: Sequence[System], wanted: Sequence[str] | None) -> list[str]:
    """The metrics that names and sets of names stand for, as far as a system has them.

    Raises:
        ConfigError: No system has a score of such a name; says which one was meant.
    """
    # A dict keeps the order in which the files name their metrics; a set would not.
    there = dict.fromkeys(name for each in systems for row in each.rows for name in row.scores)
    own = [name for name in there if any(name in each.own_metrics for each in systems)]
    default = [name for name in (*DEFAULT_METRICS, *own) if name in there]
    sets: Mapping[str, Sequence[str]] = {
        # Where others were chosen to be measured there may be none of these.
        "default": [*default, LOW_RECORDS] if default else [*METRICS, *there],
        "paper": PAPER_METRICS,
        "all": [*METRICS, *there],
    }
    if wanted is None:
        wanted = ["paper" if any(each.undefined_is_zero for each in systems) else "default"]
    for name in wanted:
        if name in CATALOGUE and name not in there:
            raise ConfigError(f"no record has a value of {name}: give one of {', '.join(there)}")
        if name not in there and name not in sets:
            raise unknown_metric("metrics", name, [*there, *sets])
    named = dict.fromkeys(name for each in wanted for name in sets.get(each, [each]))
    return [name for name in named if name in there]


def _require_common(
    systems: Sequence[System], table: Sequence[SystemResult], before: System
) -> None:
    # Asked of the whole table alone: a slice may well hold no common record.
    for system, row in zip(systems, table, strict=True):
        if row.common:
            continue
        queries = len(set(before.queries.values()) & set(system.queries.values()))
        none = f"{before.name} and {system.name} have no record in common"
        if not queries:
            raise ConfigError(
                f"{none}: compare results of the same dataset, whose records have the same ids, or "
                "the same queries"
            )
        many = "1 query" if queries == 1 else f"{queries} queries"
        raise ConfigError(
            f"{none}, but {many}: records with ids are paired by these, so give both files the "
            "same ids, or neither of them any"
        )


def _slices_of(systems: Sequence[System], key: str) -> dict[str, list[System]]:
    """For each value of a metadata key the systems that have such records, with these alone."""

    def value_of(row: ScoredRow) -> str:
        found = row.metadata.get(key, NO_VALUE)
        # As it stands in the file: ``str`` would write True and None.
        return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)

    found: dict[str, list[System]] = {}
    for system in systems:
        rows = defaultdict[str, list[ScoredRow]](list)
        for row in system.rows:
            rows[value_of(row)].append(row)
        for value, some in rows.items():
            found.setdefault(value, []).append(replace(system, rows=tuple(some)))
    if found.keys() == {NO_VALUE}:
        raise ConfigError(f"no record has {key!r} in its metadata: give a key that records have")
    if len(found) > MAX_SLICES:
        raise ConfigError(f"{key!r} has {len(found)} values: give a key with at most {MAX_SLICES}")
    return dict(sorted(found.items()))


def _notes_on(
    systems: Sequence[System],
    baseline: System,
    results: Sequence[SystemResult],
    metrics: Sequence[str],
) -> Iterator[str]:
    judges = {system.name: ", ".join(sorted(system.judges)) for system in systems if system.judges}
    if len(set(judges.values())) > 1:
        by = "; ".join(f"{name} by {judge}" for name, judge in judges.items())
        yield f"The systems were not judged alike, so differences may be the judges': {by}."
    zeros = [system.name for system in systems if system.undefined_is_zero]
    if 0 < len(zeros) < len(systems):
        yield (
            f"{', '.join(zeros)}: in RAGChecker's results a metric without a value is 0; in the "
            "others it is absent, and such records count for nothing."
        )
    for system, result in zip(systems, results, strict=True):
        if result.failed:
            yield f"{result.name}: {result.failed} of {result.records} records have no evaluation."
        repeated = sum(n - 1 for n in Counter(row.key for row in system.rows).values())
        if repeated:
            yield (
                f"{result.name}: {repeated} records repeat the id or query of another one; they "
                "are paired in their order, and resampled together."
            )
        if system is not baseline:
            yield from _on_pairs(system, result, baseline)
    missing = [name for name in PAPER_METRICS if all(name not in each.metrics for each in results)]
    if "paper" in metrics and missing:
        yield f"No system has a value of {', '.join(missing)}."


def _on_pairs(system: System, result: SystemResult, baseline: System) -> Iterator[str]:
    if result.only_here or result.only_in_baseline:
        yield (
            f"{result.name}: {result.common} records are in {baseline.name} as well, "
            f"{result.only_here} are not, and {result.only_in_baseline} are in {baseline.name} "
            "alone; differences are over the common ones."
        )
    changed = [
        key for key, query in system.queries.items() if baseline.queries.get(key, query) != query
    ]
    if changed:
        yield (
            f"{system.name}: {len(changed)} records have the id of a record of {baseline.name}, "
            "but another query; they are not compared."
        )
    fewer = [
        f"{name} over {found.difference.difference.n}"
        for name, found in result.metrics.items()
        if found.difference is not None and found.difference.difference.n < result.common
    ]
    if fewer:
        yield (
            f"{result.name}: of {result.common} common records, these metrics have a value in both "
            f"for fewer: {', '.join(fewer)}."
        )
    never = [name for name, found in result.metrics.items() if found.difference is None]
    if never:
        yield (
            f"{result.name}: no common record has a value both in it and in {baseline.name} for "
            f"{', '.join(never)}."
        )


_Pair = tuple[ScoredRow, ScoredRow]


def _paired_rows(baseline: System, system: System) -> list[_Pair]:
    """The records that both systems have, in the order of the baseline.

    Records with the same id but other queries are of different datasets, and are not paired. If an
    id occurs several times, the first is paired with the first, the second with the second.
    """
    others = defaultdict[str, list[ScoredRow]](list)
    # Reversed, so that ``pop``, which takes the last, returns them in the order of the file.
    for row in reversed(system.rows):
        query = baseline.queries.get(row.key), system.queries.get(row.key)
        if None in query or query[0] == query[1]:
            others[row.key].append(row)
    return [(row, others[row.key].pop()) for row in baseline.rows if others.get(row.key)]


def _value_of(row: ScoredRow, metric: str) -> float | None:
    value = row.scores.get(metric)
    return value if value is not None and math.isfinite(value) else None


def _group_of(row: ScoredRow, group_by: str | None) -> str:
    if group_by is None or group_by not in row.metadata:
        return row.key
    # Metadata may be lists or mappings, which cannot be keys.
    return repr(row.metadata[group_by])


def estimates(
    rows: Sequence[ScoredRow], metrics: Sequence[str], group_by: str | None = None
) -> dict[str, Estimate]:
    """Return the mean of each metric with its interval, over the records that define it."""
    columns = [[_value_of(row, metric) for row in rows] for metric in metrics]
    found = mean_estimates(columns, [_group_of(row, group_by) for row in rows])
    return {metric: each for metric, each in zip(metrics, found, strict=True) if each is not None}


def _compare_pairs(
    pairs: Sequence[_Pair], metrics: Sequence[str], group_by: str | None = None
) -> dict[str, Difference]:
    """Compare each metric with a value in both records of a pair; p-values are not adjusted yet."""
    values = {
        metric: [(_value_of(before, metric), _value_of(after, metric)) for before, after in pairs]
        for metric in metrics
    }
    # The metadata of the two records may differ; those of the baseline are the same for every
    # system that it is compared with.
    groups = [_group_of(before, group_by) for before, _ in pairs]
    changes = [
        [None if a is None or b is None else b - a for a, b in each] for each in values.values()
    ]
    intervals = mean_estimates(changes, groups)
    p_values = sign_flip_p_values(changes, groups)
    found: dict[str, Difference] = {}
    for (metric, each), interval, p_value in zip(values.items(), intervals, p_values, strict=True):
        if interval is None:
            continue
        both = [(a, b) for a, b in each if a is not None and b is not None]
        have = Counter((a is not None, b is not None) for a, b in each)
        found[metric] = Difference(
            before=math.fsum(a for a, _ in both) / len(both),
            after=math.fsum(b for _, b in both) / len(both),
            difference=interval,
            p_value=p_value,
            adjusted_p_value=p_value,
            finding="no difference shown",
            only_in_baseline=have[True, False],
            only_in_system=have[False, True],
        )
    return found
