"""Runs the commands of the command line in this process."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from claimspan.cli.main import build_app, main

__all__ = ["call", "invoke", "run"]


def invoke(command: str, *arguments: str) -> Result:
    """Run a command, and return its exit code, its output and its exception."""
    return CliRunner().invoke(build_app(command), arguments)


def run(command: str, *arguments: str) -> str:
    """Run a command that must succeed, and return what it prints."""
    result = invoke(command, *arguments)
    assert result.exit_code == 0, result.output
    return result.output


def call(
    *arguments: str, cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Call ``claimspan`` as a process of its own would, with its exit code and its messages.

    A process takes seconds of processor time, of which nearly all is the import of a framework.

    Args:
        *arguments: Those of the command line.
        cwd: Its working directory; this one if None.
        **variables: Environment variables.
    """
    code: str | int | None = 0
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, chdir(cwd or Path.cwd()):
        patch.setattr(sys, "argv", ["claimspan", *arguments])
        for name, value in variables.items():
            patch.setenv(name, value)
        with redirect_stdout(out), redirect_stderr(err):
            try:
                main()
            except SystemExit as ended:
                code = ended.code
    assert code is None or isinstance(code, int), code
    return subprocess.CompletedProcess(arguments, code or 0, out.getvalue(), err.getvalue())
