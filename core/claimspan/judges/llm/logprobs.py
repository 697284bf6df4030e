"""Graded verdicts: a distribution over the labels from the log probabilities of a label's token."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from claimspan.verdicts import Label, Verdict

__all__ = ["LABEL_ONLY", "LETTERS", "Token", "graded_verdict", "graded_verdicts"]

LETTERS: Final = {"E": Label.ENTAILED, "N": Label.NEUTRAL, "C": Label.CONTRADICTED}
"""Spelling of each label in a reply: a single letter is one token with every tokenizer."""

LABEL_ONLY: Final = {letter: Verdict(label=label) for letter, label in LETTERS.items()}
"""Verdicts without probabilities."""

_UNSEEN: Final = 0.02
"""Largest error of a probability from labels that the endpoint does not list: two per cent."""

_LABELLED: Final = re.compile(r'"(\d+):([ENC])"')
_LETTERS_ONLY: Final = re.compile(r"[^A-Za-z]+")
_SPELLINGS: Final = ("entailed", "entailment", "neutral", "contradicted", "contradiction")


class Token(NamedTuple):
    """A token of a reply with its log probabilities."""

    text: str
    """The token as it stands in the reply."""

    logprob: float
    """Log probability of the token."""

    top_logprobs: Mapping[str, float]
    """Log probabilities of the likeliest tokens at the same position, by token."""

    @property
    def alternatives(self) -> dict[str, float]:
        """The likeliest tokens, and the token itself, which endpoints do not always list."""
        return {self.text: self.logprob, **self.top_logprobs}


def graded_verdict(token: Token, letter: str) -> Verdict:
    """The verdict of one label token, with probabilities where they can be told.

    Adds up the probabilities of all alternatives that spell a label, and normalises them over the
    three labels. The verdict has a label without probabilities where another label is likelier
    than the one in the reply, where a label that is not listed could weigh more than ``_UNSEEN``
    of those that are, or where the endpoint gave something else than numbers.

    Args:
        token: The token that holds the label.
        letter: The label in the reply, as one of ``LETTERS``.
    """
    weights = dict.fromkeys(LETTERS, 0.0)
    for text, logprob in token.alternatives.items():
        meant = _letter_of(text)
        if meant is not None:
            weights[meant] += _probability(logprob)
    total = sum(weights.values())
    unseen = _max_unseen(token) if 0.0 in weights.values() else 0.0
    is_ahead = total > 0.0 and weights[letter] == max(weights.values())
    if not (is_ahead and unseen <= _UNSEEN * total):  # no comparison with NaN holds
        return LABEL_ONLY[letter]
    return Verdict(
        label=LETTERS[letter],
        entailed=weights["E"] / total,
        neutral=weights["N"] / total,
        contradicted=weights["C"] / total,
    )


def _probability(logprob: float) -> float:
    """The probability, limited to 1 since some endpoints round beyond it; NaN stays NaN."""
    return math.exp(min(logprob, 0.0))


def _max_unseen(token: Token) -> float:
    """Upper bound of the probability of a token that is not listed: the least that is listed."""
    if not token.top_logprobs:
        return 1.0 - _probability(token.logprob)
    return _probability(min(token.top_logprobs.values()))


def _letter_of(token: str) -> str | None:
    """The label that a token spells: ``E``, `` E``, ``:E``, ``12:E"``, ``ent``, ``Neutral``."""
    word = _LETTERS_ONLY.sub("", token).lower()
    if len(word) == 1 or (len(word) >= 3 and any(each.startswith(word) for each in _SPELLINGS)):
        letter = word[0].upper()
        return letter if letter in LETTERS else None
    return None


def graded_verdicts(content: str, tokens: Sequence[Token]) -> list[Verdict] | None:
    """The graded verdict of each ``"id:label"`` in a reply.

    Args:
        content: The reply.
        tokens: Its tokens; empty where the endpoint gave none.

    Returns:
        Verdicts in the order of the reply; None where the tokens do not make up the reply.
    """
    written = "".join(token.text for token in tokens)
    if not tokens or written.strip() != content.strip():  # some servers trim the content
        return None
    starts = list(accumulate((len(token.text) for token in tokens), initial=0))
    return [
        graded_verdict(tokens[bisect_right(starts, match.start(2)) - 1], match[2])
        for match in _LABELLED.finditer(written)
    ]
