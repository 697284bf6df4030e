"""Loads a retrieval metric out of a Python file or module of the user's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from claimspan.errors import ConfigError
from claimspan.loading import load_object
from claimspan.records import Chunk
from claimspan_bench.context_coverage.items import CoverageItem
from claimspan_bench.context_coverage.rankings import RetrievalMetric

__all__ = ["load_metric"]


def load_metric(place: str) -> tuple[str, RetrievalMetric]:
    """Load a metric.

    Args:
        place: ``path.py:name`` or ``package.module:name`` of a function that takes an item and some
            of its chunks.

    Returns:
        Its name, which is that of the function, and the metric. Whatever the function raises
        becomes a ``ConfigError``.

    Raises:
        ConfigError: There is no such file, module or function, or it cannot be imported.
    """
    function = load_object(place)
    name = place.rpartition(":")[2]
    if not callable(function):
        raise ConfigError(f"--metric {place!r} cannot be called: name a function")
    return name, _guarded(name, cast("RetrievalMetric", function))


def _guarded(name: str, metric: RetrievalMetric) -> Callable[..., float | None]:
    def guarded(item: CoverageItem, chunks: Sequence[Chunk]) -> float | None:
        try:
            return metric(item, chunks)
        except Exception as error:
            raise ConfigError(
                f"metric {name!r} raised {type(error).__name__} on item {item.id!r}: correct it, "
                "or return None where it has no score"
            ) from error

    return guarded
