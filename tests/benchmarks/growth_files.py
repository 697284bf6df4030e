"""How the cost of files, reports and statistics grows with the number of records."""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from growth_curves import Curve, cpu, measure

from claimspan.comparison.compare import compare_files
from claimspan.comparison.systems import read_system
from claimspan.files.record_files import read_records
from claimspan.report import ReportSystem, outline, render_markdown, render_report
from claimspan.results import ResultRow
from claimspan.results.result_file import ResultFile
from claimspan.statistics import mean_estimates
from claimspan_tracing.commands.stats import SampledRecord, group_stats

from many_entries import many_entries, many_rows

__all__ = ["file_curves"]

Prepare = Callable[[Path, int], Callable[[], object]]


def file_curves(most: int, rounds: int) -> Iterator[Curve]:
    """Yield the curves of everything that reads or writes many records.

    Args:
        most: Records of the largest file.
        rounds: Measurements of each point.
    """
    sizes = [n for n in (10, 30, 100, 300, 1000, 3000) if n < most] + [most]
    kinds: tuple[tuple[str, Prepare], ...] = (
        ("read records, JSON lines", _json_lines),
        ("read records, CSV", _csv),
        ("write results", _written),
        ("go on with results", _gone_on),
        ("read scores", _scores),
        ("compare two systems", _compared),
        ("report as a page", _page),
        ("report as Markdown", _markdown),
        ("intervals of means", _intervals),
        ("stats of a sample", _stats),
    )
    for name, prepare in kinds:
        with tempfile.TemporaryDirectory() as folder:
            curve = Curve(name, "records", "records", "ms")
            yield measure(curve, sizes, partial(_prepared, prepare, Path(folder)), rounds)


def _prepared(prepare: Prepare, folder: Path, n: int) -> Callable[[], float]:
    return partial(cpu, prepare(folder, n))


def _json_lines(folder: Path, n: int) -> Callable[[], object]:
    path = folder / f"{n}.jsonl"
    path.write_text("".join(f"{row.record.model_dump_json()}\n" for row in many_rows(n)), "utf-8")
    return partial(read_records, path)


def _csv(folder: Path, n: int) -> Callable[[], object]:
    path = folder / f"{n}.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["query", "response", "chunks"])
        for row in many_rows(n):
            # A cell of several lines, as spreadsheets write them.
            texts = json.dumps([chunk.text for chunk in row.record.chunks], indent=1)
            rows.writerow([row.record.query, row.record.response, texts])
    return partial(read_records, path)


def _written(folder: Path, n: int) -> Callable[[], object]:
    rows, path = list(many_rows(n)), folder / f"{n}.results.jsonl"

    def write() -> None:
        path.unlink(missing_ok=True)
        _write(path, rows)

    return write


def _write(path: Path, rows: list[ResultRow]) -> Path:
    results = ResultFile(path).open()
    for row in rows:
        results.add(row)
    results.close()
    return path


def _gone_on(folder: Path, n: int) -> Callable[[], object]:
    path = _write(folder / f"{n}.results.jsonl", list(many_rows(n)))

    def go_on() -> None:
        ResultFile(path).open().close()

    return go_on


def _scores(folder: Path, n: int) -> Callable[[], object]:
    return partial(read_system, _write(folder / f"{n}.results.jsonl", list(many_rows(n))))


def _compared(folder: Path, n: int) -> Callable[[], object]:
    left = _write(folder / f"{n}.left.jsonl", list(many_rows(n)))
    right = _write(folder / f"{n}.right.jsonl", list(many_rows(n, skill=2)))
    return partial(compare_files, [left, right])


def _page(folder: Path, n: int) -> Callable[[], object]:
    return partial(render_report, many_entries(n), progress=False)


def _markdown(folder: Path, n: int) -> Callable[[], object]:
    system = ReportSystem("", tuple(many_entries(n)))
    return lambda: render_markdown(outline([system], None, title="growth"))


def _intervals(folder: Path, n: int) -> Callable[[], object]:
    entries = many_entries(n)
    names = sorted(entries[0].scores)
    columns = [[entry.scores.get(name) for entry in entries] for name in names]
    return partial(mean_estimates, columns)


def _stats(folder: Path, n: int) -> Callable[[], object]:
    scores = [entry.scores for entry in many_entries(n)]
    sample = [
        SampledRecord(
            trace_id=f"{i:032x}",
            status="evaluated" if i % 7 else "timeout",
            reason="rate",
            rate=0.1,
            weight=10.0,
            scores=each if i % 7 else {},
        )
        for i, each in enumerate(scores)
    ]
    return partial(group_stats, sample, reweight=True)
