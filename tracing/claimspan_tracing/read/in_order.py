"""Looks for texts in another one, where most stand in their order, as chunks do in a prompt."""

from __future__ import annotations

__all__ = ["InOrder"]


class InOrder:
    """Looks for each text behind the one that was found last, and elsewhere only then.

    A template puts the same signs between all chunks, so that most are found without a search.
    """

    def __init__(self, around: str) -> None:
        """Take the text in which others are looked for."""
        self._around = around
        self._end = 0
        self._between = 0

    def has(self, text: str) -> bool:
        """Whether a text stands there, anywhere."""
        at = self._end + self._between
        if not self._around.startswith(text, at):
            at = self._searched(text)
            if at < 0:
                return False
            self._between = max(0, at - self._end)
        self._end = at + len(text)
        return True

    def _searched(self, text: str) -> int:
        at = self._around.find(text, self._end)
        # One that begins before the place may reach beyond it.
        return at if at >= 0 else self._around.find(text, 0, self._end + len(text))
