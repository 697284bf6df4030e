"""Prices of models: a small table of list prices, and a type for prices of the user's own."""

from __future__ import annotations

import re
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["PRICES", "Price", "price_of"]


class Price(BaseModel):
    """Price of a model in US dollars per million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input: float = Field(ge=0.0)
    """Price of a million prompt tokens that are not cached."""

    output: float = Field(ge=0.0)
    """Price of a million completion tokens."""

    def of(self, input_tokens: int, output_tokens: int) -> float:
        """The price of so many tokens in US dollars."""
        return (input_tokens * self.input + output_tokens * self.output) / 1e6


# List prices of the providers for calls that are neither batched nor cached, as of late 2025; those
# of Gemini and Claude are for prompts below 200,000 tokens. They change: pass `price=` where money
# matters.
PRICES: Final = {
    "gpt-4o": Price(input=2.5, output=10.0),
    "gpt-4o-2024-05-13": Price(input=5.0, output=15.0),
    "gpt-4o-mini": Price(input=0.15, output=0.6),
    "gpt-4.1": Price(input=2.0, output=8.0),
    "gpt-4.1-mini": Price(input=0.4, output=1.6),
    "gpt-4.1-nano": Price(input=0.1, output=0.4),
    "gpt-5": Price(input=1.25, output=10.0),
    "gpt-5-mini": Price(input=0.25, output=2.0),
    "gpt-5-nano": Price(input=0.05, output=0.4),
    "o3": Price(input=2.0, output=8.0),
    "o3-mini": Price(input=1.1, output=4.4),
    "o4-mini": Price(input=1.1, output=4.4),
    "claude-opus-4-5": Price(input=5.0, output=25.0),
    "claude-sonnet-4-5": Price(input=3.0, output=15.0),
    "claude-sonnet-4": Price(input=3.0, output=15.0),
    "claude-haiku-4-5": Price(input=1.0, output=5.0),
    "gemini-2.5-pro": Price(input=1.25, output=10.0),
    "gemini-2.5-flash": Price(input=0.3, output=2.5),
    "gemini-2.5-flash-lite": Price(input=0.1, output=0.4),
    "mistral-small": Price(input=0.1, output=0.3),
    "mistral-medium": Price(input=0.4, output=2.0),
    "deepseek-chat": Price(input=0.28, output=0.42),
    "deepseek-reasoner": Price(input=0.28, output=0.42),
}
"""Prices by model; a version of a model costs as much as its model, unless it is here itself."""

# `openai/`, `azure/`, `models/`, `vertex_ai/`, `openrouter/anthropic/`; Bedrock's `us.anthropic.`.
_PLACE: Final = re.compile(r"^(?:.*/)?(?:[a-z-]+\.)*")
_VERSION: Final = re.compile(r"(?:-latest|[-@](?:\d{4}-\d{2}-\d{2}|\d{8}))?(?:-v\d+(?::\d+)?)?$")
_FINE_TUNED: Final = re.compile(r"(?:^|/)ft:")


def price_of(model: str) -> Price | None:
    """The list price of a model, or None if the table does not have it.

    Any provider's or gateway's way to write its name will do: with a path before it, with dots or
    hyphens in its number, with a date or a version behind it. A fine-tuned model has a price of its
    own, and is unknown; so is a model on a machine of the user's.
    """
    name = model.strip().lower()
    if _FINE_TUNED.search(name) or name.startswith(_OWN_MACHINE):
        return None
    name = _key(_PLACE.sub("", name))
    return _BY_KEY.get(name) or _BY_KEY.get(_VERSION.sub("", name))


_OWN_MACHINE: Final = ("ollama/", "ollama_chat/", "hosted_vllm/", "lm_studio/")
"""Prefixes by which LiteLLM finds models that are free of charge."""


def _key(name: str) -> str:
    """A name without the difference between ``claude-sonnet-4.5`` and ``claude-sonnet-4-5``."""
    return name.replace(".", "-")


_BY_KEY: Final = {_key(name): price for name, price in PRICES.items()}
