"""The command line: its entry point, and the commands about judges."""

from __future__ import annotations

from claimspan.cli.main import build_app, main

__all__ = ["build_app", "main"]
