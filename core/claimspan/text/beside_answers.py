"""The table of what stands beside an answer, in other languages than English.

The table is ``beside_answers.toml``; its head says what each of its lists holds.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import cast

__all__ = ["alternatives", "by_language"]

_Lists = Mapping[str, Sequence[str]]


@cache
def by_language() -> Mapping[str, _Lists]:
    """Returns the lists of each language, by their names."""
    # Not by a path: the package may be in an archive.
    file = resources.files("claimspan").joinpath("text", "beside_answers.toml")
    return cast("Mapping[str, _Lists]", tomllib.loads(file.read_text(encoding="utf-8")))


def alternatives(name: str) -> str:
    """Returns a pattern that matches what one of the lists of that name has, in any language.

    Args:
        name: Name of the list, such as ``hedges``.
    """
    found = (each for lists in by_language().values() for each in lists.get(name, ()))
    return f"(?:{'|'.join(found)})"
