"""The structured answer that an agent of LangChain's keeps in its state."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

from claimspan_openinference._messages import parsed
from claimspan_tracing.adapters import is_list, is_mapping, structured_text

__all__ = ["STATE_KEY", "structured_below"]

STATE_KEY: Final = "structured_response"
"""Where the state has it, beside the messages."""

MAX_DEPTH: Final = 4
MAX_FIELDS: Final = 100
"""How far a state is looked into."""


def structured_below(value: object, depth: int = MAX_DEPTH) -> str:
    """Return the structured answer in the update of a graph's state; empty where it has none."""
    found = parsed(value)
    if is_mapping(found) and is_mapping(found.get(STATE_KEY)):
        return structured_text(found[STATE_KEY])
    inner: Iterable[object] = found if is_list(found) else ()
    inner = found.values() if is_mapping(found) else inner
    below = (structured_below(each, depth - 1) for each in islice(inner, MAX_FIELDS) if depth)
    return next((text for text in below if text), "")
