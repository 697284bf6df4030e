"""The command ``claimspan backfill``: judges the traces that a backend or a folder has already."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

import typer

from claimspan import GroundTruth, RagRecord
from claimspan.cli.options import (
    AsJson,
    Criteria,
    JudgeName,
    JudgeOptions,
    Metrics,
    Progress,
    ThresholdOptions,
    judge_from,
    selection_from,
)
from claimspan.cost.budget import Budget
from claimspan.errors import ConfigError
from claimspan.evaluation.estimate import Estimate, aestimate
from claimspan.evaluation.evaluate import judge_for
from claimspan.files.private import refuse_input
from claimspan.judges import default_judge
from claimspan.judges.choice import parse_options
from claimspan.progress import progress_bar
from claimspan.text.visible import visible
from claimspan_backfill._backends import (
    JaegerSource,
    LangfuseSource,
    MLflowSource,
    PhoenixSource,
    TempoSource,
)
from claimspan_backfill._files import FileSource
from claimspan_backfill._run import Backfill, ResultLines, Settings, State, Summary
from claimspan_backfill._sources import Source, Window
from claimspan_langfuse import LangfuseWriter
from claimspan_mlflow import MLflowWriter
from claimspan_phoenix import PhoenixWriter
from claimspan_tracing.adapters import (
    Backend,
    BackendWriter,
    RemoteEvaluation,
    carriers_to,
    checked_address,
)

__all__ = ["backfill"]

SOME_FAILED: Final = 1
"""Exit code if some records have no scores; the output says why."""

STATE: Final = Path("claimspan-backfill.db")

_Sourced = tuple[
    Callable[[Backend, str | None], Source],
    Callable[[str | None], BackendWriter] | str,
    tuple[str, ...],
]
_SOURCES: Final[Mapping[str, _Sourced]] = {
    "phoenix": (PhoenixSource, PhoenixWriter, ("--url", "--project")),
    "mlflow": (MLflowSource, MLflowWriter, ("--url", "--project")),
    "langfuse": (LangfuseSource, LangfuseWriter, ("--url",)),
    "tempo": (TempoSource, "http://127.0.0.1:3200", ("--url", "--header")),
    "jaeger": (JaegerSource, "http://127.0.0.1:16686", ("--url", "--project", "--header")),
}
"""Source to what reads it; what writes scores back, or its address if nothing does; and the options
by which it is found. A file has none."""

_AGO: Final = re.compile(r"(\d{1,6})([dhm])")
_UNITS: Final = {"d": "days", "h": "hours", "m": "minutes"}


def backfill(
    source: Annotated[
        str,
        typer.Argument(
            help="phoenix, mlflow, langfuse, tempo, jaeger, or a file or folder of OTLP JSON lines."
        ),
    ],
    url: Annotated[
        str | None,
        typer.Option(help="Address of the backend; by default as its own client looks it up."),
    ] = None,
    project: Annotated[
        str | None,
        typer.Option(help="Project of Phoenix, experiment of MLflow, or service of Jaeger."),
    ] = None,
    headers: Annotated[
        list[str] | None,
        typer.Option("--header", help="NAME=VALUE, sent to Tempo or Jaeger; may be repeated."),
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Traces from then on: 7d, 12h, 30m, or 2026-11-01T08:00.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Traces before then, as --since.")] = None,
    wanted: Annotated[
        list[str] | None,
        typer.Option(
            "--filter", help="KEY=VALUE of an attribute of a span or resource; may be repeated."
        ),
    ] = None,
    sample: Annotated[
        float, typer.Option(help="Share of the records to judge.", min=0.0, max=1.0)
    ] = 1.0,
    limit: Annotated[int | None, typer.Option(help="Records to judge at most.", min=1)] = None,
    judge: JudgeName = None,
    judge_options: JudgeOptions = None,
    metrics: Metrics = None,
    criteria: Criteria = None,
    thresholds: ThresholdOptions = None,
    ground_truth: Annotated[
        Path | None, typer.Option(help="Responses known to be right, JSON lines or CSV.")
    ] = None,
    budget: Annotated[
        float | None, typer.Option(help="US dollars that judging may cost.", min=0.0)
    ] = None,
    concurrency: Annotated[int, typer.Option(help="Records judged at once.", min=1)] = 4,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Say what it would cost; no model is asked.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be judged; nothing is written.")
    ] = False,
    export: Annotated[
        str | None,
        typer.Option(help="Address of OTLP over HTTP that gets the scores as linked spans."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File of results, for `claimspan report`."),
    ] = None,
    state: Annotated[
        Path, typer.Option(help="File that knows what was judged; a run goes on with it.")
    ] = STATE,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Judge the traces that a backend or a folder has already.

    Scores go back to Phoenix, MLflow and Langfuse, elsewhere to --export or --output. Exits with 1
    if some records have no scores.
    """
    refuse_input(output, [Path(source), ground_truth], option="-o")
    found, writer = _source(source, url, project, _pairs("--header", headers))
    window = Window(_moment("--since", since), _moment("--until", until))
    if window.since and window.until and window.since >= window.until:
        raise ConfigError(f"--since {since} is not before --until {until}: give an earlier one")
    settings = Settings(
        window=window,
        wanted=_pairs("--filter", wanted),
        sample=sample,
        limit=limit,
        concurrency=concurrency,
    )
    selection = selection_from(metrics, thresholds, criteria)
    truths = None if ground_truth is None else GroundTruth.of(ground_truth)
    estimates: list[Estimate] = []
    with ExitStack() as stack:
        if estimate or dry_run:
            parts = partial(Backfill, evaluation=None, writer=None, output=None, state=None)
            run = parts(found, settings)
        else:
            if writer is None and export is None and output is None:
                raise ConfigError(
                    f"{source} takes no scores: say where they go with --export or --output"
                )
            chosen = judge_for(selection, judge_from(judge, judge_options))
            known = chosen.name, str(getattr(chosen, "version", ""))
            noted = State(state, found.identity, *known, repr(selection.in_judge))
            stack.callback(noted.close)
            lines = None if output is None else ResultLines(output)
            if lines is not None:
                stack.callback(lines.close)
            evaluation = RemoteEvaluation(
                chosen,
                metrics=selection,
                ground_truth=truths,
                carriers=carriers_to(None if export is None else _traces(export)),
                sinks=[] if writer is None else [writer],
                # Of the run, however long it takes: its day does not end.
                budget=None if budget is None else Budget(per_day=budget, clock=lambda: 0.0),
            )
            stack.callback(evaluation.close)
            run = Backfill(
                found,
                settings,
                evaluation=evaluation,
                writer=writer,
                output=lines,
                state=noted,
                judge=known,
            )
        priced = None
        if estimate:
            priced = default_judge(judge, options=parse_options(judge_options or ()), offline=True)

        def look(records: Sequence[RagRecord]) -> None:
            if priced is not None:
                asked = [_with_truth(record, truths) for record in records]
                expected = aestimate(asked, priced, selection, progress=False)
                estimates.append(asyncio.run(expected))

        what = "reading" if estimate or dry_run else "judging"
        summary, is_over = run.summary, False
        try:
            with progress_bar(what, total=limit, show=progress) as advance:
                run.run(advance, look)
            is_over = True
        finally:
            # Also of a run that ends with an error, or is interrupted: it was judged, and paid for.
            if is_over or summary.traces:
                facts = {each.name: getattr(summary, each.name) for each in fields(summary)}
                lines_told = _told(summary, estimates, is_dry=dry_run or estimate)
                typer.echo(
                    json.dumps({**facts, "estimate": _cost(estimates) or None})
                    if as_json
                    else visible("\n".join(lines_told))
                )
    if summary.failed:
        raise typer.Exit(SOME_FAILED)


def _source(
    name: str, url: str | None, project: str | None, headers: Mapping[str, str]
) -> tuple[Source, BackendWriter | None]:
    """Return the source, and what writes scores back to it."""
    given = {"--url": url, "--project": project, "--header": headers}
    takes = _SOURCES[name][2] if name in _SOURCES else ()
    if unused := [option for option, value in given.items() if value and option not in takes]:
        raise ConfigError(f"{name} takes no {' or '.join(unused)}: leave it out")
    if name not in _SOURCES:
        return FileSource(Path(name)), None
    read, write, _ = _SOURCES[name]
    if isinstance(write, str):
        backend = Backend(
            name.title(),
            checked_address(url or write, "--url"),
            extra="backfill",
            settings="--url and --header",
            headers=headers,
        )
        return read(backend, project), None
    writer = write(url)
    return read(writer.backend, project), writer


def _moment(option: str, given: str | None) -> datetime | None:
    """The moment that an option says: so long ago, or a date of ISO 8601, UTC if it has no zone."""
    if given is None:
        return None
    try:
        if ago := _AGO.fullmatch(given):
            return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        found = datetime.fromisoformat(given)
    except (ValueError, OverflowError):
        raise ConfigError(f"{option} {given!r} is no time: write 7d, or 2026-11-01T08:00") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _pairs(option: str, given: Sequence[str] | None) -> dict[str, str]:
    pairs = [each.partition("=") for each in given or ()]
    if not all(name and equals for name, equals, _ in pairs):
        raise ConfigError(f"{option} takes pairs: write {option} NAME=VALUE")
    return {name: value for name, _, value in pairs}


def _traces(url: str) -> str:
    """The address that takes traces, if that of the receiver alone is given."""
    return checked_address(url, "--export") + (
        "" if urlsplit(url).path.strip("/") else "/v1/traces"
    )


def _with_truth(record: RagRecord, truths: GroundTruth | None) -> RagRecord:
    found = None if truths is None else truths.find_known(record.query, record.metadata)
    return record if found is None else record.model_copy(update={"ground_truth": found.text})


# --- what is said at the end ----------------------------------------------------------------------


def _cost(estimates: Sequence[Estimate]) -> dict[str, float | None]:
    """The estimates of all pages together; nothing if there is none."""
    if not estimates:
        return {}
    costs = [each.cost_usd for each in estimates if each.cost_usd is not None]
    most = [e.cost_usd_with_reasoning for e in estimates if e.cost_usd_with_reasoning is not None]
    is_known = len(costs) == len(estimates)
    return {
        "calls": sum(each.calls for each in estimates),
        "input_tokens": sum(each.input_tokens for each in estimates),
        "output_tokens": sum(each.output_tokens for each in estimates),
        "cost_usd": sum(costs) if is_known else None,
        "cost_usd_with_reasoning": sum(most) if is_known else None,
    }


def _told(summary: Summary, estimates: Sequence[Estimate], *, is_dry: bool) -> list[str]:
    """The summary, a line a fact."""
    lines = [f"{summary.source}: {summary.traces:,} traces read, {summary.records:,} records"]
    if not is_dry:
        undecided = f", {summary.undecided:,} of them undecided" if summary.undecided else ""
        lines.append(f"{summary.judged:,} judged{undecided}, for ${summary.cost_usd:.4f}")
    if summary.already:
        lines.append(f"{summary.already:,} were judged before")
    lines += [f"left out: {count:,} x {why}" for why, count in summary.left_out.most_common()]
    lines += [f"failed: {count:,} x {why}" for why, count in summary.failed.most_common()]
    if found := _cost(estimates):
        cost, most = (
            "unknown" if each is None else f"${each:.4f}"
            for each in (found["cost_usd"], found["cost_usd_with_reasoning"])
        )
        cost = cost if cost == most else f"{cost} to {most}"
        lines.append(
            f"it would cost {cost}: {found['calls']:,} calls, {found['input_tokens']:,} prompt "
            f"and {found['output_tokens']:,} completion tokens"
        )
    if summary.stopped:
        lines.append(f"stopped: {summary.stopped}")
    return lines
