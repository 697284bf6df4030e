"""``claimspan serve``: judges the traces that applications send by OTLP, beside these applications.

It stands behind an OpenTelemetry Collector, as one more exporter of its pipeline, or in front of a
backend, to which it forwards each request untouched. In both places it reads a copy: the
application, its traces and its backend do not notice whether it is there.
"""

from __future__ import annotations

__all__: list[str] = []
