"""Finds queries to which a source gives different ground truths: one of them has to be wrong."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Final

from claimspan.files.ground_truth_files import GroundTruthEntry
from claimspan.files.ground_truth_wording import normalise

__all__ = ["warn_of_conflicts"]

_NAMED: Final = 5
"""Pairs that a warning names: the first few are enough to find the script that made them."""

_LOG: Final = logging.getLogger("claimspan")


def warn_of_conflicts(entries: Iterable[GroundTruthEntry]) -> None:
    """Warn once where a query or an id has several ground truths that differ.

    Args:
        entries: All ground truths of a source, in their order. Blank ones, and those that differ
            in case, punctuation or white space alone, are no conflict.
    """
    conflicts = list(_conflicts(entries))
    if not conflicts:
        return
    named = "; ".join(f"{later} after {first}" for first, later in conflicts[:_NAMED])
    more = f"; and {len(conflicts) - _NAMED} more" if len(conflicts) > _NAMED else ""
    _LOG.warning(
        "%d ground truths differ from an earlier one for the same query or id, and are not used: "
        "%s%s. Remove the wrong one of each.",
        len(conflicts),
        named,
        more,
    )


def _conflicts(entries: Iterable[GroundTruthEntry]) -> Iterator[tuple[str, str]]:
    """Yield where the ground truth in use stands, and where another one does."""
    first: dict[tuple[str, str], tuple[str, str]] = {}
    for number, entry in enumerate(entries, 1):
        if not entry.text.strip():
            continue
        place, text = entry.place or f"entry {number}", normalise(entry.text)
        known = [first.setdefault(key, (text, place)) for key in _keys(entry)]
        # An entry may clash by its id and by its query: it is named once.
        clash = next((where for said, where in known if said != text), None)
        if clash is not None:
            yield clash, place


def _keys(entry: GroundTruthEntry) -> Iterator[tuple[str, str]]:
    if entry.id is not None:
        yield "id", entry.id
    # A query of punctuation alone is found by its exact form only.
    if entry.query is not None:
        yield "query", normalise(entry.query) or entry.query
