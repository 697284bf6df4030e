"""``claimspan doctor``: checks a monitor, or what a monitor would find here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from claimspan.cli.options import AsJson, JudgeName, JudgeOptions, judge_from
from claimspan.errors import ClaimspanError, ConfigError
from claimspan.files.ground_truth import GroundTruth
from claimspan.judges import Judge, LexicalJudge
from claimspan.loading import load_object
from claimspan.text.visible import visible
from claimspan_tracing.health import Diagnosis, Finding
from claimspan_tracing.monitor import Monitor

__all__ = ["doctor"]


def doctor(
    monitor: Annotated[
        str | None,
        typer.Argument(
            help="Your monitor, as path.py:name or package.module:name; importing it must not "
            "start the application. Without it, a monitor of the options below is checked."
        ),
    ] = None,
    judge: JudgeName = None,
    judge_options: JudgeOptions = None,
    ground_truth: Annotated[
        Path | None, typer.Option(help="File of ground truths, JSON lines or CSV.")
    ] = None,
    timeout: Annotated[
        float, typer.Option(help="Seconds that exporter and judge may take, each.", min=0.1)
    ] = 30.0,
    as_json: AsJson = False,
) -> None:
    """Check tracer provider, exporter, judge and ground truth, and say what to do.

    Sends one span, and has the judge decide about one claim, which a language model is paid for.
    The exit code is 1 if a check failed, so that a pipeline of CI can stop there.
    """
    if monitor and (judge is not None or judge_options or ground_truth is not None):
        raise ConfigError(
            "a monitor has its own judge and ground truth: leave --judge, --judge-option and "
            "--ground-truth out"
        )
    # What cannot be used of the options, by the check in whose place it stands.
    wrong: dict[str, Finding] = {}
    if monitor:
        checked = load_object(monitor)
        if not isinstance(checked, Monitor):
            raise ConfigError(f"{monitor!r} is of type {type(checked).__name__}: name a Monitor")
    else:
        usable: Judge = LexicalJudge()
        truths: GroundTruth | None = None
        try:
            usable = judge_from(judge, judge_options or ())
        except ClaimspanError as error:
            wrong["judge"] = Finding("judge", "failed", str(error))
        try:
            truths = None if ground_truth is None else GroundTruth.of(ground_truth)
        except ClaimspanError as error:
            wrong["ground truth"] = Finding("ground truth", "failed", str(error))
        checked = Monitor(usable, ground_truth=truths)
    findings = (wrong.get(each.check, each) for each in checked.check(timeout))
    diagnosis = Diagnosis(tuple(dict.fromkeys(findings)))
    # Line by line: what is made visible includes line ends.
    lines = map(visible, str(diagnosis).splitlines())
    typer.echo(json.dumps(diagnosis.to_dict()) if as_json else "\n".join(lines))
    checked.shutdown(timeout)
    if not diagnosis.ok:
        raise typer.Exit(1)
