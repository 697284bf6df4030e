"""Reads JSON lines of which none may be broken: ground truths, and labelled claims.

A file with a broken line is refused, and the error names the line. A line left out would change
every score of the file, and nobody would know.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from claimspan.errors import FileError

__all__ = ["parse_json_lines", "read_text", "unreadable"]


def read_text(path: Path, *, wanted: str, error: type[FileError] = FileError) -> str:
    """Read a whole file in UTF-8, with or without a byte order mark; line ends stay as they are.

    Args:
        path: The file.
        wanted: Kind of file that is wanted, for the message: ``"JSON-lines file of records"``.
        error: Class of the error to raise.

    Raises:
        FileError: The file is absent, unreadable or not UTF-8; an instance of ``error``.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as cause:
        raise unreadable(path, cause, wanted=wanted, error=error) from None


def unreadable(
    path: Path, cause: Exception, *, wanted: str, error: type[FileError] = FileError
) -> FileError:
    """The error for a file that cannot be read at all.

    Args:
        path: The file.
        cause: The error that the reading raised; only its class is named.
        wanted: Kind of file that is wanted.
        error: Class of the error to make.
    """
    return error(
        f"cannot read {str(path)!r} ({type(cause).__name__}): give an existing {wanted} in UTF-8"
    )


def parse_json_lines(
    text: str, path: Path, *, wanted: str = "one JSON object", error: type[FileError] = FileError
) -> Iterator[tuple[int, Mapping[str, object]]]:
    r"""Parse one JSON object a line. Lines end at ``\n``; blank ones are skipped.

    Args:
        text: What the file holds.
        path: The file, for the message.
        wanted: What a line should hold, for the message.
        error: Class of the error to raise.

    Yields:
        Number of the line, from 1, and its object.

    Raises:
        FileError: A line is not a JSON object; an instance of ``error``.
    """
    # Not splitlines(), which also splits at characters that JSON lets stand inside of a text.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, _parse_object(line, f"{str(path)!r} line {number}", wanted, error)


def _parse_object(
    line: str, place: str, wanted: str, error: type[FileError]
) -> Mapping[str, object]:
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        # Without the cause: its message and its `doc` quote the line, which may be private.
        raise error(f"{place} is not JSON: write {wanted} a line") from None
    if not isinstance(value, dict):
        raise error(f"{place} is not a JSON object: write {wanted} a line")
    return {str(key): item for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - any JSON value
