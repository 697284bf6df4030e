"""What is measured, and from where on it is good, on every command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from claimspan.errors import ConfigError
from claimspan.evaluation.selection import Selection
from claimspan.judges.criteria import Criterion
from claimspan.loading import load_object

__all__ = ["Criteria", "Metrics", "ThresholdOptions", "selection_from"]

Metrics = Annotated[
    str | None,
    typer.Option(
        "--metrics",
        metavar="NAMES",
        help="What to measure: names separated by commas, 'all', 'default', or FILE.py:NAME of a "
        "criterion or a function. What is not chosen is not judged.",
    ),
]
"""The metrics of a command; None measures the default."""

ThresholdOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--threshold",
        metavar="METRIC=VALUE",
        help="The worst value of a metric that is good, such as faithfulness=0.9; may be given "
        "repeatedly.",
    ),
]
"""Thresholds that differ from the usual ones."""

Criteria = Annotated[
    list[str] | None,
    typer.Option(
        "--criterion",
        metavar="NAME=STATEMENT",
        help="What a language model has to judge as well: polite='The answer is polite.' May be "
        "given repeatedly.",
    ),
]
"""Criteria in words."""


def selection_from(
    metrics: str | None,
    thresholds: Sequence[str] | None = None,
    criteria: Sequence[str] | None = None,
    *,
    default: str = "default",
) -> Selection:
    """Return what the options of a command stand for.

    Args:
        metrics: What ``--metrics`` has.
        thresholds: What each ``--threshold`` has.
        criteria: What each ``--criterion`` has; they come beside the metrics.
        default: What is measured without ``--metrics``.

    Raises:
        ConfigError: One of them cannot work, or ``FILE.py:NAME`` has no criterion or function.
    """
    names = [each.strip() for each in (metrics or default).split(",") if each.strip()]
    # An object of another kind is refused by its type.
    wanted: list[object] = [load_object(name) if ":" in name else name for name in names]
    wanted += [Criterion(*_pair("--criterion", each)) for each in criteria or ()]
    limits: dict[str, float] = {}
    for each in thresholds or ():
        name, value = _pair("--threshold", each)
        try:
            limits[name] = float(value)
        except ValueError:
            raise ConfigError(
                f"--threshold {each!r} has no number: write faithfulness=0.9"
            ) from None
    return Selection.of_any(wanted, limits)


def _pair(option: str, given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise ConfigError(f"{option} {given!r} is no pair: write NAME=VALUE")
    return name.strip(), value.strip()
