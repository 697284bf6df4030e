"""The command ``claimspan serve``."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from claimspan.cli.options import JudgeName, JudgeOptions
from claimspan.errors import MissingExtraError
from claimspan.judges.choice import parse_options

__all__ = ["serve"]

_PACKAGES = ("starlette", "uvicorn", "grpc", "aiohttp", "yaml", "google.rpc", "opentelemetry.proto")


def serve(
    config: Annotated[
        Path | None,
        typer.Option(help="Options as YAML, those of Monitor as well; others here win over it."),
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="Address to listen at; 127.0.0.1 if not given.")
    ] = None,
    http_port: Annotated[
        int | None, typer.Option(help="Port of OTLP over HTTP; 4318 if not given.")
    ] = None,
    grpc_port: Annotated[
        int | None, typer.Option(help="Port of OTLP over gRPC; 4317 if not given.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="CLAIMSPAN_SERVE_TOKEN",
            help="Wanted of each request, as bearer or in x-claimspan-token.",
        ),
    ] = None,
    forward: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="Backend that gets each request untouched: http://HOST:PORT, or grpc://HOST:PORT.",
        ),
    ] = None,
    export: Annotated[
        str | None, typer.Option(metavar="URL", help="Where scores go, by OTLP over HTTP.")
    ] = None,
    sinks: Annotated[
        list[str] | None,
        typer.Option(
            "--sink", help="phoenix, mlflow, langfuse, or path.py:name; may be given repeatedly."
        ),
    ] = None,
    judge: JudgeName = None,
    judge_options: JudgeOptions = None,
    sample: Annotated[
        float | None, typer.Option(help="Share of the records to judge, 0.0 to 1.0.")
    ] = None,
    metrics: Annotated[
        str | None, typer.Option(help="What to measure, separated by commas.")
    ] = None,
    ground_truth: Annotated[
        Path | None, typer.Option(help="Responses known to be right, JSON lines or CSV.")
    ] = None,
    spool: Annotated[
        Path | None,
        typer.Option(
            help="Folder in which all that is not judged waits, so that it survives a kill."
        ),
    ] = None,
    quiet: Annotated[
        float | None,
        typer.Option(help="Seconds without a further span after which a trace is whole; 5."),
    ] = None,
    max_age: Annotated[
        float | None, typer.Option(help="The same of a trace whose root does not come; 120.")
    ] = None,
    exit_timeout: Annotated[
        float | None, typer.Option(help="Seconds in which the service ends after SIGTERM; 5.")
    ] = None,
) -> None:
    """Take spans by OTLP, judge their traces, and send on the scores.

    Point an OpenTelemetry Collector at it as one more exporter, or an application, with --forward
    for its backend. See docs/beside.md.
    """
    # Each is called as in a file.
    said = {name: value for name, value in locals().items() if value not in (None, [])}
    path = said.pop("config", None)
    if judge_options:
        said["judge_options"] = parse_options(judge_options)
    for package in _PACKAGES:
        if not _is_there(package):
            raise MissingExtraError(package, "serve")
    # Imported here: the command line lists its commands without any of these packages.
    from claimspan_serve._options import read_config
    from claimspan_serve._service import Service

    read = {} if path is None else read_config(path)
    Service(read | said).run(lambda line: typer.echo(line, err=True))


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # of the package around it
        return False
