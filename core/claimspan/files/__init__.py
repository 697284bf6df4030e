"""Files that users give: records to evaluate, and ground truths.

``record_files`` reads records one row at a time: JSON lines (``raw_rows``), CSV (``csv_rows``) and
JSON documents (``documents``). ``record_rows`` makes a record of a row, ``recorded`` is what the
row holds of its evaluation already, and ``account`` counts what became of every line. Who reads
records decides whether a row that cannot be used is skipped or ends the reading.

``jsonl`` reads JSON lines of which none may be broken: the file is refused, and the error names the
line. Trace files, which a killed process may have cut, are read otherwise: what is broken there is
skipped and counted (``claimspan_tracing.trace_file``).

``bounded`` bounds JSON that anybody may have written before it is parsed, and ``private`` keeps
files with texts of users to their owner.
"""

from __future__ import annotations

from claimspan.files.ground_truth import GroundTruth, GroundTruthMatch
from claimspan.files.record_files import read_records

__all__ = ["GroundTruth", "GroundTruthMatch", "read_records"]
