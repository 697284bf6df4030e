"""The check of ground truths: whether there are any, and which metrics depend on them."""

from __future__ import annotations

from collections.abc import Iterator

from claimspan_tracing.engine.settings import Settings
from claimspan_tracing.health.findings import Finding

__all__ = ["check_ground_truth"]


def check_ground_truth(settings: Settings) -> Iterator[Finding]:
    """Says how many ground truths are known. Their file was read when the monitor was made."""
    known = settings.ground_truth
    if known is None:
        yield Finding(
            "ground truth",
            "ok",
            "none is given: metrics that need none, such as faithfulness, are written",
        )
    elif known.is_lookup:
        yield Finding("ground truth", "ok", "a callable is asked for each query that is evaluated")
    elif len(known):
        yield Finding("ground truth", "ok", f"{len(known)} are known")
    else:
        yield Finding(
            "ground truth",
            "failed",
            "the file or mapping holds none",
            "give JSON lines with query and ground_truth in each, or a CSV file with such columns",
        )
