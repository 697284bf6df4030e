"""Gates in pytest: a test fails if scores are too low, or worse than a baseline's.

    def test_the_answers_are_grounded(claimspan_gate):
        claimspan_gate(records, judge="lexical", min={"faithfulness": 0.8}, baseline="last.jsonl")

pytest imports this module in every run, also if no test uses it: what a gate needs is imported when
a test asks for the fixture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from claimspan.pytest_plugin.gate import PytestGate

__all__ = ["NAME", "claimspan_gate"]

NAME: Final = "claimspan_gate"
"""Name of the fixture, of the marker with its default arguments for a test, a class or a module,
and of a test's property that holds the line of a gate, in reports and in JUnit files."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add our options to pytest's."""
    group = parser.getgroup("claimspan", "gates on the scores of RAG pipelines")
    group.addoption(
        "--claimspan-update-baseline",
        action="store_true",
        help="make the new results the baseline of each gate whose other rules hold",
    )
    group.addoption(
        "--claimspan-results",
        metavar="DIR",
        help="folder for the results of gates; in pytest's cache by default",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, which `--strict-markers` asks for."""
    config.addinivalue_line(
        "markers",
        f"{NAME}(judge=, judge_options=, min=, max=, baseline=, ...): default arguments of the "
        "fixture claimspan_gate",
    )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show one line a gate, also of those that passed."""
    reports = (each for category in terminalreporter.stats.values() for each in category)
    found = (
        f"{report.nodeid}: {value}"
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call"
        for name, value in report.user_properties
        if name == NAME
    )
    lines = list(found)
    if lines:
        terminalreporter.section("claimspan gates")
        for line in lines:
            terminalreporter.line(line)


@pytest.fixture
def claimspan_gate(request: pytest.FixtureRequest) -> PytestGate:
    """A gate to call with records or a file, and with the rules that have to hold."""
    from claimspan.pytest_plugin.gate import PytestGate

    return PytestGate(request, NAME)
