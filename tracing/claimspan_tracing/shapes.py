"""What shape a value has, for values of which nothing is known beforehand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeGuard

__all__ = ["is_list", "is_mapping"]


def is_mapping(value: object) -> TypeGuard[Mapping[object, object]]:
    """A dict, or something that behaves like one."""
    return isinstance(value, Mapping)


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """A list or a tuple; a text is none."""
    return isinstance(value, list | tuple)
