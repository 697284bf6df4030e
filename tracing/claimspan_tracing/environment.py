"""Attaches claimspan without a line of code: ``opentelemetry-instrument python app.py``.

Its loader makes what the entry points of the group ``opentelemetry_instrumentor`` name, and calls
``instrument``. Options come from the environment, by the name of each option of ``Monitor``:
``CLAIMSPAN_SAMPLE=0.05``.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Final, cast

from pydantic import BaseModel, ValidationError

from claimspan.errors import ConfigError
from claimspan_tracing.monitor import MonitorOptions
from claimspan_tracing.options import check_names

__all__ = ["AutoInstrumentor", "options_of"]

_logger: Final = logging.getLogger("claimspan")

_GROUP: Final = "opentelemetry_instrumentor"
_DISABLED: Final = "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS"

_OTHERS: Final = "openinference.instrumentation"

_PREFIX: Final = "CLAIMSPAN_"

_ELSEWHERE: Final = frozenset(
    {"judge", "judge_options", "worker", "broker_url", "trust_env", "serve_token"}
)
"""What other code reads, of every monitor and of other commands."""


class _Plain(BaseModel):
    """The options of a monitor that one word or number can say."""

    metrics: str = ""
    ground_truth: str = ""
    sample: float = 1.0
    hold_seconds: float = 0.0
    max_queue_records: int = 0
    max_queue_bytes: int = 0
    redact: str = ""
    capture_content: bool = True
    spool: str = ""
    serverless: bool = False
    exit_timeout: float = 0.0
    max_cpu_share: float = 0.0


def options_of(environment: Mapping[str, str]) -> MonitorOptions:
    """Read the options of a monitor from variables such as ``CLAIMSPAN_SAMPLE=0.05``.

    Args:
        environment: All variables of the process. Empty ones count as absent.

    Raises:
        ConfigError: A variable is no option that a text can say, or its value cannot be read.
    """
    named = {
        name.removeprefix(_PREFIX).lower(): value
        for name, value in environment.items()
        if name.startswith(_PREFIX) and value
    }
    given = {name: value for name, value in named.items() if name not in _ELSEWHERE}
    check_names(given)
    unsaid = given.keys() - _Plain.model_fields.keys()
    if unsaid:
        raise ConfigError(
            f"{_PREFIX}{min(unsaid).upper()}: no variable can say this option; make a Monitor with "
            "it in the application"
        )
    try:
        read = _Plain.model_validate_strings(given)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = str(first["loc"][0]).upper()
        raise ConfigError(f"{_PREFIX}{name} cannot be read: {first['msg'].lower()}") from None
    return cast("MonitorOptions", read.model_dump(exclude_unset=True))


class AutoInstrumentor:
    """What ``opentelemetry-instrument`` loads for one integration; no fault of ours ends others."""

    def __init__(
        self, attach: Callable[..., Callable[[], object]], *, framework: str | None = None
    ) -> None:
        """Stand for an integration.

        Args:
            attach: Its ``instrument``.
            framework: Whose pipelines it captures, as OpenInference names its package for it. If
                that one is loaded as well, the spans are there already. None stands for the
                integration that reads those.
        """
        self._attach = attach
        self._framework = framework
        self._undo: Callable[[], object] | None = None

    def __call__(self) -> AutoInstrumentor:
        """Return itself: the loader makes one of what an entry point names."""
        return self

    def instrument(self, **_loader: object) -> None:
        """Attach the integration with the options that the environment says."""
        reads_others = self._framework is None
        if self._undo is not None or _is_loaded(self._framework or "") is not reads_others:
            return
        try:
            self._undo = self._attach(**options_of(os.environ))
        except ConfigError as error:
            # Raised, it would end the loading of all other instrumentations.
            _logger.error("claimspan is not attached: %s", error)

    def uninstrument(self, **_loader: object) -> None:
        """Detach it again."""
        if self._undo is not None:
            self._undo()
            self._undo = None


def _is_loaded(framework: str) -> bool:
    """Return whether OpenInference's instrumentation of a framework is loaded; of any, if empty."""
    disabled = {each.strip() for each in os.environ.get(_DISABLED, "").split(",")}
    return "*" not in disabled and any(
        each.module.startswith(f"{_OTHERS}.{framework}") and each.name not in disabled
        for each in entry_points(group=_GROUP)
    )
