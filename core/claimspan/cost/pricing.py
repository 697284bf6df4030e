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


# List prices of OpenAI for calls that are not batched, as of 2025. They change: pass `price=` where
# money matters.
PRICES: Final = {
    "gpt-4o": Price(input=2.5, output=10.0),
    "gpt-4o-mini": Price(input=0.15, output=0.6),
    "gpt-4.1": Price(input=2.0, output=8.0),
    "gpt-4.1-mini": Price(input=0.4, output=1.6),
    "gpt-4.1-nano": Price(input=0.1, output=0.4),
    "gpt-5": Price(input=1.25, output=10.0),
    "gpt-5-mini": Price(input=0.25, output=2.0),
    "gpt-5-nano": Price(input=0.05, output=0.4),
    "o3": Price(input=2.0, output=8.0),
    "o4-mini": Price(input=1.1, output=4.4),
}
"""Prices by model; a dated version costs as much as its model."""

_DATE: Final = re.compile(r"-\d{4}-\d{2}-\d{2}$")


def price_of(model: str) -> Price | None:
    """The price of a model, or None where the table does not have it."""
    return PRICES.get(_DATE.sub("", model))
