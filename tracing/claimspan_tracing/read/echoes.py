"""Tells what a tool has found from what a model has told it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["is_echo"]

MIN_ECHO: Final = 20
"""Characters of an argument from which on a result that repeats it has found nothing: a search for
a name may well find the name alone."""

MAX_LABEL: Final = 40
"""Characters of a label before it, as in "Reflection recorded: "."""


def is_echo(result: str, arguments: Iterable[object]) -> bool:
    """Whether the result of a tool is an argument of its call, as it is or behind a label.

    What a model writes for itself, such as a thought or a plan, would support its own answer.

    Args:
        result: What the tool returned.
        arguments: What the model gave it.
    """
    text = result.strip()
    given = (each.strip() for each in arguments if isinstance(each, str))
    return any(len(each) >= MIN_ECHO and _repeats(text, each) for each in given)


def _repeats(text: str, given: str) -> bool:
    if not text.endswith(given):
        return False
    label = text.removesuffix(given).rstrip()
    return not label or (label.endswith(":") and len(label) <= MAX_LABEL)
