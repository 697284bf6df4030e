"""Requires claimspan in the version that is built, which no line of ``pyproject.toml`` can name."""

from __future__ import annotations

from hatchling.metadata.plugin.interface import MetadataHookInterface


class SameVersion(MetadataHookInterface):
    """Writes the dependencies of the benchmarks: claimspan, and ``others`` of the hook's table."""

    def update(self, metadata: dict[str, object]) -> None:
        """Adds ``dependencies``.

        Args:
            metadata: The fields of the project, of which the version is known.
        """
        others: list[str] = self.config["others"]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - hatchling
        pinned = f"claimspan[cli,stats]=={metadata['version']}"
        metadata["dependencies"] = [pinned, *others]
