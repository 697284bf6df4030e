"""``claimspan demo --phoenix``: the demo with a real Phoenix beside it, to be looked at."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from playwright.sync_api import expect

from browser import open_page, picture
from environments import ROOT
from phoenix_api import PhoenixApi, eventually

QUESTIONS = 2
END_SECONDS = 60.0

COMMAND = """
import signal
from claimspan.cli.main import main
# A process that was started in the background ignores Ctrl-C, and so do its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
main()
"""
"""The command as in a terminal, wherever the tests run."""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    """The demo, which stays up after its results as in a terminal."""
    cache = tmp_path_factory.mktemp("cache")
    # The environment of these tests was made by the same code, and is used again.
    environments = ROOT / ".venv-phoenix"
    environments.mkdir(exist_ok=True)
    (cache / "claimspan").symlink_to(environments)
    arguments = f"demo --phoenix --wait --json --questions {QUESTIONS}".split()
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, *arguments],
        cwd=tmp_path_factory.mktemp("demo"),
        env=os.environ | {"XDG_CACHE_HOME": str(cache), "PHOENIX_SQL_DATABASE_URL": "nowhere"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


@pytest.fixture(scope="module")
def address(demo: subprocess.Popen[str]) -> str:
    """The address that the demo prints when it has its results."""
    result = json.loads(_lines(demo.stdout).readline() or _lines(demo.stderr).read())
    assert result["records"] == QUESTIONS
    return str(result["phoenix"])


def _lines(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


@pytest.fixture(scope="module")
def api(address: str) -> PhoenixApi:
    match = re.fullmatch(r"(http://127\.0\.0\.1:\d+)/projects/\w+=*/spans", address)
    assert match is not None, address
    return PhoenixApi(match[1], "claimspan-demo")


def test_every_answer_has_its_scores_as_attributes_and_as_annotations(api: PhoenixApi) -> None:
    roots = eventually(api.roots, lambda found: len(found) == QUESTIONS)
    annotated = eventually(api.annotated, lambda spans: len(spans) == QUESTIONS)

    assert len(roots) == QUESTIONS
    assert annotated == {root.id for root in roots}
    for root in roots:
        scores = {each.name for each in api.annotations() if each.span_id == root.id}
        assert {f"claimspan.score.{name}" for name in scores} <= root.attributes.keys()
        assert "claim_recall" in scores


def test_the_page_that_it_names_shows_them(address: str) -> None:
    with open_page(width=2000) as page:
        page.goto(address)
        expect(page.locator("tbody tr")).to_have_count(QUESTIONS)
        picture(page, "phoenix-demo")


def test_ctrl_c_ends_phoenix_with_the_demo(
    demo: subprocess.Popen[str], api: PhoenixApi, tmp_path: Path
) -> None:
    demo.send_signal(signal.SIGINT)

    _, said = demo.communicate(timeout=END_SECONDS)

    assert demo.returncode == 0
    assert "Traceback" not in said
    assert api.url in said
    with pytest.raises(OSError, match="refused"):
        api.roots()
