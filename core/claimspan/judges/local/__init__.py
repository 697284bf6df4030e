"""The judge that runs a small cross-encoder on the CPU."""

from __future__ import annotations

from claimspan.judges.local.judge import LocalJudge

__all__ = ["LocalJudge"]
