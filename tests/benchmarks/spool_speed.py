"""How many jobs a second the spool takes: python tests/benchmarks/spool_speed.py [JOBS].

Each job has ten chunks of 1.9 kB, about 20 kB as JSON, and is committed by itself.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from claimspan import Chunk, RagRecord
from claimspan_tracing import Job
from claimspan_tracing.spool import Lease, Spool


def job(number: int) -> Job:
    chunks = tuple(Chunk(id=str(place), text="x" * 1_900) for place in range(10))
    return Job(
        record=RagRecord(query=f"query {number}", response="r" * 200, chunks=chunks),
        trace_id=f"{number:032x}",
        span_id=f"{number:016x}",
        trace_flags=1,
        route="chain",
        started=1,
        ended=2,
    )


def main(n_jobs: int) -> None:
    jobs = [job(number) for number in range(1, n_jobs + 1)]
    with tempfile.TemporaryDirectory() as folder:
        spool = Spool(Path(folder) / "spool.db")
        leases: list[Lease] = []
        seconds: list[float] = []
        for each in jobs:
            started = time.perf_counter()
            lease = spool.add(each)
            seconds.append(time.perf_counter() - started)
            if lease is not None:
                leases.append(lease)
        started = time.perf_counter()
        spool.delete(leases)
        deleted = time.perf_counter() - started
    percentiles = statistics.quantiles(seconds, n=100)
    print(f"added     {len(leases)} of {n_jobs}, {n_jobs / sum(seconds):,.0f}/s")
    print(f"p50, p99  {1e3 * percentiles[49]:.2f} ms, {1e3 * percentiles[98]:.2f} ms")
    print(f"deleted   {len(leases) / deleted:,.0f}/s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3_000)
