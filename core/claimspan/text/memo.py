"""Remembers what was worked out for a word, since the words of texts repeat."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

__all__ = ["Memo", "MemoByLanguage"]

_T = TypeVar("_T")

# Longer ones are keys, addresses or runs of a script without blanks, which do not come again.
_LONGEST: Final = 32
# A run of Chinese is many tokens, and does not come again either.
_MOST_PARTS: Final = 4
# More than have rules of their own.
_MOST_LANGUAGES: Final = 64


class Memo(dict[str, _T]):
    """Results by the word that they were worked out from; ``memo[word]`` works a new one out.

    Subscription is a plain look-up in a dictionary, which takes a third of the time of
    ``functools.lru_cache``. Threads may share it: one of them at most works a result out again. It
    holds single words, never a text, so that no content of a record stays in memory with it.

    If it is full, the results of late are set aside, and those set aside before are dropped. A
    word that comes again and again is so never worked out again, however many others come once.
    """

    def __init__(
        self, work_out: Callable[[str], _T], most: int, room: MemoByLanguage[_T] | None = None
    ) -> None:
        """Starts with no results.

        Args:
            work_out: Gives the result of a word, the same one each time.
            most: How many results are kept, half of them set aside.
            room: The memos that keep so many together; None for this one alone.
        """
        super().__init__()
        self._work_out = work_out
        self._most_of_late = max(most // 2, 1)
        self._room = room
        self._aside: dict[str, _T] = {}

    def __missing__(self, word: str) -> _T:
        """Works out a result and keeps it, unless it is large or that of a long word."""
        if word in (aside := self._aside):
            result = aside[word]
        else:
            result = self._work_out(word)
            if len(word) > _LONGEST or _is_large(result):
                return result
        if self._room is not None:
            self._room.count_one()
        elif len(self) >= self._most_of_late:
            self.set_aside()
        self[word] = result
        return result

    @property
    def size(self) -> int:
        """How many results are kept, those set aside included."""
        return len(self) + len(self._aside)

    def set_aside(self) -> None:
        """Makes room: sets the results of late aside, and drops those set aside before."""
        self._aside = dict(self)
        self.clear()


def _is_large(result: object) -> bool:
    # A named tuple is one result, however many parts it has.
    return type(result) is tuple and len(result) > _MOST_PARTS  # pyright: ignore[reportUnknownArgumentType] - of whatever parts


class MemoByLanguage(dict[str, Memo[_T]]):
    """A memo for each language, as ``memos[language][word]``; all keep so many words together."""

    def __init__(self, work_out: Callable[[str, str], _T], most: int) -> None:
        """Starts with no results."""
        super().__init__()
        self._work_out = work_out
        self._most = most
        self._most_of_late = max(most // 2, 1)
        self._n_of_late = 0

    def __missing__(self, language: str) -> Memo[_T]:
        """Makes the memo of a language."""
        if len(self) >= _MOST_LANGUAGES:
            self.clear()
        made = Memo(partial(self._work_out, language), self._most, self)
        # Of two threads that make one at a time, both get the first one.
        return self.setdefault(language, made)

    @property
    def size(self) -> int:
        """How many results of all languages are kept, those set aside included."""
        return sum([memo.size for memo in list(self.values())])

    def clear(self) -> None:
        """Drops all results."""
        super().clear()
        self._n_of_late = 0

    def count_one(self) -> None:
        """Makes room for one more result; if threads work one out at a time, each counts."""
        if self._n_of_late >= self._most_of_late:
            for memo in list(self.values()):
                memo.set_aside()
            self._n_of_late = 0
        self._n_of_late += 1
