"""Decides whether a response declines to answer."""

from __future__ import annotations

from typing import Final

from claimspan.text.abstention import abstains

__all__ = ["MAX_ABSTENTION_CHARACTERS", "has_abstained"]

MAX_ABSTENTION_CHARACTERS: Final = 600
"""A longer response says more than that it cannot answer, however it begins."""


def has_abstained(response: str) -> bool:
    """Whether a response declines to answer, and asserts nothing that could be true or false."""
    return len(response) <= MAX_ABSTENTION_CHARACTERS and abstains(response)
