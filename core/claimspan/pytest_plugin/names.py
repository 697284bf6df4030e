"""Names by which pytest knows the fixture; they import nothing, as pytest has them in every run."""

from __future__ import annotations

from typing import Final

__all__ = ["MARKER", "PROPERTY"]

MARKER: Final = "claimspan_gate"
"""Marker with default arguments of the fixture, for a test, a class or a module."""

PROPERTY: Final = "claimspan_gate"
"""Property of a test that holds the line of a gate, in reports and in JUnit files."""
