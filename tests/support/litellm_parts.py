"""LiteLLM in the environment that has it: its proxy, and a process that judges by the library."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue

from environments import ROOT, SOURCES, environment
from redis_server import free_port
from web_server import WebServer

__all__ = ["Worker", "litellm_proxy", "litellm_worker"]

SUPPORT: Final = ROOT / "tests" / "support"

OFFLINE: Final = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",
    "LITELLM_LOCAL_BLOG_POSTS": "True",
    "LITELLM_TELEMETRY": "False",
    "LITELLM_MODE": "PRODUCTION",
}
"""The proxy's own switches against calls of anything outside."""

KEYS: Final = """
import litellm
from litellm.proxy._types import ProxyException, UserAPIKeyAuth

NOT_FOUND = (
    "Authentication Error, Invalid proxy server token passed. Received API Key = sk-...4711, "
    "Key Hash (Token) =88dc28d0f030c55ed4ab77ed8faf098196cb1c05df778539800c9f1243fe6b4b. "
    "Unable to find token in cache or `LiteLLM_VerificationTokenTable`"
)

async def check(request, api_key):
    if api_key == "sk-spent-4711":
        raise litellm.BudgetExceededError(current_cost=12.5, max_budget=10.0)
    if api_key == "sk-slow-4711":
        return UserAPIKeyAuth(api_key=api_key, rpm_limit=1)
    if api_key == "sk-team-4711":
        return UserAPIKeyAuth(api_key=api_key)
    raise ProxyException(message=NOT_FOUND, type="token_not_found_in_db", param="key", code=401)
"""
"""The keys of the proxy, which keeps them in a database otherwise; its words are the same."""

_PRIVATE: Final = ("OPENAI_", "ANTHROPIC_", "GEMINI_", "GOOGLE_", "AWS_", "LITELLM_", "CLAIMSPAN_")


def _python() -> Path:
    return environment("litellm", ROOT / "requirements" / "litellm.txt")


class Worker:
    """A process that judges by LiteLLM; see ``litellm_worker.py``."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process: Final = process

    def judge(self, judge: str, **more: JsonValue) -> dict[str, Any]:
        """What a judge makes of the record of ``judged``."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"judge": judge, **more}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the process has ended with {self._process.wait(10)}"
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def litellm_worker(folder: Path, variables: Mapping[str, str]) -> Generator[Worker]:
    """Run the process in a folder, without any key of this one's."""
    clean = {name: each for name, each in os.environ.items() if not name.startswith(_PRIVATE)}
    process = subprocess.Popen(
        [str(_python()), str(SUPPORT / "litellm_worker.py")],
        cwd=folder,
        env=clean | {"PYTHONPATH": os.pathsep.join((SOURCES, str(SUPPORT)))} | dict(variables),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Worker(process)
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(20)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


@contextmanager
def litellm_proxy(folder: Path, models: Mapping[str, Mapping[str, JsonValue]]) -> Generator[str]:
    """Run LiteLLM's proxy in a folder; yields its URL.

    Args:
        folder: For its configuration and its log.
        models: What its ``model_list`` has below ``litellm_params``, by the name of the model.
    """
    settings: dict[str, JsonValue] = {
        "model_list": [
            {"model_name": name, "litellm_params": dict(given)} for name, given in models.items()
        ],
        "litellm_settings": {"telemetry": False, "drop_params": False, "num_retries": 0},
        "router_settings": {"num_retries": 0, "disable_cooldowns": True},
        "general_settings": {
            "master_key": "sk-master-4711",
            "custom_auth": "keys.check",
            "custom_auth_run_common_checks": True,
        },
    }
    # JSON is YAML; the proxy looks for the module of the keys beside its configuration.
    (folder / "config.yaml").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "keys.py").write_text(KEYS, encoding="utf-8")
    port = free_port()
    server = WebServer(f"http://127.0.0.1:{port}", folder)
    command = [str(_python().with_name("litellm")), "--config", "config.yaml"]
    try:
        server.start(
            [*command, "--host", "127.0.0.1", "--port", str(port), "--telemetry", "False"],
            "/health/liveliness",
            **OFFLINE,
        )
        yield server.url
    finally:
        server.kill()
