"""Names of all OpenTelemetry instruments that our code creates, read from the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from claimspan_tracing import semconv

__all__ = ["INSTRUMENTS", "SIGNALS"]

_ROOT: Final = Path(__file__).parents[2]

SIGNALS: Final = (_ROOT / "tracing/claimspan_tracing/write/signals.py").read_text("utf-8")
"""The module that creates those of a monitor."""

_SERVICE: Final = (_ROOT / "integrations/claimspan_serve/_judging.py").read_text("utf-8")
_WORKER: Final = (_ROOT / "integrations/claimspan_celery/_processing.py").read_text("utf-8")

INSTRUMENTS: Final = sorted(
    getattr(semconv, constant)
    for source in (SIGNALS, _SERVICE, _WORKER)
    # Some are created in a loop over a table, in which the unit stands behind the name.
    for constant in re.findall(r"create_\w+\(\s*semconv\.(\w+)", source)
    + re.findall(r"semconv\.(\w+): \(\s*(?:\*\()?\"", source)
    + re.findall(r"\(semconv\.(\w+), lambda", source)
)
