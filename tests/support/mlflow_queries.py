"""Sends queries to a real MLflow: spans by OTLP, scores by the writer."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Unpack

from opentelemetry.sdk.trace import TracerProvider

from claimspan_mlflow import MLflowWriter
from claimspan_tracing import Monitor
from claimspan_tracing.monitor import MonitorOptions

from backend_queries import ask_all, monitor_on
from mlflow_api import Experiment
from pipelines import Driver

__all__ = ["SESSION", "ask_mlflow", "monitor_to"]

SESSION = "a talk"
"""Of the queries that are turns of a talk."""


@contextmanager
def monitor_to(
    experiment: Experiment,
    provider: TracerProvider | None = None,
    **options: Unpack[MonitorOptions],
) -> Generator[Monitor]:
    """A monitor whose spans and scores go to an experiment; all of them are there at the end."""
    provider, writer = provider or experiment.provider(), MLflowWriter(experiment.url)
    defaults: MonitorOptions = {"sinks": [writer]}
    monitor = monitor_on(provider, **(defaults | options))
    try:
        yield monitor
        monitor.flush(timeout=60)
        assert provider.force_flush()
        assert writer.flush(timeout=60)
        assert writer.lost == 0
    finally:
        monitor.shutdown()
        provider.shutdown()


def ask_mlflow(experiment: Experiment, driver: Driver) -> Experiment:
    """Ask every query of ``backend_queries``, and wait until MLflow has spans and scores."""
    with monitor_to(experiment) as monitor:
        ask_all(driver, monitor, SESSION)
    return experiment
