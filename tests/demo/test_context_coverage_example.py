"""The commands of the example run as its page says, on its own essays."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "context_coverage"


def test_the_page_leads_from_essays_to_a_ranking_of_metrics(tmp_path: Path) -> None:
    folder = tmp_path / "example"
    shutil.copytree(EXAMPLE, folder)
    page = (folder / "README.md").read_text(encoding="utf-8")
    commands = [shlex.split(line) for line in page.splitlines() if line.startswith("    claimspan")]

    built, measured, with_model = commands
    assert "4 items written to dataset.jsonl" in call(built, folder)
    printed = call([*measured, "--judge", "lexical"], folder)

    assert "4 of 4 items" in printed
    assert "480 combinations of chunks" in printed
    assert "\n  golden_precision " in printed
    assert {"--judge", "--prompt", "-o"} <= set(with_model)


def call(command: list[str], folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
