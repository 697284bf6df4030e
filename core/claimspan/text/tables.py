"""Reads the tables of words and patterns that stand beside the modules."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources

__all__ = ["read_table", "read_text"]


def read_text(*place: str) -> str:
    """Returns a file of the package: ``read_text("text", "words.toml")``."""
    # Not by a path: the package may be in an archive.
    return resources.files("claimspan").joinpath(*place).read_text(encoding="utf-8")


def read_table(*place: str) -> Mapping[str, object]:
    """Returns the tables of a TOML file of the package; a caller casts them to their type."""
    return tomllib.loads(read_text(*place))
