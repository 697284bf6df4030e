"""Decide: which records are evaluated, in which state each ends, and how many did."""

from __future__ import annotations

__all__: list[str] = []
