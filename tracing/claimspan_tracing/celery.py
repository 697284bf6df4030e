"""The Celery app of the workers, by the name ``celery -A claimspan_tracing.celery worker``.

The integration registers the app by entry point, so that tracing imports no integration.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Final

from claimspan.errors import MissingExtraError

__all__ = ["APPS"]

APPS: Final = "claimspan.celery"
"""Entry-point group of the Celery app."""


def __getattr__(name: str) -> object:
    """Load ``app`` when it is asked for: making it reads the environment.

    Raises:
        MissingExtraError: Celery is not installed.
    """
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = entry_points(group=APPS, name=name)
    if not found:
        raise MissingExtraError("celery", "celery")
    app: object = next(iter(found)).load()
    globals()[name] = app  # the next access does not come here
    return app
