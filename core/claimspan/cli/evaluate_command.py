"""The command ``claimspan evaluate``: evaluates a file of records."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Annotated, Final

import typer

from claimspan.cli.options import (
    AsJson,
    ColumnMap,
    Criteria,
    JudgeName,
    JudgeOptions,
    Metrics,
    Progress,
    ThresholdOptions,
    judge_from,
    selection_from,
)
from claimspan.comparison.compare import Comparison, compare_files
from claimspan.comparison.systems import read_system
from claimspan.comparison.tables import as_text
from claimspan.errors import ConfigError
from claimspan.evaluation.evaluate import CONCURRENCY, judge_for
from claimspan.evaluation.judgement import GOOD, LOW, UNKNOWN
from claimspan.evaluation.selection import Selection
from claimspan.files.arrow import ParquetFormat
from claimspan.files.names import Columns
from claimspan.files.private import check_replaceable, is_same_file, replaced_private, write_private
from claimspan.files.raw_rows import SkippedRow
from claimspan.files.record_files import Account, RecordFile, no_records
from claimspan.files.record_rows import InputRow, Recorded
from claimspan.judges.protocol import Judge
from claimspan.metrics.catalogue import CATALOGUE, in_order
from claimspan.metrics.compute import Undefined
from claimspan.progress import progress_bar
from claimspan.report import render_report
from claimspan.report.evaluated import entry_of_evaluation
from claimspan.results.rag_results import RagResultsFile
from claimspan.results.recorded_judge import evaluate_recorded, is_complete
from claimspan.results.result_file import ResultFile
from claimspan.results.rows import ResultRow, Summary, write_parquet, write_table
from claimspan.text.visible import visible

__all__ = ["evaluate_command"]

SOME_FAILED: Final = 1
"""Exit code if some records have no evaluation, or rows were skipped; the output says why."""

_SHOWN: Final = 8
"""Lines that are shown for one reason on a terminal; `--json` and `--skipped` have more."""

_REASONS: Final = 5

_LOSSES: Final = {
    "id": "results of two systems are paired by their queries",
    "metadata": "results cannot be sliced by it",
}
"""What records without an optional field are not good for."""


class ResultFormat(StrEnum):
    """The content of a file of results: a JSON line a record, or RAGChecker's one JSON value."""

    JSONL = "jsonl"
    RAGCHECKER = "ragchecker"


class UndefinedRule(StrEnum):
    """What becomes of a metric without a value; as ``claimspan.metrics.Undefined``."""

    OMIT = "omit"
    ZERO = "zero"


def evaluate_command(
    file: Annotated[
        Path,
        typer.Argument(
            help="Records: JSON lines, CSV, Parquet, Arrow, a JSON list, RAGChecker's JSON."
        ),
    ],
    judge: JudgeName = None,
    judge_options: JudgeOptions = None,
    metrics: Metrics = None,
    criteria: Criteria = None,
    thresholds: ThresholdOptions = None,
    columns: ColumnMap = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File of results: one JSON line a record, or RAGChecker's JSON where it ends in "
            ".json. A run goes on with it.",
        ),
    ] = None,
    result_format: Annotated[
        ResultFormat | None,
        typer.Option("--format", help="What -o holds, whatever its name ends in."),
    ] = None,
    undefined: Annotated[
        UndefinedRule,
        typer.Option(help="A metric without a value is left out, or 0 as in ragchecker 0.1.9."),
    ] = UndefinedRule.OMIT,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first row that is no record.")
    ] = False,
    skipped: Annotated[
        Path | None,
        typer.Option(help="File for the rows that are no records, JSON lines with the reason."),
    ] = None,
    concurrency: Annotated[
        int, typer.Option(help="Records under evaluation at once.", min=1)
    ] = CONCURRENCY,
    compare: Annotated[
        Path | None,
        typer.Option(
            "--compare", help="With -o: results to compare the new ones with, as claimspan compare."
        ),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option("--csv", help="Table to write: one row a record, with its scores."),
    ] = None,
    parquet: Annotated[
        Path | None,
        typer.Option(
            "--parquet", help="The same table as a Parquet file; needs claimspan[pandas]."
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="HTML page to write, as claimspan report.")
    ] = None,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate a file of records.

    Rows that are no records are skipped and counted. Exits with 1 if a row was skipped, or a
    record could not be evaluated, and with 2 if there is nothing to evaluate.
    """
    choice = {"--metrics": metrics, "--criterion": criteria, "--threshold": thresholds}
    # Before anything is read: the file of skipped rows is in place when the input is read again.
    views = _Views(csv, parquet, report)
    _refuse_shared_files(
        {"--compare": compare, "-o": output, "the input": file},
        {"--skipped": skipped, **views.paths},
    )
    if compare is not None and output is None:
        raise ConfigError("--compare needs a file of the new results: give one with -o")
    if compare is not None:
        # Now, though it is read again at the end: a wrong file must be said before the judge has
        # cost something.
        read_system(compare)
    views.check()
    with views.results(output) as results:
        records = RecordFile(file, Columns.of_options(columns or []))
        # RAGChecker's own tools have JSON files in and out, so the ending says which tools are
        # meant.
        is_json = results is not None and results.suffix.lower() == ".json"
        by_name = ResultFormat.RAGCHECKER if is_json else ResultFormat.JSONL
        is_rag = (result_format or by_name) is ResultFormat.RAGCHECKER
        new_file = partial(RagResultsFile, records=records) if is_rag else ResultFile
        to: ResultFile | None = None if results is None else new_file(results)
        # RAGChecker's results have a place for eleven metrics.
        default = "all" if isinstance(to, RagResultsFile) else "default"
        selection = selection_from(metrics, thresholds, criteria, default=default)
        if to is not None and any(choice.values()):
            to.check_choice(selection)
        run = _Run(records, to, undefined.value, selection)
        run.check(strict=strict, skipped=skipped)
        if run.account.skipped and results is not None and is_same_file(results, file):
            raise ConfigError(
                f"{str(results)!r} is the input, which has rows that cannot be used and would be "
                "lost: give another path with -o"
            )
        views.results_of(run)
        # Not if every claim and label is recorded: a judge may need a key. The judge is made after
        # the file was checked: a model may take a minute to load, and a mistake in the file is to
        # be said at once.
        chosen = None
        if run.left_to_judge:
            chosen = judge_for(selection, judge_from(judge, judge_options))
        with _told_where_it_stops(run, output):
            run.evaluate(chosen, concurrency=concurrency, progress=progress)
        views.write(run, progress)
    found = compare_files([compare, output], progress=progress) if compare and output else None
    if as_json:
        typer.echo(_as_json(run, found, views))
    else:
        told = [*_summary_lines(run.summary, run.account.records), *_account_lines(run)]
        told += [f"written: {path}" for path in views.paths.values()]
        typer.echo(visible("\n".join([*told, *([] if found is None else ["", as_text(found)])])))
    if run.summary.failed or run.account.skipped:
        raise typer.Exit(SOME_FAILED)


def _refuse_shared_files(
    others: Mapping[str, Path | None], written: Mapping[str, Path | None]
) -> None:
    """Refuse to write over another file of the run; that -o is the input is looked at later."""
    for (one, path), (other, its_path) in combinations({**others, **written}.items(), 2):
        if path is None or its_path is None or not is_same_file(path, its_path):
            continue
        if other in written or other == "-o":
            raise ConfigError(
                f"{one} and {other} are one file, {str(its_path)!r}, which {other} would replace: "
                f"give another path with {other}"
            )


@contextmanager
def _told_where_it_stops(run: _Run, output: Path | None) -> Generator[None]:
    """Say at Ctrl-C how far the run has come, and what becomes of it."""
    try:
        yield
    except KeyboardInterrupt:
        kept = "give -o FILE to keep what is done" if output is None else "the same command goes on"
        done, records = run.summary.records, run.account.records
        typer.echo(f"claimspan: stopped after {done} of {records} records; {kept}", err=True)
        raise


class _Run:
    """One run over a file; ``check`` comes first, then ``evaluate``.

    The file is read twice. The first time it is checked and counted, so that a mistake in it costs
    nothing; the second time its records are evaluated, and only those under evaluation are in
    memory.
    """

    def __init__(
        self,
        file: RecordFile,
        output: ResultFile | None,
        undefined: Undefined,
        selection: Selection,
    ) -> None:
        """Prepare a run; nothing is read yet. Without an output its results go nowhere."""
        self.file: Final = file
        self.output: Final = output
        self.selection: Final = selection
        self.account: Final = Account()
        self.summary: Final = Summary()
        self.left_to_judge = 0
        """Records that are still to be evaluated, and of which claims or labels are missing."""
        self._undefined: Final[Undefined] = undefined
        self._left_to_evaluate = 0
        self._advance: Callable[[], None] = lambda: None

    def check(self, *, strict: bool, skipped: Path | None) -> None:
        """Read the file once, count its rows, and write the unusable ones to ``skipped``."""
        n_done = 0
        what = "the skipped rows"
        with nullcontext() if skipped is None else replaced_private(skipped, what=what) as file:
            for row in self.file.rows():
                self.account.add(row)
                if isinstance(row, InputRow):
                    if self._is_done(row):
                        n_done += 1
                        continue
                    self._left_to_evaluate += 1
                    self.left_to_judge += not is_complete(row.record, self._recorded(row))
                elif isinstance(row, SkippedRow):
                    if strict:
                        raise self.file.refusal(row)
                    if file is not None:
                        told = {self.file.unit: row.place, "reason": row.reason, "text": row.text}
                        file.write(f"{json.dumps(told)}\n")
        if not self.account.records:
            raise no_records(self.file, self.account)
        self.account.check_columns(self.file.columns)
        if self.output is not None:
            self.output.check(n_done)

    def evaluate(
        self, judge: Judge | None, *, concurrency: int, progress: bool | None = None
    ) -> None:
        """Evaluate the rest; the judge is None if there is nothing to ask for."""
        if self.output is not None:
            self.output.open(self.summary.add, self._undefined)
        try:
            bar = progress_bar("evaluating", total=self._left_to_evaluate, show=progress)
            with bar as self._advance:
                asyncio.run(self._evaluate_left(judge, concurrency))
        except BaseException:
            # What has ended the run is to be said, and not that a full disk has no room for a
            # checkpoint either. Nothing is lost without one: the lines beside it have it all.
            with suppress(ConfigError):
                if self.output is not None:
                    self.output.close(is_final=False)
            raise
        if self.output is not None:
            self.output.close()

    async def _evaluate_left(self, judge: Judge | None, concurrency: int) -> None:
        # Only records under evaluation are kept, so memory does not grow with the file.
        left = (row for row in self.file.records() if not self._is_done(row))

        async def evaluate_next() -> None:
            # Few tasks take from one iterator: a big file does not become as many tasks at once.
            for row in left:
                evaluation = await evaluate_recorded(
                    row.record, self._recorded(row), judge, self._undefined, self.selection
                )
                result = ResultRow.of(row.index, row.record, evaluation)
                self.summary.add(result)
                if self.output is not None:
                    self.output.add(result)
                self._advance()

        await asyncio.gather(*(evaluate_next() for _ in range(concurrency)))

    def _is_done(self, row: InputRow) -> bool:
        return self.output is not None and self.output.has(row.index, row.record)

    def _recorded(self, row: InputRow) -> Recorded:
        return row.recorded if self.output is None else self.output.recorded(row)


@dataclass(frozen=True, slots=True)
class _Views:
    """What the run leaves to be looked at, by ``--csv``, ``--parquet`` and ``--report``."""

    table: Path | None
    parquet: Path | None
    page: Path | None

    @property
    def paths(self) -> dict[str, Path]:
        """Option to path, of those that are wanted."""
        given = {"--csv": self.table, "--parquet": self.parquet, "--report": self.page}
        return {option: path for option, path in given.items() if path is not None}

    @contextmanager
    def results(self, output: Path | None) -> Generator[Path | None]:
        """The file of results that the views are made of, also without -o."""
        if output is not None or not self.paths:
            yield output
            return
        with tempfile.TemporaryDirectory(prefix="claimspan-") as folder:  # only its owner reads it
            yield Path(folder) / "results.jsonl"

    def results_of(self, run: _Run) -> ResultFile | None:
        """The results that the views are made of; None if no view is wanted."""
        if not self.paths:
            return None
        if run.output is None or isinstance(run.output, RagResultsFile):
            given = " and ".join(self.paths)
            raise ConfigError(
                f"{given} cannot be made beside RAGChecker's results: give -o a name that ends in "
                ".jsonl, or leave it out"
            )
        return run.output

    def check(self) -> None:
        for option, path in self.paths.items():
            check_replaceable(path, what="the report" if option == "--report" else "the table")
        if self.parquet is not None:
            ParquetFormat()  # says if pyarrow is missing

    def write(self, run: _Run, progress: bool | None) -> None:
        if (found := self.results_of(run)) is None:
            return
        if self.table is not None:
            with replaced_private(self.table, what="the table") as table:
                write_table(table, found.rows(), run.summary.metrics)
        if self.parquet is not None:
            with replaced_private(self.parquet, what="the table") as parquet:
                write_parquet(ParquetFormat(), parquet.buffer, found.rows(), run.summary.metrics)
        if self.page is not None:
            entries = [entry_of_evaluation(row.record, row.evaluation) for row in found.rows()]
            page = render_report(entries, title=self.page.stem, progress=progress)
            write_private(self.page, page, what="the report")


def _as_json(run: _Run, found: Comparison | None, views: _Views) -> str:
    summary, account, unit = run.summary, run.account, run.file.unit
    means = {
        name: {"mean": summary.means[name].mean, "n": summary.means[name].n}
        for name in in_order(summary.means)
    }
    file = {
        "lines": account.lines,
        "blank": account.blank,
        "header": account.header,
        "rows": account.rows,
        "skipped": account.skipped,
        "skipped_by_reason": {
            reason: {"count": each.count, f"first_{unit}s": each.places}
            for reason, each in account.skips.items()
        },
        "missing": account.missing,
        "not_read": list(account.unread),
        "not_computed": {
            name: _not_computed(name, run.selection.names)
            for name in ("chunks", "ground_truth")
            if name in account.missing
        },
    }
    told: dict[str, object] = {
        "records": summary.records,
        "failed": summary.errors,
        "n_failed": summary.failed,
        "labels": summary.labels,
        "low": dict(summary.low.most_common()),
        "metrics": means,
        "judges": summary.judges,
        "cost_usd": summary.cost_usd,
        "file": file,
    }
    if found is not None:
        told["comparison"] = found.model_dump(mode="json")
    written = {option.removeprefix("--"): str(path) for option, path in views.paths.items()}
    return json.dumps({**told, **written})


def _summary_lines(summary: Summary, n_records: int) -> Iterator[str]:
    found = [f"{n} {label}" for label in (LOW, GOOD, UNKNOWN) if (n := summary.labels[label])]
    evaluated = f"{summary.evaluated} of {n_records} records evaluated"
    yield f"{evaluated}: {', '.join(found)}" if found else evaluated
    if summary.low:
        most = summary.low.most_common(_REASONS)
        yield f"  low above all in {', '.join(f'{name} ({n})' for name, n in most)}"
    width = max(map(len, summary.means), default=0)
    for name in in_order(summary.means):
        each = summary.means[name]
        yield f"  {name:<{width}}  {each.mean:.3f}  over {each.n}"
    for name, reasons in summary.undefined.items():
        # Why ours have no value follows from the records; of the user's own nothing else tells.
        if name not in CATALOGUE:
            why, n = reasons.most_common(1)[0]
            yield f"  no {name} in {reasons.total()} of them: {why} ({n})"
    if summary.cost_usd:  # of a judge that has a price
        yield f"  cost ${summary.cost_usd:.4f}"
    if len(summary.judges) > 1:
        told = ", ".join(f"{judge} ({n})" for judge, n in summary.judges.items())
        yield f"  judged by {told}: judges differ, so give another path with -o for means of one"
    by_count = sorted(summary.reasons.items(), key=lambda each: (-each[1], each[0]))
    for reason, n in by_count[:_REASONS]:
        yield f"failed: {reason}" + (f" ({n} records)" if n > 1 else "")


def _account_lines(run: _Run) -> Iterator[str]:
    account, unit = run.account, run.file.unit
    if account.skips:
        parts = [
            f"{account.lines} lines in the file",
            *[f"{account.blank} of them blank"] * bool(account.blank),
            *[f"{account.header} the header"] * bool(account.header),
        ]
        others = f" ({', '.join(parts)})" if account.lines else ""
        yield f"skipped {account.skipped} of {account.rows} rows{others}"
    for reason, skips in account.skips.items():
        places = ", ".join(map(str, skips.places[:_SHOWN]))
        more = skips.count - min(len(skips.places), _SHOWN)
        told = f"{unit}{'s' if skips.count > 1 else ''} {places}{f', {more} more' if more else ''}"
        yield f"  {reason}: {skips.count} ({told})"
    for name, n in account.missing.items():
        lost = ", ".join(_not_computed(name, run.selection.names))
        loss = (
            f"{lost} cannot be computed for them" if lost else "nothing that was asked for needs it"
        )
        yield f"no {name} in {n} of {account.records} records: {_LOSSES.get(name, loss)}"
    if account.unread:
        told = ", ".join(account.unread)
        yield f"columns that were not read (--map FIELD=COLUMN reads one): {told}"


def _not_computed(name: str, metrics: Iterable[str]) -> list[str]:
    """The chosen metrics that a record without chunks, or without a ground truth, does not have."""
    wanted = "chunks" if name == "chunks" else "ground_truth"
    return [
        metric for metric in metrics if any(wanted in matrix for matrix in CATALOGUE[metric].needs)
    ]
