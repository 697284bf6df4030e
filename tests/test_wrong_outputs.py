"""No command writes over a file that it reads, and a place that is no file is refused unread."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from claimspan.cli.main import main

from result_files import write_results

COMMANDS = (
    "report FILE -o FILE",
    "report FILE OTHER -o OTHER",
    "label FILE -o FILE",
    "calibrate FILE labels.csv -o FILE",
    "curate FILE -o FILE",
    "gate FILE --min f1=0.1 --markdown FILE",
    "gate FILE --baseline OTHER --markdown OTHER",
    "compare FILE OTHER --markdown OTHER",
    "run pipeline.py:chain FILE -o FILE",
    "run pipeline.py:chain FILE --traces FILE",
    "run pipeline.py:chain FILE --report FILE",
    "dataset nq-open FILE -o FILE",
    "bench alignment FILE -o FILE",
    "bench context-coverage FILE --combinations FILE",
    "bench context-coverage-build FILE -o FILE",
)


def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path, command: str
) -> str:
    """The last line on standard error of a command that is refused."""
    monkeypatch.chdir(folder)
    words = command.replace("FILE", "given.jsonl").replace("OTHER", "other.jsonl").split()
    monkeypatch.setattr(sys, "argv", ["claimspan", *words])
    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 2
    return capsys.readouterr().err.rstrip().splitlines()[-1]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_a_command_reads_is_not_written_over(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
) -> None:
    files = [
        write_results(tmp_path / name, [{"f1": 0.5}] * 3) for name in ("given.jsonl", "other.jsonl")
    ]
    before = [file.read_bytes() for file in files]
    (tmp_path / "labels.csv").write_text("record,claim,label\nr0,Claim 0.,E\n")
    last = run(monkeypatch, capsys, tmp_path, command)

    option = command.split()[-2]
    assert f"is a file that this command reads, and {option} would replace it" in last
    assert [file.read_bytes() for file in files] == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no such device")
def test_a_file_to_fill_in_that_is_a_device_without_an_end_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "given.jsonl").write_text(f"{json.dumps({'resourceSpans': []})}\n")

    assert "'/dev/full': it is a FIFO, a socket or a device" in run(
        monkeypatch, capsys, tmp_path, "curate FILE -o /dev/full"
    )
