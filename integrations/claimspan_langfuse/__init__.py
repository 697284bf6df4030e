"""Writes scores to Langfuse, on the traces that it gets through OpenTelemetry.

As a sink of the monitor, with Langfuse's own environment variables or with arguments::

    monitor = Monitor(sinks=[LangfuseWriter()])
"""

from __future__ import annotations

from claimspan_langfuse._writer import LangfuseWriter

__all__ = ["LangfuseWriter"]
