"""Compares two systems on the same records, so that "better" means something."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

from pydantic import BaseModel, ConfigDict

from claimspan.errors import ConfigError
from claimspan.statistics.intervals import Estimate, mean_estimate
from claimspan.statistics.sign_flips import sign_flip_p_values

__all__ = ["PairedComparison", "compare_paired", "holm"]

_Name = TypeVar("_Name", bound=Hashable)


class PairedComparison(BaseModel):
    """One figure of two systems, over the records where both have a value."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    before: float
    """Mean of the first system."""

    after: float
    """Mean of the second system."""

    difference: Estimate
    """Mean of second minus first, with its bootstrap interval."""

    p_value: float
    """Two-sided paired permutation test: how often chance alone gives as big a difference."""


def compare_paired(
    before: Sequence[float],
    after: Sequence[float],
    groups: Sequence[Hashable] | None = None,
) -> PairedComparison | None:
    """Compare two systems on the same records.

    The test flips the signs of the differences (R. A. Fisher 1935): it assumes neither a normal
    distribution nor equal variances, which scores between 0 and 1 do not have.

    Args:
        before: The first system's value of each record, shape ``(n,)``.
        after: The second system's, in the same order.
        groups: As for ``mean_estimate``; the differences of a group are summed before the test,
            since they go together.

    Returns:
        The comparison; None without records.

    Raises:
        ConfigError: The two differ in length.
        MissingExtraError: numpy, which scipy brings, is not installed.
    """
    if len(before) != len(after):
        raise ConfigError(
            f"{len(before)} and {len(after)} values: give the values of the same records"
        )
    differences = [b - a for a, b in zip(before, after, strict=True)]
    difference = mean_estimate(differences, groups)
    if difference is None:
        return None
    return PairedComparison(
        before=sum(before) / len(before),
        after=sum(after) / len(after),
        difference=difference,
        p_value=sign_flip_p_values([_summed(differences, groups)])[0],
    )


def holm(p_values: Mapping[_Name, float]) -> dict[_Name, float]:
    """Adjust p-values for the number of tests (S. Holm 1979): one of many is small by chance.

    Args:
        p_values: Name to p-value.

    Returns:
        Name to adjusted p-value, in the order given.
    """
    adjusted: dict[_Name, float] = {}
    highest = 0.0
    # The smallest counts for all tests, the next for one fewer. None may come out below one
    # that was smaller before, or the order of the tests would turn.
    for done, name in enumerate(sorted(p_values, key=lambda each: p_values[each])):
        highest = max(highest, min(1.0, p_values[name] * (len(p_values) - done)))
        adjusted[name] = highest
    return {name: adjusted[name] for name in p_values}


def _summed(differences: Sequence[float], groups: Sequence[Hashable] | None) -> list[float]:
    if groups is None:
        return list(differences)
    # One flip turns a whole group, so that its differences are one.
    sums: dict[Hashable, float] = {}
    for group, difference in zip(groups, differences, strict=True):
        sums[group] = sums.get(group, 0.0) + difference
    return list(sums.values())
