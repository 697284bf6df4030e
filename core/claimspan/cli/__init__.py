"""The command line."""

from __future__ import annotations

from claimspan.cli.main import build_app, main

__all__ = ["build_app", "main"]
