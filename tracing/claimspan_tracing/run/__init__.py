"""Runs a user's pipeline over a dataset, as ``claimspan run`` does.

``files`` reads the questions and keeps the results, ``pipeline`` is the seam by which an
integration knows its framework's pipelines, ``functions`` serves plain functions. ``calls`` asks on
threads that may hang, ``collecting`` brings each record back to its question, ``session`` does one
with the other, ``entries`` is for the report, and ``command`` is the command.
"""

from __future__ import annotations

__all__: list[str] = []
