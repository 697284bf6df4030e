"""Responses that decline to answer: neither true nor false, and worth counting apart."""

from __future__ import annotations

from claimspan.text.declining import declining
from claimspan.text.sentences import abstains

__all__ = ["abstains", "declining"]
