"""Whatever happens to the file, records go on in memory, and the spool comes back.

Row F9 of the reliability matrix.
"""

from __future__ import annotations

import contextlib
import logging
import os
import resource
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from claimspan.errors import ConfigError
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor
from claimspan_tracing.spool import Lease, Spool
from claimspan_tracing.spool.place import check_place

from lc_pipelines import answer_to, rag_chain
from spool_jobs import job, outcome, rows
from support import MonitorFactory, Spans, ids
from worker_processes import wait_for

RETRY_SECONDS = 0.1


def quick(path: Path, max_bytes: int = 1 << 20) -> Spool:
    return Spool(path, retry_seconds=RETRY_SECONDS, max_bytes=max_bytes)


def ask(monitor: Monitor, query: str) -> str:
    answer = rag_chain().invoke(query, {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    assert answer == answer_to(query)
    return answer


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


def test_a_full_file_refuses_new_jobs_once_said_and_takes_them_when_there_is_room(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spool = quick(tmp_path / "spool.db", max_bytes=200_000)
    leases: list[Lease] = []
    for number in range(1, 30):
        lease = spool.add(job(number, "x" * 10_000))
        if lease is None:
            break
        leases.append(lease)

    assert 5 < len(leases) < 29
    assert spool.is_full
    for number in range(30, 40):
        time.sleep(RETRY_SECONDS / 5)
        spool.renew()
        assert spool.add(job(number, "x" * 10_000)) is None
    assert len(warnings(caplog)) == 1
    # What is there can still be finished.
    assert spool.write(leases[0], outcome())
    spool.delete(leases[:-1])
    time.sleep(1.5 * RETRY_SECONDS)
    assert spool.add(job(40)) is not None
    assert len(rows(tmp_path / "spool.db")) == 2


FULL_DISK = """
import sys, time
from collections.abc import Generator
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from claimspan_tracing.spool import Spool
from spool_jobs import job, rows
folder = Path(sys.argv[1])
spool = Spool(folder / "spool.db", retry_seconds=0.1)
spool.renew()
assert (folder / "spool.db.ballast").stat().st_blocks > 0
filler = folder / "filler"
leases = [spool.add(job(1))]
with filler.open("wb", buffering=0) as file:
    try:
        while True:
            file.write(b"x" * 4096)
    except OSError:
        pass
for number in range(2, 2000):
    lease = spool.add(job(number, "x" * 20_000))
    if lease is None:
        break
    leases.append(lease)
print("refused", lease is None)
spool.delete(leases)
spool.renew()
print("left on a full disk", len(rows(folder / "spool.db")))
filler.unlink()
time.sleep(0.2)
print("after", spool.add(job(5000)) is not None)
"""


def test_on_a_disk_that_is_really_full_rows_are_deleted_and_come_again_later(
    tmp_path: Path,
) -> None:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(tmp_path)], capture_output=True
    )
    if mounted.returncode:
        check_with_a_limit_of_file_size(tmp_path)
        return
    try:
        support = str(Path(__file__).parents[1] / "support")
        done = subprocess.run(
            [sys.executable, "-c", FULL_DISK, str(tmp_path), support],
            capture_output=True,
            text=True,
            timeout=60,
        )
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)

    assert done.stdout.splitlines() == [
        "refused True",
        "left on a full disk 0",
        "after True",
    ], done.stderr
    assert done.stderr.count("claimspan cannot use its spool") == 1


LIMITED = """
import sys
import threading
from collections.abc import Generator
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from claimspan_tracing.spool import Spool
from spool_jobs import job
spool = Spool(Path(sys.argv[1]) / "spool.db")
print(any(spool.add(job(number, "x" * 20_000)) is None for number in range(1, 100)))
"""


def check_with_a_limit_of_file_size(folder: Path) -> None:
    """Where nothing can be mounted, the limit of a file's size stands for the full disk."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))

    support = str(Path(__file__).parents[1] / "support")
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(folder), support],
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=limit,
    )
    assert done.stdout.split() == ["True"], done.stderr


READ_ONLY = """
import os, sys
from collections.abc import Generator
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from claimspan_tracing.spool import Spool
from spool_jobs import job
os.environ.get("X")
if os.geteuid() == 0:
    os.setuid(65534)  # root may write anywhere
spool = Spool(Path(sys.argv[1]) / "spool.db")
print([spool.add(job(number)) for number in range(1, 4)])
"""


def test_a_folder_that_cannot_be_written_is_one_warning(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o555)
    for above in (tmp_path, *list(tmp_path.parents)[:2]):
        above.chmod(above.stat().st_mode | 0o055)
    support = str(Path(__file__).parents[1] / "support")

    done = subprocess.run(
        [sys.executable, "-c", READ_ONLY, str(folder), support],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.stdout.strip() == "[None, None, None]", done.stderr
    assert done.stderr.count("claimspan cannot use its spool") == 1


@contextlib.contextmanager
def held_by_another(path: Path) -> Generator[sqlite3.Connection]:
    """Another process's transaction on a new file, as at the start of several workers."""
    with contextlib.closing(
        sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    ) as c:
        c.execute("BEGIN EXCLUSIVE")
        yield c


def test_a_file_that_another_worker_sets_up_is_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "spool.db"
    with held_by_another(path) as other:
        timer = threading.Timer(0.5, other.execute, ["ROLLBACK"])
        timer.start()
        lease = quick(path).add(job(1))
        timer.join()

    assert lease is not None
    assert caplog.messages == []


def test_that_a_file_can_be_used_again_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "spool.db"
    spool = quick(path)
    with held_by_another(path):
        assert spool.add(job(1)) is None
    time.sleep(RETRY_SECONDS)

    assert spool.add(job(2)) is not None
    assert spool.add(job(3)) is not None

    before, after = caplog.messages
    assert "cannot use its spool" in before
    assert after == f"claimspan uses its spool {path} again"


def test_a_file_that_is_deleted_while_it_is_open_is_made_again_with_its_rows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "spool.db"
    spool = quick(path)
    first = spool.add(job(1))
    assert first is not None
    for file in list(tmp_path.iterdir()):
        file.unlink()

    second = spool.add(job(2))

    assert second is not None
    assert [row for (row,) in rows(path, "trace_id")] == [job(1).trace_id, job(2).trace_id]
    assert spool.write(first, outcome())
    assert len(warnings(caplog)) == 1


@pytest.mark.parametrize("garbage", [b"no database at all" * 500, b"SQLite format 3\0" * 300])
def test_a_file_of_garbage_is_set_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, garbage: bytes
) -> None:
    path = tmp_path / "spool.db"
    path.write_bytes(garbage)

    assert quick(path).add(job()) is not None

    (aside,) = tmp_path.glob("spool.db.damaged-*")
    assert aside.read_bytes() == garbage
    assert rows(path) == [("leased",)]
    assert len(warnings(caplog)) == 1


def test_a_file_that_is_damaged_while_it_is_open_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "spool.db"
    spool = quick(path)
    for number in range(1, 20):
        spool.add(job(number, "x" * 5_000))
    spool.close()
    data = bytearray(path.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    path.write_bytes(data)
    spool = quick(path)
    spool.claim(10)
    time.sleep(1.5 * RETRY_SECONDS)

    assert spool.add(job(100)) is not None
    assert list(tmp_path.glob("spool.db.damaged-*"))


def test_a_file_of_a_newer_version_is_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "spool.db"
    Spool(path).add(job())
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()

    assert quick(path).add(job(2)) is None

    assert len(rows(path)) == 1
    assert "version 99" in warnings(caplog)[0]


def test_a_file_that_another_process_locks_blocks_nobody_and_is_used_again(
    tmp_path: Path, make_monitor: MonitorFactory, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "spool.db"
    monitor = make_monitor(spool=path)
    ask(monitor, "before")
    assert monitor.flush()
    locker = sqlite3.connect(path, isolation_level=None)
    locker.execute("BEGIN EXCLUSIVE")
    caplog.clear()

    for number in range(20):
        ask(monitor, f"locked {number}")
    started = time.monotonic()
    assert monitor.flush(10)
    blocked = time.monotonic() - started
    locker.execute("ROLLBACK")
    locker.close()
    time.sleep(2.5)
    ask(monitor, "after")
    assert monitor.flush()

    assert blocked < 3
    assert monitor.stats.evaluated == monitor.stats.produced == 22
    assert monitor.stats.spooled == 2
    assert len(warnings(caplog)) == 2  # once that it cannot be used, once that it can again
    assert rows(path) == []


def test_a_spool_is_private_to_its_owner_and_its_folder_too(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "spool.db"
    spool = Spool(path)
    spool.add(job())
    spool.renew()

    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert len(modes) == 4
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_file_that_others_can_read_is_closed_to_them(tmp_path: Path) -> None:
    path = tmp_path / "spool.db"
    path.touch(0o666)
    path.chmod(0o666)

    Spool(path).add(job())

    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.glob("spool.db*")} == {0o600}


def test_the_database_of_another_program_is_left_as_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "app.db"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE users (name TEXT)")
    database.close()
    before = path.read_bytes()

    assert quick(path).add(job()) is None

    assert path.read_bytes() == before
    (warning,) = warnings(caplog)
    assert "it is the database of another program: give another file" in warning


@pytest.mark.parametrize("suffix", ["", "-wal", "-shm"])
def test_a_link_in_place_of_the_file_is_refused(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "elsewhere").touch()
    (tmp_path / f"spool.db{suffix}").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(ConfigError, match="give another file"):
        check_place(tmp_path / "spool.db")
    assert Spool(tmp_path / "spool.db").add(job()) is None
    assert (tmp_path / "elsewhere").read_bytes() == b""


def test_a_monitor_refuses_a_folder_as_its_spool(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="give another file"):
        Monitor(sample=0.0, spool=tmp_path)


FORKS = """
import os, sys, threading, warnings
from collections.abc import Generator
from pathlib import Path
sys.path.insert(0, sys.argv[2])
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 on: fork beside threads
from claimspan_tracing.spool import Spool
from spool_jobs import job
path = Path(sys.argv[1])
spool, stopped, added = Spool(path), threading.Event(), []
def fill():
    while not stopped.is_set():
        if spool.add(job(1 + len(added), "x" * 5_000)) is not None:
            added.append(1)
threading.Thread(target=fill).start()
children = []
for number in range(1, 9):
    child = os.fork()
    if child == 0:
        own = Spool(path)
        kept = [own.add(job(number * 1_000_000 + each)) for each in range(20)]
        os._exit(0 if spool.add(job(7)) is None and any(kept) else 1)
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
stopped.set()
print(codes, len(added) > 0)
"""


def test_processes_that_fork_while_others_write_keep_the_file_whole(tmp_path: Path) -> None:
    path = tmp_path / "spool.db"
    support = str(Path(__file__).parents[1] / "support")

    done = subprocess.run(
        [sys.executable, "-c", FORKS, str(path), support],
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert done.stdout.split("]")[0] == "[0, 0, 0, 0, 0, 0, 0, 0", done.stderr
    assert done.stdout.endswith("True\n")
    database = sqlite3.connect(path)
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    database.close()


class Filtering(SimpleSpanProcessor):
    """A span processor of the application's that keeps our spans from its exporter."""

    def on_end(self, span: ReadableSpan) -> None:
        scope = span.instrumentation_scope
        if scope is not None and scope.name == "service":
            super().on_end(span)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("claimspan_tracing.records.exports.UNREPORTED_SECONDS", 0.3)
    monkeypatch.setattr("claimspan_tracing.records.table.EXPORT_RETRY_SECONDS", 0.1)
    monkeypatch.setattr("claimspan_tracing.spool.spool.LEASE_SECONDS", 0.3)


@pytest.mark.usefixtures("impatient")
def test_an_exporter_behind_a_filter_does_not_have_records_written_again(
    make_monitor: MonitorFactory, provider: TracerProvider, spans: Spans, tmp_path: Path
) -> None:
    provider.add_span_processor(Filtering(InMemorySpanExporter()))
    monitor = make_monitor(spool=tmp_path / "spool.db")
    ask(monitor, "q")
    assert monitor.flush()
    wait_for(lambda: rows(tmp_path / "spool.db") == [], 20)

    assert len(spans.all) == len({ids(span).span_id for span in spans.all}) == 4


@pytest.mark.usefixtures("impatient")
def test_a_record_that_no_exporter_ever_takes_ends_as_a_dead_letter(
    make_monitor: MonitorFactory, tmp_path: Path
) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(Filtering(InMemorySpanExporter()))
    monitor = make_monitor(spool=tmp_path / "spool.db", tracer_provider=provider)
    ask(monitor, "q")
    assert monitor.flush()
    wait_for(lambda: rows(tmp_path / "spool.db") == [("dead",)], 30)

    ((reason,),) = rows(tmp_path / "spool.db", "reason")
    assert "no exporter has taken its spans" in str(reason)
