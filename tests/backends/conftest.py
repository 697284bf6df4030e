"""Real backends, on loopback, in environments of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial

import pytest

from claimspan_demo.phoenix_environment import make_environment
from claimspan_demo.phoenix_server import Phoenix, serve_phoenix
from claimspan_phoenix import PhoenixWriter

from backend_queries import DRIVERS, QUERIES, ask_all, monitor_on, provider_to
from environments import ROOT
from mlflow_api import Experiment
from mlflow_queries import ask_mlflow
from mlflow_server import mlflow_server
from phoenix_api import PhoenixApi, eventually
from pipelines import Driver

CACHE = ROOT / ".venv-phoenix"
"""Git ignores it."""


@pytest.fixture(scope="session")
def phoenix() -> Iterator[Phoenix]:
    """A Phoenix with an empty database, for all tests; each uses projects of its own."""
    with serve_phoenix(make_environment(CACHE, print)) as served:
        yield served


@pytest.fixture(scope="session")
def project_of(phoenix: Phoenix) -> Callable[[Callable[[], Driver]], PhoenixApi]:
    """Returns the project of one framework's pipeline, which is asked all queries only once."""
    return cache(partial(_asked_project, phoenix))


@pytest.fixture(params=DRIVERS, ids=lambda make: make().name)
def project(
    request: pytest.FixtureRequest, project_of: Callable[[Callable[[], Driver]], PhoenixApi]
) -> PhoenixApi:
    """The project of each framework's pipeline in turn."""
    make: Callable[[], Driver] = request.param
    return project_of(make)


def _asked_project(phoenix: Phoenix, make: Callable[[], Driver]) -> PhoenixApi:
    """Ask a framework's pipeline all queries, and wait until Phoenix has stored everything."""
    driver = make()
    name = f"rag on {driver.name}"
    provider = provider_to(f"{phoenix.url}/v1/traces", openinference__project__name=name)
    monitor = monitor_on(provider, sinks=[PhoenixWriter(phoenix.url)])
    ask_all(driver, monitor, f"a talk: {name}")
    assert monitor.shutdown(timeout=60)
    provider.shutdown()
    api = PhoenixApi(phoenix.url, name)
    assert len(eventually(api.roots, lambda roots: len(roots) == len(QUERIES))) == len(QUERIES)
    # Annotations are attached some time after the spans that they are about.
    judged = sum(query.faithfulness is not None for query in QUERIES)
    eventually(api.annotated, lambda spans: len(spans) == judged)
    eventually(api.document_annotations, any)
    return api


@pytest.fixture(scope="session")
def mlflow() -> Iterator[str]:
    """The URL of an MLflow with an empty database; each test uses experiments of its own."""
    with mlflow_server() as url:
        yield url


@pytest.fixture(scope="session", params=DRIVERS, ids=lambda make: make().name)
def asked(mlflow: str, request: pytest.FixtureRequest) -> Experiment:
    """An experiment with all queries of one framework, and their scores; tests only read it."""
    make: Callable[[], Driver] = request.param
    return ask_mlflow(Experiment(mlflow), make())
