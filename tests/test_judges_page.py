"""docs/judges.md is true: its code runs, and each string reaches its provider as it documents."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import pytest

from claimspan.errors import ConfigError, MissingExtraError
from claimspan.evaluation.evaluate import evaluate
from claimspan.judges import ModelJudge, OpenAIJudge, default_judge
from claimspan.judges.choice import PROVIDERS

from judge_server import judge_server, reply_to
from judged import RECORD

PAGE: Final = Path(__file__).parents[1] / "docs" / "judges.md"
TEXT: Final = PAGE.read_text(encoding="utf-8")
BLOCKS: Final = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)

VARIABLES: Final = re.compile(r"[A-Z][A-Z_]+_(?:API_KEY|BASE_URL|HOST|ENDPOINT|API_VERSION)")


async def our_gateway(messages: object, max_tokens: int) -> dict[str, object]:
    """The gateway that the page's own model asks: it replies as a judge's model does."""
    assert max_tokens > 0
    assert isinstance(messages, list)
    text = reply_to(json.loads(messages[-1]["content"]))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - JSON
    return {"text": text, "stopped_by": "stop", "sent": 100, "got": 10}


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.splitlines()[0])
def test_every_python_block_runs(block: str) -> None:
    names: dict[str, object] = {"our_gateway": our_gateway}
    exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102 - a block of the page

    judge = names.get("judge")
    if isinstance(judge, ModelJudge) and not isinstance(judge, OpenAIJudge):
        evaluation = evaluate(RECORD, judge=judge)
        assert evaluation.metrics["faithfulness"] == 1.0
        assert evaluation.judge_version.startswith("our-model-7b/")
        assert evaluation.usage.input_tokens == 100 * evaluation.usage.calls


def test_the_page_names_every_provider_and_its_variables() -> None:
    for name, provider in PROVIDERS.items():
        assert f"`{name}:" in TEXT, name
        for variable in (*provider.keys, *filter(None, [provider.url_variable])):
            assert variable in TEXT, variable


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_string_reaches_its_provider_with_the_key_of_its_variable(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for other in VARIABLES.findall(TEXT):
        monkeypatch.delenv(other, raising=False)
    provider = PROVIDERS[name]
    for variable in provider.keys[:1]:
        monkeypatch.setenv(variable, "sk-canary-4711")

    with judge_server() as server:
        judge = default_judge(f"{name}:some-model", options={"base_url": server.url})
        evaluation = evaluate(RECORD, judge=judge)

    assert evaluation.metrics["faithfulness"] == 1.0
    assert judge.name == (provider.name or name)
    keys = {each.headers.get("authorization") for each in server.exchanges}
    assert keys == {"Bearer sk-canary-4711" if provider.keys else "Bearer none"}
    assert {str(each.request["model"]) for each in server.exchanges} == {"some-model"}


@pytest.mark.parametrize("name", [each for each, found in PROVIDERS.items() if found.keys])
def test_a_string_without_its_key_says_which_variable_to_set(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in (*PROVIDERS[name].keys, "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)

    with pytest.raises(ConfigError, match=f"'{name}:m' needs a key: set {PROVIDERS[name].keys[0]}"):
        default_judge(f"{name}:m")


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0:11434", "http://127.0.0.1:11434/v1"),
        ("http://10.0.0.7:11434", "http://10.0.0.7:11434/v1"),
        ("https://models.internal/v1/", "https://models.internal/v1"),
    ],
)
def test_ollamas_host_is_read_as_ollama_reads_it(
    host: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", host)
    judge = default_judge("ollama:qwen3:8b")

    assert isinstance(judge, OpenAIJudge)
    assert judge.model == "qwen3:8b"
    assert judge.chat_model.model.url == address  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - an OpenAIChat


@pytest.mark.parametrize("version", ["", "2024-10-21"])
def test_a_deployment_of_azure_is_reached_with_its_key_in_its_header(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "sk-canary-4711")
    monkeypatch.setenv("OPENAI_API_VERSION", version)
    with judge_server() as server:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.url.removesuffix("/v1"))
        judge = default_judge("azure:judge-prod")
        evaluation = evaluate(RECORD, judge=judge)

    assert evaluation.metrics["faithfulness"] == 1.0
    assert judge.name == "azure.ai.openai"
    for each in server.exchanges:
        path = f"/openai/deployments/judge-prod/chat/completions?api-version={version}"
        assert each.path == (path if version else "/openai/v1/chat/completions")
        assert each.headers["api-key"] == "sk-canary-4711"
        assert "authorization" not in each.headers


def test_an_unknown_prefix_lists_the_known_ones_and_the_extra_for_others() -> None:
    with pytest.raises(ConfigError) as caught:
        default_judge("cohere:command-r")

    for name in (*PROVIDERS, "azure", "bedrock", "vertex"):
        assert f"'{name}:MODEL'" in str(caught.value)
    assert "litellm:PROVIDER/MODEL" in str(caught.value)
    assert "pip install 'claimspan[litellm]'" in str(caught.value)


@pytest.mark.parametrize("name", ["bedrock:m", "vertex:m", "litellm:cohere/m"])
def test_what_litellm_serves_names_its_extra_if_it_is_not_there(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_nothing(_: str) -> None:
        return None

    monkeypatch.setattr("claimspan.judges.llm.litellm_chat.find_spec", find_nothing)

    with pytest.raises(MissingExtraError, match=r"claimspan\[litellm\]"):
        default_judge(name)
