"""What judging costs, what it may cost, and what models charge."""

from __future__ import annotations

from claimspan.cost.budget import Budget
from claimspan.cost.pricing import Price
from claimspan.cost.usage import Usage

__all__ = ["Budget", "Price", "Usage"]
