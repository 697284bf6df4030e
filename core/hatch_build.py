"""Lets ``pip install '.[local]'`` find the weights of the local judge in this checkout.

The weights are a distribution of their own, which ``pyproject.toml`` requires by name and version.
An index has it by that name, a checkout as a folder. pip, unlike uv, knows no source of a
requirement but the metadata of the wheel. So a wheel that is built in a checkout names the source.
An sdist lacks the folder: its metadata, and those of a wheel built from it, stay as they are
written.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.builders.wheel import WheelBuilderConfig

_WEIGHTS: Final = "claimspan-local-weights"
_FOLDER: Final = "core/local_weights"

# What pip clones for `pip install git+https://...` lies in or below such a folder, and is deleted,
# while the wheel may stay in pip's cache.
_FOLDER_OF_PIP: Final = re.compile(r"pip-(install|req-build|wheel|download)-\w+$")


class WeightsOfCheckout(BuildHookInterface[WheelBuilderConfig]):
    """Writes where the weights are into the requirements of a wheel's extras."""

    def initialize(self, version: str, build_data: dict[str, list[str]]) -> None:
        """Replaces the pinned name, in every extra that has it, where the folder is there.

        Args:
            version: Of the target: ``standard`` or ``editable``.
            build_data: Of the builder, which is left as it is.
        """
        root = Path(self.root)
        if not (root / _FOLDER).is_dir():
            return
        sourced = f"{_WEIGHTS} @ {_git_url(root) or (root / _FOLDER).as_uri()}"
        core = self.metadata.core  # pyright: ignore[reportUnknownMemberType] - hatchling's generic
        for required in core.optional_dependencies.values():
            required[:] = [sourced if each.startswith(_WEIGHTS) else each for each in required]


def _git_url(root: Path) -> str | None:
    """Where the weights of a clone of pip's stay; None for any other checkout."""
    is_of_pip = any(_FOLDER_OF_PIP.match(each) for each in (root.name, root.parent.name))
    if not is_of_pip or not (root / ".git").exists():  # pip unpacks archives there as well
        return None
    origin, commit = _git(root, "remote", "get-url", "origin"), _git(root, "rev-parse", "HEAD")
    parts = urlsplit(origin)
    # A password must not get into a wheel. Requirements without a host are refused by older pips.
    if not commit or not parts.hostname or parts.password:
        return None
    return f"git+{origin}@{commit}#subdirectory={_FOLDER}"


def _git(root: Path, *arguments: str) -> str:
    """What git prints of a clone; nothing where it fails."""
    command = ["git", "-C", str(root), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - fixed
    return done.stdout.strip()
