"""A progress bar on standard error for long work; a no-op if rich is not installed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.util import find_spec

from claimspan.errors import MissingExtraError

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(
    what: str, *, total: int | None, show: bool | None
) -> Generator[Callable[[], None]]:
    """Shows a progress bar while the block runs, and yields what advances it by one step.

    ``show`` is True for always, False for never, None for a terminal if rich is installed.

    Raises:
        MissingExtraError: ``show`` is True and rich is not installed.
    """
    installed = find_spec("rich") is not None
    if show and not installed:
        raise MissingExtraError("rich", "cli")
    if show is None:
        show = installed and sys.stderr.isatty()
    if not show:
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(what, total=total)
        yield lambda: progress.advance(task)
