"""Every command refuses a file that it cannot use in one sentence, and never with a traceback."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from claimspan.cli.main import main

FILES: Final[Mapping[str, Callable[[Path], object]]] = {
    "missing": lambda path: path,
    "folder": lambda path: path.mkdir(),
    "empty": lambda path: path.write_bytes(b""),
    "not JSON": lambda path: path.write_text("{no json\n[1, 2]\n"),
    "not UTF-8": lambda path: path.write_bytes(b'\xff\xfe{\x00"\x00\n\x80\x81'),
    "other fields": lambda path: path.write_text('{"a": 1}\n'),
    "list": lambda path: path.write_text("[]\n"),
}
"""What is wrong with a file, and how to make it."""

COMMANDS: Final = (
    "evaluate FILE --judge lexical",
    "estimate FILE",
    "report FILE -o OUT",
    "stats FILE",
    "compare FILE FILE.2",
    "gate FILE --min faithfulness=0.5",
    "curate FILE -o OUT",
    "label FILE -o OUT",
    "calibrate FILE",
    "judge-agreement FILE",
    "dataset auto FILE -o OUT",
    "run nothing.py:chain FILE",
    "spool FILE",
    "bench alignment FILE",
    "bench context-coverage FILE",
    "bench context-coverage-build FILE -o OUT",
    "bench human-agreement FILE",
    "bench meta-eval FILE",
    "bench pandachat FILE",
    "bench ragchecker FILE",
)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("wrong", FILES)
def test_a_file_that_cannot_be_used_is_refused_in_one_sentence(
    command: str,
    wrong: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    FILES[wrong](tmp_path / "given.jsonl")
    words = command.replace("FILE", "given.jsonl").replace("OUT", "written.out").split()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["claimspan", *words])

    # Any other exception than this one would be a traceback on the user's terminal.
    with pytest.raises(SystemExit) as ended:
        main()

    # `report` has a code of its own for a file that can be read, and holds no record.
    assert ended.value.code in ((1, 2) if words[0] == "report" else (2,))
    last = capsys.readouterr().err.rstrip().splitlines()[-1]
    assert last.startswith("claimspan: ")
    assert not (tmp_path / "written.out").exists()


@pytest.mark.parametrize("command", ["estimate", "evaluate"])
def test_a_file_without_records_is_told_what_to_write(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "given.jsonl").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["claimspan", command, "given.jsonl"])

    with pytest.raises(SystemExit):
        main()

    assert "contains no records: write one JSON record" in capsys.readouterr().err


def test_a_report_that_cannot_be_written_is_refused_before_a_question_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "page.html").mkdir()
    (tmp_path / "asked.py").write_text("def asked(query):\n    open('asked', 'w').close()\n")
    (tmp_path / "questions.jsonl").write_text('{"query": "q"}\n')
    monkeypatch.chdir(tmp_path)
    words = ["run", "asked.py:asked", "questions.jsonl", "--report", "page.html"]
    monkeypatch.setattr(sys, "argv", ["claimspan", *words])

    with pytest.raises(SystemExit):
        main()

    assert "cannot write the report to 'page.html'" in capsys.readouterr().err
    assert not (tmp_path / "asked").exists()
