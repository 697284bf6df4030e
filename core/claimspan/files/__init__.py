"""Files that users give: records to evaluate, and ground truths.

``record_files`` reads records one row at a time, whatever the format (``raw_rows``, ``arrow``), and
counts what became of every line; ``record_rows`` makes of a row a record and its recorded
evaluation. What reads records decides whether a row that cannot be used is skipped or ends the
reading.

``jsonl`` reads JSON lines of which none may be broken, and bounds JSON of others before it is
parsed. Trace files, which a killed process may have cut, are read otherwise: broken parts are
skipped and counted there (``claimspan_tracing.trace_file``). ``private`` keeps files with texts of
users to their owner.
"""

from __future__ import annotations

from claimspan.files.ground_truth import GroundTruth, GroundTruthMatch
from claimspan.files.record_files import read_records

__all__ = ["GroundTruth", "GroundTruthMatch", "read_records"]
