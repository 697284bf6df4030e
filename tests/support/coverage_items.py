"""An item of the context-coverage benchmark with seven chunks, and the facts that they hold."""

from __future__ import annotations

from typing import Final

from claimspan import Chunk
from claimspan_bench.context_coverage import CoverageItem

__all__ = ["chunk", "make_item"]

FACTS: Final = ("alpha", "beta", "gamma", "delta")


def chunk(name: str, text: str, score: float | None = None) -> Chunk:
    return Chunk(id=name, text=text, score=score)


def make_item(**changes: object) -> CoverageItem:
    """Four golden chunks with a fact each, and three noisy ones; the scores rank g1 g2 n1 n2 n3."""
    golden = [chunk(f"g{n}", f"{fact} stands here", 1.0 / n) for n, fact in enumerate(FACTS, 1)]
    noisy = [chunk(f"n{n}", f"noise {n}", 0.4 - n / 10) for n in (1, 2, 3)]
    given: dict[str, object] = {
        "id": "one",
        "question": "What stands where?",
        "text": ". ".join(FACTS),
        "golden": golden,
        "noisy": noisy,
    }
    return CoverageItem.model_validate(given | changes)
