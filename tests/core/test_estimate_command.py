"""The command ``claimspan estimate``, and the files that it reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from claimspan.cost.pricing import price_of
from claimspan.errors import ConfigError, FileError
from claimspan.evaluation.estimate import REASONING_TOKENS_PER_CALL

from command_line import invoke, run
from judged import RECORD


def judge_options(*given: str) -> list[str]:
    return [part for each in given for part in ("--judge-option", each)]


@pytest.fixture(autouse=True)
def _no_choice(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]  # pytest uses it
    """Without a judge that is named, a model is what an estimate is for."""
    monkeypatch.delenv("CLAIMSPAN_JUDGE")


def test_estimate_prints_calls_tokens_and_money(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(RECORD.model_dump_json() + "\n" + RECORD.model_dump_json() + "\n")

    shown = run("estimate", str(path), "--judge", "openai:gpt-4o-mini")
    found = json.loads(run("estimate", str(path), "--json"))
    dearer, careful = (
        json.loads(run("estimate", str(path), "--json", *judge_options(*given)))
        for given in (("input_price=100", "output_price=100"), ("chunks_per_call=1",))
    )

    assert "2 records, gpt-4o-mini" in shown
    assert "cost                    $0.00" in shown
    assert found["records"] == 2
    assert careful["calls"] > found["calls"] > 0
    assert dearer["cost_usd"] > 10 * found["cost_usd"] > 0


def test_what_records_share_is_estimated_once(tmp_path: Path) -> None:
    once, twice = tmp_path / "once.jsonl", tmp_path / "twice.jsonl"
    once.write_text(RECORD.model_dump_json())
    twice.write_text(f"{RECORD.model_dump_json()}\n{RECORD.model_dump_json()}\n")

    first, second = (json.loads(run("estimate", str(path), "--json")) for path in (once, twice))

    assert second == first | {"records": 2}


@pytest.mark.parametrize("price", ["-1", "nan"])
def test_a_price_that_is_none_is_refused(tmp_path: Path, price: str) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(RECORD.model_dump_json())
    prices = judge_options(f"input_price={price}", "output_price=1")

    result = invoke("estimate", str(path), *prices)

    assert isinstance(result.exception, ConfigError)


def test_estimate_reads_ragcheckers_files(tmp_path: Path) -> None:
    row = {
        "query_id": "7",
        "query": "Where?",
        "gt_answer": "By the river.",
        "response": "It is by the river.",
        "retrieved_context": [
            {"doc_id": None, "text": "By the river."},
            {"doc_id": "b", "text": "x"},
        ],
    }
    path = tmp_path / "inputs.json"
    path.write_text(json.dumps({"results": [row]}))

    assert json.loads(run("estimate", str(path), "--json"))["calls"] == 3


@pytest.mark.parametrize("text", ["{", '[{"query": "Where?"}]', "7"])
def test_a_file_that_holds_no_records_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(text)

    result = invoke("estimate", str(path))

    assert isinstance(result.exception, FileError | ConfigError)
    assert "records" in str(result.exception)


def test_rows_that_are_no_records_are_left_out_and_said(tmp_path: Path) -> None:
    path = tmp_path / "records.csv"
    path.write_text("question,answer,contexts\nWhere?,Here.,It is here.\nWhere?,Here.\n")

    result = invoke("estimate", str(path), "--json")

    assert json.loads(result.stdout)["records"] == 1
    assert "1 of 2 rows are no records: left out" in result.stderr


# --- which judge ---


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in (*_KEYS, "CLAIMSPAN_JUDGE_OPTIONS"):
        monkeypatch.delenv(variable, raising=False)
    (path := tmp_path / "records.jsonl").write_text(RECORD.model_dump_json())
    return path


_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")


def estimated(path: Path, *arguments: str) -> dict[str, float]:
    found: dict[str, float] = json.loads(run("estimate", str(path), "--json", *arguments))
    return found


@pytest.mark.parametrize(
    ("judge", "output_price"),
    [
        ("openai:gpt-4o-mini", 0.6),
        ("anthropic:claude-haiku-4-5", 5.0),
        ("gemini:gemini-2.5-flash", 2.5),
        ("openrouter:anthropic/claude-sonnet-4.5", 15.0),
        ("azure:gpt-4.1", 8.0),
    ],
)
def test_a_judge_at_any_provider_is_estimated_without_a_key(
    path: Path, judge: str, output_price: float
) -> None:
    found = estimated(path, "--judge", judge)
    price = price_of(judge.partition(":")[2])

    assert price is not None
    assert price.output == output_price
    cost = price.of(int(found["input_tokens"]), int(found["output_tokens"]))
    assert found["cost_usd"] == pytest.approx(cost)
    assert cost > 0


def test_the_judge_of_the_environment_is_estimated_with_its_options(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAIMSPAN_JUDGE", "openai:m")
    monkeypatch.setenv("CLAIMSPAN_JUDGE_OPTIONS", "input_price=1 output_price=1 chunks_per_call=1")
    found = estimated(path)

    tokens = found["input_tokens"] + found["output_tokens"]
    assert found["cost_usd"] == pytest.approx(tokens / 1e6)
    assert found == estimated(
        path,
        *("--judge", "openai:m"),
        *judge_options("chunks_per_call=1", "input_price=1", "output_price=1"),
    )


@pytest.mark.parametrize("judge", ["lexical", "local"])
def test_a_judge_that_asks_no_model_costs_nothing_and_says_so(path: Path, judge: str) -> None:
    found = estimated(path, "--judge", judge)

    assert (found["records"], found["calls"], found["cost_usd"]) == (1, 0, 0)
    assert f"1 records, {judge}: no call of a model, which costs nothing" in run(
        "estimate", str(path), "--judge", judge
    )


def test_a_model_of_a_file_is_estimated_and_not_asked(path: Path) -> None:
    (path.parent / "models.py").write_text(
        "class Ours:\n"
        "    model = 'gpt-4o-mini'\n"
        "    forms = ('words',)\n"
        "    async def complete(self, request): raise SystemExit('it was asked')\n"
    )
    judge = ("--judge", f"{path.parent}/models.py:Ours")
    found = estimated(path, *judge, *judge_options("extraction=reasoned"))

    assert found["calls"] == estimated(path)["calls"]
    assert found["output_tokens"] > estimated(path)["output_tokens"]  # with the notes


def test_the_cost_of_an_unknown_judge_is_not_made_up(path: Path) -> None:
    (path.parent / "judges.py").write_text(
        "from claimspan.judges import CascadeJudge, LexicalJudge\n"
        "judge = CascadeJudge(LexicalJudge(), LexicalJudge())\n"
    )
    error = invoke("estimate", str(path), "--judge", f"{path.parent}/judges.py:judge").exception

    assert "what the judge 'cascade(lexical,lexical)' costs is not known" in str(error)


# --- reasoning ---


def test_a_model_that_reasons_has_a_range_of_tokens_and_of_money(path: Path) -> None:
    found = estimated(path, "--judge", "openai:gpt-5-mini")
    calls, price = int(found["calls"]), price_of("gpt-5-mini")

    assert found["max_reasoning_tokens_per_call"] == 25_000
    most = found["output_tokens"] + calls * REASONING_TOKENS_PER_CALL
    assert found["output_tokens_with_reasoning"] == most
    assert price is not None
    assert found["cost_usd_with_reasoning"] - found["cost_usd"] == pytest.approx(
        price.of(0, calls * REASONING_TOKENS_PER_CALL)
    )
    shown = run("estimate", str(path), "--judge", "openai:gpt-5-mini")
    assert f"{int(found['output_tokens']):,} to {int(most):,}" in shown
    assert "which is an assumption; reasoning_tokens=25000 is the most" in shown


@pytest.mark.parametrize("limit", [0, 500])
def test_the_range_ends_at_what_the_judge_allows(path: Path, limit: int) -> None:
    given = ("--judge", "openai:gpt-5-mini", "--judge-option", f"reasoning_tokens={limit}")
    found = estimated(path, *given)

    extra = found["output_tokens_with_reasoning"] - found["output_tokens"]
    assert extra == limit * found["calls"]


def test_a_model_that_does_not_reason_has_no_range(path: Path) -> None:
    found = estimated(path, "--judge", "openai:gpt-4o-mini")

    assert found["output_tokens_with_reasoning"] == found["output_tokens"]
    assert found["cost_usd_with_reasoning"] == found["cost_usd"]
    assert " to " not in run("estimate", str(path), "--judge", "openai:gpt-4o-mini")


def test_a_model_of_unknown_price_has_tokens_and_what_to_give(path: Path) -> None:
    found = estimated(path, "--judge", "openai:ours-7b")

    assert found["input_tokens"] > 0
    assert found["cost_usd"] is found["cost_usd_with_reasoning"] is None
    shown = run("estimate", str(path), "--judge", "openai:ours-7b")
    assert "unknown: give --judge-option input_price=... and output_price=..." in shown
