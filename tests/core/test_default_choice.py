"""Which judge is used where none is given; an application's key is not used unasked."""

from __future__ import annotations

import pytest

from claimspan.errors import ConfigError
from claimspan.evaluation.evaluate import evaluate, evaluate_many
from claimspan.judges import LexicalJudge, default_judge

from scripted import ScriptedJudge, make_record


def test_the_default_judge_is_lexical(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLAIMSPAN_JUDGE", raising=False)

    assert isinstance(default_judge(), LexicalJudge)
    assert evaluate(make_record()).judge_name == "lexical"


def test_a_key_of_the_application_does_not_change_the_judge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CLAIMSPAN_JUDGE", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-application")

    evaluation = evaluate(make_record())

    assert (evaluation.judge_name, evaluation.usage.calls) == ("lexical", 0)


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
