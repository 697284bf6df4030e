"""The judge that asks a language model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

from claimspan.judges.llm.judge import OpenAIJudge

__all__ = ["OpenAIJudge"]
