"""Detects responses that decline to answer.

Such a response is neither true nor false: evaluations count it apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from claimspan.text.clauses import assertions
from claimspan.text.languages import detect_language
from claimspan.text.markdown import content_sentences
from claimspan.text.refusals import (
    is_apology,
    is_referral,
    may_decline,
    normalise,
    starts_with_abstention,
)
from claimspan.text.shown import without_shown

__all__ = ["abstains"]

_MAX_ABSTENTION_CHARACTERS: Final = 600
"""A longer response says more than that it cannot answer, however it begins."""


def abstains(response: str, chunks: Sequence[str] | None = None) -> bool:
    """Tells whether a response declines to answer and asserts nothing else.

    If it declines, a sentence that sends the reader elsewhere or asks for more asserts nothing.

    Args:
        response: In English or a language of ``beside_answers.toml``. One of more than
            ``_MAX_ABSTENTION_CHARACTERS`` does not abstain.
        chunks: Those that it may show beside its answer. What it shows, and its list of sources,
            assert nothing; None if it was taken off before.

    Returns:
        Of the refusals of FinanceBench that are no longer than that, True for 53 of 90 in the tune
        half and 55 of 111 in the test half; the others assert something. Of the 516 answers that
        people call right, True for none.
    """
    if not may_decline(response):  # as of most: each other step takes ten times as long
        return False
    text = response if chunks is None else without_shown(response, chunks)
    if len(text) > _MAX_ABSTENTION_CHARACTERS:
        return False
    language = detect_language(text) or "en"
    declines = apologises = refers = False
    # Sentence by sentence: most responses assert something in the first one.
    for each in content_sentences(text, language):
        sentence = normalise(each.standalone)
        if is_referral(sentence):
            refers = True
        elif assertions(sentence, language):
            return False
        declines = declines or starts_with_abstention(sentence)
        apologises = apologises or is_apology(sentence)
    # "I'm sorry. Please restart the router." declines nothing.
    return declines or (apologises and not refers)
