"""Dispatch: the queue, the worker, and the thread on which judges work."""

from __future__ import annotations

__all__: list[str] = []
