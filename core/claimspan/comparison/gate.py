"""Decides whether the results of a system pass: thresholds, and nothing worse than before.

What could not be measured never passes: a threshold on a metric that no record has, a run of which
most records failed, or records of the baseline that are gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from claimspan.comparison.compare import (
    SIGNIFICANCE,
    Difference,
    chosen_metrics,
    compare_systems,
    estimates,
)
from claimspan.comparison.systems import CLAIMS_PER_RESPONSE, System, lower_is_better
from claimspan.errors import ConfigError
from claimspan.metrics.catalogue import LOW_RECORDS, METRICS, unknown_metric
from claimspan.statistics import Estimate
from claimspan.text.percentages import in_percent, percent_hint

__all__ = ["MAX_FAILED", "Check", "Gate", "GateResult", "check_gate"]

MAX_FAILED: Final = 0.05
"""Share of the records that may have no evaluation: with more of them a mean says little."""

_ROUNDING: Final = 1e-12
"""A mean this near to its threshold is at it: three times 0.1 have a mean just above 0.1."""

_Rule = Literal["min", "max", "baseline", "records", "failed", "missing"]


class Gate(BaseModel):
    """The rules of a gate."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    min: Mapping[str, float] = Field(default_factory=dict[str, float])
    """Metric to the lowest mean that passes."""

    max: Mapping[str, float] = Field(default_factory=dict[str, float])
    """Metric to the highest mean that passes."""

    metrics: tuple[str, ...] | None = None
    """The metrics tested against the baseline: names, or the sets ``default``, ``paper`` and
    ``all``. None is ``default``, and every metric with a threshold."""

    primary: str | None = None
    """The metric that matters most: it is tested against the baseline as if it were the only one,
    however many others there are."""

    confident: bool = False
    """Whether the whole 95 % interval has to hold a threshold, and not the mean alone."""

    tolerance: float = Field(default=0.0, ge=0, le=1)
    """By how much a metric may get worse than the baseline's."""

    min_records: int = Field(default=1, ge=1)
    """Records that must have an evaluation, and a value of each metric with a threshold."""

    max_failed: float = Field(default=MAX_FAILED, ge=0, le=1)
    """Share of the records that may have no evaluation, or be missing from the baseline's."""

    @classmethod
    def of(cls, rules: Mapping[str, object]) -> Self:
        """Make a gate of rules that are not checked yet.

        Raises:
            ConfigError: One of them cannot be used.
        """
        try:
            return cls.model_validate(rules)
        except ValidationError as error:
            wrong = sorted({str(each["loc"][0]) for each in error.errors()})
            raise ConfigError(
                f"{', '.join(wrong)} cannot be used: give thresholds as numbers by metric, metrics "
                "as a list of names, and shares between 0.0 and 1.0, such as 0.8 for 80 %"
            ) from None

    @model_validator(mode="after")
    def _can_be_beyond(self) -> Self:
        # Such a rule would hold always or never, whatever the answers are.
        for rule, metric, limit in self.thresholds:
            if metric in (*METRICS, LOW_RECORDS) and not 0 <= limit <= 1:
                raise ConfigError(
                    f"{rule} {metric} is {limit:g}: give a mean between 0.0 and 1.0"
                    f"{percent_hint(limit)}"
                )
            if metric == CLAIMS_PER_RESPONSE and limit < 0:
                raise ConfigError(f"{rule} {metric} is {limit:g}: give a number of 0 or more")
        return self

    @property
    def thresholds(self) -> list[tuple[Literal["min", "max"], str, float]]:
        """Rule, metric and limit of each."""
        return [
            *(("min", *each) for each in self.min.items()),
            *(("max", *each) for each in self.max.items()),
        ]


class Check(BaseModel):
    """One rule of a gate, and its finding."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rule: _Rule
    """``min``, ``max`` and ``baseline`` are about a metric, the others about the records."""

    metric: str | None = None
    passed: bool
    estimate: Estimate | None = None
    limit: float | None = None
    """The threshold, or the baseline's mean over the same records."""

    fell_by: float = 0.0
    """How far the figure is on the wrong side of the limit; 0 if it is on the right one."""

    difference: Difference | None = None
    said: str


class GateResult(BaseModel):
    """The outcome of a gate."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str
    baseline: str | None
    records: int
    failed: int
    primary: str | None = None
    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every rule holds."""
        return all(check.passed for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        """The rules that do not hold."""
        return tuple(check for check in self.checks if not check.passed)


def check_gate(
    system: System,
    gate: Gate,
    *,
    baseline: System | None = None,
    may_be_empty: bool = False,
    progress: bool | None = None,
) -> GateResult:
    """Check the results of a system against the rules of a gate.

    A metric fails against the baseline if it got worse by more than the tolerance, and the paired
    test shows that it got worse at all; or if most records that had a value have none any more.

    The p-values of all metrics are adjusted together by Holm's method (S. Holm 1979): a gate of
    any number of metrics fails by chance in at most 5 % of all builds without a change. A primary
    metric is a family of its own, and needs no adjustment: a two-sided test at 5 % calls a metric
    worse by chance in 2.5 %, so that primary and others together stay within 5 % (Bonferroni's
    split of the error between two families).

    Args:
        system: The results.
        gate: The rules.
        baseline: The results to compare with; None for none.
        may_be_empty: Whether rules about the number of records are enough, as for results that are
            to become the first baseline.
        progress: As for ``evaluate_many``.

    Raises:
        ConfigError: There is nothing to check, a metric is unknown or has no better end, or the
            two have no record in common.
        MissingExtraError: scipy is not installed.
    """
    if not (gate.min or gate.max or baseline or may_be_empty):
        raise ConfigError("a gate without thresholds and baseline lets everything pass: give one")
    if (gate.metrics or gate.primary) and baseline is None and not may_be_empty:
        raise ConfigError("metrics and primary are for a comparison: give a baseline as well")
    checks = [*_on_records(system, gate), *_on_thresholds(system, gate)]
    notes: tuple[str, ...] = ()
    if baseline is not None:
        found, notes = _on_baseline(system, gate, baseline, progress)
        checks += found
    return GateResult(
        system=system.name,
        baseline=None if baseline is None else baseline.name,
        records=len(system.rows),
        failed=system.failed,
        primary=gate.primary,
        checks=tuple(checks),
        notes=notes,
    )


def _on_records(system: System, gate: Gate) -> Iterator[Check]:
    n, failed = len(system.rows), system.failed
    evaluated = n - failed
    yield Check(
        rule="records",
        passed=evaluated >= gate.min_records,
        limit=gate.min_records,
        fell_by=max(0, gate.min_records - evaluated),
        said=f"{evaluated} of {n} records evaluated",
    )
    yield _share_check("failed", failed, n, gate.max_failed, "records have no evaluation")


def _share_check(rule: _Rule, found: int, of: int, limit: float, told: str) -> Check:
    # Of no records all are missing: a gate that has nothing to check must not pass.
    share = found / of if of else 1.0
    return Check(
        rule=rule,
        passed=share <= limit,
        limit=limit,
        fell_by=max(0.0, share - limit),
        said=f"{found} of {of} {told} ({in_percent(share)})",
    )


def _on_thresholds(system: System, gate: Gate) -> Iterator[Check]:
    means = estimates(system.rows, list(gate.min.keys() | gate.max.keys()))
    for rule, metric, limit in gate.thresholds:
        found = means.get(metric)
        fell_by, passed = 0.0, False
        if found is None:
            # A name that we know is not misspelt; its metric only has no value here.
            known = {*METRICS, LOW_RECORDS}
            there = known.union(*(row.scores for row in system.rows))
            close = [] if metric in known else get_close_matches(metric, sorted(there), n=1)
            said = "no record has a value" + (f"; did you mean {close[0]}?" if close else "")
        else:
            # The end of the interval that is nearest to failing.
            end = found.low if rule == "min" else found.high
            value = end if gate.confident else found.value
            beyond = limit - value if rule == "min" else value - limit
            fell_by = beyond if beyond > _ROUNDING else 0.0
            # The interval of a single value has no width, and would hold any threshold that the
            # value does.
            few = found.n < max(gate.min_records, 2 if gate.confident else 1)
            what = "interval" if gate.confident else "mean"
            said = f"the {what} is too {'low' if rule == 'min' else 'high'}" if fell_by else "holds"
            said = f"only {found.n} records have a value" if few else said
            passed = not fell_by and not few
        yield Check(
            rule=rule,
            metric=metric,
            passed=passed,
            estimate=found,
            limit=limit,
            fell_by=fell_by,
            said=said,
        )


def _on_baseline(
    system: System, gate: Gate, baseline: System, progress: bool | None
) -> tuple[list[Check], tuple[str, ...]]:
    # One file is called like the other where last night's results are in another folder.
    before, after = replace(baseline, name="baseline"), replace(system, name="results")
    systems = before, after
    there = chosen_metrics(systems, ["all"])
    primary = () if gate.primary is None else (gate.primary,)
    wanted = chosen_metrics(systems, [*(gate.metrics or ["default"]), *primary])
    if not gate.metrics:
        wanted += [*gate.min, *gate.max]
    if gate.primary is not None and gate.primary not in there:  # the name of a set
        raise unknown_metric("primary", gate.primary, there)

    def lower(metric: str) -> bool | None:
        # A threshold says which end is better if that is not known, and never turns it:
        # --min hallucination=0 would let it rise.
        known = lower_is_better(systems, metric)
        is_told = known is None and (metric in gate.min) != (metric in gate.max)
        return metric in gate.max if is_told else known

    # In the order of all scores.
    directed = {name: way for name in there if name in wanted and (way := lower(name)) is not None}
    named = [name for name in (*(gate.metrics or ()), *primary) if name in there]
    if without := [name for name in named if name not in directed]:
        raise ConfigError(
            f"neither end of {without[0]} is known to be better: give it a threshold, min or max"
        )
    if not directed:
        raise ConfigError("the baseline holds no metric with a better end: give thresholds")
    families = [primary, [name for name in directed if name not in primary]]
    found = [
        compare_systems(systems, metrics=family, progress=progress) for family in families if family
    ]
    results = {n: [row.metrics[n] for row in each.systems] for each in found for n in each.metrics}
    checks = [
        _share_check(
            "missing",
            found[0].systems[1].only_in_baseline,
            len(before.rows),
            gate.max_failed,
            "records of the baseline are missing",
        )
    ]
    for name, is_lower in directed.items():
        had, has = results[name]
        if has.difference is not None:
            checks.append(_against(name, has.difference, has.estimate, gate, lower=is_lower))
        elif had.estimate is not None or name in named:
            checks.append(
                Check(
                    rule="baseline",
                    metric=name,
                    passed=False,
                    limit=None if had.estimate is None else had.estimate.value,
                    said="no record has a value both here and in the baseline: leave it out with "
                    "metrics, or make a new baseline",
                )
            )
    return checks, tuple(dict.fromkeys(note for each in found for note in each.notes))


def _against(
    name: str, found: Difference, estimate: Estimate | None, gate: Gate, *, lower: bool
) -> Check:
    change = found.difference.value
    worse_by = max(0.0, change if lower else -change)
    is_shown = found.adjusted_p_value < SIGNIFICANCE
    # The pairs that are left say nothing of a metric that most records have lost.
    lost, left = found.only_in_baseline, found.difference.n
    is_gone = lost > left
    fails = is_gone or (is_shown and worse_by > gate.tolerance)
    if is_gone:
        said = f"{lost} of {lost + left} records have no value any more"
    elif not change:
        said = "the same"
    elif not is_shown:
        said = "worse, but no more than by chance" if worse_by else "no worse"
    elif not worse_by:
        said = "better"
    else:
        said = "worse" if fails else "worse, within the tolerance"
    return Check(
        rule="baseline",
        metric=name,
        passed=not fails,
        estimate=estimate,
        limit=found.before,
        fell_by=worse_by,
        difference=found,
        said=said,
    )
