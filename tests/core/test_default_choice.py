"""Which judge is used where none is given; an application's key is not used unasked."""

from __future__ import annotations

import pytest

from claimspan.errors import ConfigError, MissingExtraError
from claimspan.evaluation.evaluate import evaluate, evaluate_many
from claimspan.judges import LexicalJudge, LocalJudge, choice, default_judge

from scripted import ScriptedJudge, make_record


def hide(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> str | None:
        return None if name == package else name

    monkeypatch.setattr(choice, "find_spec", find)


PACKAGES = ["onnxruntime", "tokenizers", "claimspan_local_weights"]


def test_the_default_judge_reads_if_its_packages_are_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CLAIMSPAN_JUDGE")

    assert isinstance(default_judge(), LocalJudge)
    assert evaluate(make_record()).judge_name.startswith("local")


@pytest.mark.parametrize("package", PACKAGES)
def test_the_default_judge_compares_words_if_a_package_of_the_local_one_is_missing(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CLAIMSPAN_JUDGE")
    hide(package, monkeypatch)

    assert isinstance(default_judge(), LexicalJudge)
    assert evaluate(make_record()).judge_name == "lexical"


def test_a_key_of_the_application_does_not_change_the_judge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CLAIMSPAN_JUDGE")
    before = default_judge()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-application")

    evaluation = evaluate(make_record())

    assert (evaluation.judge_name, evaluation.usage.calls) == (before.name, 0)


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


@pytest.mark.parametrize("package", PACKAGES)
def test_the_local_judge_is_refused_at_set_up_where_a_package_of_it_is_missing(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(package, monkeypatch)

    with pytest.raises(MissingExtraError, match=rf"{package}.*pip install 'claimspan\[local\]'"):
        default_judge("local")


def test_a_model_of_ones_own_needs_no_weights_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    hide("claimspan_local_weights", monkeypatch)

    assert isinstance(default_judge("local:some/model"), LocalJudge)


def test_a_judge_without_its_key_says_which_variable_to_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)

    with pytest.raises(ConfigError, match="set OPENAI_API_KEY"):
        default_judge("openai:gpt-4o-mini")


def test_a_given_judge_is_taken_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CLAIMSPAN_JUDGE", "oracle")

    assert evaluate(make_record(), judge=ScriptedJudge()).judge_name == "scripted"
