"""How much of an item a combination of chunks truly holds: what every ranking is compared with."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from claimspan.verdicts import Claim, Label, VerdictMatrix
from claimspan_bench.context_coverage.items import CoverageItem

__all__ = ["Gold", "GoldSource", "gold_of"]

GoldSource = Literal["given", "sentences", "verdicts"]
"""Where it is known from which chunks hold a fact: ``given`` by the file; ``sentences``, since
the golden chunks contain the sentences that the facts were extracted from; or else the judge's own
``verdicts`` on the golden chunks, which favours the scores of that judge."""


class Gold(NamedTuple):
    """Which chunks hold which fact."""

    source: GoldSource
    """Where that is known from."""

    holders: tuple[frozenset[int], ...]
    """For each fact the indices of the chunks that hold it; empty where none does."""

    def coverage(self, members: Collection[int]) -> float:
        """The share of the facts that a combination holds."""
        held = sum(not holders.isdisjoint(members) for holders in self.holders)
        return held / len(self.holders)


def gold_of(item: CoverageItem, facts: Sequence[Claim], verdicts: VerdictMatrix) -> Gold | None:
    """Find out which chunks hold which fact.

    Args:
        item: The item.
        facts: Its facts.
        verdicts: Shape ``(len(facts), len(item.chunks))``.

    Returns:
        The gold; None where it is the judge's, who left a verdict on a golden chunk undecided.
    """
    if item.gold:
        places = item.places
        return Gold("given", tuple(frozenset(places[each] for each in ids) for ids in item.gold))
    by_sentence = [_containing(fact.sentence, item) for fact in facts]
    # All or nothing: facts without a sentence would be held by no chunk, and look as if not
    # retrieved.
    if all(by_sentence):
        return Gold("sentences", tuple(by_sentence))
    golden = range(len(item.golden))
    if any(row[j] is None for row in verdicts.rows for j in golden):
        return None
    return Gold(
        "verdicts",
        tuple(frozenset(j for j in golden if row[j] is Label.ENTAILED) for row in verdicts.labels),
    )


def _containing(sentence: str | None, item: CoverageItem) -> frozenset[int]:
    """Golden chunks that contain a sentence word for word, whatever the white space."""
    wanted = " ".join((sentence or "").split())
    if not wanted:
        return frozenset()
    texts = [" ".join(chunk.text.split()) for chunk in item.golden]
    return frozenset(j for j, text in enumerate(texts) if wanted in text)
