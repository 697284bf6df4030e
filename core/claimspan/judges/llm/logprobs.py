"""From the log probabilities of a label's token to a distribution over the labels."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from claimspan.verdicts import Label, Verdict

__all__ = ["LABEL_ALONE", "LETTERS", "ReadToken", "graded", "grades_of"]

LETTERS: Final = {"E": Label.ENTAILED, "N": Label.NEUTRAL, "C": Label.CONTRADICTED}
"""What stands for a label in a reply: one letter is one token with every tokenizer."""

LABEL_ALONE: Final = {letter: Verdict(label=label) for letter, label in LETTERS.items()}
"""Verdicts without probabilities."""

_UNSEEN: Final = 0.02
"""Two per cent: as far as a score may be off because an endpoint lists few alternatives."""

_LABELLED: Final = re.compile(r'"(\d+):([ENC])"')
_LETTERS_ONLY: Final = re.compile(r"[^A-Za-z]+")
_SPELLINGS: Final = ("entailed", "entailment", "neutral", "contradicted", "contradiction")


class ReadToken(NamedTuple):
    """A token of a reply, and what the model weighed in its place."""

    text: str
    """As it stands in the reply."""

    own: float
    """Log probability of the token itself."""

    listed: Mapping[str, float]
    """The likeliest tokens in its place, to their log probabilities."""

    @property
    def alternatives(self) -> dict[str, float]:
        """The likeliest tokens and the token itself, which is not always one of them."""
        return {self.text: self.own, **self.listed}


def graded(token: ReadToken, letter: str) -> Verdict:
    """The verdict of one label token.

    Every alternative that is a label in some spelling counts for it; the probabilities of those
    are added up and renormalised over the three labels. The verdict is the label alone where they
    say too little: where another label is ahead of the one that was written, where a label that
    is not among the alternatives could weigh as much as ``_UNSEEN`` of those that are, or where
    what the endpoint gave is no number.
    """
    weights = dict.fromkeys(LETTERS, 0.0)
    for text, logprob in token.alternatives.items():
        meant = _letter_of(text)
        if meant is not None:
            weights[meant] += _probability(logprob)
    total = sum(weights.values())
    unseen = _most_unseen(token) if 0.0 in weights.values() else 0.0
    is_ahead = total > 0.0 and weights[letter] == max(weights.values())
    if not (is_ahead and unseen <= _UNSEEN * total):  # no comparison with NaN holds
        return LABEL_ALONE[letter]
    return Verdict(
        label=LETTERS[letter],
        entailed=weights["E"] / total,
        neutral=weights["N"] / total,
        contradicted=weights["C"] / total,
    )


def _probability(logprob: float) -> float:
    """At most 1, which some endpoints overshoot by rounding; NaN stays NaN."""
    return math.exp(min(logprob, 0.0))


def _most_unseen(token: ReadToken) -> float:
    """What a token that is not listed weighs at most: no more than the least that is listed."""
    if not token.listed:
        return 1.0 - _probability(token.own)
    return _probability(min(token.listed.values()))


def _letter_of(token: str) -> str | None:
    """The label that a token stands for: ``E``, `` E``, ``:E``, ``12:E"``, ``ent``, ``Neutral``."""
    word = _LETTERS_ONLY.sub("", token).lower()
    if len(word) == 1 or (len(word) >= 3 and any(each.startswith(word) for each in _SPELLINGS)):
        letter = word[0].upper()
        return letter if letter in LETTERS else None
    return None


def grades_of(content: str, tokens: Sequence[ReadToken]) -> list[Verdict] | None:
    """The graded verdict of each ``"id:label"`` of a reply, in the order of the reply.

    Args:
        content: The reply.
        tokens: Its tokens; empty where the endpoint gave none.

    Returns:
        None where the tokens are not those of the reply, so that nothing can be told from them.
    """
    written = "".join(token.text for token in tokens)
    if not tokens or written.strip() != content.strip():  # some servers trim what they send
        return None
    starts = list(accumulate((len(token.text) for token in tokens), initial=0))
    return [
        graded(tokens[bisect_right(starts, match.start(2)) - 1], match[2])
        for match in _LABELLED.finditer(written)
    ]
