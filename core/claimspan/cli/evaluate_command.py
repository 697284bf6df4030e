"""The command ``claimspan evaluate``: evaluates a file of records, here or on Celery workers."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from enum import StrEnum
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Final, Protocol, cast

import typer

from claimspan.cli.evaluate_account import (
    account_as_json,
    account_lines,
    summary_as_json,
    summary_lines,
)
from claimspan.cli.evaluate_run import Done, EvaluationRun, OnWorkers, Output
from claimspan.cli.evaluate_views import Views
from claimspan.cli.judge_options import JudgeName, JudgeOptions, judge_from
from claimspan.cli.metric_options import Criteria, Metrics, ThresholdOptions, selection_from
from claimspan.comparison.compare import compare_files
from claimspan.comparison.comparison import Comparison
from claimspan.comparison.systems import read_system
from claimspan.comparison.tables import as_text
from claimspan.errors import ConfigError, MissingExtraError
from claimspan.evaluation.evaluate import CONCURRENCY, judge_for
from claimspan.files.names import Columns
from claimspan.files.private import is_same_file
from claimspan.files.record_files import RecordFile
from claimspan.records import RagRecord
from claimspan.text.visible import visible

__all__ = ["ColumnMap", "Done", "Workers", "evaluate_command"]

WORKERS: Final = "claimspan.celery"
"""Entry-point group of what evaluates records on workers: core imports no Celery."""

SOME_FAILED: Final = 1
"""Exit code where some records have no evaluation, or rows were skipped; the output says why."""


class ResultFormat(StrEnum):
    """What a file of results holds."""

    JSONL = "jsonl"
    """One JSON line a record, with all that was found out."""

    RAGCHECKER = "ragchecker"
    """RAGChecker's results, one JSON value."""


class UndefinedRule(StrEnum):
    """What becomes of a metric without a value; as ``claimspan.metrics.Undefined``."""

    OMIT = "omit"
    ZERO = "zero"


class Workers(Protocol):
    """Has records evaluated on workers elsewhere; the entry point ``evaluate``."""

    def __call__(
        self,
        records: Iterable[tuple[int, RagRecord]],
        done: Done,
        *,
        broker: str | None,
        queue: str,
        patience_seconds: float,
    ) -> None:
        """Evaluate records with their places, and call ``done`` with each.

        Raises:
            ClaimspanError: The broker cannot be reached, or no worker answers.
        """
        ...


_File = Annotated[
    Path,
    typer.Argument(
        help="Records: JSON lines, CSV, Parquet, Arrow, a JSON list, RAGChecker's JSON."
    ),
]
ColumnMap = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="FIELD=COLUMN",
        help="The column of a field, if its name is none of those in use: question=prompt. "
        "May be given repeatedly; context= evaluates without a context.",
    ),
]
_Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="File of results: one JSON line a record, or RAGChecker's JSON where it ends in "
        ".json. A run goes on with it.",
    ),
]
_Format = Annotated[
    ResultFormat | None,
    typer.Option("--format", help="What -o holds, whatever its name ends in."),
]
_Undefined = Annotated[
    UndefinedRule,
    typer.Option(help="A metric without a value is left out, or 0 as in ragchecker 0.1.9."),
]
_Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first row that is no record.")]
_Skipped = Annotated[
    Path | None,
    typer.Option(help="File for the rows that are no records, JSON lines with the reason."),
]
_Concurrency = Annotated[int, typer.Option(help="Records under evaluation at once.", min=1)]
_Celery = Annotated[
    bool, typer.Option("--celery", help="Evaluate on the workers of `claimspan worker`.")
]
_Broker = Annotated[
    str | None,
    typer.Option(envvar="CLAIMSPAN_BROKER_URL", help="With --celery: URL of the broker, a Redis."),
]
_Queue = Annotated[str, typer.Option(help="With --celery: the queue.")]
_Patience = Annotated[
    float, typer.Option(help="With --celery: seconds without any result to wait.", min=1)
]
_Progress = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress", help="Show a progress bar; by default only on a terminal."
    ),
]
_Compare = Annotated[
    Path | None,
    typer.Option(
        "--compare", help="With -o: results to compare the new ones with, as claimspan compare."
    ),
]
_Csv = Annotated[
    Path | None, typer.Option("--csv", help="Table to write: one row a record, with its scores.")
]
_Parquet = Annotated[
    Path | None,
    typer.Option("--parquet", help="The same table as a Parquet file; needs claimspan[pandas]."),
]
_Report = Annotated[
    Path | None, typer.Option("--report", help="HTML page to write, as claimspan report.")
]
_Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def evaluate_command(
    file: _File,
    judge: JudgeName = None,
    judge_options: JudgeOptions = None,
    metrics: Metrics = None,
    criteria: Criteria = None,
    thresholds: ThresholdOptions = None,
    columns: ColumnMap = None,
    output: _Output = None,
    result_format: _Format = None,
    undefined: _Undefined = UndefinedRule.OMIT,
    strict: _Strict = False,
    skipped: _Skipped = None,
    concurrency: _Concurrency = CONCURRENCY,
    celery: _Celery = False,
    broker: _Broker = None,
    queue: _Queue = "claimspan",
    patience: _Patience = 600.0,
    compare: _Compare = None,
    csv: _Csv = None,
    parquet: _Parquet = None,
    report: _Report = None,
    progress: _Progress = None,
    as_json: _Json = False,
) -> None:
    """Evaluate a file of records, here or on Celery workers.

    Rows that are no records are skipped and counted. Exits with 1 where a row was skipped, or a
    record could not be evaluated, and with 2 where there is nothing to evaluate.
    """
    if celery and (judge is not None or judge_options):
        given = "--judge" if judge is not None else "--judge-option"
        raise ConfigError(f"{given} and --celery do not go together: the workers have their judge")
    if celery and (metrics is not None or criteria or thresholds):
        raise ConfigError(
            "--metrics, --criterion and --threshold do not go together with --celery: the workers "
            "have theirs"
        )
    before_and_after = _files_to_compare(compare, output)
    _keep_from_skipped(skipped, file, output, compare)
    views = Views(csv, parquet, report)
    views.refuse([file, output, skipped, compare])
    with views.results(output) as results, views.opened() as write_views:
        records = RecordFile(file, Columns.of_options(columns or []))
        to = _output(results, result_format, records)
        # RAGChecker's results have a place for eleven metrics.
        selection = selection_from(
            metrics, thresholds, criteria, default="default" if to.rag is None else "all"
        )
        if to.lines is not None and (metrics is not None or criteria or thresholds):
            to.lines.check_choice(selection)
        run = EvaluationRun(records, to, undefined.value, selection)
        _check(run, results, strict=strict, skipped=skipped)
        views.results_of(run)
        # Not where every claim and label is recorded: a judge may need a key.
        # The judge is made after the file was checked: a model may take a minute to load, and a
        # mistake in the file is to be said at once.
        to_judge = run.left_to_judge and not celery
        chosen = judge_for(selection, judge_from(judge, judge_options)) if to_judge else None
        on_workers = _on_workers(broker, queue, patience) if celery and run.left_to_judge else None
        with _told_where_it_stops(run, output):
            run.evaluate(chosen, concurrency=concurrency, on_workers=on_workers, progress=progress)
        write_views(run, progress)
    found = compare_files(before_and_after, progress=progress) if before_and_after else None
    typer.echo(_as_json(run, found, views) if as_json else visible(_as_table(run, found, views)))
    if run.summary.failed or run.account.skipped:
        raise typer.Exit(SOME_FAILED)


@contextmanager
def _told_where_it_stops(run: EvaluationRun, output: Path | None) -> Generator[None]:
    """Say at Ctrl-C how far the run has come, and what becomes of it."""
    try:
        yield
    except KeyboardInterrupt:
        kept = "give -o FILE to keep what is done" if output is None else "the same command goes on"
        done, records = run.summary.records, run.account.records
        typer.echo(f"claimspan: stopped after {done} of {records} records; {kept}", err=True)
        raise


def _keep_from_skipped(skipped: Path | None, *others: Path | None) -> None:
    """Refuse to write the skipped rows over a file that the run reads or writes.

    Raises:
        ConfigError: ``--skipped`` is one of the others.
    """
    # Before anything is read: the file of skipped rows is in place when the input is read again.
    if skipped is None or not any(is_same_file(skipped, each) for each in others if each):
        return
    raise ConfigError(
        f"{str(skipped)!r} is another file of this run, which --skipped would replace: give "
        "another path with --skipped"
    )


def _output(path: Path | None, result_format: ResultFormat | None, records: RecordFile) -> Output:
    if result_format is None:
        is_json = path is not None and path.suffix.lower() == ".json"
        # RAGChecker's own tools have JSON files in and out, so the ending says which tools are
        # meant.
        result_format = ResultFormat.RAGCHECKER if is_json else ResultFormat.JSONL
    return Output(path, records, as_rag_results=result_format is ResultFormat.RAGCHECKER)


def _check(run: EvaluationRun, output: Path | None, *, strict: bool, skipped: Path | None) -> None:
    """Read the file once, and find out what is left to do."""
    run.check(strict=strict, skipped=skipped)
    file = run.file.path
    if run.account.skipped and output is not None and is_same_file(output, file):
        raise ConfigError(
            f"{str(output)!r} is the input, which has rows that cannot be used and would be lost: "
            "give another path with -o"
        )


def _on_workers(broker: str | None, queue: str, patience: float) -> OnWorkers:
    found = entry_points(group=WORKERS, name="evaluate")
    if not found:
        raise MissingExtraError("celery", "celery")
    workers = cast("Workers", next(iter(found)).load())

    def evaluate(records: Iterable[tuple[int, RagRecord]], done: Done) -> None:
        workers(records, done, broker=broker, queue=queue, patience_seconds=patience)

    return evaluate


def _files_to_compare(before: Path | None, output: Path | None) -> list[Path]:
    """The files of ``--compare``; before anything is paid for, and none where it is not given."""
    if before is None:
        return []
    if output is None:
        raise ConfigError("--compare needs a file of the new results: give one with -o")
    if is_same_file(before, output):
        raise ConfigError("--compare and -o are one file: copy the last results before a new run")
    # Now, though it is read again at the end: a wrong file must be said before the judge has cost
    # something.
    read_system(before)
    return [before, output]


def _as_json(run: EvaluationRun, found: Comparison | None, views: Views) -> str:
    file = account_as_json(run.account, run.file.unit, run.selection.names)
    compared = {} if found is None else {"comparison": found.model_dump(mode="json")}
    written = {option.removeprefix("--"): str(path) for option, path in views.paths.items()}
    return json.dumps({**summary_as_json(run.summary), "file": file, **compared, **written})


def _as_table(run: EvaluationRun, found: Comparison | None, views: Views) -> str:
    lines = summary_lines(run.summary, run.account.records)
    compared = [] if found is None else ["", as_text(found)]
    written = [f"written: {path}" for path in views.paths.values()]
    return "\n".join(
        [
            *lines,
            *account_lines(run.account, run.file.unit, run.selection.names),
            *written,
            *compared,
        ]
    )
