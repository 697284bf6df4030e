"""The command line: finds the command that is called, runs it, and turns errors into exit codes.

Each package contributes its own commands by entry point, so that core imports no other package
of ours. Only the command that is called is imported. `--version` and `--help` are therefore
fast, they work without typer, and a plug-in that cannot be imported breaks no other command.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points, version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from claimspan.errors import ClaimspanError, ConfigError, MissingExtraError

if TYPE_CHECKING:
    from typer import Typer

__all__ = ["BAD_INPUT", "COMMANDS", "SUMMARIES", "build_app", "main"]

COMMANDS: Final = "claimspan.commands"
"""Entry-point group: the name of a command, and the function that typer makes it from. A dot in the
name stands for a space: `bench.pandachat` is called as `claimspan bench pandachat`."""

BAD_INPUT: Final = 2
"""Exit code for every error that the user can correct; typer exits so for a wrong option."""

SUMMARIES: Final = {
    "backfill": "Judge the traces that a backend or a folder has already.",
    "bench.alignment": "Evaluate answers as Pinecone's Evaluation API does.",
    "bench.context-coverage": "Measure how well metrics rank combinations of retrieved chunks.",
    "bench.context-coverage-build": "Make a data set for context-coverage out of documents.",
    "bench.human-agreement": "Compare which answers a judge calls right with people's grades.",
    "bench.meta-eval": "Compare judges with people on RAGChecker's pairs of answers.",
    "bench.pandachat": "Evaluate submissions to PandaChat-RAG, the Slovenian retrieval benchmark.",
    "bench.pandachat-run": "Make a submission to PandaChat-RAG with any retriever.",
    "bench.ragchecker": "Recompute RAGChecker's metrics from recorded labels.",
    "calibrate": "Find thresholds: of a judge for your own traffic, or of a cascade.",
    "compare": "Compare systems over one dataset, with intervals and tests.",
    "curate": "Pick records worth labelling, as a file of ground truths to fill in.",
    "dataset": "Make a ground-truth file of a public question-answering dataset.",
    "demo": "Run a real RAG pipeline on this machine and evaluate it.",
    "doctor": "Check tracer provider, exporter, judge and ground truth, and say what to do.",
    "estimate": "Estimate what evaluating a file will cost.",
    "evaluate": "Evaluate a file of records.",
    "gate": "Fail if scores are too low, or worse than before.",
    "judge-agreement": "Measure how far judges agree with human labels.",
    "label": "Make a page that opens offline, on which people label claims.",
    "report": "Turn traces or results into one HTML page that opens offline.",
    "run": "Run a pipeline over a dataset, evaluate it and write its traces.",
    "serve": "Take spans by OTLP, judge their traces, and send on the scores.",
    "spool": "Show what waits in a spool, try dead letters again, and judge the rest.",
    "stats": "Estimate the mean scores of all traffic from the sampled part.",
    "worker": "Run a worker that evaluates records, of a broker by Celery or of a spool.",
}
"""The first docstring line of each of our commands, so that `--help` imports none of them."""

_DEMO: Final = "claimspan_demo"
"""The package of `claimspan demo`. It is in the source tree alone: a wheel with it would put one
more top-level package into the environment of everybody."""


def main() -> None:
    """Run the command line.

    An error from the `ClaimspanError` tree becomes one line on standard error and exit code 2.
    """
    try:
        _run(sys.argv[1:])
        sys.stdout.flush()
    except ClaimspanError as error:
        # Here, so that `--help` and `--version` import nothing more.
        from claimspan.files.jsonl import other_kinds
        from claimspan.text.visible import visible

        # A message may name a file or a judge, whose names may hold commands of a terminal.
        told = visible(f"{error}{other_kinds(sys.argv[1:])}")
        print(f"claimspan: {told}", file=sys.stderr)
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt:
        sys.exit(130)  # 128 + SIGINT, the convention of shells
    except BrokenPipeError:
        # The reader of the output, such as `head`, has read enough. The interpreter would
        # write what is left once more at its end, and fail with a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)  # 128 + SIGPIPE


def build_app(name: str | None = None) -> Typer:
    """Import one command, or all of them, and build their typer application.

    A command is named by its entry point; the application of all has each by its name.

    Raises:
        ConfigError: There is no such command, or it cannot be imported.
        MissingExtraError: typer is not installed.
    """
    commands = _installed()
    if name is not None and name not in commands:
        meant = get_close_matches(name, commands, n=1, cutoff=0.8)
        told = f"did you mean `claimspan {meant[0].replace('.', ' ')}`? " if meant else ""
        called = name.replace(".", " ")
        raise ConfigError(
            f"there is no command {called!r}: {told}`claimspan --help` lists all commands"
        )
    if name is not None and not _is_present(commands[name]):
        # Before typer is looked for: to install that for a command that is not there is of no use.
        raise ConfigError("the demo is not in the installed package: run `make demo` in the source")
    try:
        from typer import Typer
    except ImportError as error:
        raise MissingExtraError("typer", "cli") from error
    app = Typer(add_completion=False, pretty_exceptions_enable=False)
    present = [each for each, entry in commands.items() if _is_present(entry)]
    for each in present if name is None else [name]:
        app.command(each)(_load(commands[each]))
    return app


def _overview(group: str = "") -> str:
    """The text of `claimspan --help`, or of a group of commands, such as `bench`."""
    begin = f"{group}." if group else ""
    commands = {
        name: entry
        for name, entry in _installed().items()
        if _is_present(entry) and name.startswith(begin)
    }
    width = max(map(len, commands), default=0)
    return "\n".join(
        (
            f"Usage: claimspan {f'{group} ' if group else ''}COMMAND [OPTIONS] [ARGUMENTS]",
            "",
            "Claim-level evaluation of RAG pipelines, written onto their own traces.",
            "",
            "Commands:",
            *(
                f"  {name.replace('.', ' '):<{width}}  "
                f"{SUMMARIES.get(name, f'(from package {_package(entry)})')}"
                for name, entry in commands.items()
            ),
            "",
            "Options:",
            "  --version  Show the version.",
            "  --help     Show this text; after a command, its arguments and options.",
        )
    )


def _run(arguments: Sequence[str]) -> None:
    name, *rest = arguments or ["--help"]
    groups = {each.partition(".")[0] for each in _installed() if "." in each}
    if name == "--help":
        print(_overview())
    elif name == "--version":
        print(version("claimspan"))
    elif name == "bench" and name not in groups:  # a distribution of its own
        raise MissingExtraError("claimspan-bench", "bench")
    elif name in groups and (not rest or rest[0] == "--help"):
        print(_overview(name))
    else:
        if name in groups:
            name, *rest = f"{name}.{rest[0]}", *rest[1:]
        # Commands of others may take it; of ours none does, and one would write a file called so.
        if name in SUMMARIES and "-" in rest:
            raise ConfigError(
                "'-' does not stand for standard input or output here: give the path of a file"
            )
        build_app(name)(rest, prog_name=f"claimspan {name.replace('.', ' ')}")
    if not arguments or (name in groups and not rest):
        sys.exit(BAD_INPUT)


def _installed() -> dict[str, EntryPoint]:
    found = sorted(entry_points(group=COMMANDS), key=lambda entry: entry.name)
    return {entry.name: entry for entry in found}


def _is_present(entry: EntryPoint) -> bool:
    return _package(entry) != _DEMO or find_spec(_DEMO) is not None


def _load(entry: EntryPoint) -> Callable[..., object]:
    try:
        command: Callable[..., object] = entry.load()
    except ClaimspanError:
        raise
    except Exception as error:
        raise ConfigError(
            f"command {entry.name!r} of package {_package(entry)!r} cannot be imported "
            f"({type(error).__name__}: {error}): upgrade or uninstall that package"
        ) from error
    return command


def _package(entry: EntryPoint) -> str:
    # Not `entry.dist.name`, which parses the metadata of a whole distribution.
    return entry.module.partition(".")[0]
