"""Tracer providers: which one spans go to, our own exporters, and the books of exports."""

from __future__ import annotations

__all__: list[str] = []
