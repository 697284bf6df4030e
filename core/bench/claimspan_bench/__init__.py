"""The benchmarks of the systems that this project learned from, each a room of its own.

Each reproduces what its authors publish from their own files, and then says more. They are
commands: ``claimspan bench NAME``.
"""

from __future__ import annotations

__all__: list[str] = []
