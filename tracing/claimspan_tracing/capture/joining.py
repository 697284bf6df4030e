"""The record that a block of the application's code is in, so that what runs there joins it.

A retriever and a model that are called in a plain function know nothing of each other, and their
framework reports two roots. Within a record of ours they are runs of it.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from claimspan_tracing.capture.runs import Run
from claimspan_tracing.capture.table import RunTable

__all__ = ["joined", "open_root"]

_current: Final[ContextVar[Run | None]] = ContextVar("claimspan_record", default=None)


@contextmanager
def joined(root: Run) -> Generator[None]:
    """Have every root that starts in this context become a run of a record.

    Args:
        root: Root of the record.
    """
    before = _current.get()
    _current.set(root)
    try:
        yield
    finally:
        # Not ``reset``, which refuses to work in another context: a block may be left in one.
        _current.set(before)


def open_root(table: RunTable) -> Run | None:
    """Return the root of the record that this context is in, while it is open in this process.

    Args:
        table: The open runs of a monitor; records of other monitors are none.
    """
    root = _current.get()
    return root if root is not None and table.get(root.id) is root else None
