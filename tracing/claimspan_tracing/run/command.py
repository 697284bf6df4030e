"""The command ``claimspan run``: runs a pipeline over a dataset, evaluates and traces it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Final

import typer

from claimspan.cli.main import BAD_INPUT
from claimspan.cli.options import (
    Criteria,
    JudgeName,
    JudgeOptions,
    Metrics,
    ThresholdOptions,
    selection_from,
)
from claimspan.errors import ClaimspanError, ConfigError
from claimspan.files.private import refuse_input
from claimspan.results.rows import ResultRow, Summary
from claimspan.text.visible import visible
from claimspan_tracing.run.files import read_dataset
from claimspan_tracing.run.session import RunSettings, Session

__all__ = ["run"]

SOME_FAILED: Final = 1
"""Exit code if some questions have no answer or no scores; their lines say why."""

INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, as of the other commands."""


def run(
    pipeline: Annotated[
        str, typer.Argument(help="path.py:name or package.module:name of a pipeline or function.")
    ],
    dataset: Annotated[Path, typer.Argument(help="Questions: JSON lines or CSV.")],
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", help="An input of the pipeline, NAME={query}; may be repeated."),
    ] = None,
    judge: JudgeName = None,
    judge_options: JudgeOptions = None,
    metrics: Metrics = None,
    criteria: Criteria = None,
    thresholds: ThresholdOptions = None,
    evaluate: Annotated[
        bool, typer.Option("--evaluate/--no-evaluate", help="Evaluate the answers.")
    ] = True,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File of results, a JSON line a question. A run goes on with it.",
        ),
    ] = None,
    traces: Annotated[
        Path | None, typer.Option(help="File of OTLP JSON lines to append the traces to.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="HTML page to write.")] = None,
    concurrency: Annotated[int, typer.Option(help="Questions asked at once.", min=1)] = 4,
    timeout: Annotated[
        float, typer.Option(help="Seconds that the answer to one question may take.", min=0.001)
    ] = 120.0,
    progress: Annotated[
        bool | None,
        typer.Option(
            "--progress/--no-progress", help="Show a progress bar; by default only on a terminal."
        ),
    ] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Run a pipeline over a dataset, evaluate it and write its traces.

    Exits with 1 if some questions have no answer or no scores.
    """
    for option, path in (("-o", output), ("--traces", traces), ("--report", report)):
        refuse_input(path, [dataset], option=option)
    given: dict[str, str] = {}
    for each in inputs or ():
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise ConfigError(f"--input {each!r} is no input: write NAME={{query}}")
        given[name] = value
    settings = RunSettings(
        pipeline=pipeline,
        inputs=given,
        judge=judge,
        judge_options=judge_options or (),
        selection=selection_from(metrics, thresholds, criteria),
        evaluate=evaluate,
        output=output,
        traces=traces,
        report=report,
        concurrency=concurrency,
        timeout=timeout,
        progress=progress,
    )
    session = Session(read_dataset(dataset), settings)
    # What the pipeline prints must not stand among our results.
    with redirect_stdout(sys.stderr):
        try:
            asyncio.run(session.run())
        # At Ctrl-C asyncio cancels its task; which one comes out depends on what that was at.
        except (KeyboardInterrupt, asyncio.CancelledError):
            goes_on = "; the same command goes on" if output is not None else ""
            done = sum(row.error is None for row in session.rows)
            typer.echo(
                f"claimspan: stopped after {done} of {session.size} questions{goes_on}", err=True
            )
            session.close()
            _leave_hanging(session, INTERRUPTED)
            raise KeyboardInterrupt from None
        except ClaimspanError as error:
            session.close()
            if session.left_behind:  # said here, since the process does not come to its end
                typer.echo(visible(f"claimspan: {error}"), err=True)
            _leave_hanging(session, BAD_INPUT)
            raise
        finally:
            session.close()
    rows = session.rows
    summary = Summary()
    for row in rows:
        summary.add(row)
    paths = {"output": output, "traces": traces, "report": report}
    files = {name: None if path is None else str(path) for name, path in paths.items()}
    if json_:
        typer.echo(_as_json(rows, summary, files))
    else:
        typer.echo(visible(_as_table(summary, session.size, files, evaluated=evaluate)))
    failed = summary.failed > 0
    _leave_hanging(session, SOME_FAILED if failed else 0)
    if failed:
        raise typer.Exit(SOME_FAILED)


def _leave_hanging(session: Session, code: int) -> None:
    """End the process at once if a call hangs: its own threads would be waited for."""
    if session.left_behind:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


# --- what a run says at its end -------------------------------------------------------------------


def _as_json(rows: Sequence[ResultRow], summary: Summary, files: Mapping[str, str | None]) -> str:
    failed = {row.id or f"#{row.index + 1}": row.error for row in rows if row.error is not None}
    return json.dumps(
        {
            "questions": len(rows),
            "failed": failed,
            "metrics": {n: {"mean": m.mean, "n": m.n} for n, m in summary.means.items()},
            "cost_usd": summary.cost_usd,
            **files,
        }
    )


def _as_table(
    summary: Summary, questions: int, files: Mapping[str, str | None], *, evaluated: bool
) -> str:
    done = summary.evaluated
    lines = [f"{done} of {questions} questions answered{' and evaluated' if evaluated else ''}"]
    width = max(map(len, summary.means), default=0)
    # A metric that is undefined for a question is missing there, and does not count as 0.
    lines += [f"  {name:<{width}}  {m.mean:.3f}  over {m.n}" for name, m in summary.means.items()]
    if evaluated:
        lines.append(f"  cost ${summary.cost_usd:.4f}")
    lines += [f"failed: {count} x {why}" for why, count in summary.reasons.most_common()]
    lines += [f"{name}: {path}" for name, path in files.items() if path is not None]
    return "\n".join(lines)
