"""Type guards for values of unknown shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeGuard

__all__ = ["is_list", "is_mapping"]

# Not ``list | tuple`` where it is asked, which makes a new object each time.
_LISTS: Final = (list, tuple)


def is_mapping(value: object) -> TypeGuard[Mapping[object, object]]:
    """Whether the value is a dict, or behaves like one."""
    # Of each class once: asking an abstract one takes five times as long.
    return _is_mapping(type(value))  # type: ignore[arg-type]  # hashable


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Whether the value is a list or a tuple; a str is neither."""
    return isinstance(value, _LISTS)


@lru_cache(maxsize=1024)
def _is_mapping(kind: type) -> bool:
    return issubclass(kind, Mapping)
