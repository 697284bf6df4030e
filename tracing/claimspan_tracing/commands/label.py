"""``claimspan label`` and ``claimspan calibrate``: people label claims, and calibrate a judge."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import typer

from claimspan.cli.judge_commands import calibrate_cascade
from claimspan.cli.options import JUDGE_HELP, AsJson, JudgeOptions
from claimspan.comparison.tables import Table, interval
from claimspan.errors import ConfigError
from claimspan.files.private import refuse_input, write_private
from claimspan.judges.choice import PROVIDERS
from claimspan.labelling import join_labels, pick_claims, read_claim_labels, render_label_page
from claimspan.labelling.claims import DOUBTFUL_SHARE, MOST_CLAIMS
from claimspan.meta_evaluation.calibration import MAX_LOSS
from claimspan.meta_evaluation.traffic import TrafficCalibration, calibrate_traffic
from claimspan.report import ReportEntry
from claimspan.text.visible import visible
from claimspan_tracing.commands.report import read_system
from claimspan_tracing.trace_file.spans import Skipped

__all__ = ["calibrate", "label"]

_LABELS: Final = ".csv"
"""Ending of a file of labels, by which the two forms of ``calibrate`` are told apart."""

_Files = Annotated[
    list[Path],
    typer.Argument(
        help="Traces or results, then labels.csv; or, for a cascade, labelled claims as JSON lines."
    ),
]
_Calibration = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="With labels.csv: the file that a judge takes."),
]
_CheapJudge = Annotated[
    str | None,
    typer.Option(
        metavar="JUDGE", help=f"For a cascade, the cheap judge: {JUDGE_HELP}; by default lexical."
    ),
]
_MaxLoss = Annotated[
    float | None,
    typer.Option(
        help="For a cascade: share of verdicts that the cheap judge may get wrong, 0 to 1; "
        f"{MAX_LOSS} where not given."
    ),
]
_StrongAccuracy = Annotated[
    float | None,
    typer.Option(
        help="For a cascade: share of verdicts that the strong judge gets right, 0 to 1; 1 where "
        "not given."
    ),
]
_Limit = Annotated[
    int | None, typer.Option(help="For a cascade: use only the first N claims of a file.", min=1)
]
_Progress = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress",
        help="For a cascade: show a progress bar; by default only on a terminal.",
    ),
]


def label(
    file: Annotated[Path, typer.Argument(help="OTLP JSON lines, or results of `evaluate -o`.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path(
        "label.html"
    ),
    n: Annotated[int, typer.Option("--n", "-n", help="Claims to label.", min=1)] = MOST_CLAIMS,
    doubtful: Annotated[
        float,
        typer.Option(help="Share of them that the judge is least sure of; the rest by chance."),
    ] = DOUBTFUL_SHARE,
    seed: Annotated[int, typer.Option(help="Of the choice by chance.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Make a page that opens offline, on which people label claims.

    Keys: E entailed, N neutral, C contradicted, U unsure. The page downloads `labels.csv`, which
    `claimspan calibrate` reads beside the same file of traces or results.
    """
    refuse_input(output, [file], option="-o")
    picked = pick_claims(_entries(file), n, doubtful=doubtful, seed=seed)
    page = render_label_page(picked, title=f"Label claims of {file.stem}")
    # Readable by its owner alone: it holds the questions and answers of users.
    write_private(output, page, what="the page")
    shares = Counter(each.share for each in picked)
    if as_json:
        typer.echo(json.dumps({"page": str(output), "claims": len(picked), **shares}))
        return
    told = ", ".join(f"{count} {share}" for share, count in sorted(shares.items()))
    typer.echo(visible(f"{output}: {len(picked)} claims to label ({told})"))
    typer.echo(visible(f"then: claimspan calibrate {file} labels.csv -o calibration.json"))


def calibrate(
    files: _Files,
    output: _Calibration = None,
    judge: _CheapJudge = None,
    judge_options: JudgeOptions = None,
    max_loss: _MaxLoss = None,
    strong_accuracy: _StrongAccuracy = None,
    limit: _Limit = None,
    progress: _Progress = None,
    as_json: AsJson = False,
) -> None:
    """Find thresholds: of a judge for your own traffic, or of a cascade.

    `claimspan calibrate traces.jsonl labels.csv -o calibration.json` measures how far the judge of
    the traces agrees with labels of people (`claimspan label`), and fits from which probability a
    claim is to be called entailed. `--judge lexical@calibration.json` then judges so.

    `claimspan calibrate labelled.jsonl` finds the thresholds between which a cascade asks its
    strong judge. They are chosen on one half of the labelled claims, and measured on the other.
    """
    if not any(path.suffix.lower() == _LABELS for path in files):
        if output is not None:
            raise ConfigError("-o is for a calibration by labels: give traces, then labels.csv")
        calibrate_cascade(
            files,
            judge or "lexical",
            judge_options=judge_options or (),
            max_loss=MAX_LOSS if max_loss is None else max_loss,
            strong_accuracy=1.0 if strong_accuracy is None else strong_accuracy,
            limit=limit,
            progress=progress,
            as_json=as_json,
        )
        return
    options = {
        **{"--judge": judge, "--judge-option": judge_options, "--max-loss": max_loss},
        **{"--strong-accuracy": strong_accuracy, "--limit": limit},
    }
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise ConfigError(
            f"{', '.join(given)} is for a cascade: the judge of a calibration by labels is that of "
            "the traces, and all labels count"
        )
    if len(files) != 2 or files[0].suffix.lower() == _LABELS:
        raise ConfigError("give two files: traces or results, then labels.csv")
    refuse_input(output, files, option="-o")
    traces, labels = files
    joined = join_labels(_entries(traces), read_claim_labels(labels))
    found = calibrate_traffic(joined.verdicts, joined.judge)
    if as_json:
        left = {"unsure": joined.unsure, "undecided": joined.undecided}
        typer.echo(json.dumps({**found.model_dump(mode="json"), **left}))
    else:
        left_out = f"({joined.unsure} unsure, {joined.undecided} undecided by the judge)"
        typer.echo(visible("\n".join(_table(found, left_out))))
        for warning in found.warnings:
            typer.echo(visible(f"claimspan: {warning}"), err=True)
    if output is None:
        return
    if found.calibration is None:
        raise ConfigError(f"{str(output)!r} is not written: {found.warnings[0]}")
    text = {**found.calibration.model_dump(), "warnings": found.warnings}
    write_private(output, json.dumps(text, indent=2) + "\n", what="the calibration")
    if not as_json:
        typer.echo(visible(f"{output}: use it as {_usage(found.judge, output)}"))


def _usage(judge: str, calibration: Path) -> str:
    # Traces name the provider of a model, and not the model.
    provider = next((kind for kind, each in PROVIDERS.items() if judge in (kind, each.name)), None)
    spelling = judge if provider is None else f"{provider}:MODEL"
    # A judge by name is found again only where its file is known by its ending.
    is_named = provider is not None or judge.partition(":")[0] in ("lexical", "local")
    if is_named and calibration.suffix == ".json":
        return f"--judge {spelling}@{calibration}"
    return f"CalibratedJudge(judge, {str(calibration)!r})"


def _entries(path: Path) -> tuple[ReportEntry, ...]:
    return read_system(path, path.stem, Skipped(path)).entries


# --- the table of what labels say about a judge ---------------------------------------------------


def _table(found: TrafficCalibration, left_out: str) -> Iterator[str]:
    before, after = found.as_it_is, found.cross_fitted
    yield f"{found.judge}: {found.labels} labels of {found.records} records {left_out}"
    figures = (
        ("agreement", "accuracy"),
        ("balanced accuracy", "balanced_accuracy"),
        ("called entailed", "entailed_share"),
    )
    rows = [
        (
            name,
            *(
                interval(key, None if each is None else getattr(each, key))
                for each in (before, after)
            ),
        )
        for name, key in figures
    ]
    rows.append(("people call entailed", interval("", found.people_entailed), ""))
    rows.append((f"always {found.majority_label}", f"{found.majority:.3f}", ""))
    yield Table("", ("", "judge as it is", "calibrated"), tuple(rows)).as_text()
    for which, agreement in (("as it is", before), ("calibrated", after)):
        if agreement is not None:
            names = tuple(agreement.confusion)
            counts = agreement.confusion.items()
            cells = tuple((human, *(str(row[each]) for each in names)) for human, row in counts)
            yield ""
            yield Table("", (f"{which}: people \\ judge", *names), cells).as_text()
    if found.calibration is not None:
        yield ""
        yield (
            f"entailed from p >= {found.calibration.threshold:.3f} (slope "
            f"{found.calibration.slope:.2f}), fitted on {found.calibration.labels} labels"
        )
        yield "Calibrated figures are of records that the fit has not seen; intervals are of 95 %."
