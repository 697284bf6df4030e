"""Replaces pieces of a text, and says where each place of the new text was in the old one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = ["Edit", "Rewritten", "rewrite"]


class Edit(NamedTuple):
    """One piece of a text and what stands there instead."""

    start: int
    """Where the piece begins."""

    end: int
    """Where it ends."""

    replacement: str
    """What replaces it."""


class Rewritten(NamedTuple):
    """A text after its edits."""

    text: str
    """The new text."""

    places: Sequence[int]
    """Where unchanged pieces and replacements begin in the new text, ascending."""

    origins: Sequence[tuple[int, int]]
    """For each of them, where it began and ended in the old text."""

    def start(self, place: int) -> int:
        """Returns where the character at a place of the new text began in the old one.

        Args:
            place: An index into the new text.
        """
        return self._origin(place, place)

    def end(self, place: int) -> int:
        """Returns where the character before a place of the new text ended in the old one.

        Args:
            place: An index into the new text that follows at least one character.
        """
        return self._origin(place - 1, place)

    def _origin(self, inside: int, place: int) -> int:
        part = bisect_right(self.places, inside) - 1
        start, end = self.origins[part]
        is_end = place > inside
        # Inside of a replacement there are no places of the old text but its two ends.
        shift = place - self.places[part]
        length = (
            self.places[part + 1] if part + 1 < len(self.places) else len(self.text)
        ) - self.places[part]
        if length == end - start:
            return start + shift
        return end if is_end else start


def rewrite(text: str, edits: Iterable[Edit]) -> Rewritten:
    """Applies edits to a text.

    Args:
        text: Any text.
        edits: Pieces in ascending order that do not overlap.

    Returns:
        The new text, which knows where its characters come from.
    """
    parts: list[str] = []
    places: list[int] = []
    origins: list[tuple[int, int]] = []
    done = length = 0

    def add(part: str, start: int, end: int) -> None:
        nonlocal length
        if part:
            places.append(length)
            origins.append((start, end))
            parts.append(part)
            length += len(part)

    for edit in edits:
        add(text[done : edit.start], done, edit.start)
        add(edit.replacement, edit.start, edit.end)
        done = edit.end
    add(text[done:], done, len(text))
    return Rewritten("".join(parts), places or [0], origins or [(0, 0)])
