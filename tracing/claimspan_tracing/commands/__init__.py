"""Commands of ``claimspan`` that read traces or results, and the one that checks a monitor."""

from __future__ import annotations

__all__: list[str] = []
