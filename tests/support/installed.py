"""Hides what a line of `pip install` would not have brought, as in an environment of a stranger."""

from __future__ import annotations

import re
import shlex
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

__all__ = ["only_with"]

_PROJECT: Final = tomllib.loads(
    (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
)["project"]

_HIDE: Final = """
import sys
class _Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, _Hidden())
"""


def only_with(arguments: str) -> str:
    """Return code that hides every package which these arguments of `pip install` do not bring.

    Args:
        arguments: Such as ``".[langchain]" numpy``.
    """
    brought: set[str] = set()
    # In a clone, its folder stands for the distribution.
    named = (re.sub(r"^\.(?=\[|$)", "claimspan", each) for each in shlex.split(arguments))
    waiting = [Requirement(each) for each in named]
    seen: set[str] = set()
    while waiting:
        each = waiting.pop()
        if str(each) not in seen:
            seen.add(str(each))
            brought.add(canonicalize_name(each.name))
            waiting += _needed_by(each)
    hidden = {
        module
        for module, distributions in packages_distributions().items()
        if not {canonicalize_name(name) for name in distributions} & brought
        # The editable install, the interpreter's own tools, and what coverage needs.
        and not re.match(r"_|claimspan|editables|pip$|setuptools$|pkg_resources$|coverage$", module)
    }
    return _HIDE.format(hidden=hidden)


def _needed_by(wanted: Requirement) -> list[Requirement]:
    try:
        # Of ours by the project's file: the installed metadata may be older.
        lines = _own() if wanted.name == "claimspan" else (requires(wanted.name) or [])
    except PackageNotFoundError:  # of another platform, or of an extra that nobody has installed
        return []
    extras = wanted.extras or {""}
    found = [Requirement(line) for line in lines]
    return [
        each
        for each in found
        if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in extras)
    ]


def _own() -> list[str]:
    optional: dict[str, list[str]] = _PROJECT["optional-dependencies"]
    extra = [f"{each}; extra == '{name}'" for name, all_ in optional.items() for each in all_]
    return [*_PROJECT["dependencies"], *extra]
