"""The commands ``bench context-coverage`` and ``bench context-coverage-build``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from claimspan import Claim
from claimspan.errors import ConfigError, FileError, JudgeError
from claimspan.testing import ScriptedJudge
from claimspan_bench.context_coverage import CoverageItem, judge_items, read_items, summarize
from claimspan_bench.context_coverage.command import as_text

from command_line import invoke, run
from judge_server import Exchange, judge_server

BENCH = "bench.context-coverage"
BUILD = "bench.context-coverage-build"
ESSAYS = {
    "lighthouse": "The lighthouse was built in 1872. Its lamp burned oil until 1920. The keeper "
    "lived below the lamp. The mole is a place for walks today.",
    "dough": "Sour dough needs flour and water. The dough rests for a night. Bread is baked in the "
    "morning. A dough that smells of vinegar has stood too long.",
}


@pytest.fixture
def essays(tmp_path: Path) -> Path:
    folder = tmp_path / "essays"
    folder.mkdir()
    for name, text in ESSAYS.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def data_set(tmp_path: Path, essays: Path) -> Path:
    path = tmp_path / "dataset.jsonl"
    run(BUILD, str(essays), "-o", str(path))
    return path


def test_a_data_set_is_built_and_measured_without_a_model(data_set: Path) -> None:
    printed = run(BENCH, str(data_set))

    assert [len(item.chunks) for item in read_items(data_set)] == [7, 7]
    assert "2 of 2 items, 8 facts, 240 combinations of chunks" in printed
    assert "calls: 0 made (58 with each fact and chunk in a call of its own)" in printed
    for name in ("continuous", "discrete", "hit_rate", "mean_similarity", "golden_recall"):
        assert f"\n  {name} " in printed
    assert max(map(len, printed.splitlines())) <= 130  # readable where it is piped


def test_json_and_markdown_say_the_same(data_set: Path) -> None:
    result = json.loads(run(BENCH, str(data_set), "--json"))
    page = run(BENCH, str(data_set), "--markdown")

    assert (result["n_items"], result["n_combinations"], result["failed"]) == (2, 240, {})
    tau = result["ranking"]["discrete"]["tau"]["value"]
    assert f"| discrete | {tau:.3f} [" in page
    assert "## Kendall's tau of the combinations of an item against its gold coverage" in page
    with pytest.raises(ConfigError, match="do not go together"):
        raise_of(BENCH, str(data_set), "--json", "--markdown")


def raise_of(command: str, *arguments: str) -> None:
    error = invoke(command, *arguments).exception
    assert error is not None
    raise error


def test_every_combination_is_written_with_its_scores(data_set: Path, tmp_path: Path) -> None:
    path = tmp_path / "combinations.jsonl"

    run(BENCH, str(data_set), "--combinations", str(path))

    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 240
    assert set(rows[0]["scores"]) >= {"continuous", "discrete", "hit_rate"}
    whole = [row for row in rows if len(row["chunks"]) == 7]
    assert [row["gold"] for row in whole] == [1.0, 1.0]


def test_a_metric_of_the_users_own_ranks_the_combinations(data_set: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(
        "def n_chunks(item, chunks):\n    return len(chunks)\n\n"
        "def broken(item, chunks):\n    return chunks[99]\n",
        encoding="utf-8",
    )

    result = json.loads(run(BENCH, str(data_set), "--json", "--metric", f"{own}:n_chunks"))

    assert 0 < result["ranking"]["n_chunks"]["tau"]["value"] < 1
    with pytest.raises(ConfigError, match="'broken' raised IndexError on item 'dough"):
        raise_of(BENCH, str(data_set), "--metric", f"{own}:broken")
    with pytest.raises(ConfigError, match="has no 'absent'"):
        raise_of(BENCH, str(data_set), "--metric", f"{own}:absent")
    with pytest.raises(ConfigError, match="cannot be imported"):
        raise_of(BENCH, str(data_set), "--metric", "nowhere:n_chunks")
    own.write_text("import nothing_of_that_name\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot be imported \\(ModuleNotFoundError"):
        raise_of(BENCH, str(data_set), "--metric", f"{own}:n_chunks")


def test_a_second_run_judges_only_what_is_missing(
    data_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = tmp_path / "results.jsonl"
    with judge_server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        options = (str(data_set), "--judge", "openai:m", "-o", str(results), "--json")
        first = json.loads(run(BENCH, *options))
        lines = results.read_text(encoding="utf-8").splitlines()
        requests = len(server.exchanges)
        results.write_text("\n".join(lines[:-1]) + '\n{"torn', encoding="utf-8")
        second = json.loads(run(BENCH, *options))

        asked_again = server.exchanges[requests:]
        assert first["calls"] == requests
        assert second["ranking"] == first["ranking"]
        # The facts of the torn item were written before its verdicts, and are not asked for again.
        assert asked_again
        assert not [each for each in asked_again if "sentences" in each.asked]


@pytest.mark.parametrize(("prompt", "is_reasoned"), [("io", False), ("cot", True)])
def test_facts_are_asked_for_directly_or_step_by_step(
    data_set: Path, monkeypatch: pytest.MonkeyPatch, prompt: str, is_reasoned: bool
) -> None:
    with judge_server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        result = json.loads(
            run(BENCH, str(data_set), "--judge", "openai:m", "--prompt", prompt, "--json")
        )

        extractions = [each for each in server.exchanges if "sentences" in each.asked]
        assert len(extractions) == 2
        schemas = [json.dumps(each.schema) for each in extractions]
        assert [('"notes"' in schema) for schema in schemas] == [is_reasoned] * 2
        assert result["calls"] == len(server.exchanges)


def test_without_batches_each_fact_and_chunk_is_a_call(
    data_set: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with judge_server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        result = json.loads(
            run(BENCH, str(data_set), "--judge", "openai:m", "--unbatched", "--json")
        )

        assert result["calls"] == result["calls_unbatched"] == len(server.exchanges)
        assert result["calls"] == 2 * (4 * 7 + 1)


def test_a_prompt_needs_a_language_model(data_set: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLAIMSPAN_JUDGE", raising=False)

    with pytest.raises(ConfigError, match="--prompt needs a language model, not 'lexical'"):
        raise_of(BENCH, str(data_set), "--judge", "lexical", "--prompt", "io")


def test_what_a_reader_has_to_know_stands_below_the_tables(tmp_path: Path) -> None:
    chunks = {
        "golden": ["Alpha stands.", "Beta falls."],
        "noisy": [f"Noise {n}." for n in range(11)],
    }
    facts = {"facts": ["Alpha stands.", "Beta falls.", "Gamma turns."]}
    path = tmp_path / "d.jsonl"
    path.write_text(json.dumps({"question": "q", "text": "t", **chunks, **facts}), encoding="utf-8")

    printed = run(BENCH, str(path), "--judge", "lexical", "--max-facts", "2")

    assert "The gold coverage of 1 items comes from the judge's own verdicts" in printed
    assert "1 items have more than 12 chunks: a sample of their combinations was scored." in printed
    assert "1 facts beyond --max-facts were not checked." in printed


def test_items_without_gold_and_many_reasons_of_failures_are_said() -> None:
    def make(number: int, **changes: object) -> CoverageItem:
        given = {"id": str(number), "question": "q", "text": f"{number}", "golden": ["a", "b"]}
        return CoverageItem.model_validate(given | changes)

    class Failing(ScriptedJudge):
        async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
            if text == "0":
                return [Claim(text="fact")]
            raise JudgeError(f"reason {text}")

    items = [make(number) for number in range(9)]
    judged = judge_items(items, Failing(lambda claim, reference: None))

    printed = as_text(summarize(items, judged))

    assert "1 items have no gold coverage: a verdict is undecided." in printed
    assert printed.count("failed: 1 items, reason ") == 5
    assert "failed: 3 further reasons, see --json" in printed


def test_an_endpoint_that_fails_is_said_and_the_exit_code_is_1(
    data_set: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(exchange: Exchange) -> None:
        await exchange.send(b"", status=404)

    with judge_server() as server:
        server.behave = refuse
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        result = invoke(BENCH, str(data_set), "--judge", "openai:m")

    assert result.exit_code == 1
    assert "0 of 2 items" in result.output
    assert "failed: 2 items, " in result.output
    assert "404" in result.output


def test_a_model_writes_the_questions_that_are_missing(
    essays: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (essays / "asked.jsonl").write_text(
        json.dumps({"text": ESSAYS["dough"].replace("dough", "paste"), "question": "Mine?"}),
        encoding="utf-8",
    )
    bad = True

    async def write(exchange: Exchange) -> None:
        nonlocal bad
        call = "0" if bad else exchange.asked["call"]  # the first reply is asked for once more
        bad = False
        first = str(exchange.asked["document"]).split(".")[0]
        await exchange.reply(json.dumps({"call": call, "question": f"About: {first}?"}))

    path = tmp_path / "asked.jsonl"
    with judge_server() as server:
        server.behave = write
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        run(BUILD, str(essays), "-o", str(path), "--questions", "openai:m")
        requests = len(server.exchanges)

    questions = {item.id: item.question for item in read_items(path)}
    assert questions == {
        "asked.jsonl:1": "Mine?",
        "dough.txt": "About: Sour dough needs flour and water?",
        "lighthouse.txt": "About: The lighthouse was built in 1872?",
    }
    assert requests == 3


def test_what_is_left_out_of_a_data_set_is_named(essays: Path, tmp_path: Path) -> None:
    (essays / "short.txt").write_text("One sentence.", encoding="utf-8")

    printed = run(BUILD, str(essays), "-o", str(tmp_path / "d.jsonl"))
    as_json = json.loads(run(BUILD, str(essays), "-o", str(tmp_path / "d.jsonl"), "--json"))

    assert "2 items written to" in printed
    assert "1 documents with fewer than two sentences were left out: short.txt" in printed
    assert as_json == {"items": 2, "left_out": ["short.txt"]}


def test_both_commands_are_called_under_bench(data_set: Path, essays: Path) -> None:
    def call(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "claimspan", "bench", *arguments],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    again = data_set.with_name("again.jsonl")
    call("context-coverage-build", str(essays), "-o", str(again))
    assert again.read_text(encoding="utf-8") == data_set.read_text(encoding="utf-8")
    assert "240 combinations" in call("context-coverage", str(again), "--judge", "lexical")


def test_a_file_that_is_no_data_set_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text("{}\n", encoding="utf-8")

    with pytest.raises(FileError, match="line 1: question cannot be used"):
        raise_of(BENCH, str(path))
