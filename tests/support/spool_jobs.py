"""Jobs and outcomes for tests of the spool."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from claimspan import Chunk, RagRecord
from claimspan_tracing import Job, Outcome, Status

__all__ = ["job", "outcome", "rows"]


def job(number: int = 1, text: str = "a chunk") -> Job:
    return Job(
        record=RagRecord(query="q", response="r", chunks=(Chunk(id="a", text=text),)),
        trace_id=f"{number:032x}",
        span_id=f"{number:016x}",
        trace_flags=1,
        route="chain",
        started=1,
        ended=2,
    )


def outcome(reason: str = "") -> Outcome:
    return Outcome(status=Status.JUDGE_ERROR, reason=reason)


def rows(path: Path, columns: str = "state") -> list[tuple[object, ...]]:
    """Columns of all rows, read by a connection of its own."""
    database = sqlite3.connect(path)
    try:
        select = f"SELECT {columns} FROM records ORDER BY id"  # noqa: S608 - columns of the test's own
        return database.execute(select).fetchall()
    finally:
        database.close()
