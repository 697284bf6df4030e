"""Structured: what an answer says that is a structure, and which structures are grades."""

from __future__ import annotations

__all__: list[str] = []
