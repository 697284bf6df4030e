"""Checks of what surrounds a monitor: versions, and variables that keep it or its judge off."""

from __future__ import annotations

import ipaddress
import os
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from claimspan.judges import Judge
from claimspan_tracing.engine.settings import Settings
from claimspan_tracing.health.findings import Finding

__all__ = ["check_environment", "check_versions"]

_PACKAGES: Final = (
    *("claimspan", "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"),
    *("langchain-core", "langgraph", "llama-index-core", "haystack-ai", "openai", "onnxruntime"),
)
"""What a report of a fault should name, in the order of the pipeline from us to the judge."""

_TRUE: Final = frozenset({"true", "1", "yes", "on"})


def check_versions() -> Iterator[Finding]:
    """Names the versions of what scores depend on."""
    found = [f"Python {platform.python_version()}"]
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    yield Finding("versions", "ok", ", ".join(found))


def check_environment(settings: Settings) -> Iterator[Finding]:
    """Finds variables that keep every span from leaving the process, or the judge off its model.

    Args:
        settings: Its judge, and whether records go elsewhere.
    """
    if settings.dispatcher is None:
        yield from _proxies(settings.judge)
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() in _TRUE:
        yield Finding(
            "environment",
            "failed",
            "OTEL_SDK_DISABLED switches OpenTelemetry off, so there are no spans and no scores",
            "unset OTEL_SDK_DISABLED where you want scores",
        )
    if os.environ.get("OTEL_TRACES_SAMPLER", "").strip().lower().endswith("always_off"):
        yield Finding(
            "environment",
            "failed",
            "OTEL_TRACES_SAMPLER drops every trace, and no score can be on a span that is dropped",
            "set OTEL_TRACES_SAMPLER=parentbased_always_on, and Monitor(sample=...) for judging",
        )
    if os.environ.get("OTEL_TRACES_EXPORTER", "").strip().lower() == "none":
        yield Finding(
            "environment",
            "warning",
            "OTEL_TRACES_EXPORTER=none: a provider that reads this variable exports nothing",
            "unset it, or give Monitor(tracer_provider=...) one with an exporter",
        )


def _proxies(judge: Judge) -> Iterator[Finding]:
    """Whether a proxy is set that the judge's requests do not take; its address is not told."""
    address = _own_address(judge)
    scheme, host = urlsplit(address).scheme, urlsplit(address).hostname or ""
    given = getproxies_environment()
    kind = next((each for each in (scheme, "all") if host and each in given), None)
    if kind is None or _is_near(host) or proxy_bypass(host):
        return
    name = f"{kind}_proxy"
    variable = name.upper() if os.environ.get(name.upper()) else name
    yield Finding(
        "environment",
        "warning",
        f"{variable} is set, and the judge ignores proxies: its requests go straight to {host}",
        "if they may go only through the proxy, set CLAIMSPAN_TRUST_ENV=1, or give --judge-option "
        "trust_env=true, or OpenAIJudge(trust_env=True)",
    )


def _own_address(judge: Judge) -> str:
    """The URL of a judge that connects by itself and trusts no environment; empty for others."""
    # A calibrated judge has the one that asks the model behind it.
    judge = getattr(judge, "judge", judge)
    if not hasattr(judge, "chat_model"):
        return ""
    # Here: with the client of OpenAI it takes half a second, which no other judge needs.
    from claimspan.judges.llm.judge import ModelJudge
    from claimspan.judges.llm.openai_chat import OpenAIChat

    chat = judge.chat_model.model if isinstance(judge, ModelJudge) else None
    return chat.url if isinstance(chat, OpenAIChat) and chat.ignores_proxies else ""


def _is_near(host: str) -> bool:
    """Whether a host is on this machine or in its network, which no proxy stands before."""
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".internal", ".localhost"))
