"""What the script of a page works with: an index of all records, and their HTML in blocks.

A page holds the HTML of its first records as elements. The others are compressed, and become
elements when the reader pages to them, so that ten thousand records open as fast as fifty.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from claimspan.evaluation.diagnosis import Part
from claimspan.text.visible import visible

__all__ = ["PAGE_SIZE", "IndexRow", "compressed", "index_of"]

# Some 11,000 elements with records of four chunks, which a phone still scrolls without a stop.
PAGE_SIZE: Final = 50
"""Records that a page shows at once, and records in a block."""

_LEVEL: Final = 6
"""Of the compression: level 9 takes twice the time for one hundredth of the size."""


@dataclass(frozen=True, slots=True)
class IndexRow:
    """What the script sorts and filters one record by."""

    scores: Mapping[str, float]
    """Metric to value."""

    statuses: Sequence[str]
    """State of the evaluation, of each system."""

    labels: Sequence[str]
    """Labels of the response claims."""

    parts: Sequence[Part]
    """The diagnosis of each system's answer."""

    started: float | None
    """Seconds since 1970."""

    seconds: float
    """Duration of the pipeline."""

    values: Sequence[int | None]
    """Place of its value of each slice key."""

    confidence: float | None
    """How sure the judge is of its least sure label, in any system; None where it is not known."""


def index_of(rows: Sequence[IndexRow], metrics: Sequence[str]) -> dict[str, object]:
    """Return the index as JSON, a list for each column, since names in each row would double it.

    Args:
        rows: The records in the order of the page.
        metrics: Names of the metrics, in the order of the columns.
    """
    return {
        "size": PAGE_SIZE,
        "metrics": _shown(metrics),
        "scores": [[_rounded(row.scores.get(name)) for name in metrics] for row in rows],
        "statuses": [_shown(row.statuses) for row in rows],
        "labels": [list(row.labels) for row in rows],
        "parts": [list(row.parts) for row in rows],
        "started": [row.started for row in rows],
        # Milliseconds: traces have nanoseconds, which would be most of the index.
        "seconds": [round(row.seconds, 3) for row in rows],
        "values": [list(row.values) for row in rows],
        "confidences": [_rounded(row.confidence) for row in rows],
    }


def compressed(items: Iterable[str]) -> Iterator[str]:
    """Return blocks of HTML, each of 50 records: a JSON list, compressed by gzip, in base 64.

    Base 64 has no character that means anything in HTML.
    """
    # One block is in memory at a time: the HTML of 10,000 records is half a gigabyte.
    rest = iter(items)
    while block := list(islice(rest, PAGE_SIZE)):
        # Without the time that gzip writes, equal records give equal pages.
        packed = gzip.compress(json.dumps(block).encode(), _LEVEL, mtime=0)
        yield base64.b64encode(packed).decode()


def _shown(texts: Iterable[str]) -> list[str]:
    """Texts as the page shows them: the script compares these with what the reader chooses."""
    return [visible(text) for text in texts]


def _rounded(value: float | None) -> float | None:
    # The page shows two decimals; two more keep the order of scores that look alike.
    return None if value is None else round(value, 4)
