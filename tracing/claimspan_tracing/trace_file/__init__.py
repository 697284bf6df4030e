"""The trace file: OTLP JSON lines, written without a backend, and read for reports and statistics.

``writing`` appends spans, ``spans`` reads them, skips broken parts and counts them, and ``records``
makes the entries of a report of them.
"""

from __future__ import annotations

__all__: list[str] = []
