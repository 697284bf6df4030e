"""The tables of a spool."""

from __future__ import annotations

from typing import Final

__all__ = ["CREATE", "TABLES", "VERSION"]

VERSION: Final = 1
"""Version of these tables, kept in ``user_version``."""

TABLES: Final = frozenset({"owners", "records"})
"""Their names."""

# Times named ``_at`` are wall clock, for people to read. ``until`` and ``not_before`` are of the
# clock that nobody can set, and mean something only together with ``boot``.
CREATE: Final = """
CREATE TABLE IF NOT EXISTS owners (
    owner TEXT PRIMARY KEY,
    boot TEXT NOT NULL,
    until INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS records (
    id INTEGER PRIMARY KEY,
    trace_id TEXT NOT NULL,
    span_id TEXT NOT NULL,
    state TEXT NOT NULL,
    root TEXT NOT NULL,
    owner TEXT,
    attempts INTEGER NOT NULL,
    not_before INTEGER NOT NULL DEFAULT 0,
    added_at REAL NOT NULL,
    died_at REAL,
    reason TEXT NOT NULL DEFAULT '',
    job TEXT NOT NULL,
    outcome TEXT,
    root_outcome TEXT,
    UNIQUE (trace_id, span_id)
);
CREATE INDEX IF NOT EXISTS records_by_owner ON records (owner, state, not_before);
CREATE INDEX IF NOT EXISTS records_that_wait ON records (
    owner, id, not_before, attempts, state
) WHERE state IN ('waiting', 'unexported');
"""
"""One row of ``owners`` for each process that is alive, one of ``records`` for each job. The second
index has the rows in the order in which they are taken up, with all that is asked of them: to sort
all that wait for each that is taken up would take the square of their number."""
