"""Loads a retrieval metric out of a Python file of the user's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import cast

from claimspan.benchmarks.context_coverage.items import CoverageItem
from claimspan.benchmarks.context_coverage.rankings import RetrievalMetric
from claimspan.errors import ConfigError
from claimspan.records import Chunk

__all__ = ["load_metric"]


def load_metric(place: str) -> tuple[str, RetrievalMetric]:
    """Load a metric.

    Args:
        place: ``FILE.py:FUNCTION``; the function takes an item and some of its chunks.

    Returns:
        Its name, which is that of the function, and the metric. Whatever the function raises
        becomes a ``ConfigError``.

    Raises:
        ConfigError: There is no such file or function, or the file cannot be imported.
    """
    file, colon, name = place.rpartition(":")
    if not colon or not name.isidentifier() or not Path(file).is_file():
        raise ConfigError(f"--metric {place!r} names no function: give FILE.py:FUNCTION")
    function = _attribute(Path(file), name)
    if not callable(function):
        raise ConfigError(f"{file!r} has no function {name!r}: give one that it has")
    return name, _guarded(name, cast("RetrievalMetric", function))


def _attribute(file: Path, name: str) -> object:
    spec = spec_from_file_location(f"claimspan_metric_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{str(file)!r} is no Python file: give FILE.py:FUNCTION")
    module = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ConfigError(
            f"{str(file)!r} cannot be imported ({type(error).__name__}): correct the file"
        ) from error
    return getattr(module, name, None)


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
