"""Delivery: hands scores to what may be slow, such as a backend's API, on threads of its own.

Nothing here delays spans or the application; what cannot be delivered in time is counted.
"""

from __future__ import annotations

__all__: list[str] = []
