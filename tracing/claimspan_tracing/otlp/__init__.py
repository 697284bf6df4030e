"""Spans that others send or keep as OTLP: its bytes and its JSON become spans of the SDK.

The files of our own that ``claimspan report`` reads are in ``trace_file``, which needs no protobuf.
"""

from __future__ import annotations

__all__: list[str] = []
