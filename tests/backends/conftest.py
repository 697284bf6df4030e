"""Real backends, on loopback, in environments of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from claimspan_demo.phoenix_environment import make_environment
from claimspan_demo.phoenix_server import Phoenix, serve_phoenix

from backend_queries import DRIVERS
from environments import ROOT
from mlflow_api import Experiment
from mlflow_queries import ask_mlflow
from mlflow_server import mlflow_server
from pipelines import Driver

CACHE = ROOT / ".venv-phoenix"
"""Git ignores it. The demo of a test finds its environment there too."""


@pytest.fixture(scope="session")
def phoenix() -> Iterator[Phoenix]:
    """A Phoenix with an empty database, for all tests; each uses projects of its own."""
    with serve_phoenix(make_environment(CACHE, print)) as served:
        yield served


@pytest.fixture(scope="session")
def mlflow() -> Iterator[str]:
    """The URL of an MLflow with an empty database; each test uses experiments of its own."""
    with mlflow_server() as url:
        yield url


@pytest.fixture(scope="session", params=DRIVERS)
def asked(mlflow: str, request: pytest.FixtureRequest) -> Experiment:
    """An experiment with all queries of one framework, and their scores; tests only read it."""
    make_driver: Callable[[], Driver] = request.param
    return ask_mlflow(Experiment(mlflow), make_driver())
