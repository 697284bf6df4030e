"""A component that instruments the process when a pipeline is built or loaded.

Haystack's own integrations for tracing (``LangfuseConnector``, ``OpenTelemetryConnector``) work the
same way, so a pipeline in YAML can bring claimspan along.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Unpack

from haystack import component, default_from_dict, default_to_dict

from claimspan_haystack._instrument import instrument
from claimspan_tracing.adapters import Key, Monitor, MonitorOptions

__all__ = ["ClaimspanConnector"]

_SERIALISABLE: Final = (str, int, float, bool)


@component
class ClaimspanConnector:
    """Captures every pipeline of the process from the moment the component is created.

    Add it to a pipeline and connect it to nothing: ``pipeline.add_component("claimspan",
    ClaimspanConnector())``. Haystack has one tracer for the whole process, so other pipelines are
    captured as well.
    """

    # What a serialised pipeline says the component is. Haystack loads nothing from packages that it
    # does not know, and knows the name that integrations share.
    __module__ = "haystack_integrations.components.connectors.claimspan"

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
            monitor: Evaluates the records and writes the scores; None uses the monitor that the
                process shares.
            query_key: Where the user's question is; as in ``instrument``.
            response_key: Where the answer is; as in ``instrument``.
            options: Options of ``Monitor``; whoever gives equal ones shares a monitor.

        Raises:
            ConfigError: Both a monitor and options are given, or an option is invalid.
        """
        given: Mapping[str, object] = {
            "query_key": query_key,
            "response_key": response_key,
            **options,
        }
        self._settings = _serialisable(given)
        self.undo = instrument(monitor, query_key=query_key, response_key=response_key, **options)

    @component.output_types(active=bool)
    def run(self) -> dict[str, Any]:
        """Report whether queries are captured.

        Returns:
            ``active``: False after ``undo``.
        """
        return {"active": self.undo.active}

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that can be serialised: texts, numbers and paths.

        A monitor, a judge, a sampler or a callable exists in one process only and is left out. The
        component that is loaded makes a monitor from the other settings, or uses the shared one.
        """
        return default_to_dict(self, **self._settings)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ClaimspanConnector:
        """Create the component from ``to_dict``; this instruments the process that loads it."""
        loaded: ClaimspanConnector = default_from_dict(cls, data)
        return loaded


def _serialisable(given: Mapping[str, object]) -> dict[str, object]:
    settings = {k: str(v) if isinstance(v, Path) else v for k, v in given.items()}
    return {key: value for key, value in settings.items() if isinstance(value, _SERIALISABLE)}
