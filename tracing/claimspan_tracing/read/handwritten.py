"""Finds evidence that an application wrote into a prompt by hand, where nothing else shows it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

__all__ = ["MIN_EVIDENCE", "written_evidence"]

MIN_EVIDENCE: Final = 40
"""Characters of a text from which on it may be evidence: what is shorter is part of a sentence."""

_ANNOUNCED: Final = re.compile(
    r"""
    \b(?:context|documents?|sources?|passages?|excerpts?|snippets?|articles?|evidence|knowledge
      |information|references?|facts|(?:search|retrieval)\ results?)\b
    [^\n:<>.]{0,60}  # the rest of a phrase, as in "the following context in your response"
    (?:[:>]|\n)[ \t]*
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Words after which prompts give what the model is to answer from, with a colon, a tag or a line's
end behind them."""

_ENDED: Final = re.compile(
    r"""
    </\w+> | ^[ \t]*[-=#*]{3,}[ \t]*$
    | ^[ \t>*#]*(?:question|query|user|human|answer|instructions?|chat\ history)\b[^\n]{0,20}:
    """,
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
"""Where it ends: a closing tag, a line of signs, or the question."""


def written_evidence(texts: Sequence[str], query: str) -> list[str]:
    """Return what the texts of a prompt announce as the material to answer from.

    A prompt that announces nothing has no evidence: instructions are not what an answer is compared
    with.

    Args:
        texts: What the system and the user say in the prompt.
        query: What the user asked, which is no evidence.
    """
    return [found for text in texts if (found := _evidence(text, query))]


def _evidence(text: str, query: str) -> str:
    announced = _ANNOUNCED.search(text)
    if announced is None:
        return ""
    found = text[announced.end() :]
    if query.strip():
        found = found.partition(query.strip())[0]
    ended = _ENDED.search(found)
    found = (found if ended is None else found[: ended.start()]).strip()
    return found if len(found) >= MIN_EVIDENCE else ""
