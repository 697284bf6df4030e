"""Spool: a file in which jobs wait, so that they survive the end of the process.

clock     a clock for leases that nobody can set
place     the file on disk: private to its owner, with room kept in reserve
payload   what is read back is checked before it is parsed
schema    the tables
store     the transactions on one open file
spool     what the engine calls: no fault of the file ever reaches it
commands  ``claimspan spool``
"""

from __future__ import annotations

from claimspan_tracing.spool.spool import Spool
from claimspan_tracing.spool.store import Lease, Root, Row

__all__ = ["Lease", "Root", "Row", "Spool"]
