"""Alerts: a mean over a window that has crossed its threshold, beyond what chance explains."""

from __future__ import annotations

__all__: list[str] = []
