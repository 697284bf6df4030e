"""The files of a run: the dataset with its questions, and the results that a run goes on with.

With scores a line of results is a ``ResultRow``, as ``claimspan evaluate -o`` writes it. Without,
it is the record alone, which ``claimspan evaluate`` reads.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TextIO

from pydantic import JsonValue, TypeAdapter, ValidationError

from claimspan.errors import ConfigError, FileError
from claimspan.evaluation.result import Evaluation
from claimspan.files.ground_truth import ID_KEYS, QUERY_KEYS, TEXT_KEYS, first_of, read_rows
from claimspan.files.private import cannot_write, open_private, refuse_special
from claimspan.records import RagRecord
from claimspan.results.rows import ResultRow
from claimspan_tracing.trace_file.writing import lock_file

__all__ = ["DatasetItem", "RunFile", "read_dataset", "unscored"]

_METADATA: Final = TypeAdapter(dict[str, JsonValue])


@dataclass(frozen=True, slots=True)
class DatasetItem:
    """One question of a dataset."""

    query: str
    """The question to the pipeline."""

    ground_truth: str | None = None
    """The response known to be right; None if there is none."""

    id: str | None = None
    """The dataset's own id; None if it gives none."""

    metadata: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """What the dataset keeps with the question, for slices."""


def read_dataset(path: str | Path) -> list[DatasetItem]:
    """Read the questions of a dataset.

    Args:
        path: JSON lines, or CSV if the name ends so, with ``query`` and, if they are known,
            ``ground_truth`` (or ``answer``), ``id`` and ``metadata`` (an object), by any of the
            names of ``claimspan.files.names``.

    Raises:
        FileError: The file cannot be read, holds no question, or an id twice; names the line.
    """
    path = Path(path)
    items: list[DatasetItem] = []
    for number, row in read_rows(path):
        place = f"{str(path)!r} line {number}"
        query, truth, id_ = (
            first_of(row, keys, place) for keys in (QUERY_KEYS, TEXT_KEYS, ID_KEYS)
        )
        if query is None or not query.strip():
            raise FileError(f"{place} has no question: give one of {', '.join(QUERY_KEYS)}")
        try:
            metadata = _METADATA.validate_python(row.get("metadata") or {})
        except ValidationError:
            raise FileError(f"{place}: metadata is no object: write one, or leave it out") from None
        items.append(DatasetItem(query, truth, id_, metadata))
    if not items:
        raise FileError(f"{str(path)!r} holds no questions: write one JSON object a line")
    # Two questions of one id could not be told apart in a file of results.
    counts = Counter(item.id for item in items if item.id is not None)
    for id_, count in counts.items():
        if count > 1:
            raise FileError(
                f"{str(path)!r} has the id {id_!r} more than once: give each question its own"
            )
    return items


_BEGINNINGS: Final = {True: b'{"index":', False: b'{"query":'}
"""How a line of results begins, with scores and without: a torn line is known by it."""


class RunFile:
    """A file of results that grows by one line with every question that is done."""

    def __init__(self, path: Path, items: Sequence[DatasetItem], *, scored: bool) -> None:
        """Open the file, which is made if it is not there, and find the finished questions.

        Raises:
            ConfigError: The file cannot be written, holds something else, or another run writes it.
        """
        self._scored = scored
        with ExitStack() as opened:
            try:
                # Before it is read: a FIFO would never end, and a device must not be replaced.
                refuse_special(path)
                # The file that is replaced too: another run may have opened it a moment before.
                if sys.platform != "win32":  # an open file could not be replaced there
                    before = open_private(path, os.O_RDWR | os.O_CREAT)
                    opened.callback(os.close, before)
                    lock_file(before, time.monotonic())
                self.done = dict(_done(path, items, scored=scored)) if path.exists() else {}
                # Without torn lines and failures, and in one step: a process that ends right here
                # leaves the old file or the new one.
                beside = path.with_name(f"{path.name}.part")
                beside.unlink(missing_ok=True)  # of a run that has ended without a word
                anew = open_private(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
                with open(anew, "w", encoding="utf-8") as file:
                    file.writelines(map(self._line, self.done.values()))
                os.replace(beside, path)
                handle = open_private(path, os.O_WRONLY | os.O_APPEND)
                self._file: TextIO = opened.enter_context(open(handle, "a", encoding="utf-8"))
                lock_file(handle, time.monotonic())
            except TimeoutError:
                raise ConfigError(
                    f"another run writes {path}: wait for its end, or give another path with -o"
                ) from None
            except OSError as error:
                raise cannot_write(path, error, what="the results") from None
            self._opened = opened.pop_all()

    def add(self, row: ResultRow) -> None:
        """Append a line, and hand it to the operating system at once.

        Without scores a question that failed has no line.

        Raises:
            FileError: The line cannot be written.
        """
        if row.error is not None and not self._scored:
            return
        try:
            self._file.write(self._line(row))
            self._file.flush()
        except OSError as error:
            raise FileError(
                f"cannot write the results ({error.strerror}): make room and run the same command "
                "again; it goes on where it was"
            ) from None

    def close(self) -> None:
        """Close the file."""
        # It would write the torn line once more; ``add`` has said what is wrong.
        with suppress(OSError):
            self._opened.close()

    def _line(self, row: ResultRow) -> str:
        return f"{(row if self._scored else row.record).model_dump_json()}\n"


def _done(
    path: Path, items: Sequence[DatasetItem], *, scored: bool
) -> Iterator[tuple[int, ResultRow]]:
    """The questions that are done: place in the dataset, and line.

    Raises:
        ConfigError: The file holds results of other questions, or something else.
    """
    # A list of places: without ids the same question may stand in a dataset twice.
    places: defaultdict[object, list[int]] = defaultdict(list)
    for index, item in enumerate(items):
        places[item.id, item.query, item.ground_truth].append(index)
    # Bytes: a process that was killed may have ended within a character.
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            if scored:
                row = ResultRow.model_validate_json(line)
            else:
                row = unscored(0, RagRecord.model_validate_json(line))
        except ValidationError as error:
            # A last line has no end if the process ended while it was written. A file of another
            # kind may be a single line without an end, and is not to be written over.
            begin = _BEGINNINGS[scored]
            is_ours = line.startswith(begin) or begin.startswith(line)
            is_cut = error.errors(include_input=False)[0]["type"] == "json_invalid"
            if number == len(lines) and is_ours and is_cut:
                continue
            raise ConfigError(
                f"{path} line {number} is no result of this kind: give another path with -o"
            ) from None
        if row.error is not None:
            continue
        record = row.record
        found = places[record.id, record.query, record.ground_truth]
        if not found:
            raise ConfigError(
                f"{path} line {number} is the result of another question: the dataset has changed; "
                "give another path with -o"
            )
        index = found.pop(0)
        yield index, row.model_copy(update={"index": index})


def unscored(index: int, record: RagRecord) -> ResultRow:
    """Return the row of a record that was not evaluated."""
    return ResultRow.of(index, record, Evaluation())
