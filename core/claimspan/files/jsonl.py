r"""The lines of a file and JSON in them: nothing is parsed before its size and depth are bounded.

Lines end at ``\n``. Ground truths and labelled claims may have no broken line (``read_text``,
``parse_json_lines``): a line left out would change every score, and nothing would say so. Files
of others (``bounded_lines``, ``parse_bounded``) may have been made to exhaust the parser.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, cast

from pydantic_core import from_json

from claimspan.errors import FileError, PayloadError

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "Line",
    "bounded_lines",
    "check_bounds",
    "lines_of",
    "other_kinds",
    "parse_bounded",
    "parse_json_lines",
    "read_text",
    "unreadable",
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

_KINDS: Final[Mapping[bytes, str]] = {
    b"\x1f\x8b": "is compressed by gzip: unpack it first",
    b"\x28\xb5\x2f\xfd": "is compressed by zstd: unpack it first",
    b"BZh": "is compressed by bzip2: unpack it first",
    b"\xfd7zXZ": "is compressed by xz: unpack it first",
    b"PK\x03\x04": "is a zip archive or a spreadsheet: unpack it, or save it as CSV in UTF-8",
    # PowerShell writes what is redirected so, and Excel its "Unicode text".
    b"\xff\xfe": "is in UTF-16: save it in UTF-8",
    b"\xfe\xff": "is in UTF-16: save it in UTF-8",
}
"""The first bytes of a file that is no text, and the remedy."""


class Line(NamedTuple):
    """One line of a file."""

    number: int
    content: bytes | None
    """Its content, without the byte order mark; None if it is longer than allowed."""

    @property
    def text(self) -> str:
        """Its text without its end; bytes that are not UTF-8 become U+FFFD."""
        return (self.content or b"").decode("utf-8", "replace").rstrip("\r\n")


def lines_of(file: BinaryIO, max_bytes: int = MAX_BYTES) -> Iterator[Line]:
    """Yield the lines of a file without its byte order mark, blank ones too.

    Memory holds one line at a time, and never more than ``max_bytes`` of it.
    """
    number = 0
    while content := file.readline(max_bytes + 1):
        number += 1
        # One byte more than the limit was asked for, so a line of exactly the limit ends here too.
        if len(content) > max_bytes and not content.endswith(b"\n"):
            while (part := file.readline(_DISCARDED_AT_ONCE)) and not part.endswith(b"\n"):
                pass
            yield Line(number, None)
        else:
            # Editors on Windows write a byte order mark, which JSON does not allow and which would
            # become part of the first column of CSV.
            yield Line(number, content.removeprefix(_BOM) if number == 1 else content)


def bounded_lines(file: BinaryIO, max_bytes: int = MAX_BYTES) -> Iterator[Line]:
    """As ``lines_of``, without the lines that are blank."""
    return (
        line for line in lines_of(file, max_bytes) if line.content is None or line.content.strip()
    )


def parse_bounded(
    text: str | bytes, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH
) -> object:
    """Parse one JSON value in UTF-8 that may have been made to exhaust the parser.

    Of equal keys the last one counts. A longer or a deeper text is refused before it is parsed.

    Raises:
        PayloadError: The text is too long, nested too deeply (more than ``max_depth``, at most
            200), or not JSON; NaN and infinities are not.
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

    Raises:
        PayloadError: The text is too long, or nested too deeply.
    """
    # Lone surrogates cannot be encoded otherwise; the parser refuses them with a PayloadError,
    # while an encoding error would pass through the caller.
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    if len(data) > max_bytes:
        raise PayloadError("too long")
    limit = min(max_depth, _PARSERS_DEPTH)
    # Two counts at the speed of C spare most inputs the walk: few brackets cannot nest deeply.
    if data.count(b"[") + data.count(b"{") > limit:
        depth = 0
        for bracket in _STRINGS.sub(b"", data).translate(None, _NO_BRACKETS):
            depth += 1 if bracket in b"[{" else -1
            if depth > limit:
                raise PayloadError("nested too deeply")
    return data


def read_text(path: Path, *, wanted: str, error: type[FileError] = FileError) -> str:
    """Read a whole file in UTF-8, with or without a byte order mark; line ends stay as they are.

    Raises:
        FileError: The file is absent, unreadable or not UTF-8, and not the kind that is ``wanted``;
            an instance of ``error``.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as cause:
        raise unreadable(path, cause, wanted=wanted, error=error) from None


def unreadable(
    path: Path, cause: Exception, *, wanted: str, error: type[FileError] = FileError
) -> FileError:
    """The error for a file that cannot be read at all; of the cause only the class is named."""
    return error(
        f"cannot read {str(path)!r} ({type(cause).__name__}): give an existing {wanted} in UTF-8"
    )


def parse_json_lines(
    text: str, path: Path, *, wanted: str = "one JSON object", error: type[FileError] = FileError
) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield each JSON object of a text with the number of its line; blank lines are skipped.

    Raises:
        FileError: A line is not a JSON object, such as is ``wanted``; an instance of ``error``.
    """
    # Not splitlines(), which also splits at characters that JSON lets stand inside of a text.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        place = f"{str(path)!r} line {number}"
        try:
            value: object = json.loads(line)
        except (ValueError, RecursionError):
            # Without the cause: its message and its `doc` quote the line, which may be private.
            raise error(f"{place} is not JSON: write {wanted} a line") from None
        if not isinstance(value, dict):
            raise error(f"{place} is not a JSON object: write {wanted} a line")
        yield number, cast("Mapping[str, object]", value)


def other_kinds(names: Iterable[str]) -> str:
    """The remedy for arguments that are files and no text, for the end of a message.

    Such as ``"; 'a.jsonl.gz' is compressed by gzip: unpack it first"``; empty if all are text.
    """
    told = ""
    for name in dict.fromkeys(names):
        try:
            path = Path(name)
            if not path.is_file():  # a pipe would be read empty
                continue
            with path.open("rb") as file:
                first = file.read(max(map(len, _KINDS)))
        except (OSError, ValueError):  # no path at all, such as a text with a null character
            continue
        told += "".join(
            f"; {name!r} {kind}" for begin, kind in _KINDS.items() if first.startswith(begin)
        )
    return told
