"""A slow judge that counts what it is given."""

from __future__ import annotations

from collections.abc import Sequence

from claimspan import Claim, VerdictMatrix

from support import ScriptedJudge

__all__ = ["Counting"]


class Counting(ScriptedJudge):
    """A slow judge that counts how many records it has in hand, and has had."""

    def __init__(self, delay: float) -> None:
        super().__init__(delay=delay)
        self.started = 0
        self.in_hand = 0
        self.most_in_hand = 0
        self.order: list[str] = []
        self.extracted = 0

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        self.extracted += 1
        return await super().extract_claims(text, question=question)

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        self.started += 1
        self.in_hand += 1
        self.most_in_hand = max(self.most_in_hand, self.in_hand)
        self.order.append(question or "")
        try:
            return await super().check(claims, references, question=question)
        finally:
            self.in_hand -= 1
