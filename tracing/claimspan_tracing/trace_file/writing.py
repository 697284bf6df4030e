"""Writes spans to a local file of OTLP JSON lines, for use without a tracing backend.

The SDK alone exports to the console and to memory only. The format is that of the OpenTelemetry
Collector's file exporter, so ``claimspan report`` reads the files of both.
"""

from __future__ import annotations

import errno
import json
import math
import os
import sys
import threading
import time
import weakref
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext

from claimspan.files.private import create_private, open_private
from claimspan.text.shapes import is_list, is_mapping

if sys.platform != "win32":
    import fcntl

__all__ = ["LineFile", "OtlpFileExporter", "lock_file"]

MAX_FILE_BYTES: Final = 256 * 1024 * 1024
"""A larger file is renamed to ``NAME.1``, which replaces the one before it."""

SPANS_A_LINE: Final = 16
"""Encoding one line keeps the interpreter to itself: 16 spans of ours take about a millisecond."""

MAX_LINE_BYTES: Final = 4 * 1024 * 1024
"""Size above which each span gets a line of its own; many receivers take no more at once."""

Json = dict[str, object]


class OtlpFileExporter(SpanExporter):
    """Appends spans as lines of OTLP JSON (opentelemetry-proto, JSON encoding), 16 spans a line.

    Only its owner can read the file, since it holds questions and answers. Threads, processes and
    forked children may write the same file. A batch is written as a whole or not at all, so that a
    full disk or a killed process damages no line of another batch.
    """

    def __init__(self, path: str | Path, max_bytes: int = MAX_FILE_BYTES) -> None:
        """Check that the file can be written, and create it if it does not exist.

        It is appended to, and renamed to ``NAME.1`` if a batch would make it larger than
        ``max_bytes``.

        Raises:
            ConfigError: The file cannot be written, is a symbolic link, or is no regular file.
        """
        self._file = LineFile(path, max_bytes, what="traces")

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Append the spans; a failure is reported to the processor, not raised."""
        groups = (spans[at : at + SPANS_A_LINE] for at in range(0, len(spans), SPANS_A_LINE))
        try:
            self._file.append(b"".join(line for group in groups for line in _lines(group)))
        except OSError:
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Return True: every line is written when ``export`` returns."""
        return True


def _lines(spans: Sequence[ReadableSpan]) -> Iterator[bytes]:
    """Yield one line, or several if it would be longer than readers take."""
    text = json.dumps(_request(spans), ensure_ascii=False, separators=(",", ":")) + "\n"
    line = text.encode("utf-8", "replace")  # a lone surrogate must not lose the whole batch
    if len(line) <= MAX_LINE_BYTES or len(spans) == 1:
        yield line
    else:
        for span in spans:
            yield from _lines([span])


def _request(spans: Sequence[ReadableSpan]) -> Json:
    """One ``ExportTraceServiceRequest`` in OTLP's JSON encoding.

    It differs from protobuf's own JSON encoding in that ids are in hex, not in base64; int64 is a
    string in both.
    """
    groups: dict[tuple[int, InstrumentationScope | None], tuple[Resource, list[Json]]] = {}
    for span in spans:
        key = (id(span.resource), span.instrumentation_scope)
        groups.setdefault(key, (span.resource, []))[1].append(_span(span))
    return {
        "resourceSpans": [
            {
                "resource": _attributes(resource.attributes),
                "scopeSpans": [
                    {
                        "scope": {"name": scope.name, "version": scope.version or ""}
                        if scope
                        else {},
                        "spans": encoded,
                    }
                ],
            }
            for (_, scope), (resource, encoded) in groups.items()
        ]
    }


def _span(span: ReadableSpan) -> Json:
    return {
        **_ids(span.get_span_context()),
        **({"parentSpanId": f"{span.parent.span_id:016x}"} if span.parent else {}),
        "name": span.name,
        "kind": span.kind.value + 1,  # OTLP counts from 1, 0 being "unspecified"
        "startTimeUnixNano": str(span.start_time or 0),
        "endTimeUnixNano": str(span.end_time or 0),
        **_attributes(span.attributes),
        "droppedAttributesCount": span.dropped_attributes,
        "events": [
            {"name": each.name, "timeUnixNano": str(each.timestamp), **_attributes(each.attributes)}
            for each in span.events
        ],
        "links": [{**_ids(link.context), **_attributes(link.attributes)} for link in span.links],
        "status": {"code": span.status.status_code.value, "message": span.status.description or ""},
    }


def _ids(context: SpanContext | None) -> Json:
    if context is None:
        return {}
    return {"traceId": f"{context.trace_id:032x}", "spanId": f"{context.span_id:016x}"}


def _attributes(attributes: Mapping[str, object] | None) -> Json:
    return {"attributes": _pairs(attributes or {})}


def _pairs(values: Mapping[str, object]) -> list[Json]:
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: object) -> Json:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        # JSON has no NaN and no infinity: protobuf writes "NaN", "Infinity" and "-Infinity".
        return {"doubleValue": value if math.isfinite(value) else json.dumps(value)}
    if is_mapping(value):
        return {"kvlistValue": {"values": _pairs({str(k): v for k, v in value.items()})}}
    if is_list(value):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": str(value)}


# --- a file of lines that several threads and processes append to ---------------------------------

LOCK_SECONDS: Final = 2.0
"""How long a write waits for another process; one write takes milliseconds."""

_RETRY_SECONDS: Final = 0.002

_files: Final[weakref.WeakSet[LineFile]] = weakref.WeakSet()


class LineFile:
    """Appends whole lines to a file that its owner alone can read, and rotates it.

    Safe to use from several threads, and from several processes if the system has ``flock``. What
    one call appends is there as a whole or not at all, whatever fails in between: a full disk, a
    process that is killed, a fork, another process that rotates. The file is opened for each write:
    it may be moved or deleted by others at any time.
    """

    def __init__(self, path: str | Path, max_bytes: int, *, what: str) -> None:
        """Create the file, or check that it can be written; others can no longer read it.

        If a write would make it larger than ``max_bytes`` it is renamed to ``NAME.1``, which
        replaces the one before it.

        Raises:
            ConfigError: The file cannot be written, is a link, or is no regular file.
        """
        self._path = Path(path).absolute()  # the application may change its working directory
        self._old = self._path.with_name(self._path.name + ".1")
        self._max_bytes = max_bytes
        self._lock = threading.RLock()
        self._handle: int | None = None
        create_private(self._path, what=what)
        with suppress(OSError):  # there is none yet, or it is not ours to close
            os.close(open_private(self._old, os.O_RDONLY))
        _files.add(self)

    @property
    def is_writing(self) -> bool:
        """Whether a thread of this process is writing, or waits for another process to end."""
        return self._handle is not None

    def append(self, data: bytes) -> None:
        """Append whole lines, each with its end: all or none of them.

        Raises:
            OSError: Nothing was appended.
        """
        with self._lock:
            if self.is_writing:  # a signal handler or a finalizer, within our own write
                raise BlockingIOError(errno.EAGAIN, "the file is being written by this thread")
            with self._opened(len(data)) as handle:
                _write_all(handle, data)

    def renew_after_fork(self) -> None:
        """Free what a thread of the parent held when this process was forked from it."""
        self._lock = threading.RLock()
        handle, self._handle = self._handle, None
        if handle is not None:
            # Our copy would keep the parent's lock alive, should the parent be killed.
            with suppress(OSError):
                os.close(handle)

    @contextmanager
    def _opened(self, size: int) -> Generator[int]:
        """Open and lock the file that is at our path now, with room for this many bytes."""
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            handle = self._handle = open_private(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
            try:
                lock_file(handle, deadline)
                # While we waited, another process may have renamed what we opened.
                if self._is_at_path(handle):
                    grown = os.fstat(handle).st_size
                    if grown == 0 or grown + size <= self._max_bytes:
                        yield handle
                        return
                    # Only while it is locked, so that one process does. A file that cannot be
                    # renamed is not written either, or it would grow without a bound.
                    os.replace(self._path, self._old)
            finally:
                self._handle = None
                # Closing alone would leave the lock with a child that was forked meanwhile.
                if sys.platform != "win32":
                    with suppress(OSError):
                        fcntl.flock(handle, fcntl.LOCK_UN)
                os.close(handle)
            if time.monotonic() > deadline:
                raise TimeoutError(errno.ETIMEDOUT, "other processes keep renaming the file")

    def _is_at_path(self, handle: int) -> bool:
        try:
            return os.path.samestat(os.fstat(handle), os.lstat(self._path))
        except FileNotFoundError:
            return False


def _renew_all() -> None:
    for file in list(_files):
        file.renew_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)


def _write_all(handle: int, data: bytes) -> None:
    """Write everything, or leave the file as it was."""
    before = os.fstat(handle).st_size
    torn = before > 0 and os.pread(handle, 1, before - 1) != b"\n"
    # A process that was killed in the middle of a line shall not take ours with it.
    rest = memoryview(b"\n" + data if torn else data)
    written = 0
    try:
        while rest:
            count = os.write(handle, rest)
            written, rest = written + count, rest[count:]
    except BaseException:
        # Not if a writer that does not lock has appended behind us: it would be cut off.
        if written and os.fstat(handle).st_size == before + written:
            os.ftruncate(handle, before)
        raise


def lock_file(handle: int, deadline: float) -> None:
    """Lock an open file against other processes, if the system has ``flock``.

    The lock goes with the last descriptor of the file.

    Raises:
        TimeoutError: Another process has held it until the deadline of ``time.monotonic``.
    """
    # flock, not lockf: the latter's lock is lost when the process closes *any* descriptor of the
    # file, such as that of a report that it reads.
    while sys.platform != "win32":
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError(errno.ETIMEDOUT, "another process holds the file") from None
            time.sleep(_RETRY_SECONDS)
        except OSError:  # a file system without locks: one write is still one line, mostly
            return
