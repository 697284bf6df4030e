"""Evaluates records on Celery workers instead of in the application's process.

In the application, on the broker that it has:

    monitor = Monitor(dispatch=CeleryDispatcher(app))

On the machines that evaluate, either of:

    claimspan worker --broker redis://broker:6379/0
    celery -A claimspan_celery worker

A worker with a judge of one's own is an app in a module of one's own, ``my_worker.py``:

    app = make_worker_app(judge=make_my_judge, ground_truth="golden.jsonl")

and starts with ``celery -A my_worker worker``.
"""

from __future__ import annotations

from importlib.util import find_spec

from claimspan.errors import MissingExtraError

if find_spec("celery") is None:
    raise MissingExtraError("celery", "celery")

from claimspan_celery._dispatcher import CeleryDispatcher
from claimspan_celery._processing import WorkerLimits
from claimspan_celery._worker import make_worker_app

__all__ = ["CeleryDispatcher", "WorkerLimits", "make_worker_app"]


def __getattr__(name: str) -> object:
    """Make ``app`` when it is asked for: ``celery -A claimspan_celery`` looks for it here.

    An application that only dispatches never does, so that nothing is made for it at import.
    """
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = made = make_worker_app()  # the next access does not come here
    return made
