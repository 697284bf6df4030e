"""The words of a claim, a sentence or a window, with what detectors find in them.

A record has some 170 cells, and each claim and each sentence is in many of them. What a detector
looks for in one side alone is found once, and kept with the words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from operator import itemgetter
from typing import Final, TypeVar, cast

from claimspan.text.words import Token

__all__ = ["DENYING", "Wording", "stem_of", "stems_of"]

_T = TypeVar("_T")
stem_of = itemgetter(Token._fields.index("stem"))
"""Returns the stem of a token."""

DENYING: Final = frozenset({"not", "non", "never", "isn't", "aren't", "wasn't", "weren't"})
"""Words that deny an adjective behind them: ``not refundable``."""

_UNREAD: Final = object()


class Wording(tuple[Token, ...]):
    """The tokens of a claim, a sentence or a window.

    Most sentences of a reference support no claim best: nothing is kept of them but their tokens.
    """

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of all words."""
        return stems_of(self)

    _kept: dict[object, object] | None = None

    def read(self, reader: Callable[[Wording], _T]) -> _T:
        """Returns what a function finds in the words; it is called once, and the result kept.

        Args:
            reader: A function of a module, which finds the same each time.
        """
        kept = self._kept
        if kept is None:
            kept = self._kept = {}
        found = kept.get(reader, _UNREAD)
        if found is _UNREAD:
            found = kept[reader] = reader(self)
        return cast("_T", found)

    @property
    def folded(self) -> tuple[str, ...]:
        """All words in lower case, in order."""
        return self.read(_folded)


def stems_of(tokens: Iterable[Token]) -> frozenset[str]:
    """Returns the stems of some tokens, which are not kept as those of a ``Wording`` are."""
    return frozenset(map(stem_of, tokens))


def _folded(words: Wording) -> tuple[str, ...]:
    return tuple([token.folded for token in words])
