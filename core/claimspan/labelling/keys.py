"""By what a label finds its claim: the record that it is of, and a digest of its text.

A file of labels then holds no text of users, and can be kept beside code.
"""

from __future__ import annotations

import hashlib
from typing import Final

from claimspan.report import ReportEntry

__all__ = ["claim_digest", "record_key"]

_LENGTH: Final = 16
"""Hexadecimal digits, 64 bits: among a million claims two alike are not to be expected."""


def record_key(entry: ReportEntry) -> str:
    """The trace id of a record, else its own id, else a digest of question and response.

    Args:
        entry: The record.
    """
    return entry.trace_id or entry.record_id or _digest(f"{entry.query}\n{entry.response}")


def claim_digest(text: str) -> str:
    """The digest of a claim's text.

    Args:
        text: The claim.
    """
    return _digest(text)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:_LENGTH]
