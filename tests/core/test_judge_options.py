"""``--judge`` and ``--judge-option``: a judge is named and set on every command line in one way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from pydantic import JsonValue
from typer.main import get_command

from claimspan.cli.main import COMMANDS, build_app
from claimspan.cli.options import judge_from, judges_from
from claimspan.errors import ClaimspanError, ConfigError
from claimspan.judges import LexicalJudge, ModelJudge, OpenAIJudge, default_judge
from claimspan.judges.choice import NOWHERE, parse_options

from command_line import call, invoke, run
from judge_server import JudgeServer, judge_server
from judged import RECORD

HERE = {
    *("evaluate", "run", "doctor", "estimate", "judge-agreement", "calibrate", "worker", "demo"),
    *("serve", "backfill"),
}
BENCHMARKS = {"alignment", "context-coverage", "human-agreement", "meta-eval"}


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with judge_server() as server:
        yield server


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "records.jsonl"
    path.write_text(RECORD.model_dump_json() + "\n", encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _no_choice(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]  # pytest uses it
    for name in ("CLAIMSPAN_JUDGE", "CLAIMSPAN_JUDGE_OPTIONS", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


# --- commands ---


def test_every_command_that_names_a_judge_takes_options_of_it() -> None:
    found: dict[str, set[str]] = {}
    for entry in entry_points(group=COMMANDS):
        parameters = get_command(build_app(entry.name)).params
        options = {each for parameter in parameters for each in parameter.opts}
        # The flag of `claimspan spool` names none: it has what waits judged at all.
        if any(
            "--judge" in each.opts and not getattr(each, "is_flag", False) for each in parameters
        ):
            found[entry.name] = options

    assert set(found) == HERE | {f"bench.{name}" for name in BENCHMARKS}
    assert [name for name, options in found.items() if "--judge-option" not in options] == []


def test_options_reach_the_requests_of_a_judge_that_is_named(
    server: JudgeServer, records: Path
) -> None:
    options = (f"base_url={server.url}", "seed=7", "top_p=0.5", "provider=gateway")
    given = [part for each in options for part in ("--judge-option", each)]
    found = json.loads(run("evaluate", str(records), "--judge", "openai:m", *given, "--json"))

    assert found["records"] == 1
    assert server.sent("seed") == {7}
    assert server.sent("top_p") == {0.5}
    assert server.sent("model") == {"m"}


def test_a_judge_of_a_file_is_named_on_the_command_line(
    server: JudgeServer, records: Path, tmp_path: Path
) -> None:
    (tmp_path / "judges.py").write_text(
        "from openai import AsyncOpenAI\n"
        f"def ours(): return (AsyncOpenAI(api_key='k', base_url={server.url!r}), 'ours-7b')\n"
    )
    judge = f"{tmp_path}/judges.py:ours"
    run("evaluate", str(records), "--judge", judge, "--judge-option", "seed=3")

    assert server.sent("model") == {"ours-7b"}
    assert server.sent("seed") == {3}


def test_the_environment_names_and_sets_the_judge_and_the_command_line_comes_first(
    server: JudgeServer, records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAIMSPAN_JUDGE", "openai:m")
    monkeypatch.setenv("CLAIMSPAN_JUDGE_OPTIONS", f"base_url={server.url} seed=7 'user=a b'")
    run("evaluate", str(records), "--judge-option", "seed=8")

    assert server.sent("seed") == {8}
    assert server.sent("user") == {"a b"}


def test_options_of_the_environment_are_not_for_a_judge_that_is_named(
    records: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAIMSPAN_JUDGE", "openai:m")
    monkeypatch.setenv("CLAIMSPAN_JUDGE_OPTIONS", "seed=7")

    run("evaluate", str(records), "--judge", "lexical")


def test_beside_several_judges_options_are_for_the_models(server: JudgeServer) -> None:
    found = judges_from(["lexical", "openai:m"], [f"base_url={server.url}", "seed=7"])

    assert isinstance(found["lexical"], LexicalJudge)
    assert isinstance(found["openai:m"], OpenAIJudge)


def test_a_prompt_of_the_benchmark_is_an_option_of_any_model(tmp_path: Path) -> None:
    item = {"question": "q", "text": "It is red.", "golden": ["It is red."], "noisy": ["No."]}
    (data := tmp_path / "d.jsonl").write_text(json.dumps(item))
    given = ("--judge", "lexical", "--prompt", "io", "--judge-option", "seed=1")

    assert "--prompt needs a language model" in str(
        invoke("bench.context-coverage", str(data), *given).exception
    )


# --- what cannot work ---


@pytest.mark.parametrize(
    ("judge", "options", "message"),
    [
        ("lexical", ["seed=1"], "'lexical' takes no options: leave seed out"),
        ("local", ["seed=1", "user=x"], "'local' takes no options: leave seed, user out"),
        ("openai:m", ["seed"], "an option of the judge has no value: write seed=VALUE"),
        ("openai:m", ["sk-12 34"], "an option of the judge has no value: write KEY=VALUE"),
        ("openai:m", ["=1"], "an option of the judge has no value: write KEY=VALUE"),
        ("openai:m", ["seed=1", "seed=2"], "the option 'seed' of the judge is given twice"),
        ("openai:m", ["seed=one"], "the option 'seed' of the judge takes a whole number"),
        ("openai:m", ["seed=true"], "the option 'seed' of the judge takes a whole number"),
        ("openai:m", ["seed=NaN"], "the option 'seed' of the judge takes a whole number"),
        ("openai:m", ["logprobs=1"], "the option 'logprobs' of the judge takes true or false"),
        ("openai:m", ['headers={"a": 1}'], "takes an object of texts, as JSON"),
        ("openai:m", ["call_second=9"], "has no option 'call_second': did you mean call_seconds"),
        ("openai:m", ["budget=5"], "the judge takes no 'budget' as an option: give it in Python"),
        ("openai:m", ["input_price=1"], "input_price and output_price are no prices: give both"),
        ("openai:m", ["input_price=1", "output_price=-1"], "are no prices: give both"),
        ("openai:m", ["concurrency=0"], "concurrency is 0: give 1 or more"),
        ("openai:m", ["extraction=loud"], "extraction is 'loud': give 'direct' or 'reasoned'"),
        ("nobody:m", [], "names no judge: use 'lexical', 'local'"),
        ("judges.py:nothing", [], "there is no file 'judges.py'"),
    ],
)
def test_a_wrong_judge_or_option_is_refused_in_one_sentence(
    judge: str, options: list[str], message: str
) -> None:
    base = ["base_url=http://127.0.0.1:9/v1"] if judge == "openai:m" else []
    with pytest.raises(ConfigError) as caught:
        judge_from(judge, [*base, *options])

    assert message in str(caught.value)
    assert "sk-12" not in str(caught.value)


def test_a_file_that_makes_no_judge_is_told_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "judges.py").write_text(
        "from claimspan.judges import LexicalJudge\n"
        "def broken(): raise KeyError('OUR_KEY')\n"
        "def number(): return 3\n"
        "judge = LexicalJudge()\n"
    )

    def refusal(name: str, *options: str) -> str:
        with pytest.raises(ConfigError) as caught:
            judge_from(f"{tmp_path}/judges.py:{name}", options)
        return str(caught.value)

    assert "makes no judge (KeyError: 'OUR_KEY')" in refusal("broken")
    assert "judge is of type int: give" in refusal("number")
    assert "is a judge with options of its own: leave seed out" in refusal("judge", "seed=1")
    assert isinstance(judge_from(f"{tmp_path}/judges.py:judge", ()), LexicalJudge)


def test_options_without_any_judge_that_takes_them_are_refused() -> None:
    with pytest.raises(ConfigError, match="'lexical' takes no options: leave seed out"):
        judges_from(["lexical"], ["seed=1"])
    with pytest.raises(ConfigError, match="--judge-option is given without a judge"):
        judges_from([], ["seed=1"])


@pytest.mark.parametrize(
    "arguments",
    [
        ("evaluate", "RECORDS", "--judge", "lexical", "--judge-option", "seed=1"),
        ("evaluate", "RECORDS", "--judge-option", "seed"),
        ("estimate", "RECORDS", "--judge", "nobody"),
        ("worker", "--judge", "openai:m", "--judge-option", "seed=x"),
        ("run", "p.py:p", "RECORDS", "--judge-option", "seed=1"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_wrong_option_ends_a_command_with_one_line_and_code_2(
    arguments: tuple[str, ...], records: Path
) -> None:
    command = [str(records) if each == "RECORDS" else each for each in arguments]
    done = call(*command, cwd=records.parent, OPENAI_API_KEY="sk-test")

    assert done.returncode == 2
    assert done.stderr.startswith("claimspan: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_variable_that_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAIMSPAN_JUDGE_OPTIONS", 'seed=1 user="a')

    with pytest.raises(ConfigError, match="CLAIMSPAN_JUDGE_OPTIONS has a quotation mark"):
        default_judge()


def test_options_without_a_judge_are_refused_with_the_way_to_name_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CLAIMSPAN_JUDGE_OPTIONS", "seed=1")

    with pytest.raises(ConfigError, match="no judge that takes any: name it, or set CLAIMSPAN_J"):
        default_judge()


def test_values_are_json_or_else_texts() -> None:
    given = ["a=1", "b=null", "c=true", 'd={"x": [1]}', "e=two words", "f=", "g=a=b", "h=Infinity"]

    assert parse_options(given) == {
        **{"a": 1, "b": None, "c": True, "d": {"x": [1]}, "e": "two words", "f": ""},
        **{"g": "a=b", "h": "Infinity"},
    }


# --- offline ---


@pytest.mark.parametrize("name", ["openai:m", "anthropic:m", "gemini:m", "azure:m", "ollama:m"])
def test_a_judge_for_an_estimate_needs_no_key_and_reaches_no_provider(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "models.example")
    options: dict[str, JsonValue] = {
        "base_url": "https://elsewhere.example/v1",
        "api_key": "k",
        "seed": 1,
    }
    judge = default_judge(name, options=options, offline=True)

    assert isinstance(judge, ModelJudge)
    assert judge.model == "m"
    assert getattr(judge.chat_model.model, "url", "") == NOWHERE
    assert judge.chat_model.secrets == ()


def test_a_model_on_this_machine_costs_nothing_whatever_it_is_called() -> None:
    judge = default_judge("ollama:mistral-small")

    assert isinstance(judge, OpenAIJudge)
    assert judge.price is not None
    assert judge.price.of(10**6, 10**6) == 0


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),  # noqa: S104 - of a variable of Ollama
        ("models.local", "http://models.local:11434/v1"),
        ("models.local:8080", "http://models.local:8080/v1"),
        ("[::1]", "http://[::1]:11434/v1"),
        ("https://models.example/", "https://models.example/v1"),
        ("http://models.local:8080/v1", "http://models.local:8080/v1"),
    ],
)
def test_the_host_of_ollama_is_read_as_ollama_does(
    host: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", host)
    judge = default_judge("ollama:llama3.2")

    assert isinstance(judge, ModelJudge)
    assert getattr(judge.chat_model.model, "url", "") == url


def test_a_judge_that_is_to_be_used_still_needs_its_key() -> None:
    with pytest.raises(ClaimspanError, match="needs a key: set OPENAI_API_KEY"):
        judge_from("openai:m", ())
