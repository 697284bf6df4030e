"""Files that users give: records to evaluate, and ground truths.

One reader of JSON lines (``jsonl``) and one policy for bad lines: the file is refused, and the
error names the line. Trace files, which a killed process may have cut, are read otherwise: what is
broken there is skipped and counted (``claimspan_tracing.export``).

``bounded`` bounds JSON that anybody may have written before it is parsed, and ``private`` keeps
files with texts of users to their owner.
"""

from __future__ import annotations

from claimspan.files.ground_truth import GroundTruth, GroundTruthMatch
from claimspan.files.record_files import read_records

__all__ = ["GroundTruth", "GroundTruthMatch", "read_records"]
