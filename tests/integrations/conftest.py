"""Attaches to LlamaIndex for one test, and detaches again whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import claimspan_llama_index
from claimspan_tracing import Monitor

from support import MonitorFactory


@pytest.fixture
def attach() -> Iterator[Callable[[Monitor], Monitor]]:
    """Attaches a monitor to LlamaIndex until the end of the test."""
    undoes: list[Callable[[], None]] = []

    def attach(monitor: Monitor) -> Monitor:
        undoes.append(claimspan_llama_index.instrument(monitor))
        return monitor

    yield attach
    for undo in undoes:
        undo()


@pytest.fixture
def attached(make_monitor: MonitorFactory, attach: Callable[[Monitor], Monitor]) -> Monitor:
    """A monitor of its own, attached to LlamaIndex."""
    return attach(make_monitor())
