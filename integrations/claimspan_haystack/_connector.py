"""The component that brings claimspan into a pipeline, as Haystack's own integrations do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Unpack

from haystack import component, default_from_dict, default_to_dict

from claimspan_haystack._slot import instrument
from claimspan_tracing.adapters import Key, Monitor, MonitorOptions

__all__ = ["ClaimspanConnector"]

_WRITABLE: Final = (str, int, float, bool)


@component
class ClaimspanConnector:
    """Captures every pipeline of the process from the moment in which it is made.

    Add it to a pipeline and connect it to nothing: ``pipeline.add_component("claimspan",
    ClaimspanConnector())``. As Haystack has one tracer for the whole process, so has this.
    """

    def __init__(
        self,
        monitor: Monitor | None = None,
        *,
        query_key: Key | None = None,
        response_key: Key | None = None,
        **options: Unpack[MonitorOptions],
    ) -> None:
        """Instrument the process.

        Args:
            monitor: As of ``instrument``.
            query_key: As of ``instrument``.
            response_key: As of ``instrument``.
            options: Keyword options of ``Monitor``, for a monitor of its own.

        Raises:
            ConfigError: ``monitor`` and options are both given, or an option cannot work.
        """
        given: Mapping[str, object] = {
            "query_key": query_key,
            "response_key": response_key,
            **options,
        }
        self._settings = _written(given)
        self.undo = instrument(monitor, query_key=query_key, response_key=response_key, **options)

    @component.output_types(active=bool)
    def run(self) -> dict[str, Any]:
        """Say whether queries are captured.

        Returns:
            ``active``: False where another tracer has taken our place.
        """
        return {"active": self.undo.active}

    def to_dict(self) -> dict[str, Any]:
        """The settings that can be written down: texts, numbers and paths.

        A monitor, a judge, a sampler or a callable lives in its process: what is loaded from here
        makes a monitor of its own from the other settings, or takes the one that its process
        shares.
        """
        return default_to_dict(self, **self._settings)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ClaimspanConnector:
        """Make it again, and with it instrument the process that loads it."""
        loaded: ClaimspanConnector = default_from_dict(cls, data)
        return loaded


def _written(given: Mapping[str, object]) -> dict[str, object]:
    written = {k: str(v) if isinstance(v, Path) else v for k, v in given.items()}
    return {key: value for key, value in written.items() if isinstance(value, _WRITABLE)}
