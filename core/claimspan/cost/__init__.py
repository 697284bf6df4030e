"""Cost of judging: usage (what was spent), pricing (what models charge), budget (limits)."""

from __future__ import annotations

from claimspan.cost.budget import Budget
from claimspan.cost.pricing import Price
from claimspan.cost.usage import Usage

__all__ = ["Budget", "Price", "Usage"]
