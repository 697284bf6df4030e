"""Capture: hooks that note the runs of a query on the caller's thread."""

from __future__ import annotations

__all__: list[str] = []
