"""How sure a figure is, and whether one is better than another.

``intervals`` gives means and shares with their intervals, ``paired`` compares two systems on the
same records, and ``correlation`` says how far two series go together. The methods are scipy's
(extra ``bench``).
"""

from __future__ import annotations

from claimspan.statistics.correlation import kendall, pearson, spearman
from claimspan.statistics.intervals import (
    Estimate,
    bootstrap,
    mean_estimate,
    mean_estimates,
    share_estimate,
)
from claimspan.statistics.paired import PairedComparison, compare_paired, holm
from claimspan.statistics.sign_flips import sign_flip_p_values

__all__ = [
    "Estimate",
    "PairedComparison",
    "bootstrap",
    "compare_paired",
    "holm",
    "kendall",
    "mean_estimate",
    "mean_estimates",
    "pearson",
    "share_estimate",
    "sign_flip_p_values",
    "spearman",
]
