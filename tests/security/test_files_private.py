"""Files with texts of users: private to their owner, written as a whole, never through a link.

Rows P4 and S2 of the reliability matrix, for the trace file, the report, the verdict
cache, the budget store and the results of ``claimspan evaluate``.
"""

from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from claimspan import Claim
from claimspan.cost.stores import SqliteBudgetStore
from claimspan.errors import ConfigError
from claimspan.files.private import create_private, write_private
from claimspan.judges.verdict_cache import VerdictCache
from claimspan.results.result_file import ResultFile
from claimspan_tracing import configure
from claimspan_tracing.trace_file.writing import OtlpFileExporter

WRITERS: dict[str, Callable[[Path], object]] = {
    "traces": OtlpFileExporter,
    "configured": lambda path: configure(file=path),
    "cache": VerdictCache,
    "page": lambda path: write_private(path, "page", what="the report"),
    "budget": SqliteBudgetStore,
    "results": lambda path: ResultFile(path).open().close(),
}
"""What writes a file, as a function of its path."""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def open_umask() -> Iterator[None]:
    """The process creates files that everybody may read and write."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture(params=WRITERS)
def write(request: pytest.FixtureRequest) -> Callable[[Path], object]:
    return WRITERS[str(request.param)]


@pytest.mark.usefixtures("open_umask")
def test_only_the_owner_can_read_a_new_file(
    tmp_path: Path, write: Callable[[Path], object]
) -> None:
    write(tmp_path / "file")

    assert {mode(path) for path in tmp_path.iterdir()} == {0o600}


@pytest.mark.usefixtures("open_umask")
def test_the_journal_of_a_verdict_cache_is_private_too(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path / "file")
    cache.add_claims("key", [Claim(text="private")])

    assert {path.name for path in tmp_path.iterdir()} >= {"file", "file-wal"}
    assert {mode(path) for path in tmp_path.iterdir()} == {0o600}
    cache.close()


def test_a_file_that_others_could_read_is_closed_to_them(
    tmp_path: Path, write: Callable[[Path], object]
) -> None:
    path = tmp_path / "file"
    path.touch(0o644)
    path.chmod(0o644)

    write(path)

    assert mode(path) == 0o600


@pytest.mark.parametrize("store", [VerdictCache, SqliteBudgetStore])
def test_a_database_that_is_opened_twice_keeps_its_locks(
    tmp_path: Path, store: Callable[[Path], object]
) -> None:
    path = tmp_path / "file"
    kept = [store(path), store(path)]

    # Without the locks of this process, the last connection of another deletes the journal.
    look = "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); d.execute('VACUUM'); d.close()"
    subprocess.run([sys.executable, "-c", look, str(path)], check=True, timeout=60)

    assert (tmp_path / "file-wal").exists()
    del kept


def test_the_generation_before_is_closed_to_others_too(tmp_path: Path) -> None:
    old = tmp_path / "traces.jsonl.1"
    old.touch()
    old.chmod(0o644)

    OtlpFileExporter(tmp_path / "traces.jsonl")

    assert mode(old) == 0o600


def test_a_symbolic_link_is_refused_and_what_it_leads_to_is_untouched(
    tmp_path: Path, write: Callable[[Path], object]
) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    target.chmod(0o644)
    (tmp_path / "link").symlink_to(target)

    with pytest.raises(ConfigError, match="symbolic link, which is not followed; give the path"):
        write(tmp_path / "link")

    assert (target.read_text(), mode(target)) == ("mine", 0o644)


def test_a_link_that_leads_nowhere_creates_nothing(
    tmp_path: Path, write: Callable[[Path], object]
) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")

    with pytest.raises(ConfigError, match="symbolic link"):
        write(tmp_path / "link")

    assert not (tmp_path / "target").exists()


def test_a_fifo_is_refused_at_once(tmp_path: Path, write: Callable[[Path], object]) -> None:
    os.mkfifo(tmp_path / "fifo")

    with pytest.raises(ConfigError, match="FIFO, a socket or a device; give the path of a regular"):
        write(tmp_path / "fifo")


def test_a_device_is_refused(write: Callable[[Path], object]) -> None:
    with pytest.raises(ConfigError, match="a device"):
        write(Path("/dev/null"))

    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_directory_is_refused(tmp_path: Path, write: Callable[[Path], object]) -> None:
    with pytest.raises(ConfigError, match="it is a directory; give the path of a file"):
        write(tmp_path)


def test_a_directory_that_is_missing_is_named(
    tmp_path: Path, write: Callable[[Path], object]
) -> None:
    with pytest.raises(ConfigError, match=r"missing' does not exist; create it"):
        write(tmp_path / "missing" / "file")


def test_a_directory_may_be_reached_by_a_link(
    tmp_path: Path, write: Callable[[Path], object]
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")

    write(tmp_path / "link" / "file")

    assert (tmp_path / "real" / "file").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give a file away")
def test_a_file_of_another_owner_keeps_its_mode_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "theirs"
    path.touch()
    path.chmod(0o644)
    os.chown(path, 12345, 12345)

    with caplog.at_level(logging.WARNING):
        create_private(path, what="traces")
        create_private(path, what="traces")

    assert mode(path) == 0o644
    (record,) = caplog.records
    assert "can be read by others" in record.getMessage()


def test_a_set_up_without_permission_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "readonly"
    folder.mkdir()
    folder.chmod(0o555)
    program = (
        "import os, sys\n"
        "from claimspan_tracing.trace_file.writing import OtlpFileExporter\n"
        "if os.geteuid() == 0: os.setuid(65534)\n"
        "OtlpFileExporter(sys.argv[1])\n"
    )
    command = [sys.executable, "-c", program, str(folder / "file")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 1
    assert "ConfigError: cannot write traces" in done.stderr
    assert "no permission; let this user write in" in done.stderr
