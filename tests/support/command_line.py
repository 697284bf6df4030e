"""The command line, run in this process."""

from __future__ import annotations

from typer.testing import CliRunner

from claimspan.cli.main import build_app

__all__ = ["run"]


def run(*arguments: str) -> str:
    """What a command prints; it has to end well."""
    result = CliRunner().invoke(build_app(), arguments)
    assert result.exit_code == 0, result.output
    return result.output
