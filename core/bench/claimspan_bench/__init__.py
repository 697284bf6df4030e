"""The benchmarks of the systems that this project learned from, each a module or a room.

Each reproduces what its authors publish from their own files, and then says more. They are
commands: ``claimspan bench NAME``. ``resumed`` goes on with runs that were broken off, and
``shown`` has what command lines and tables have in common.
"""

from __future__ import annotations

__all__: list[str] = []
