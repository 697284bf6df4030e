"""Query engines of LlamaIndex's that check their answer, and ask once more where it fails."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from claimspan_tracing.adapters import Run

__all__ = ["RejectedAnswerError", "reject_attempts"]

_RETRYING: Final = re.compile(r"(Retry(?:Source|Guideline)?QueryEngine)\.")
"""Names of the spans of such an engine. It asks again with another one of its class."""


class RejectedAnswerError(Exception):
    """An answer did not pass, and the engine asks again."""


def reject_attempts(runs: Sequence[Run]) -> None:
    """Mark what an engine has tried before it asked again as failed.

    Args:
        runs: All runs of a tree, in the order of their start.
    """
    engines = [run for run in runs if _retrying(run) and run.parent is not None]
    again = [run for run in engines if _is_asked_again(run)]
    for run in runs:
        later = (each for each in again if each.parent is run.parent and each is not run)
        if run.error is None and any(run.start < each.start for each in later):
            run.error = RejectedAnswerError


def _is_asked_again(run: Run) -> bool:
    """Whether an engine is asked by another one, and not by the public method of its own."""
    above = run.parent
    is_same = above is not None and _retrying(above) == _retrying(run)
    return is_same and above is not None and not _is_public(above) and _is_public(run)


def _is_public(run: Run) -> bool:
    return str(run.name).rpartition(".")[2] in ("query", "aquery")


def _retrying(run: Run) -> str:
    found = _RETRYING.match(str(run.name))
    return "" if found is None else found.group(1)
