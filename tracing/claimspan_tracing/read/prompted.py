"""Finds the documents that stand in a prompt, which is the proof that a model has read them."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

__all__ = ["read_texts"]

PIECE: Final = 40
"""Characters of the pieces by which a text is looked for that does not stand there as a whole: long
enough that texts about one subject do not share one by chance."""

MAX_PIECES: Final = 200
"""Pieces that are looked for of one text."""

_TAKEN: Final = "\0"
"""Stands in the prompt where a text was found, so that a text with the same beginning, as that of
overlapping chunks, is not found there once more."""


def read_texts(prompts: Sequence[str], texts: Sequence[str]) -> list[str | None]:
    """Return what of each text stands in the prompts.

    White space does not count, and a text may be escaped as in JSON or HTML. Overlapping chunks do
    not prove each other.

    Args:
        prompts: What the model read.
        texts: The texts of the documents.

    Returns:
        For each text itself; its beginning, with single spaces, where the prompt has only that; or
        None where it has nothing of it. None for all where the prompts end within a text: they were
        cut, and prove nothing.
    """
    prompt = _TAKEN.join(map(_normal, prompts))
    normal = [_normal(text) for text in texts]
    whole = [_form_in(prompt, text) for text in normal]
    found = [text if form else None for text, form in zip(texts, whole, strict=True)]
    if None not in found:
        return [*found]
    # The longest first: a text may be part of another one.
    for form in sorted({form for form in whole if form}, key=len, reverse=True):
        prompt = prompt.replace(form, _TAKEN)
    missing = [index for index, text in enumerate(found) if text is None and normal[index]]
    while missing:
        parts = {index: _beginning(prompt, normal[index]) for index in missing}
        best = max(missing, key=lambda index: len(parts[index]))
        if not (part := parts[best]):
            break
        # Whoever recorded the prompt has cut it within a text: what it lacks may have been read.
        if prompt.endswith(part) and part != normal[best]:
            return [None] * len(texts)
        missing.remove(best)
        found[best] = texts[best] if part == normal[best] else part
        prompt = prompt.replace(part, _TAKEN)
    return found


def _normal(text: str) -> str:
    return " ".join(text.split())


def _form_in(prompt: str, text: str) -> str:
    """The form in which a text stands in the prompt; empty where it does not, and for no text."""
    return next((form for form in _forms(text) if form in prompt), "") if text else ""


def _forms(text: str) -> Iterator[str]:
    yield text
    for escaped in (
        json.dumps(text)[1:-1],
        json.dumps(text, ensure_ascii=False)[1:-1],
        html.escape(text),
    ):
        if escaped != text:
            yield escaped


def _beginning(prompt: str, text: str) -> str:
    """How much of a text, from its beginning on, is in the prompt; all where it is set otherwise.

    A text whose later pieces are there as well was read as a whole, with something between its
    lines. One that has only some pieces in the middle was quoted, and not read.
    """
    if len(text) < 2 * PIECE:
        return ""
    pieces = [text[at : at + PIECE] for at in range(0, len(text) - PIECE + 1, PIECE)][:MAX_PIECES]
    present = [piece in prompt for piece in pieces]
    n_first = len([*takewhile(bool, present)])
    if sum(present) > n_first:
        return text if 2 * sum(present) >= len(pieces) else ""
    return _longest(prompt, text, n_first * PIECE) if n_first else ""


def _longest(prompt: str, text: str, known: int) -> str:
    """The longest beginning of a text that is in the prompt, of which a part is known."""
    low, high = known, min(known + PIECE, len(text))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if text[:middle] in prompt else (low, middle - 1)
    return text[:low].rstrip()
