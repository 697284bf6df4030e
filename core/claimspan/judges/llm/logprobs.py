"""Graded verdicts: a distribution over the labels from the log probabilities of a label's token."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Final

from claimspan.judges.llm.chat import Token
from claimspan.verdicts import Label, Verdict

__all__ = ["LABEL_ONLY", "LETTERS", "Token", "graded_verdict", "graded_verdicts"]

LETTERS: Final = {
    "E": Label.ENTAILED,
    "M": Label.ENTAILED,
    "P": Label.NEUTRAL,
    "N": Label.NEUTRAL,
    "C": Label.CONTRADICTED,
}
"""Spelling of each label in a reply: a single letter is one token with every tokenizer. ``M``, for
the most part, counts as entailed, since people take a small word too many for no difference;
``P``, in part, as neutral."""

_WEIGHTS: Final = {
    "E": (1.0, 0.0, 0.0),
    "M": (0.75, 0.25, 0.0),
    "P": (0.4, 0.6, 0.0),
    "N": (0.0, 1.0, 0.0),
    "C": (0.0, 0.0, 1.0),
}
"""What each label says of entailed, neutral and contradicted; see "The prompts of the strong judge"
in ``docs/benchmarks.md``."""


LABEL_ONLY: Final = {
    letter: Verdict(label=label)
    if letter in "ENC"
    else Verdict(
        label=label,
        entailed=_WEIGHTS[letter][0],
        neutral=_WEIGHTS[letter][1],
        contradicted=_WEIGHTS[letter][2],
    )
    for letter, label in LETTERS.items()
}
"""Verdicts from replies without log probabilities: ``M`` and ``P`` have those of their weights."""

_UNSEEN: Final = 0.02
"""Largest error of a probability from labels that the endpoint does not list: two per cent."""

_LABELLED: Final = re.compile(r'"(\d+) ?: ?([EMPNC])"')
_LETTERS_ONLY: Final = re.compile(r"[^A-Za-z]+")
_SPELLINGS: Final = (
    *("entailed", "entailment", "neutral", "contradicted", "contradiction"),
    *("mostly", "partly", "partially"),
)


def graded_verdict(token: Token, letter: str) -> Verdict:
    """The verdict of one label token, with probabilities where they can be told.

    Adds up the probabilities of all alternatives that spell a label, each with the weights of its
    label, and normalises them. The verdict is that of the letter alone if another letter is
    likelier than the one in the reply, if a letter that is not listed could weigh more than
    ``_UNSEEN`` of those that are, or if the endpoint gave something else than numbers.

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
    sums = [
        math.fsum(weights[each] * parts[i] for each, parts in _WEIGHTS.items()) / total
        for i in range(3)
    ]
    graded = Verdict(label=LETTERS[letter], entailed=sums[0], neutral=sums[1], contradicted=sums[2])
    # Two grades on either side may outweigh the letter between them: then it stands by itself.
    return graded if graded.confidence == max(sums) else LABEL_ONLY[letter]


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
