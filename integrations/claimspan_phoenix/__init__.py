"""Writes scores to Phoenix as annotations: columns of its tables, and pills on its spans.

As a sink of the monitor, with Phoenix's own environment variables or with arguments::

    monitor = Monitor(sinks=[PhoenixWriter()])
"""

from __future__ import annotations

from claimspan_phoenix._writer import PhoenixWriter

__all__ = ["PhoenixWriter"]
