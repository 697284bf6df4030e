"""The judge that asks a language model behind an OpenAI-compatible endpoint.

``judge`` plans and caches, ``extraction`` and ``checking`` write prompts and read replies,
``chat_endpoint`` gets a reply to a prompt by means of the openai package.
"""

from __future__ import annotations

from claimspan.judges.llm.judge import OpenAIJudge

__all__ = ["OpenAIJudge"]
