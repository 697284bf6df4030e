"""Traces in files of OTLP JSON lines, as the OpenTelemetry Collector's file exporter writes them.

The spans of a trace may stand anywhere in them. They are put in order on disk, so that memory holds
a page at a time, however large the files are.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from claimspan.errors import ConfigError, MissingExtraError, PayloadError
from claimspan.files.jsonl import bounded_lines
from claimspan_backfill._sources import PAGE, Page, Window, by_trace, items

try:
    from claimspan_tracing.otlp.decoding import request_of_json
except ImportError:
    raise MissingExtraError("opentelemetry-proto", "backfill") from None

_SUFFIXES: Final = (".json", ".jsonl", ".ndjson", ".gz")
"""What the names of files in a folder end with; others are left alone."""

_GZIP: Final = b"\x1f\x8b"
"""What every file by gzip begins with."""

_DIGITS: Final = 19
"""Of nanoseconds: one more, and SQLite has no number for them."""

_LAST: Final = 2**63 - 1
"""Nanoseconds of the latest time that SQLite has a number for."""

_SCHEMA: Final = "CREATE TABLE parts (trace TEXT, start INTEGER, text TEXT)"
_ORDER: Final = "CREATE INDEX by_trace ON parts (trace, start)"
_TRACES: Final = """
    SELECT trace FROM parts GROUP BY trace
    HAVING min(start) >= ? AND min(start) < ? ORDER BY min(start), trace
"""


class FileSource:
    """A file, or the files of a folder and of those in it."""

    def __init__(self, path: Path) -> None:
        """Find the files.

        Raises:
            ConfigError: There is none.
        """
        self.identity = "files"  # a copy of a file holds the same records
        self._files = [path]
        if path.is_dir():
            found = sorted(each for each in path.rglob("*") if each.name.endswith(_SUFFIXES))
            self._files = [each for each in found if each.is_file()]
        if not self._files or not self._files[0].is_file():
            raise ConfigError(
                f"there is no file of traces at {path}: give a file of OTLP JSON lines or a folder "
                f"of such ({', '.join(_SUFFIXES)}), or phoenix, mlflow, langfuse, tempo or jaeger"
            )
        self.skipped = 0
        """Lines that are no OTLP JSON, and what is left of files that gzip cannot read on."""

    def pages(self, window: Window) -> Iterator[Page]:
        """Yield the traces of all files, oldest first."""
        # Without a name: SQLite's own file on disk, which the system deletes with the process, also
        # if that is killed.
        with closing(sqlite3.connect("", isolation_level=None)) as database:
            database.execute("PRAGMA journal_mode = OFF")
            database.execute("PRAGMA synchronous = OFF")
            database.execute(_SCHEMA)
            database.execute("BEGIN")
            for file in self._files:
                database.executemany("INSERT INTO parts VALUES (?, ?, ?)", self._parts(file))
            database.execute(_ORDER)
            database.execute("COMMIT")
            bounds = [
                latest if moment is None else min(max(int(moment.timestamp() * 1e9), 0), _LAST)
                for moment, latest in ((window.since, 0), (window.until, _LAST))
            ]
            traces = database.cursor().execute(_TRACES, bounds)
            while ids := traces.fetchmany(PAGE):
                marks = ", ".join("?" * len(ids))
                rows = database.execute(
                    f"SELECT text FROM parts WHERE trace IN ({marks})",  # noqa: S608 - question marks alone
                    [id_ for (id_,) in ids],
                )
                yield [json.loads(text) for (text,) in rows]

    def _parts(self, file: Path) -> Iterator[tuple[str, int, str]]:
        """What each line has of each trace, with the time at which that begins."""
        try:
            with file.open("rb") as plain:
                is_packed = plain.peek(2)[:2] == _GZIP
                opened = gzip.GzipFile(fileobj=plain) if is_packed else plain
                for _, line in bounded_lines(opened):  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - gzip reads bytes
                    try:
                        request = request_of_json(line or b"")
                    except PayloadError:
                        self.skipped += 1
                        continue
                    for group in items(request, "resourceSpans"):
                        for trace, told in by_trace(group).items():
                            yield trace, _start(told), json.dumps(told)
        except (gzip.BadGzipFile, EOFError, zlib.error):
            self.skipped += 1  # it is still being written, or was cut
        except OSError as error:
            raise ConfigError(
                f"cannot read {file} ({error.strerror}): give a file of OTLP JSON lines, or one by "
                "gzip"
            ) from None


def _start(group: Mapping[str, object]) -> int:
    """When the first span of a group began, in nanoseconds."""
    spans = [span for scope in items(group, "scopeSpans") for span in items(scope, "spans")]
    starts = (str(span.get("startTimeUnixNano")) for span in spans)
    known = (int(each) for each in starts if each.isdecimal() and len(each) <= _DIGITS)
    return min(known, default=0) % 2**63
