"""Shows characters that are invisible, and that would command a terminal or reorder a page.

And shows a long text on one line.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["one_line", "visible"]

# Tab and line feed are what texts are made of. A carriage return is one only before a line feed:
# alone it moves a terminal's cursor back, so that what follows hides what was written.
_CONTROLS: Final = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
_BIDI: Final = r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
"""All characters with Unicode's property Bidi_Control."""

_HIDDEN: Final = r"\u200b\u2028\u2029\u2060-\u2064\ufeff\U000e0000-\U000e007f"
"""Line ends that few programs know, and characters in which text can be hidden (tags)."""

_SURROGATES: Final = r"\ud800-\udfff"
_UNSAFE: Final = re.compile(rf"\r(?!\n)|[{_CONTROLS}{_BIDI}{_HIDDEN}{_SURROGATES}]")


def visible(text: str) -> str:
    """Replace characters that act instead of being seen by their code, such as ``<U+202E>``.

    For display alone, on a page or a terminal: control characters (ESC and C1 begin commands of
    terminals), marks that reorder text, and characters without any width in which text is hidden.
    Tabs and line ends stay; so do the joiners, which scripts and emoji need.
    """
    # Most texts are plain words: a page of many records is made a tenth faster without the search.
    if text.isascii() and text.isprintable():
        return text
    return _UNSAFE.sub(_code, text)


def one_line(text: str, limit: int) -> str:
    """Return the beginning of a text on one line.

    Args:
        text: Of any length and any number of lines.
        limit: Characters of the result; the last one is an ellipsis if the text is longer.
    """
    # Cut before the white space is looked at: a text may be long.
    line = " ".join(text[: 4 * limit].split())
    return line if len(line) <= limit else line[: limit - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _code(found: re.Match[str]) -> str:
    return f"<U+{ord(found[0]):04X}>"
