"""Explains each metric in one sentence, for readers who do not know its name."""

from __future__ import annotations

from typing import Final, NamedTuple

from claimspan.metrics.catalogue import CATALOGUE, DEFAULT_METRICS, Group

__all__ = ["GLOSSARY", "GROUPS", "MAIN_METRICS", "Metric", "describe"]


class Metric(NamedTuple):
    """The description of a metric."""

    name: str
    """The key in ``evaluation.metrics``."""

    group: str
    """The part of the pipeline that the metric measures; one of `GROUPS`."""

    lower_is_better: bool | None
    """Direction of the scale; None if neither end is better."""

    sentence: str
    """The definition in one sentence; empty for a metric that is not ours."""


GROUPS: Final = tuple(group.value for group in Group)
"""The groups in the order in which the page shows them."""

GLOSSARY: Final = {
    each.name: Metric(each.name, each.group.value, each.lower_is_better, each.sentence)
    for each in CATALOGUE.values()
}
"""Name to metric, in the order of all scores."""

MAIN_METRICS: Final = DEFAULT_METRICS
"""The metrics that the page shows first."""


def describe(name: str) -> Metric:
    """Return the metric with this name; a metric that is not ours has no sentence."""
    return GLOSSARY.get(name) or Metric(name, Group.OTHER.value, None, "")
