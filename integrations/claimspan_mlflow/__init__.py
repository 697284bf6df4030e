"""Writes scores to MLflow as assessments of its traces.

As a sink of the monitor, with MLflow's own environment variables or with arguments::

    monitor = Monitor(sinks=[MLflowWriter("http://127.0.0.1:5000")])
"""

from __future__ import annotations

from claimspan_mlflow._writer import MLflowWriter

__all__ = ["MLflowWriter"]
