"""What ``claimspan evaluate`` leaves to be looked at: a table in two formats, and an HTML page."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from claimspan.cli.evaluate_run import EvaluationRun
from claimspan.errors import ConfigError
from claimspan.files.private import is_same_file, replaced_private, replaced_private_bytes
from claimspan.report import render_report
from claimspan.report.evaluated import entry_of_evaluation
from claimspan.results.parquet_table import ParquetFormat
from claimspan.results.result_file import ResultFile
from claimspan.results.result_table import write_table

__all__ = ["Views"]

_Write = Callable[[ResultFile, EvaluationRun, bool | None], object]
"""Writes one view of the results of a run; shows its progress as in ``evaluate_many``."""


@dataclass(frozen=True, slots=True)
class Views:
    """The files of ``--csv``, ``--parquet`` and ``--report``; None where one is not wanted."""

    table: Path | None
    parquet: Path | None
    page: Path | None

    @property
    def paths(self) -> dict[str, Path]:
        """Option to path, of those that are wanted."""
        given = {"--csv": self.table, "--parquet": self.parquet, "--report": self.page}
        return {option: path for option, path in given.items() if path is not None}

    def refuse(self, others: Sequence[Path | None]) -> None:
        """Refuse to write over a file that the run reads or writes.

        Raises:
            ConfigError: One of them is one of the others, or two of them are one file.
        """
        for option, path in self.paths.items():
            if any(is_same_file(path, each) for each in others if each is not None):
                raise ConfigError(
                    f"{str(path)!r} is another file of this run, which {option} would replace: "
                    f"give another path with {option}"
                )
        for (option, path), (other, its_path) in combinations(self.paths.items(), 2):
            if is_same_file(path, its_path):
                raise ConfigError(f"{option} and {other} are one file: give each a path of its own")

    @contextmanager
    def results(self, output: Path | None) -> Generator[Path | None]:
        """Find where the run is to write its results, of which the views are made.

        Args:
            output: The file of ``-o``.

        Yields:
            The same, or a file that is removed afterwards where there is none.
        """
        if output is not None or not self.paths:
            yield output
            return
        with tempfile.TemporaryDirectory(prefix="claimspan-") as folder:  # only its owner reads it
            yield Path(folder) / "results.jsonl"

    @contextmanager
    def opened(self) -> Generator[Callable[[EvaluationRun, bool | None], None]]:
        """Open the files before anything is paid for, and put them into place at the end.

        Yields:
            Writes the views of a run that has ended, and shows its progress as in
            ``evaluate_many``.

        Raises:
            ConfigError: A file cannot be written. What was there before is unchanged.
            MissingExtraError: ``--parquet`` is given, and pyarrow is not installed.
        """
        with ExitStack() as stack:
            writes = list(self._opened(stack))

            def write(run: EvaluationRun, progress: bool | None) -> None:
                results = self.results_of(run)
                if results is not None:
                    for each in writes:
                        each(results, run, progress)

            yield write

    def results_of(self, run: EvaluationRun) -> ResultFile | None:
        """Return the results that the views are made of; None where no view is wanted.

        Raises:
            ConfigError: The run writes RAGChecker's results, which lack the verdicts.
        """
        if not self.paths:
            return None
        if run.output.rag is not None or run.output.lines is None:
            given = " and ".join(self.paths)
            raise ConfigError(
                f"{given} cannot be made beside RAGChecker's results: give -o a name that ends in "
                ".jsonl, or leave it out"
            )
        return run.output.lines

    def _opened(self, stack: ExitStack) -> Iterator[_Write]:
        """Open the files, and yield what writes each."""
        if self.table is not None:
            table = stack.enter_context(replaced_private(self.table, what="the table"))
            yield lambda results, run, _: write_table(table, results.rows(), run.summary.metrics)
        if self.parquet is not None:
            # First, so that nobody waits for a judge where pyarrow is missing.
            columnar = ParquetFormat()
            file = stack.enter_context(replaced_private_bytes(self.parquet, what="the table"))
            yield lambda results, run, _: columnar.write(file, results.rows(), run.summary.metrics)
        if self.page is not None:
            page, title = replaced_private(self.page, what="the report"), self.page.stem
            html = stack.enter_context(page)
            yield lambda results, _, progress: html.write(_page(results, title, progress))


def _page(results: ResultFile, title: str, progress: bool | None) -> str:
    entries = [entry_of_evaluation(row.record, row.evaluation) for row in results.rows()]
    return render_report(entries, title=title, progress=progress)
