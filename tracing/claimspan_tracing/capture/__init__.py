"""Capture: hooks that note on the caller's thread what the runs of a query did."""

from __future__ import annotations

__all__: list[str] = []
