"""Runs the commands of the command line in this process."""

from __future__ import annotations

from typer.testing import CliRunner, Result

from claimspan.cli.main import build_app

__all__ = ["invoke", "run"]


def invoke(command: str, *arguments: str) -> Result:
    """Run a command, and return its exit code, its output and its exception."""
    return CliRunner().invoke(build_app(command), arguments)


def run(command: str, *arguments: str) -> str:
    """Run a command that must succeed, and return what it prints."""
    result = invoke(command, *arguments)
    assert result.exit_code == 0, result.output
    return result.output
