"""How many bytes the inputs and outputs of runs keep alive, measured on the caller's thread."""

from __future__ import annotations

from itertools import islice
from typing import Final, TypeGuard

from claimspan_tracing.capture.reader import Reader
from claimspan_tracing.shapes import is_list

__all__ = ["MAX_ITEMS", "weigh"]

MAX_ITEMS: Final = 256
"""Items of one value that are looked at; the others count as much on the average."""

SHARED_TEXT: Final = 256
"""A text of so many characters is counted once for each tree, as the runs of a pipeline hand it on.
To remember shorter ones would take more memory than they do."""

ITEM_BYTES: Final = 64
"""What an item takes beside a long text: its place in a list or mapping, and a small object."""

_VALUES: Final = dict[object, object].values
_CONTAINERS: Final = (dict, list, tuple)
_SMALL: Final = frozenset({type(None), bool, int, float})


def weigh(value: object, reader: Reader, seen: set[int]) -> int:
    """Return the approximate bytes that a value keeps alive, in a bounded time.

    Dicts, lists and tuples are looked into. Any other object is the reader's to take apart.

    Args:
        value: Input or output of a run.
        reader: Knows the framework's objects.
        seen: Ids of the texts and objects of the same tree that were counted before; added to. The
            tree keeps them alive, so that no other object gets their id.
    """
    return _weigh([value], reader, seen, MAX_ITEMS)


def _weigh(waiting: list[object], reader: Reader, seen: set[int], left: int) -> int:
    """Weigh some values, and look at ``left`` items in them."""
    # One loop over what is still to be looked at: a call for each item would take most of the time.
    size = 0
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            size += len(item) if len(item) < SHARED_TEXT else _weigh_text(item, seen)
        elif type(item) in _SMALL:
            continue
        elif _is_container(item):
            count, parts = _first(item, left)
            size += ITEM_BYTES * (1 + count)
            left -= len(parts)
            if len(parts) == count:
                waiting += parts
            elif n_parts := len(parts):
                size += _weigh(parts, reader, seen, 0) * count // n_parts
        elif id(item) not in seen:
            seen.add(id(item))
            size += ITEM_BYTES
            waiting += reader.parts(item)
    return size


def _weigh_text(text: str, seen: set[int]) -> int:
    if id(text) in seen:
        return 0
    seen.add(id(text))
    # Takes constant time, and knows that some alphabets take 2 or 4 bytes a character.
    return str.__sizeof__(text)


def _first(item: object, count: int) -> tuple[int, list[object]]:
    """Return the number of items of a list or mapping, and the first ones of them."""
    values = _VALUES(item) if _is_dict(item) else item if is_list(item) else ()
    # Copied in one step: another thread may change the value meanwhile.
    return len(values), list(islice(values, count))


def _is_container(value: object) -> TypeGuard[object]:
    return isinstance(value, dict | list | tuple)


def _is_dict(value: object) -> TypeGuard[dict[object, object]]:
    return isinstance(value, dict)
