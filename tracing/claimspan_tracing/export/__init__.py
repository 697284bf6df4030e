"""Export: the provider that spans go to, the trace file, and entries of reports."""

from __future__ import annotations

__all__: list[str] = []
