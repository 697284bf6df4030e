"""Judges the traces that a backend has already: ``claimspan backfill SOURCE``.

Nothing of claimspan has to run in the application. Traces are read page by page, their records are
those that ``ClaimspanSpanProcessor`` would have made live, and scores go back to where the traces
are.
"""

from __future__ import annotations

__all__: list[str] = []
