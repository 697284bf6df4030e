"""Spool: a file in which jobs wait, so that they survive the end of the process.

place     the file on disk: private to its owner, with room kept in reserve
store     one open file: its tables, its clock, and the transactions on it
spool     what the engine calls: no fault of the file ever reaches it
"""

from __future__ import annotations

from claimspan_tracing.spool.spool import Spool, release_leases
from claimspan_tracing.spool.store import Lease, Root, Row

__all__ = ["Lease", "Root", "Row", "Spool", "release_leases"]
