"""JSON from files that anybody may have written: bytes and nesting are bounded before parsing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, Final

from pydantic_core import from_json

from claimspan.errors import PayloadError

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "bounded_lines",
    "check_bounds",
    "discard_line",
    "parse_bounded",
]

MAX_BYTES: Final = 64 * 1024 * 1024
"""Longest line that is read; OpenTelemetry's receivers take requests of up to this size."""

MAX_DEPTH: Final = 100
"""Deepest nesting of lists and objects; a request of OTLP has about 15."""

_PARSERS_DEPTH: Final = 200
"""The parser itself refuses more; it also refuses numbers of more than 4,300 digits."""

# Brackets within texts open nothing, so texts are taken out before nesting is counted. The last
# mark is optional: a text that is not closed must not hide the brackets before it.
_STRINGS: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_BOM: Final = b"\xef\xbb\xbf"
_DISCARDED_AT_ONCE: Final = 1024 * 1024


def parse_bounded(
    text: str | bytes, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH
) -> object:
    """Parse one JSON value that may have been made to exhaust the parser.

    Args:
        text: The value; bytes are UTF-8. Of equal keys the last one counts.
        max_bytes: A longer text is refused without being looked at.
        max_depth: Deepest nesting, at most 200. A deeper text is refused before it is parsed.

    Returns:
        What ``json.loads`` would return.

    Raises:
        PayloadError: The text is too long, nested too deeply, or not JSON in UTF-8; NaN and
            infinities are not JSON.
    """
    data = check_bounds(text, max_bytes=max_bytes, max_depth=max_depth)
    try:
        parsed: object = from_json(data, allow_inf_nan=False)
    except ValueError:
        # Without the cause: its message may quote the text.
        raise PayloadError("not JSON") from None
    return parsed


def check_bounds(
    text: str | bytes, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH
) -> bytes:
    """Return a JSON text in UTF-8, for a parser that builds other values than ``parse_bounded``.

    Args:
        text: As for ``parse_bounded``.
        max_bytes: As for ``parse_bounded``.
        max_depth: As for ``parse_bounded``.

    Raises:
        PayloadError: The text is too long, or nested too deeply.
    """
    # Lone surrogates cannot be encoded otherwise; the parser refuses them with a PayloadError,
    # where an encoding error would pass through the caller.
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if len(data) > max_bytes:
        raise PayloadError("too long")
    if _is_deeper_than(min(max_depth, _PARSERS_DEPTH), data):
        raise PayloadError("nested too deeply")
    return data


def _is_deeper_than(limit: int, data: bytes) -> bool:
    # Two counts at the speed of C spare most inputs the walk below: whoever has few brackets cannot
    # nest deeply.
    if data.count(b"[") + data.count(b"{") <= limit:
        return False
    depth = 0
    for bracket in _STRINGS.sub(b"", data).translate(None, _NO_BRACKETS):
        depth += 1 if bracket in b"[{" else -1
        if depth > limit:
            return True
    return False


def bounded_lines(file: BinaryIO, max_bytes: int = MAX_BYTES) -> Iterator[tuple[int, bytes | None]]:
    r"""Yield number and content of each line that is not blank; None for one that is too long.

    Memory holds one line at a time, and never more than ``max_bytes`` of it.

    Args:
        file: Opened for reading bytes. A byte order mark at its beginning is left out.
        max_bytes: Longest line that is yielded, without its ``\n``.
    """
    number = 0
    while line := file.readline(max_bytes + 1):
        number += 1
        # One byte more than the limit was asked for, so a line of exactly the limit still ends
        # here.
        if len(line) > max_bytes and not line.endswith(b"\n"):
            discard_line(file)
            yield number, None
            continue
        content = line.removeprefix(_BOM) if number == 1 else line
        if content.strip():
            yield number, content


def discard_line(file: BinaryIO) -> None:
    """Read on to the end of a line, and keep nothing of it.

    Args:
        file: Opened for reading bytes.
    """
    while (part := file.readline(_DISCARDED_AT_ONCE)) and not part.endswith(b"\n"):
        pass
