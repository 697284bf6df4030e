"""The commands ``claimspan label`` and ``claimspan calibrate``, which read traces or results."""

from __future__ import annotations

__all__: list[str] = []
