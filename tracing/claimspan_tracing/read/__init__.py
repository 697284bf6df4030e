"""Read: from the run tree of a query to its job."""

from __future__ import annotations

__all__: list[str] = []
