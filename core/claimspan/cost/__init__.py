"""Cost of judging: usage (what was spent), pricing (what models charge), budget (limits).

Limits of a day may be shared: ``SqliteBudgetStore`` by the processes of a machine,
``RedisBudgetStore`` by those of many.
"""

from __future__ import annotations

from claimspan.cost.budget import Budget
from claimspan.cost.budget_store import BudgetStore, MemoryBudgetStore
from claimspan.cost.pricing import Price
from claimspan.cost.redis_store import RedisBudgetStore
from claimspan.cost.sqlite_store import SqliteBudgetStore
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
