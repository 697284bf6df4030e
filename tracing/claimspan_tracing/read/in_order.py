"""Looks for texts in another one, where most stand in their order, as chunks do in a prompt."""

from __future__ import annotations

__all__ = ["InOrder"]


class InOrder:
    """Looks for each text behind the one that was found last, and before it only then.

    So the texts of a whole prompt are found in one pass over it.
    """

    def __init__(self, around: str) -> None:
        """Take the text in which others are looked for."""
        self._around = around
        self._at = 0

    def has(self, text: str) -> bool:
        """Whether a text stands there, anywhere."""
        at = self._around.find(text, self._at)
        if at < 0:
            # One that begins before the place may reach beyond it.
            at = self._around.find(text, 0, self._at + len(text))
        if at >= 0:
            self._at = at + len(text)
        return at >= 0
