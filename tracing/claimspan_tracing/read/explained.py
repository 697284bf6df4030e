"""Tells what documents explain of the texts in a prompt, and what is evidence besides."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Final

from claimspan_tracing.read.handwritten import MIN_EVIDENCE
from claimspan_tracing.read.in_order import InOrder
from claimspan_tracing.read.reworded import Row, rows_of

__all__ = ["Explained"]

MIN_SHARED: Final = 0.5
"""Share of a document's rows of words that a text has which holds it, as a whole or cut."""

_PARAGRAPH_END: Final = re.compile(r"\n\s*\n")

_ESCAPE: Final = "\\u"
_ESCAPED: Final = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")
"""Letters beyond ASCII, as JSON writes them by default."""


class Explained:
    """The documents that were read, and what they explain of other texts."""

    def __init__(self, known: Sequence[str]) -> None:
        """Take the texts of the documents."""
        self._known = known

    def rest_of(self, text: str) -> list[str]:
        """Return what no document explains of a text: all of it, or whole paragraphs."""
        # Not sought where no escape is: the text may be all documents in a row.
        text = _ESCAPED.sub(_unescaped, text) if _ESCAPE in text else text
        places = InOrder(text)
        inside = [each for each in self._known if places.has(each)]
        if inside and len(text) - sum(map(len, inside)) < MIN_EVIDENCE:
            return []
        if not inside and not self._explain(text):
            return [text]
        paragraphs = (each.strip() for each in _PARAGRAPH_END.split(text))
        rest = (self._beside(p) for p in paragraphs if len(p) >= MIN_EVIDENCE)
        return [p for p in rest if len(p) >= MIN_EVIDENCE]

    def _beside(self, paragraph: str) -> str:
        """What a paragraph has beside the last one of a document, which it goes on from."""
        if self._explain(paragraph):
            return ""
        last = (each for each in self._ends if paragraph.startswith(each))
        return paragraph[len(max(last, key=len, default="")) :].strip()

    def _explain(self, text: str) -> bool:
        """Whether a document stands in a text, or the text in one, also with other signs."""
        stripped = text.strip()
        if any(stripped in each or each in text for each in self._known):
            return True
        rows = {*rows_of(text)}
        # Most texts share no row with any document.
        if not rows or rows.isdisjoint(self._all_rows):
            return False
        shared = ((len(own & rows), len(own)) for own in self._rows if own)
        return any(n >= MIN_SHARED * min(size, len(rows)) for n, size in shared)

    @cached_property
    def _ends(self) -> list[str]:
        """The last paragraphs of documents that have several."""
        parted = (_PARAGRAPH_END.split(each.strip()) for each in self._known)
        return [parts[-1] for parts in parted if len(parts) > 1]

    @cached_property
    def _rows(self) -> list[set[Row]]:
        return [{*rows_of(each)} for each in self._known]

    @cached_property
    def _all_rows(self) -> set[Row]:
        return set[Row]().union(*self._rows)


def _unescaped(found: re.Match[str]) -> str:
    text = str(json.loads(f'"{found[0]}"'))
    return text if text.isprintable() else found[0]
