"""`claimspan evaluate` as a process: killed, interrupted, and given a file that exceeds memory."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from command_line import call

N: Final = 200
DEADLINE_SECONDS: Final = 120.0
MEBIBYTE: Final = 1024 * 1024

CALLED: Final = """
import signal
from claimspan.cli.main import main
# A process that was started in the background ignores Ctrl-C, and so do its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""

FULL: Final = """
import resource
most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, most))
from claimspan.cli.main import main
try:
    main()
finally:
    # The lines that were covered are written as the process ends, and to more bytes than that.
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
"""

PEAK: Final = """
import resource, sys
from claimspan.cli.main import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


def rows(n: int, padding: str = "") -> Iterator[dict[str, object]]:
    for number in range(n):
        yield {
            "id": f"r{number}",
            "query": f"What is part {number}?",
            "response": f"Part {number} is red. It weighs {number} tonnes.",
            "chunks": [f"Part {number} is red.", f"Part {number} weighs {number} tonnes."],
            "ground_truth": f"Part {number} weighs {number} tonnes.",
            "metadata": {"padding": padding},
        }


def write(path: Path, n: int, padding: str = "") -> Path:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows(n, padding))
    return path


def command(records: Path, output: Path) -> list[str]:
    start = [sys.executable, "-c", CALLED, "evaluate", str(records), "-o", str(output)]
    return [*start, "--judge", "lexical", "--concurrency", "2", "--json"]


def stopped_after(records: Path, output: Path, lines: Path, how: signal.Signals) -> int:
    """Start a run, end it when some lines are there, and return its exit code.

    What it says on standard error is in ``said`` beside its output.
    """
    with (output.parent / "said").open("wb") as said:
        process = subprocess.Popen(command(records, output), stdout=subprocess.DEVNULL, stderr=said)
    try:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not lines.exists() or lines.read_bytes().count(b"\n") < 20:
            assert process.poll() is None, "it has ended before it could be stopped"
            assert time.monotonic() < deadline, "no lines were written"
            time.sleep(0.005)
        process.send_signal(how)
        return process.wait(DEADLINE_SECONDS)
    finally:
        process.kill()
        process.wait()


def finished(records: Path, output: Path) -> dict[str, object]:
    """What the same command says in this process, which it needs not end."""
    done = call(*command(records, output)[3:])
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_stopped_goes_on_with_nothing_lost_and_nothing_done_twice(
    tmp_path: Path, how: signal.Signals
) -> None:
    records, output = write(tmp_path / "in.jsonl", N), tmp_path / "out.jsonl"

    code = stopped_after(records, output, output, how)
    whole = [line for line in output.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
    found = finished(records, output)

    after = output.read_bytes().splitlines(keepends=True)
    assert code == (130 if how is signal.SIGINT else -how)
    assert 20 <= len(whole) < N
    assert after[: len(whole)] == whole  # with the seconds that they took
    assert sorted(json.loads(line)["index"] for line in after) == list(range(N))
    assert found["records"] == N


def test_a_run_that_is_interrupted_says_how_far_it_came_and_how_it_goes_on(tmp_path: Path) -> None:
    records, output = write(tmp_path / "in.jsonl", N), tmp_path / "out.jsonl"
    stopped_after(records, output, output, signal.SIGINT)

    done = output.read_bytes().count(b"\n")
    assert (tmp_path / "said").read_text().splitlines() == [
        f"claimspan: stopped after {done} of {N} records; the same command goes on"
    ]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_rag_results_go_on_from_the_lines_beside_them(tmp_path: Path, how: signal.Signals) -> None:
    records, output = write(tmp_path / "in.jsonl", N), tmp_path / "out.json"
    journal = tmp_path / "out.json.journal.jsonl"

    stopped_after(records, output, journal, how)
    n_done = journal.read_bytes().count(b"\n")
    checkpoint = json.loads(output.read_bytes()) if output.exists() else None
    found = finished(records, output)

    written = json.loads(output.read_bytes())
    assert 20 <= n_done < N
    assert found["records"] == N
    assert [row["query_id"] for row in written["results"]] == [f"r{i}" for i in range(N)]
    assert all(row["answer2response"] for row in written["results"])
    assert not journal.exists()
    if how is signal.SIGINT:  # there is time to write what is done
        assert checkpoint is not None
        done = [row for row in checkpoint["results"] if row["answer2response"] is not None]
        assert len(done) == n_done
        assert checkpoint["metrics"]["overall_metrics"] == {}


@pytest.mark.parametrize("name", ["out.jsonl", "out.json"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, name: str) -> None:
    def peak(n: int) -> float:
        records = write(tmp_path / f"{n}.jsonl", n, "x" * 400_000)
        arguments = command(records, tmp_path / f"{n}.{name}")[3:]
        done = subprocess.run(
            [sys.executable, "-c", PEAK, *arguments],
            capture_output=True,
            check=True,
            timeout=DEADLINE_SECONDS,
        )
        return int(done.stderr) / 1024

    few, many = peak(12), peak(250)

    # The larger file and its results have 90 MiB more each.
    assert (tmp_path / "250.jsonl").stat().st_size > 90 * MEBIBYTE
    assert many - few < 25


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit for the size of files")
@pytest.mark.parametrize("name", ["out.jsonl", "out.json"])
def test_where_nothing_more_can_be_written_the_run_says_so_and_can_go_on(
    tmp_path: Path, name: str
) -> None:
    path, output = write(tmp_path / "in.jsonl", 100), tmp_path / name
    arguments = ["evaluate", str(path), "-o", str(output), "--judge", "lexical"]

    full = subprocess.run(
        [sys.executable, "-c", FULL, *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )

    assert full.returncode == 2
    assert "make room and run the same command again; it goes on where it was" in full.stderr
    assert finished(path, output)["records"] == 100
