"""Sends queries to a real MLflow: spans by OTLP, scores by the writer."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Unpack

from claimspan_mlflow import MLflowWriter
from claimspan_tracing import Monitor
from claimspan_tracing.monitor import MonitorOptions

from backend_queries import ask_all
from mlflow_api import Experiment
from pipelines import Driver
from support import ScriptedJudge

__all__ = ["ask_mlflow", "monitor_to"]


@contextmanager
def monitor_to(experiment: Experiment, **options: Unpack[MonitorOptions]) -> Generator[Monitor]:
    """A monitor whose spans and scores go to an experiment; all of them are there at the end."""
    provider, writer = experiment.provider(), MLflowWriter(experiment.url)
    defaults: MonitorOptions = {
        "judge": ScriptedJudge(),
        "sample": 1.0,
        "tracer_provider": provider,
        "max_cpu_share": 1.0,
        "sinks": [writer],
    }
    monitor = Monitor(**(defaults | options))
    try:
        yield monitor
        assert monitor.flush(timeout=60), monitor.stats
        assert writer.flush(timeout=60)
        assert writer.lost == 0
    finally:
        monitor.shutdown()
        provider.shutdown()


def ask_mlflow(experiment: Experiment, driver: Driver) -> Experiment:
    """Ask every query of ``backend_queries``, and wait until MLflow has spans and scores."""
    with monitor_to(experiment) as monitor:
        ask_all(driver, monitor)
    return experiment
