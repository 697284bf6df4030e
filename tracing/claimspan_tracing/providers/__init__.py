"""Tracer providers: which one spans go to, the exporters of our own, and what was exported."""

from __future__ import annotations

__all__: list[str] = []
