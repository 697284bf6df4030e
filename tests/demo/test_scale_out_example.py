"""The example of scale-out runs as its page says, on a real Redis."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from claimspan_tracing.trace_file.records import read_trace_file

from redis_server import redis_server
from worker_processes import celery_worker, wait_for, worker_process

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "scale_out"


def test_the_worker_of_the_example_scores_the_queries_of_its_application(tmp_path: Path) -> None:
    folder = tmp_path / "worker"
    shutil.copytree(EXAMPLE, folder)
    command = celery_worker("worker", "--concurrency", "2")
    with redis_server() as redis, worker_process(command, redis.url, folder / "log") as worker:
        done = subprocess.run(
            [sys.executable, str(EXAMPLE / "application.py")],
            cwd=tmp_path,
            env=os.environ | {"CLAIMSPAN_BROKER_URL": redis.url, "LANGSMITH_TRACING": "false"},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        assert "'dispatched': 2" in done.stdout
        wait_for(lambda: worker.log.count("succeeded") == 2, 60, lambda: worker.log)

    roots = read_trace_file(tmp_path / "claimspan-traces.jsonl")
    assert [entry.status for entry in roots] == ["dispatched", "dispatched"]
    carriers = (folder / "claimspan-traces.jsonl").read_text(encoding="utf-8")
    assert all(entry.trace_id in carriers for entry in roots)
    # Only the first question has a ground truth.
    assert carriers.count('"claimspan.score.recall"') == 1
    assert carriers.count('"claimspan.score.faithfulness"') == 2
