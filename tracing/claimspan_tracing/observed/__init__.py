"""Records of code that uses no framework: a block of code, and what runs within it."""

from __future__ import annotations

from claimspan_tracing.observed.reader import Arguments, ObservedReader
from claimspan_tracing.observed.record import ObservedRecord, current_record, open_record

__all__ = ["Arguments", "ObservedReader", "ObservedRecord", "current_record", "open_record"]
