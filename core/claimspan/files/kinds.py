"""Tells what a file is that no command reads as text: compressed, or in another encoding."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

__all__ = ["other_kinds"]

_KINDS: Final[tuple[tuple[bytes, str], ...]] = (
    (b"\x1f\x8b", "is compressed by gzip: unpack it first"),
    (b"\x28\xb5\x2f\xfd", "is compressed by zstd: unpack it first"),
    (b"BZh", "is compressed by bzip2: unpack it first"),
    (b"\xfd7zXZ", "is compressed by xz: unpack it first"),
    (b"PK\x03\x04", "is a zip archive or a spreadsheet: unpack it, or save it as CSV in UTF-8"),
    # PowerShell writes what is redirected so, and Excel its "Unicode text".
    (b"\xff\xfe", "is in UTF-16: save it in UTF-8"),
    (b"\xfe\xff", "is in UTF-16: save it in UTF-8"),
)
"""The first bytes of a file, and what to do about it."""

_LONGEST: Final = max(len(first) for first, _ in _KINDS)


def other_kinds(names: Iterable[str]) -> str:
    """Return what to do about files that are no text, for the end of a message about them.

    Args:
        names: Arguments of a command, of which some may be files.

    Returns:
        Such as ``"; 'a.jsonl.gz' is compressed by gzip: unpack it first"``; empty where all are
        text.
    """
    found = ((name, _kind(name)) for name in dict.fromkeys(names))
    return "".join(f"; {name!r} {kind}" for name, kind in found if kind)


def _kind(name: str) -> str:
    try:
        path = Path(name)
        if not path.is_file():  # a pipe would be read empty
            return ""
        with path.open("rb") as file:
            first = file.read(_LONGEST)
    except (OSError, ValueError):  # no path at all, such as a text with a null character
        return ""
    return next((kind for begin, kind in _KINDS if first.startswith(begin)), "")
