"""How many bytes the inputs and outputs of runs keep alive, measured on the caller's thread."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final, TypeGuard

from claimspan_tracing.capture.reader import Reader
from claimspan_tracing.shapes import is_list

__all__ = ["MAX_ITEMS", "weigh"]

MAX_ITEMS: Final = 256
"""Items of one value that are looked at; the others count as much on the average."""

MAX_DEPTH: Final = 8
"""Levels of lists, mappings and objects that are looked at."""

SHARED_TEXT: Final = 256
"""A text that takes so many bytes is counted once for each tree, as the runs of a pipeline hand it
on. To remember shorter ones would take more memory than they do."""

ITEM_BYTES: Final = 48
"""What an item takes beside its texts: its place in the list or mapping, and a small object."""

_KEYS: Final = dict[object, object].keys
_VALUES: Final = dict[object, object].values
_SMALL: Final = (type(None), bool, int, float)


def _is_dict(value: object) -> TypeGuard[dict[object, object]]:
    return isinstance(value, dict)


def weigh(value: object, reader: Reader, seen: set[int]) -> int:
    """Return the approximate bytes that a value keeps alive, in a bounded time.

    Dicts, lists and tuples are looked into. Any other object is the reader's to take apart.

    Args:
        value: Input or output of a run.
        reader: Knows the framework's objects.
        seen: Ids of the texts and objects of the same tree that were counted before; added to.
    """
    return _Scale(reader, seen).weigh(value, MAX_DEPTH)


class _Scale:
    """Weighs one value, and looks at a bounded number of items in it."""

    __slots__ = ("_left", "_reader", "_seen")

    def __init__(self, reader: Reader, seen: set[int]) -> None:
        self._reader = reader
        self._seen = seen
        self._left = MAX_ITEMS

    def weigh(self, value: object, depth: int) -> int:
        if isinstance(value, str):
            # Takes constant time, and knows that some alphabets take 2 or 4 bytes a character.
            size = str.__sizeof__(value)
            return size if size < SHARED_TEXT or self._is_new(value) else 0
        if isinstance(value, _SMALL):
            return 0
        if _is_dict(value):
            return self._weigh_mapping(value, depth)
        if is_list(value):
            return self._weigh_list(value, depth)
        if not self._is_new(value):
            return 0
        if isinstance(value, bytes | bytearray):
            return len(value)
        parts = self._reader.parts(value) if depth and self._left else ()
        return ITEM_BYTES + sum(self.weigh(part, depth - 1) for part in parts)

    def _is_new(self, value: object) -> bool:
        # The tree keeps the value alive, so that no other one gets its id.
        before = len(self._seen)
        self._seen.add(id(value))
        return len(self._seen) > before

    def _weigh_mapping(self, value: dict[object, object], depth: int) -> int:
        if not depth or not self._left:
            return len(value) * ITEM_BYTES
        # Both copies are made in one step: another thread may change the mapping meanwhile.
        keys = tuple(islice(_KEYS(value), self._left))
        items = tuple(islice(_VALUES(value), self._left))
        texts = sum(str.__sizeof__(key) for key in keys if isinstance(key, str))
        return texts + self._weigh_items(items, len(value), depth)

    def _weigh_list(self, value: Sequence[object], depth: int) -> int:
        if not depth or not self._left:
            return len(value) * ITEM_BYTES
        return self._weigh_items(tuple(islice(value, self._left)), len(value), depth)

    def _weigh_items(self, items: tuple[object, ...], count: int, depth: int) -> int:
        self._left -= len(items)
        size = 0
        for item in items:
            size += self.weigh(item, depth - 1)
        if len(items) < count:
            size = size * count // len(items)
        return size + count * ITEM_BYTES
