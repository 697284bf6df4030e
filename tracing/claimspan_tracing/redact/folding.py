"""The text that is searched: what a reader does not see, or sees as the same sign, is folded.

A soft hyphen from a PDF, a no-break space or a full-width digit changes nothing for who reads a
card number, and everything for a pattern. A finding is taken out of the original, whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from html import unescape
from itertools import chain, repeat
from typing import Final
from unicodedata import category, decomposition, normalize

__all__ = ["Place", "fold", "unfolded"]

Place = tuple[int, int]
"""Start and end of a finding."""

# Unicode's Default_Ignorable_Code_Point, and control characters: nothing is drawn for them.
_UNSEEN: Final = (
    r"\x00-\x08\x0e-\x1b\x7f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    r"\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff"
)
# A single space or line break, of which a text is full, stays as it is.
_GAP: Final = rf"[ \n][\s{_UNSEEN}]+|[^\S \n][\s{_UNSEEN}]*|[{_UNSEEN}][\s{_UNSEEN}]*"
_BLANKS: Final = re.compile(_GAP)
# As JSON and HTML spell what is not ASCII; what an agent's tool returns is often such a text.
_SPELLED: Final = r"\\(?:u[0-9A-Fa-f]{4}|[nrt])|&(?:#\d{1,6}|#[xX][0-9A-Fa-f]{1,5}|[A-Za-z]{2,8});"
_ESCAPES: Final = {r"\n": "\n", r"\r": "\r", r"\t": "\t"}
_PLAIN: Final = re.compile(f"{_GAP}|{_SPELLED}")
_BREAK: Final = re.compile(r"\r\n?|[\n\x0b\x0c\x85\u2028\u2029]")

# These change what a number says: 10² is not 102.
_RAISED: Final = ("<super>", "<sub>", "<fraction>", "<circle>", "<square>")
_QUOTES: Final = (
    dict.fromkeys("‘’‛′", "'") | dict.fromkeys("“”„‟″«»", '"') | {"·": ".", "−": "-", "İ": "I"}
)


def fold(text: str) -> tuple[str, Sequence[int]]:
    """Return a text as it is searched, and for each sign of it, and its end, the place in ``text``.

    Invisible signs are dropped, digits and typographic signs become those of ASCII, and a gap
    becomes one space or tab, one line break, or two if a paragraph ends there. Linear in the text.
    """
    other = sorted(s for s in set(text) if s > "\x7f" and _ascii(s) != s and not s.isspace())
    folds = re.compile(f"{_PLAIN.pattern}|[{re.escape(''.join(other))}]") if other else _PLAIN
    parts: list[str] = []
    places: list[range | repeat[int]] = []
    done = 0
    for found in folds.finditer(text):
        start, end = found.span()
        sign = _read(found[0])
        new = _gap(sign) if _BLANKS.fullmatch(sign) else _ascii(sign)
        parts += [text[done:start], new]
        places += [range(done, start), repeat(start, len(new))]
        done = end
    if not parts:
        return text, range(len(text) + 1)
    places.append(range(done, len(text) + 1))
    return "".join([*parts, text[done:]]), list(chain.from_iterable(places))


def unfolded(place: Place, places: Sequence[int]) -> Place:
    """Return where something that was found stands in the original, with all that was dropped."""
    start, end = place
    # One sign may have become several: it counts whole.
    return places[start], max(places[end], places[end - 1] + 1)


def _read(sign: str) -> str:
    """The sign that JSON or HTML has spelled; any other as it is."""
    if sign[0] == "\\":
        return _ESCAPES.get(sign) or chr(int(sign[2:], 16))
    return unescape(sign)


def _gap(blanks: str) -> str:
    if blanks.startswith("\xad") and len(_BREAK.findall(blanks)) == 1:
        return ""  # a word that was hyphenated at the end of its line
    breaks = min(2, len(_BREAK.findall(blanks)))
    space = "\t" if "\t" in blanks else " "
    return "\n" * breaks or (space if any(map(str.isspace, blanks)) else "")


@lru_cache(maxsize=4096)
def _ascii(sign: str) -> str:
    """The sign of ASCII that stands for another one; else that sign itself."""
    if len(sign) > 1 or sign.isascii():
        return sign
    if sign.isdecimal():
        return str(int(sign))
    if category(sign) == "Pd":
        return "-"
    plain = normalize("NFKC", sign)
    is_same = plain.isascii() and not decomposition(sign).startswith(_RAISED)
    return plain if is_same else _QUOTES.get(sign, sign)
