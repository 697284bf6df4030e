"""Where OpenTelemetry's variables send the spans of a provider of our own."""

from __future__ import annotations

import os
import re
from typing import Final

__all__ = [
    "DEFAULT_FILE",
    "ENDPOINT_VARIABLES",
    "NO_EXPORTER",
    "described_destination",
    "is_switched_off",
    "named_exporters",
    "protocol",
    "sends_spans",
    "without_scheme",
]

DEFAULT_FILE: Final = "claimspan-traces.jsonl"
"""Trace file of ``configure``, in the working directory."""

ENDPOINT_VARIABLES: Final = (
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
)
"""Name an endpoint for spans; the first one that is set counts."""

PROTOCOL_VARIABLES: Final = (
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
)
"""Name the protocol of OTLP; the first one that is set counts."""

DEFAULT_PROTOCOL: Final = "http/protobuf"
"""What the specification recommends, and what Python's SDK takes."""

NO_EXPORTER: Final = "none"
"""What ``OTEL_TRACES_EXPORTER`` says where nothing is to be exported."""


def is_switched_off() -> bool:
    """Whether ``OTEL_SDK_DISABLED`` switches OpenTelemetry off."""
    return os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


def sends_spans() -> bool:
    """Whether the environment sends spans anywhere."""
    names = named_exporters()
    return not is_switched_off() and names is not None and names != [NO_EXPORTER]


def named_exporters() -> list[str] | None:
    """Return the exporters that the environment names, each once; None where it names none.

    An endpoint alone stands for the exporter of OTLP.
    """
    given = os.environ.get("OTEL_TRACES_EXPORTER", "")
    names = list(dict.fromkeys(name.strip() for name in given.split(",") if name.strip()))
    if names:
        return names
    return ["otlp"] if any(map(os.environ.get, ENDPOINT_VARIABLES)) else None


def protocol() -> str:
    """Return the protocol that spans are sent by."""
    given = (os.environ.get(name, "").strip() for name in PROTOCOL_VARIABLES)
    return next(filter(None, given), DEFAULT_PROTOCOL)


def without_scheme(endpoint: str | None) -> str | None:
    """Return which address of OTLP over HTTP begins with neither http nor https; None if none.

    Args:
        endpoint: One that is given in code; without it the environment's counts.
    """
    given = (
        {"the endpoint": endpoint}
        if endpoint
        else {n: os.environ.get(n) for n in ENDPOINT_VARIABLES}
    )
    where, address = next(((n, a) for n, a in given.items() if a), ("", ""))
    is_address = address.strip().lower().startswith(("http://", "https://"))
    return where if where and not is_address else None


def described_destination() -> str:
    """Return where a provider of our own sends spans, in words that fit after ``which``."""
    names = named_exporters()
    if is_switched_off():
        return "exports nothing, since OTEL_SDK_DISABLED is set"
    if names is None:
        return f"writes {DEFAULT_FILE} in the working directory"
    if names == ["otlp"]:
        return f"sends to {_host()}"
    if names == [NO_EXPORTER]:
        return "exports nothing, since OTEL_TRACES_EXPORTER is none"
    return f"exports to {', '.join(names)}, as OTEL_TRACES_EXPORTER says"


def _host() -> str:
    """Host and port of the endpoint; a key may stand in the path, the query and before an @."""
    given = next(filter(None, map(os.environ.get, ENDPOINT_VARIABLES)), "")
    found = re.match(r"(?:\w+://)?(?:[^/?#]*@)?([^/?#]+)", given.strip())
    return found[1] if found else "this machine, the default of OTLP"
