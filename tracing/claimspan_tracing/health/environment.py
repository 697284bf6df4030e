"""Checks of what surrounds a monitor: the versions installed, and variables that switch it off."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Final

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


def check_environment() -> Iterator[Finding]:
    """Finds variables of OpenTelemetry that keep every span from leaving the process."""
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
