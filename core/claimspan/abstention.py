"""Responses that decline to answer: neither true nor false, and worth counting apart."""

from __future__ import annotations

from claimspan.judges._declining import declining
from claimspan.judges._sentences import abstains

__all__ = ["abstains", "declining"]
