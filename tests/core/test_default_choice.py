"""Which judge is used where none is given; an application's key is not used unasked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec

import pytest

from claimspan import judges
from claimspan.errors import ConfigError
from claimspan.evaluation.evaluate import evaluate, evaluate_many
from claimspan.judges import LexicalJudge, default_judge

from scripted import ScriptedJudge, make_record


@pytest.fixture
def nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The environment of a user who has chosen no judge."""
    monkeypatch.delenv("CLAIMSPAN_JUDGE", raising=False)
    return monkeypatch


def _without(package: str) -> Callable[[str], object]:
    """Finds every package but one, as where that one is not installed."""
    return lambda name: None if name == package else find_spec(name)


def test_the_default_judge_is_the_local_one_where_its_packages_are_installed(
    nothing_chosen: pytest.MonkeyPatch,
) -> None:
    assert default_judge().name == "local"
    assert evaluate(make_record()).judge_name == "local"


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers", "numpy"])
def test_the_default_judge_is_lexical_where_one_of_them_is_missing(
    nothing_chosen: pytest.MonkeyPatch, package: str
) -> None:
    nothing_chosen.setattr(judges, "find_spec", _without(package))

    assert isinstance(default_judge(), LexicalJudge)
    assert evaluate(make_record()).judge_name == "lexical"


def test_choosing_the_default_judge_imports_no_runtime() -> None:
    script = (
        "import sys\n"
        "from claimspan.judges import default_judge\n"
        "print(default_judge().name,\n"
        "      [name for name in ('onnxruntime', 'tokenizers', 'numpy') if name in sys.modules])"
    )
    environment = {name: value for name, value in os.environ.items() if name != "CLAIMSPAN_JUDGE"}
    ended = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True, text=True, check=True, timeout=120, env=environment,
    )  # fmt: skip

    assert ended.stdout.strip() == "local []"


def test_a_key_of_the_application_does_not_change_the_judge(
    nothing_chosen: pytest.MonkeyPatch,
) -> None:
    nothing_chosen.setenv("OPENAI_API_KEY", "sk-of-the-application")

    evaluation = evaluate(make_record())

    assert (evaluation.judge_name, evaluation.usage.calls) == ("local", 0)


@pytest.mark.parametrize("name", ["lexical", " Lexical "])
def test_the_default_judge_can_be_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("CLAIMSPAN_JUDGE", name)

    assert isinstance(default_judge(), LexicalJudge)


def test_an_unknown_default_judge_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAIMSPAN_JUDGE", "oracle")

    with pytest.raises(ConfigError, match=r"CLAIMSPAN_JUDGE='oracle' names no judge"):
        evaluate(make_record())
    with pytest.raises(ConfigError, match="CLAIMSPAN_JUDGE"):
        evaluate_many([])


def test_a_given_judge_is_taken_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CLAIMSPAN_JUDGE", "oracle")

    assert evaluate(make_record(), judge=ScriptedJudge()).judge_name == "scripted"
