"""Gates in pytest."""

from __future__ import annotations

__all__: list[str] = []
