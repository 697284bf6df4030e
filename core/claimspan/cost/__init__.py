"""Cost of judging: usage (spent so far), pricing (of the models), budget (limits).

Limits of a day may be shared (``stores``): ``SqliteBudgetStore`` by the processes of a machine,
``RedisBudgetStore`` by those of many.
"""

from __future__ import annotations

from claimspan.cost.budget import Budget
from claimspan.cost.pricing import Price
from claimspan.cost.stores import (
    BudgetStore,
    MemoryBudgetStore,
    RedisBudgetStore,
    SqliteBudgetStore,
)
from claimspan.cost.usage import Usage

__all__ = [
    "Budget",
    "BudgetStore",
    "MemoryBudgetStore",
    "Price",
    "RedisBudgetStore",
    "SqliteBudgetStore",
    "Usage",
]
