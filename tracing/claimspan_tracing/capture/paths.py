"""Keys and dotted paths that say where the query or the response is in an input or output."""

from __future__ import annotations

from collections.abc import Callable

from claimspan.text.shapes import is_list, is_mapping

__all__ = ["Key", "value_at"]

Key = str | Callable[..., object]
"""A key, a dotted path, or a callable that takes the whole input or output."""


def value_at(value: object, key: Key) -> object:
    """Return the value under a key or a dotted path, or what the callable returns for the input.

    Args:
        value: The whole input or output.
        key: A key, a dotted path whose steps are keys, indexes of lists or attributes, or a
            callable. A key wins over a path of the same spelling.

    Returns:
        None where a step leads nowhere.
    """
    if callable(key):
        return key(value)
    # "messages.0" may be the name of a key, too.
    if is_mapping(value) and key in value:
        return value[key]
    for step in key.split("."):
        value = _step(value, step)
    return value


def _step(value: object, step: str) -> object:
    if is_mapping(value):
        return value.get(step)
    if is_list(value) and step.lstrip("-").isdigit():
        index = int(step)
        return value[index] if -len(value) <= index < len(value) else None
    return getattr(value, step, None)
