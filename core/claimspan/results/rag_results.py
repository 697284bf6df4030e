"""RAGChecker's results as a file to write: what ``ragchecker-cli`` reads, and goes on with.

The file is one JSON value, so it is replaced as a whole: as a checkpoint every half minute, and at
the end. What was evaluated since the last time stands in a file of results beside it, which is
removed when the JSON is complete. A process that is killed loses nothing.
"""

from __future__ import annotations

import hashlib
import json
import time
from itertools import chain
from pathlib import Path
from typing import Final, TextIO

from claimspan.errors import ConfigError, FileError
from claimspan.files.documents import Document
from claimspan.files.private import replaced_private
from claimspan.files.raw_rows import SkippedRow
from claimspan.files.record_files import RecordFile
from claimspan.files.record_rows import InputRow
from claimspan.files.recorded import Recorded
from claimspan.records import RagRecord
from claimspan.results.rag_result import GROUPS, RagResult, without_a_place
from claimspan.results.result_file import ResultFile
from claimspan.results.summary import Mean

__all__ = ["GROUPS", "RagResultsFile", "per_cent"]

CHECKPOINT_SECONDS: Final = 30.0
"""Time between two checkpoints."""

SHARE: Final = 20
"""Writing may take one part in this many of the time: a file of 1 GB takes a while."""

_NAMED: Final = 5
"""Fields that a message names."""


class RagResultsFile:
    """A file of RAGChecker's results that is written while records are evaluated."""

    def __init__(self, path: Path, records: RecordFile) -> None:
        """Find out what is done; no file is changed yet.

        Args:
            path: The file; it need not be there. What it holds is gone on with.
            records: The input.

        Raises:
            ConfigError: The file holds something else than RAGChecker's results.
        """
        self.path = path
        self.journal: Final = ResultFile(path.with_name(f"{path.name}.journal.jsonl"))
        self._records = records
        self._prior = _prior(path)
        self._due = time.monotonic() + CHECKPOINT_SECONDS

    def recorded(self, row: InputRow) -> Recorded:
        """Return what input and output hold of a record's evaluation; the output counts first."""
        prior = self._prior.get(_identity(row.record)) if self._prior else None
        return row.recorded if prior is None else prior.over(row.recorded)

    def check(self) -> None:
        """Make sure that the file holds results of the input alone.

        Raises:
            ConfigError: It holds a record that the input does not have.
        """
        if not self._prior:
            return
        found = {_identity(row.record) for row in self._records.records()}
        # Before anything is written: a record that the input lacks would be gone afterwards.
        if not self._prior.keys() <= found:
            raise self.journal.of_another_input()

    def checkpoint(self) -> None:
        """Write the file if the last time is long enough ago.

        Raises:
            ConfigError: The file cannot be written.
        """
        if time.monotonic() < self._due:
            return
        started = time.monotonic()
        self._write(is_final=False)
        now = time.monotonic()
        # A file of 1,000 MB takes seconds to write, so the pause grows with it.
        self._due = now + max(CHECKPOINT_SECONDS, SHARE * (now - started))

    def finish(self, *, is_final: bool) -> None:
        """Write the file for the last time.

        Args:
            is_final: Whether every record had its turn. Then the means are written, and the
                journal is removed.

        Raises:
            ConfigError: The file cannot be written.
        """
        self.journal.close()
        # The journal is removed only after this: until the new file is in its place, it is the only
        # copy.
        self._write(is_final=is_final)
        if is_final:
            self.journal.path.unlink(missing_ok=True)

    def _write(self, *, is_final: bool) -> None:
        means: dict[str, Mean] = {}
        with replaced_private(self.path, what="the results") as file:
            file.write('{"results": [\n')
            self._write_results(file, means)
            groups = {
                group: {name: per_cent(means[name]) for name in names if name in means}
                for group, names in GROUPS.items()
            }
            if not is_final:
                # ragchecker writes no means into its checkpoints either.
                groups = {group: dict[str, float]() for group in GROUPS}
            file.write(f'\n], "metrics": {json.dumps(groups)}}}\n')

    def _write_results(self, file: TextIO, means: dict[str, Mean]) -> None:
        separator = ""
        # In the order of the input, which the journal does not have: records end in any order.
        for row in self._records.records():
            found = self.journal.row(row.index)
            evaluation = None if found is None else found.evaluation
            result = RagResult.of(row.record, self.recorded(row), evaluation)
            for name, value in result.metrics.items():
                means.setdefault(name, Mean()).add(value)
            file.write(separator + result.model_dump_json())
            separator = ",\n"


def per_cent(mean: Mean) -> float:
    """Return a mean in per cent with one decimal, rounded as numpy does.

    numpy multiplies by 10 and rounds that; Python's ``round(x, 1)`` differs at ties.
    """
    return round(mean.mean * 100 * 10) / 10


def _prior(path: Path) -> dict[str, Recorded]:
    if not path.exists():
        return {}
    try:
        file = RecordFile(path)
    except FileError:
        raise _no_results(path) from None
    if file.document is not None:
        _refuse_loss(path, file.document)
    prior: dict[str, Recorded] = {}
    for row in file.rows():
        if isinstance(row, SkippedRow) or file.document is None:
            raise _no_results(path)
        if isinstance(row, InputRow):
            prior[_identity(row.record)] = row.recorded
    return prior


def _refuse_loss(path: Path, document: Document) -> None:
    """Refuse to replace a file that holds more than this format has a place for.

    Raises:
        ConfigError: A record has other fields, or the file has.
    """
    lost = {*document.others, *chain.from_iterable(map(without_a_place, document.rows))}
    if lost:
        names = ", ".join(sorted(lost)[:_NAMED])
        raise ConfigError(
            f"{path} has fields that RAGChecker's results have no place for ({names}), and would "
            "lose them: give another path with -o"
        )


def _no_results(path: Path) -> ConfigError:
    return ConfigError(
        f"{path} holds something else than RAGChecker's results: give another path with -o, or "
        "--format jsonl to go on with JSON lines"
    )


def _identity(record: RagRecord) -> str:
    """What this format keeps of a record: it has no scores and no metadata."""
    texts = [record.id, record.query, record.response, record.ground_truth or ""]
    chunks = [chunk.text for chunk in record.chunks]
    return hashlib.sha256(json.dumps([texts, chunks]).encode()).hexdigest()[:32]
