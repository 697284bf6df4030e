"""A service that is killed: it answers queries, and says what it acknowledged.

Run as ``python spool_victim.py FOLDER SECONDS QUERIES JUDGE_SECONDS HOLD_SECONDS PIPELINE``. It
prints one line for each query of which the spool has acknowledged the record, and ``idle`` when all
are finished.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final
from uuid import uuid4

import claimspan_tracing.spool.spool as spool
from claimspan_tracing import Job, Monitor, configure
from claimspan_tracing.spool import Lease, Spool

from exit_judges import ask
from support import ScriptedJudge

__all__ = ["FILE", "LEASE_SECONDS", "TRACES", "WHOLE"]

WHOLE: Final = {
    "by hand": {"invoke_workflow record", "retrieval", "claimspan.evaluate"},
    "langchain": {"invoke_workflow RunnableSequence", "retrieval", "chat", "claimspan.evaluate"},
}
"""The spans of a query, by what answers it. A service that loads no framework starts faster."""

FILE: Final = "spool.db"
TRACES: Final = "traces.jsonl"
LEASE_SECONDS: Final = 1.0


def announce() -> None:
    """Print the key of each record at the moment at which it is acknowledged."""
    real_add = Spool.add

    def add(self: Spool, job: Job) -> Lease | None:
        lease = real_add(self, job)
        if lease is not None:
            # In one piece: the next moment may be the last.
            os.write(sys.stdout.fileno(), f"acknowledged {' '.join(lease.key)}\n".encode())
        return lease

    Spool.add = add  # type: ignore[method-assign] # the real one, and a line for the test


def answering(pipeline: str, monitor: Monitor) -> Callable[[str], object]:
    if pipeline == "by hand":
        return partial(ask, monitor)
    from claimspan_langchain import ClaimspanCallbackHandler

    from lc_pipelines import rag_chain

    return rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(monitor)]).invoke


def serve(
    folder: Path, seconds: float, queries: int, judge_seconds: float, hold: float, pipeline: str
) -> None:
    # A random kill is no sign of a job that ends processes, and the test kills again and again.
    for name, value in {"LEASE_SECONDS": LEASE_SECONDS, "MAX_ATTEMPTS": 20}.items():
        setattr(spool, name, value)
    announce()
    monitor = Monitor(
        ScriptedJudge(delay=judge_seconds),
        sample=1.0,
        hold_seconds=hold,
        spool=folder / FILE,
        tracer_provider=configure(file=folder / TRACES, service_name="victim"),
    )
    answer = answering(pipeline, monitor)
    print("ready", flush=True)
    deadline = time.monotonic() + seconds
    for _ in range(queries):
        answer(f"query {uuid4().hex}")
        time.sleep(0.002)
    while time.monotonic() < deadline:
        monitor.flush(0.2)
    if monitor.flush(30):
        print("idle", monitor.stats.recovered, flush=True)
    if not queries:
        monitor.shutdown()


if __name__ == "__main__":
    os.environ["LANGSMITH_TRACING"] = "false"
    folder, seconds, queries, judge_seconds, hold, pipeline = sys.argv[1:]
    serve(Path(folder), float(seconds), int(queries), float(judge_seconds), float(hold), pipeline)
