"""The command ``claimspan evaluate``: evaluates a file of records, here or on Celery workers."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Final, Protocol, cast

import typer

from claimspan.errors import ConfigError, MissingExtraError
from claimspan.evaluation.evaluate import CONCURRENCY, aevaluate_many
from claimspan.evaluation.result import Evaluation
from claimspan.files.record_files import read_records
from claimspan.judges import default_judge
from claimspan.progress import progress_bar
from claimspan.records import RagRecord
from claimspan.results.result_file import ResultFile
from claimspan.results.rows import ResultRow
from claimspan.text.visible import visible

__all__ = ["Done", "Workers", "evaluate_command"]

WORKERS: Final = "claimspan.celery"
"""Entry-point group of what evaluates records on workers: core imports no Celery."""

SOME_FAILED: Final = 1
"""Exit code where some records have no evaluation; their lines say why."""

Done = Callable[[int, Evaluation], None]
"""Takes the place of a record and its evaluation, in the order in which they come."""


class Workers(Protocol):
    """Has records evaluated on workers elsewhere; the entry point ``evaluate``."""

    def __call__(
        self,
        records: Mapping[int, RagRecord],
        done: Done,
        *,
        broker: str | None,
        queue: str,
        patience_seconds: float,
    ) -> None:
        """Evaluate records by their place, and call ``done`` with each.

        Raises:
            ClaimspanError: The broker cannot be reached, or no worker answers.
        """
        ...


def evaluate_command(
    file: Annotated[Path, typer.Argument(help="Records: JSON lines, or RAGChecker's JSON.")],
    judge: Annotated[
        str | None,
        typer.Option(help="lexical, local, or openai:MODEL; CLAIMSPAN_JUDGE where not given."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File of results, one JSON line a record. A run goes on with it."
        ),
    ] = None,
    concurrency: Annotated[
        int, typer.Option(help="Records under evaluation at once.", min=1)
    ] = CONCURRENCY,
    celery: Annotated[
        bool, typer.Option("--celery", help="Evaluate on the workers of `claimspan worker`.")
    ] = False,
    broker: Annotated[
        str | None,
        typer.Option(
            envvar="CLAIMSPAN_BROKER_URL", help="With --celery: URL of the broker, a Redis."
        ),
    ] = None,
    queue: Annotated[str, typer.Option(help="With --celery: the queue.")] = "claimspan",
    patience: Annotated[
        float, typer.Option(help="With --celery: seconds without any result to wait.", min=1)
    ] = 600.0,
    progress: Annotated[
        bool | None,
        typer.Option(
            "--progress/--no-progress", help="Show a progress bar; by default only on a terminal."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Evaluate a file of records, here or on Celery workers.

    Exits with 1 where some records could not be evaluated.
    """
    if celery and judge is not None:
        raise ConfigError("--judge and --celery do not go together: the workers have their judge")
    records = read_records(file)
    if not records:
        raise ConfigError(f"{str(file)!r} contains no records")

    def run(left: Mapping[int, RagRecord], done: Done) -> None:
        if celery:
            _workers()(left, done, broker=broker, queue=queue, patience_seconds=patience)
        else:
            asyncio.run(_evaluate_here(left, done, judge, concurrency))

    rows = _evaluate_all(records, output, run, progress)
    typer.echo(_as_json(rows) if as_json else visible(_as_table(rows, len(records))))
    if len([row for row in rows if row.error is None]) < len(records):
        raise typer.Exit(SOME_FAILED)


def _evaluate_all(
    records: Sequence[RagRecord],
    output: Path | None,
    run: Callable[[Mapping[int, RagRecord], Done], None],
    progress: bool | None,
) -> list[ResultRow]:
    """Evaluate what is not in the file of results yet; returns all rows, in order."""
    results = None if output is None else ResultFile(output, records)
    rows = {} if results is None else dict(results.done)
    left = {index: record for index, record in enumerate(records) if index not in rows}
    with progress_bar("evaluating", total=len(left), show=progress) as advance:

        def done(index: int, evaluation: Evaluation) -> None:
            rows[index] = row = ResultRow.of(index, records[index], evaluation)
            if results is not None:
                results.add(row)
            advance()

        try:
            if left:
                run(left, done)
        finally:
            if results is not None:
                results.close()
    return [rows[index] for index in sorted(rows)]


async def _evaluate_here(
    records: Mapping[int, RagRecord], done: Done, judge_name: str | None, concurrency: int
) -> None:
    judge = default_judge(judge_name)
    waiting = iter(records.items())

    async def evaluate_next() -> None:
        # Few tasks take from one iterator: a big file does not become as many tasks at once.
        for index, record in waiting:
            (evaluation,) = await aevaluate_many([record], judge=judge, progress=False)
            done(index, evaluation)

    await asyncio.gather(*(evaluate_next() for _ in range(concurrency)))


def _workers() -> Workers:
    found = entry_points(group=WORKERS, name="evaluate")
    if not found:
        raise MissingExtraError("celery", "celery")
    return cast("Workers", next(iter(found)).load())


def _summary(rows: Sequence[ResultRow]) -> dict[str, dict[str, float]]:
    """Metric to its mean, over the records where it is defined, and their number."""
    values: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        for name, value in row.metrics.items():
            values[name].append(value)
    return {name: {"mean": sum(each) / len(each), "n": len(each)} for name, each in values.items()}


def _as_json(rows: Sequence[ResultRow]) -> str:
    failed = {row.index: row.error for row in rows if row.error is not None}
    return json.dumps(
        {"records": len(rows), "failed": failed, "metrics": _summary(rows), "cost_usd": _cost(rows)}
    )


def _as_table(rows: Sequence[ResultRow], n: int) -> str:
    failed = [row for row in rows if row.error is not None]
    lines = [f"{len(rows) - len(failed)} of {n} records evaluated"]
    summary = _summary(rows)
    width = max(map(len, summary), default=0)
    for name, each in summary.items():
        lines.append(f"  {name:<{width}}  {each['mean']:.3f}  over {each['n']:.0f}")
    lines.append(f"  cost ${_cost(rows):.4f}")
    reasons = {row.error for row in failed}
    lines += [f"failed: {reason}" for reason in sorted(filter(None, reasons))[:5]]
    return "\n".join(lines)


def _cost(rows: Sequence[ResultRow]) -> float:
    """US dollars that the judge has reported."""
    return sum(row.evaluation.usage.cost_usd for row in rows)
