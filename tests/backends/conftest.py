"""Real backends, on loopback, in environments of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from claimspan_demo.phoenix_environment import make_environment
from claimspan_demo.phoenix_server import Phoenix, serve_phoenix

from environments import ROOT

CACHE = ROOT / ".venv-phoenix"
"""Git ignores it. The demo of a test finds its environment there too."""


@pytest.fixture(scope="session")
def phoenix() -> Iterator[Phoenix]:
    """A Phoenix with an empty database, for all tests; each uses projects of its own."""
    with serve_phoenix(make_environment(CACHE, print)) as served:
        yield served
