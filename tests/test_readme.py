"""Runs the Python code of the README, and checks its commands, links and metrics."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from claimspan import Evaluation, Label
from claimspan.cli.main import SUMMARIES
from claimspan.metrics import WITHOUT_GROUND_TRUTH
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor
from claimspan_tracing.trace_file.records import read_trace_file

from lc_pipelines import rag_chain

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
QUESTION = "the question"
MOST_WORDS = 900


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """The names that all Python blocks define, run in order in an empty folder."""
    folder = tmp_path_factory.mktemp("readme")
    truth = {"query": QUESTION, "ground_truth": f"Answer to {QUESTION}."}
    (folder / "golden.jsonl").write_text(json.dumps(truth), encoding="utf-8")
    names: dict[str, object] = {"chain": rag_chain(), "question": QUESTION, "folder": folder}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for block in blocks("python"):
            # The text is our own README, and this test exists to run it.
            exec(compile(block, "README.md", "exec"), names)  # noqa: S102 - see above
        monitor = names["monitor"]
        assert isinstance(monitor, Monitor)
        assert monitor.shutdown(10)
    return names


def test_every_python_block_runs(names: dict[str, object]) -> None:
    assert len(blocks("python")) == 3
    assert isinstance(names["handler"], ClaimspanCallbackHandler)


def test_the_queries_of_the_readme_are_traced_into_the_file_that_it_names(
    names: dict[str, object],
) -> None:
    folder = names["folder"]
    assert isinstance(folder, Path)

    entries = read_trace_file(folder / "claimspan-traces.jsonl")

    assert {entry.query for entry in entries} >= {QUESTION, "another question"}


def test_the_scores_are_what_the_comments_say(names: dict[str, object]) -> None:
    evaluation = names["evaluation"]
    assert isinstance(evaluation, Evaluation)
    assert evaluation.response_vs_chunks is not None

    assert evaluation.metrics["faithfulness"] == 0.5
    assert evaluation.response_vs_chunks.labels == [[Label.CONTRADICTED], [Label.ENTAILED]]


def test_every_command_of_the_readme_exists() -> None:
    lines = [line for block in blocks("console") for line in block.splitlines()]
    targets = re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)

    commands = {"make": targets, "claimspan": SUMMARIES, "pip": {"install"}}
    for line in lines:
        program, argument = line.removeprefix("$ ").split()[:2]
        assert argument in commands[program]


def test_every_file_that_the_readme_links_to_is_there() -> None:
    links = re.findall(r"\]\((?!https?://)([^)#]+)(?:#[^)]*)?\)", README)

    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_readme_is_read_in_a_few_minutes() -> None:
    assert len(README.split()) <= MOST_WORDS


def test_the_scores_to_look_at_first_are_those_that_need_no_ground_truth() -> None:
    shown = re.findall(r"^\| `(\w+)` \| that", README, re.MULTILINE)

    assert tuple(shown) == WITHOUT_GROUND_TRUTH
