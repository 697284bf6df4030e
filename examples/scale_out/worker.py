"""The Celery app of the workers, with a judge and a ground truth of one's own.

Start it with ``celery -A worker worker`` in this folder.
"""

from __future__ import annotations

from claimspan.judges import LexicalJudge
from claimspan_celery import WorkerLimits, make_worker_app

__all__ = ["app"]

app = make_worker_app(
    judge=LexicalJudge,  # each process of the worker calls it once
    ground_truth={"How long is the Drava?": "The Drava is 725 km long."},
    limits=WorkerLimits(job_seconds=60),
)
