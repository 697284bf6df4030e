"""Files that a user gives: records to evaluate, and ground truths."""

from __future__ import annotations

from claimspan.files.ground_truth import GroundTruth
from claimspan.files.record_files import read_records

__all__ = ["GroundTruth", "read_records"]
