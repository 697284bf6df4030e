"""Where OpenTelemetry's variables send the spans of a provider of our own."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Final

__all__ = [
    "DEFAULT_FILE",
    "NO_EXPORTER",
    "described_destination",
    "endpoint_variable",
    "is_switched_off",
    "named_exporters",
    "protocol",
    "sends_spans",
]

DEFAULT_FILE: Final = "claimspan-traces.jsonl"
"""Trace file of ``configure``, in the working directory."""

NO_EXPORTER: Final = "none"
"""What ``OTEL_TRACES_EXPORTER`` says if nothing is to be exported."""

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")


def _first_set(variables: Sequence[str]) -> tuple[str, str]:
    """The first variable that is set, and its value; two empty texts if none is."""
    given = ((name, os.environ.get(name, "").strip()) for name in variables)
    return next((each for each in given if each[1]), ("", ""))


def endpoint_variable() -> tuple[str, str]:
    """Return the variable that names the endpoint of spans, and the address; empty if none does."""
    return _first_set(_ENDPOINTS)


def protocol() -> str:
    """Return the protocol that spans are sent by: what the specification recommends, if none."""
    return _first_set(_PROTOCOLS)[1] or "http/protobuf"


def is_switched_off() -> bool:
    """Whether ``OTEL_SDK_DISABLED`` switches OpenTelemetry off."""
    return os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


def named_exporters() -> list[str] | None:
    """Return the exporters that the environment names, each once; None if it names none.

    An endpoint alone stands for the exporter of OTLP.
    """
    given = os.environ.get("OTEL_TRACES_EXPORTER", "").split(",")
    names = list(dict.fromkeys(name.strip() for name in given if name.strip()))
    return names or (["otlp"] if endpoint_variable()[1] else None)


def sends_spans() -> bool:
    """Whether the environment sends spans anywhere."""
    return not is_switched_off() and named_exporters() not in (None, [NO_EXPORTER])


def described_destination() -> str:
    """Return where a provider of our own sends spans, in words that fit after ``which``."""
    names = named_exporters()
    if is_switched_off():
        return "exports nothing, since OTEL_SDK_DISABLED is set"
    if names is None:
        return f"writes {DEFAULT_FILE} in the working directory"
    if names == [NO_EXPORTER]:
        return "exports nothing, since OTEL_TRACES_EXPORTER is none"
    if names != ["otlp"]:
        return f"exports to {', '.join(names)}, as OTEL_TRACES_EXPORTER says"
    # Host and port alone: a key may stand in the path, in the query and before an @.
    host = re.match(r"(?:\w+://)?(?:[^/?#]*@)?([^/?#]+)", endpoint_variable()[1])
    return f"sends to {host[1] if host else 'this machine, the default of OTLP'}"
