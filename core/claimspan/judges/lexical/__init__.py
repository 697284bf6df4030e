"""The judge that compares words."""

from __future__ import annotations

from claimspan.judges.lexical.judge import LexicalJudge

__all__ = ["LexicalJudge"]
