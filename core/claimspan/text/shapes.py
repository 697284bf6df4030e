"""Type guards for values of unknown shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeGuard

__all__ = ["is_list", "is_mapping"]

# Not ``list | tuple`` where it is asked, which makes a new object each time.
_LISTS: Final = (list, tuple)
_NO_MAPPINGS: Final = frozenset({str, int, float, bool, bytes, type(None), list, tuple})


def is_mapping(value: object) -> TypeGuard[Mapping[object, object]]:
    """Whether the value is a dict, or behaves like one."""
    # The usual classes first: asking an abstract one takes five times as long.
    kind = type(value)
    return kind is dict or (kind not in _NO_MAPPINGS and isinstance(value, (dict, Mapping)))


def is_list(value: object) -> TypeGuard[Sequence[object]]:
    """Whether the value is a list or a tuple; a str is neither."""
    return isinstance(value, _LISTS)
