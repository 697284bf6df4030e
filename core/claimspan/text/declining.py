"""Whether a response says, first or last, that it cannot answer."""

from __future__ import annotations

import re
from typing import Final

from claimspan.text.sentences import sentence_pieces

__all__ = ["declining"]

# A sentence ends sooner; a text of ten megabytes is not read through for its two ends.
_END_CHARACTERS: Final = 1000
_SOURCE: Final = (
    r"(?:context|texts?|documents?|passages?|information|sources?|articles?|chunks?|data|excerpts?|"
    r"filings?|reports?|statements?|details|10-?[kq])"
)
_ANSWER: Final = (
    r"(?:know|answer|find|determine|calculate|compute|derive|assess|confirm|identify|extract|"
    r"provide|give|offer|say|tell|access|assist|ascertain|conclude|specify)"
)
_GIVEN: Final = (
    r"(?:provided|included|given|specified|mentioned|disclosed|stated|detailed|sufficient|available|"
    r"present|found)"
)
_CANNOT: Final = (
    r"(?:cannot|can't|can not|could not|couldn't|do not|don't|did not|(?:am|be) not able to|"
    r"not able to|unable to|not be able to)"
)
_DECLINES: Final = re.compile(
    rf"\b(?:i|we|one)(?:'m| am| are)? (?:\w+ )?{_CANNOT}(?: \w+){{0,2}} (?:{_ANSWER}|have)\b"
    r"|\b(?:is|are|it's|am|i'm) (?:\w+ )?(?:unable|not able|not possible|impossible) to "
    rf"(?:\w+ )?{_ANSWER}\b"
    rf"|\b{_SOURCE}(?: \w+){{0,6}} (?:does not|doesn't|do not|don't|did not|didn't) (?:\w+ )?"
    r"(?:say|mention|contain|provide|specify|include|state|give|answer|tell|disclose|detail|have)\b"
    rf"|\bnot (?:\w+ ){{0,2}}{_GIVEN} (?:in|by|within|from) (?:\w+ ){{0,3}}{_SOURCE}\b"
    r"|\b(?:cannot|can't|can not|could not|not) be (?:\w+ )?"
    r"(?:determined|calculated|computed|answered|derived|assessed|ascertained)\b"
    r"|\b(?:i'm sorry|i am sorry|i apologi[sz]e|my apologies)\b",
    re.IGNORECASE,
)
# What goes with declining, and on its own is advice or news as often as not.
_HEDGES: Final = re.compile(
    rf"\bnot (?:\w+ ){{0,2}}{_GIVEN}\b|\bunfortunately\b"
    r"|\b(?:no|not enough|insufficient|without|need|requires?|additional|more|missing) "
    rf"(?:\w+ ){{0,4}}{_SOURCE}\b"
    r"|\b(?:please|(?:you|one) (?:can|may|would|should|will|might)(?: \w+)?(?: to)?|"
    r"i (?:recommend|suggest)|(?:best|advisable|necessary|need) to) (?:\w+ )?"
    r"(?:refer|consult|check|review|look|provide|visit|seek|obtain|access)\b",
    re.IGNORECASE,
)


def declining(text: str) -> float:
    """How much a text that may be a response says that it cannot answer.

    People who decline, and language models, say so first or last: ``I cannot determine the margin
    ... Please refer to the annual report``. In between they may say much that is true.

    Args:
        text: A response; English.

    Returns:
        0.5 where its first or its last sentence declines, 1 where the other one does, too, or
        regrets, or refers to something else; else 0. Of the 172 answers in the tune half of
        FinanceBench that people call refusals, 118 have 1 and 39 have 0.5; of the 271 that they
        call right, none has 1 and 9 have 0.5.
    """
    ends = (_sentences(text[:_END_CHARACTERS])[:1], _sentences(text[-_END_CHARACTERS:])[-1:])
    declines = [bool(end and _DECLINES.search(end[0])) for end in ends]
    hedges = [bool(end and _HEDGES.search(end[0])) for end in ends]
    if not any(declines):
        return 0.0
    return 1.0 if all(map(max, declines, hedges)) else 0.5


def _sentences(text: str) -> list[str]:
    return [piece.text.replace("’", "'") for piece in sentence_pieces(text, "en")]
