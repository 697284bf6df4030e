"""The monitor of an application, apart from what LangGraph's server loads by its path."""

from __future__ import annotations

from claimspan.judges import LexicalJudge
from claimspan_tracing import Monitor

__all__ = ["monitor"]

monitor = Monitor(LexicalJudge(sure_from=0.5))
