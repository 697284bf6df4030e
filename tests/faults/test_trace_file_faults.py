"""The trace file when the disk is full, when processes share it, are forked or killed.

Row F9 of the reliability matrix, for the trace file.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from claimspan.errors import ConfigError
from claimspan.files.private import write_private
from claimspan_tracing.trace_file.spans import Skipped, read_spans
from claimspan_tracing.trace_file.writing import LOCK_SECONDS, LineFile, OtlpFileExporter

WRITER = """
import sys
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from claimspan_tracing.trace_file.writing import OtlpFileExporter

path, name, spans, max_bytes = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OtlpFileExporter(path, max_bytes)))
print("ready", flush=True)
for number in range(spans):
    provider.get_tracer("t").start_span(f"{name}-{number}", attributes={"text": "x" * 2_000}).end()
"""


def spans(*names: str, size: int = 100) -> list[ReadableSpan]:
    """Spans that have ended, as a processor gets them."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    for name in names:
        provider.get_tracer("t").start_span(name, attributes={"text": "x" * size}).end()
    return list(exporter.get_finished_spans())


def names(*paths: Path) -> list[str]:
    """Names of the spans in files; fails where any part of a file is broken."""
    return [span.name for path in paths for span in read_spans(path, Skipped(path, strict=True))]


def writer(path: Path, name: str, *, count: int, max_bytes: int = 2**30) -> subprocess.Popen[str]:
    """A process that says "ready", writes spans, and ends."""
    arguments = [sys.executable, "-c", WRITER, str(path), name, str(count), str(max_bytes)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def all_end(writers: Sequence[subprocess.Popen[str]]) -> bool:
    """Whether every process ends without an error."""
    return all(
        [each.communicate(timeout=60)[0] == "ready\n" and each.returncode == 0 for each in writers]
    )


@contextmanager
def largest_file(size: int) -> Generator[None]:
    """No file of this process may grow beyond a size: a write there is short, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_short_write_leaves_no_half_line_and_later_batches_are_written(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    exporter = OtlpFileExporter(path)
    assert exporter.export(spans("before")) is SpanExportResult.SUCCESS
    size = path.stat().st_size

    with largest_file(size + 1_000):
        failed = exporter.export(spans("lost", size=5_000))
        after = path.stat().st_size
        small = exporter.export(spans("small", size=1))
    assert exporter.export(spans("after", size=5_000)) is SpanExportResult.SUCCESS

    assert failed is SpanExportResult.FAILURE
    assert after == size
    assert small is SpanExportResult.SUCCESS
    assert names(path) == ["before", "small", "after"]


def test_a_batch_of_several_lines_is_written_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    exporter = OtlpFileExporter(path)
    batch = spans(*map(str, range(100)))

    with largest_file(20_000):
        assert exporter.export(batch) is SpanExportResult.FAILURE
    assert path.stat().st_size == 0
    assert exporter.export(batch) is SpanExportResult.SUCCESS

    assert len(path.read_bytes().splitlines()) > 1
    assert names(path) == [str(number) for number in range(100)]


def test_a_line_that_a_killed_process_left_half_takes_no_other_with_it(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    exporter = OtlpFileExporter(path)
    exporter.export(spans("first", "second"))
    with path.open("ab") as file:
        file.write(path.read_bytes()[:50])

    exporter.export(spans("third"))

    skipped = Skipped(path)
    assert [span.name for span in read_spans(path, skipped)] == ["first", "second", "third"]
    assert skipped.counts == {"line_not_json": 1}


def test_a_folder_that_is_deleted_fails_the_export_until_it_is_back(tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    exporter = OtlpFileExporter(folder / "traces.jsonl")

    shutil.rmtree(folder)
    assert exporter.export(spans("lost")) is SpanExportResult.FAILURE
    folder.mkdir()

    assert exporter.export(spans("back")) is SpanExportResult.SUCCESS
    assert names(folder / "traces.jsonl") == ["back"]


def test_a_file_that_cannot_be_rotated_is_not_written_beyond_its_size(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    (tmp_path / "traces.jsonl.1").mkdir()
    exporter = OtlpFileExporter(path, max_bytes=3_000)

    results = {exporter.export(spans("span", size=1_000)) for _ in range(5)}

    assert results == {SpanExportResult.SUCCESS, SpanExportResult.FAILURE}
    assert path.stat().st_size <= 3_000


def test_a_page_that_has_no_room_leaves_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_private(path, "before", what="the report")

    with largest_file(10_000), pytest.raises(ConfigError, match="cannot write the report"):
        write_private(path, "x" * 1_000_000, what="the report")

    assert [file.read_text() for file in tmp_path.iterdir()] == ["before"]


def test_processes_that_share_a_file_tear_no_line(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    assert all_end([writer(path, name, count=150) for name in "abc"])

    assert sorted(names(path)) == sorted(f"{name}-{n}" for name in "abc" for n in range(150))


def test_processes_that_rotate_lose_no_generation(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    # Together they write one and a half times the size: one rotation, and nothing may be missing.
    count = 60
    size = 2 * count * 2_500 * 2 // 3
    assert all_end([writer(path, name, count=count, max_bytes=size) for name in "ab"])

    generations = sorted(tmp_path.iterdir())
    assert [file.name for file in generations] == ["traces.jsonl", "traces.jsonl.1"]
    assert all(file.stat().st_size <= size for file in generations)
    assert sorted(names(*generations)) == sorted(
        f"{name}-{n}" for name in "ab" for n in range(count)
    )


def test_a_process_that_waited_while_another_rotated_writes_to_the_new_file(tmp_path: Path) -> None:
    path, old = tmp_path / "lines", tmp_path / "lines.1"
    file = LineFile(path, 20, what="lines")
    path.write_bytes(b"a full generation...\n")
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # another process, which is about to rotate
        thread = threading.Thread(target=file.append, args=(b"ours\n",))
        thread.start()
        while not file.is_writing:
            time.sleep(0.001)
        path.rename(old)
        path.write_bytes(b"theirs\n")
    thread.join()

    assert old.read_bytes() == b"a full generation...\n"
    assert path.read_bytes() == b"theirs\nours\n"


def test_a_process_that_keeps_the_lock_fails_the_write_in_bounded_time(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    exporter = OtlpFileExporter(path)
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        started = time.monotonic()
        result = exporter.export(spans("lost"))
        took = time.monotonic() - started

    assert result is SpanExportResult.FAILURE
    assert took < 10 * LOCK_SECONDS
    assert exporter.export(spans("kept")) is SpanExportResult.SUCCESS
    assert names(path) == ["kept"]


def test_a_writer_that_is_killed_keeps_nobody_from_writing(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    victim = writer(path, "victim", count=1_000_000)
    assert victim.stdout is not None
    assert victim.stdout.readline() == "ready\n"
    while path.stat().st_size < 50_000:
        assert victim.poll() is None
    victim.send_signal(signal.SIGKILL)
    victim.wait(10)
    victim.stdout.close()

    assert OtlpFileExporter(path).export(spans("after")) is SpanExportResult.SUCCESS

    skipped = Skipped(path)
    read = [span.name for span in read_spans(path, skipped)]
    assert read[-1] == "after"
    assert read[:-1] == [f"victim-{number}" for number in range(len(read) - 1)]
    assert sum(skipped.counts.values()) <= 1


def test_a_child_that_is_forked_in_the_middle_of_an_export_can_export(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    # The parent of the fork holds the lock of the thread and that of the file when it forks.
    program = """
import os, sys, threading, warnings
from pathlib import Path
from claimspan.errors import ConfigError
from claimspan.files.private import write_private
from claimspan_tracing.trace_file.writing import LineFile

warnings.simplefilter("ignore", DeprecationWarning)  # Python dislikes forks of threaded programs
file = LineFile(sys.argv[1], 2**30, what="traces")
real, writing, forked = os.write, threading.Event(), threading.Event()

def slow_write(handle, data):
    if threading.current_thread() is not threading.main_thread():
        writing.set()
        forked.wait(20)
    return real(handle, data)

os.write = slow_write
thread = threading.Thread(target=file.append, args=(b'"parent"\\n',))
thread.start()
writing.wait(20)
pid = os.fork()
if pid == 0:
    try:
        file.append(b'"too early"\\n')
    except OSError:
        pass
    Path(sys.argv[1] + ".reached").touch()
    file.append(b'"child"\\n')
    os._exit(0)
forked.wait(1)
while not Path(sys.argv[1] + ".reached").exists():
    forked.wait(0.01)
forked.set()
thread.join()
sys.exit(os.waitpid(pid, 0)[1])
"""
    command = [sys.executable, "-c", program, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(map(json.loads, path.read_text().splitlines())) == ["child", "parent"]


def test_threads_of_one_process_tear_no_line(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    file = LineFile(path, 2**30, what="lines")
    line = json.dumps("x" * 10_000).encode() + b"\n"

    def append_some() -> None:
        for _ in range(20):
            file.append(line)

    threads = [threading.Thread(target=append_some) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert path.read_bytes() == line * 160


@pytest.mark.parametrize("handles", [30])
def test_writing_leaves_no_descriptor_open(tmp_path: Path, handles: int) -> None:
    exporter = OtlpFileExporter(tmp_path / "traces.jsonl", max_bytes=2_000)
    before = len(os.listdir("/proc/self/fd"))

    for _ in range(handles):
        exporter.export(spans("span", size=1_000))

    assert len(os.listdir("/proc/self/fd")) == before
