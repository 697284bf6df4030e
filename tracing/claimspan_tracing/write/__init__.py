"""Write: scores, states and claims onto spans, events and metrics."""

from __future__ import annotations

__all__: list[str] = []
