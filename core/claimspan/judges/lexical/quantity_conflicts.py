"""What the value check finds in a claim's words, as the stems that the lexical judge weighs."""

from __future__ import annotations

from collections.abc import Set
from functools import cached_property

from claimspan.judges.values import StatedValues, conflicts_of, equal_places
from claimspan.text.words import tokenize

__all__ = ["ClaimedValues"]


class ClaimedValues:
    """The numbers, dates and units of a claim, read once for all references."""

    def __init__(self, claim: StatedValues) -> None:
        """Keeps the claim; it is read when first asked for.

        Args:
            claim: The claim, as if it were a text that states values.
        """
        self._stated = claim
        self._stems_of: dict[tuple[int, int], Set[str]] = {}

    def __bool__(self) -> bool:
        """Whether the claim has any value."""
        return bool(self._stated.items)

    @cached_property
    def stems(self) -> Set[str]:
        """The stems of all values."""
        return frozenset[str]().union(
            *(self._stems(each.start, each.end) for each in self._stated.items)
        )

    def conflicts(self, reference: StatedValues) -> dict[str, Set[str]]:
        """Returns the numbers, dates and units that a reference does not give.

        Args:
            reference: The values of the reference.

        Returns:
            The stems of those values by kind of conflict.
        """
        found: dict[str, Set[str]] = {}
        for kind, start, end in conflicts_of(self._stated, reference):
            found[kind] = found.get(kind, frozenset()) | self._stems(start, end)
        return found

    def equal_stems(self, reference: StatedValues) -> Set[str]:
        """Returns the stems of the values that a reference gives in any form.

        ``1.2 million`` in a claim and ``1,200,000`` in a reference share no word, but are equal.

        Args:
            reference: The values of the reference.
        """
        places = equal_places(self._stated, reference)
        return frozenset[str]().union(*(self._stems(start, end) for start, end in places))

    def _stems(self, start: int, end: int) -> Set[str]:
        if (start, end) not in self._stems_of:
            tokens = tokenize(self._stated.text[start:end])
            self._stems_of[start, end] = frozenset([token.stem for token in tokens])
        return self._stems_of[start, end]
