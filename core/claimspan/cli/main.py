"""The command line. Each command comes from the package that owns it, by entry point."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, entry_points, version
from typing import TYPE_CHECKING, Final

from claimspan.errors import ClaimspanError, MissingExtraError

if TYPE_CHECKING:
    from typer import Typer

__all__ = ["build_app", "main"]

COMMANDS: Final = "claimspan.commands"
"""Entry-point group: name of a command to the function that typer makes it from."""

BAD_INPUT: Final = 2
"""Exit code for what the user can put right, as for a wrong option."""


def main() -> None:
    """Run the command line; an error of ours is one line on standard error, and exit code 2."""
    try:
        build_app()()
    except ClaimspanError as error:
        print(f"claimspan: {error}", file=sys.stderr)
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        sys.exit(130)  # 128 + SIGINT, as shells count


def build_app() -> Typer:
    """The application with every installed command.

    Raises:
        MissingExtraError: typer is not installed.
    """
    try:
        from typer import Option, Typer
    except ImportError as error:
        raise MissingExtraError("typer", "report") from error

    app = Typer(
        help="Claim-level evaluation of RAG pipelines, on their own traces.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )

    @app.callback(invoke_without_command=True)
    def root(show_version: bool = Option(False, "--version", help="Show the version.")) -> None:  # pyright: ignore[reportUnusedFunction] - registered by the decorator
        if show_version:
            print(version("claimspan"))
            raise SystemExit(0)

    for entry in sorted(entry_points(group=COMMANDS), key=_name):
        app.command(entry.name)(entry.load())
    return app


def _name(entry: EntryPoint) -> str:
    return entry.name
