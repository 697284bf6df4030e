"""The judge that needs no weights and no network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from claimspan.verdicts import Claim, VerdictMatrix

__all__ = ["LexicalJudge"]


class LexicalJudge:
    """Being written."""

    name: Final = "lexical"
    version: Final = "0"

    def __init__(self, *, language: str = "en") -> None:
        """Being written."""
        self._language = language

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        """Being written."""
        raise NotImplementedError

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        """Being written."""
        raise NotImplementedError
