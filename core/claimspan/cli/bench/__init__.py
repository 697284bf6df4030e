"""The commands ``claimspan bench NAME``, a module each."""

from __future__ import annotations

__all__: list[str] = []
