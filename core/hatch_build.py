"""Lets ``pip install '.[local]'`` find the weights of the local judge in this checkout.

The weights are a distribution of their own, which ``pyproject.toml`` requires by name and version.
An index has it by that name; a checkout has it as a folder. pip, unlike uv, reads no other source
of a requirement than the metadata of the wheel. So a wheel that is built in a checkout names the
folder. An sdist lacks the folder: its metadata, and those of a wheel built from it, stay as they
are written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.builders.wheel import WheelBuilderConfig

_WEIGHTS: Final = "claimspan-local-weights"
_FOLDER: Final = Path("core", "local_weights")


class WeightsOfCheckout(BuildHookInterface[WheelBuilderConfig]):
    """Writes the folder of the weights into the requirements of a wheel's extras."""

    def initialize(self, version: str, build_data: dict[str, list[str]]) -> None:
        """Replaces the pinned name, in every extra that has it, where the folder is there.

        Args:
            version: Of the target: ``standard`` or ``editable``.
            build_data: Of the builder, which is left as it is.
        """
        folder = Path(self.root) / _FOLDER
        if not folder.is_dir():
            return
        at_folder = f"{_WEIGHTS} @ {folder.as_uri()}"
        core = self.metadata.core  # pyright: ignore[reportUnknownMemberType] - hatchling's generic
        for required in core.optional_dependencies.values():
            required[:] = [at_folder if each.startswith(_WEIGHTS) else each for each in required]
