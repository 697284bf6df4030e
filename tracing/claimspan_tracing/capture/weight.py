"""How many bytes the inputs and outputs of runs keep alive."""

from __future__ import annotations

from itertools import islice
from typing import Final

from claimspan_tracing.capture.runs import Reader, RunTree
from claimspan_tracing.guard import Guard

__all__ = ["MAX_ITEMS", "add_weight", "weigh", "weigh_tree"]

MAX_ITEMS: Final = 256
"""Items of one value that are looked at; the others count as much on the average."""

SHARED_TEXT: Final = 256
"""A text of so many characters is counted once for each tree, as the runs of a pipeline hand it on.
To remember shorter ones would take more memory than they do."""

ITEM_BYTES: Final = 64
"""Bytes of an item beside a long text: its place in a list or mapping, and a small object."""

_VALUES: Final = dict[object, object].values
Container = dict[object, object] | list[object] | tuple[object, ...]

# Not ``dict | list | tuple`` in the loop, which makes a new object each time.
_CONTAINERS: Final = (dict, list, tuple)
_SMALL: Final = frozenset({type(None), bool, int, float})


def weigh_tree(tree: RunTree, guard: Guard) -> None:
    """Add to the size of a tree the values that its runs have noted since it was last weighed."""
    values, tree.unweighed = tree.unweighed, []
    # A copy: two threads that come here at once may get the same list, and weighing empties it.
    add_weight(tree, [*values], tree.reader, guard)


def add_weight(tree: RunTree, values: list[object], reader: Reader, guard: Guard) -> None:
    """Add to the size of a tree what some values keep alive, and empty them; does not raise."""
    try:
        tree.size += weigh(values, reader, tree.weighed)
    except Exception as error:  # noqa: BLE001 - a run of unknown size still has to end
        guard.swallow(error)
    if tree.size > tree.max_bytes:
        tree.let_go()


def weigh(values: list[object], reader: Reader, seen: set[int], left: int | None = None) -> int:
    """Return the approximate bytes that values keep alive, in a bounded time.

    Dicts, lists and tuples are looked into. Any other object is the reader's to take apart.

    Args:
        values: Inputs and outputs of runs; emptied.
        reader: Knows the framework's objects.
        seen: Ids of the texts and objects of the same tree that were counted before; added to. The
            tree keeps them alive, so that no other object gets their id.
        left: Items to look at in the values; None looks at ``MAX_ITEMS`` for each.
    """
    left = MAX_ITEMS * len(values) if left is None else left
    # One loop over what is still to be looked at, by exact types first, and of a container only
    # what is new: a call or an ``isinstance`` for each item would take most of the time.
    size = 0
    while values:
        item = values.pop()
        if type(item) is str:
            size += len(item) if len(item) < SHARED_TEXT else _weigh_text(item, seen)
        elif type(item) in _SMALL or id(item) in seen:
            continue
        elif isinstance(item, _CONTAINERS):
            container: Container = item  # pyright: ignore[reportUnknownVariableType] - any items
            # Not the method of a subclass, which may be code of the user's.
            items = _VALUES(container) if isinstance(container, dict) else container
            count = len(items)
            size += ITEM_BYTES * (1 + count)
            looked_at = min(count, left, MAX_ITEMS)
            left -= looked_at
            # Copied in one step: another thread may change the value meanwhile.
            some = list(items if looked_at == count else islice(items, looked_at))
            new = [each for each in some if id(each) not in seen]
            if looked_at == count:
                values += new
            elif looked_at:
                size += weigh(new, reader, seen, 0) * count // looked_at
        elif isinstance(item, str):
            size += _weigh_text(item, seen)
        else:
            seen.add(id(item))
            size += ITEM_BYTES
            values += reader.parts(item)
    return size


def _weigh_text(text: str, seen: set[int]) -> int:
    if id(text) in seen:
        return 0
    seen.add(id(text))
    # Takes constant time, and knows that some alphabets take 2 or 4 bytes a character.
    return str.__sizeof__(text)
