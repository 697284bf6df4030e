"""Runs a user's pipeline over a dataset, as ``claimspan run`` does.

``dataset`` reads the questions, ``factories`` tells a pipeline from a function that makes one,
``pipeline`` is the seam by which an integration knows its framework's pipelines, ``functions``
serves plain functions. ``calls`` asks
on threads that may hang, ``collecting`` brings each record back to its question, ``runner`` does
one with the other, ``run_file`` keeps what is done, and ``command`` is the command.
"""

from __future__ import annotations

__all__: list[str] = []
