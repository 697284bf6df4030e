"""The pages of an MLflow, as somebody uses them: the table of traces, its filter, and a trace."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import Locator, Page, expect

from mlflow_api import Experiment

__all__ = [
    "filter_feedback",
    "open_feedback",
    "open_span",
    "open_table",
    "open_trace",
    "rows",
    "welcome",
]

WELCOMED: Final = {
    "mlflow.assistant.fab.autoOpenedOnFirstLoad_v1": "true",
    "mlflow.assistant.panelOpen_v1": "false",
    "mlflow.detectIssues.guidanceShown_v1": "true",
}
"""What MLflow remembers of somebody who has closed its assistant and its tour."""


def open_table(page: Page, experiment: Experiment, expected: int) -> None:
    """Open the table of an experiment's traces, and wait until it has a number of rows."""
    welcome(page)
    page.goto(experiment.page)
    expect(_rows(page)).to_have_count(expected)


def welcome(page: Page) -> None:
    """Let a page that is opened next find a browser that has seen MLflow before."""
    for name, value in WELCOMED.items():
        page.add_init_script(f"localStorage.setItem({name!r}, {value!r})")


def rows(page: Page) -> dict[str, dict[str, str]]:
    """The rows of the table by their question, from head of the column to text of the cell."""
    heads = [head.inner_text().strip() for head in page.get_by_role("columnheader").all()]
    found: dict[str, dict[str, str]] = {}
    for row in _rows(page).all():
        texts = [cell.inner_text().strip().strip('"') for cell in row.get_by_role("cell").all()]
        shown = dict(zip(heads, texts, strict=True))
        found[shown["Input"]] = shown
    return found


def filter_feedback(page: Page, name: str, value: str, expected: int) -> None:
    """Let through the traces whose feedback has a value, and wait for a number of rows."""
    page.get_by_role("button", name="Filters").click()
    page.get_by_role("combobox", name="Filter field").click()
    page.get_by_role("option", name="Feedback", exact=True).click()
    page.get_by_role("combobox", name="Filter key").click()
    page.get_by_role("option", name=name, exact=True).click()
    page.get_by_label("Filter value").fill(value)
    page.get_by_role("button", name="Apply filters").click()
    expect(_rows(page)).to_have_count(expected)


def open_trace(page: Page, question: str) -> Locator:
    """Click the row of a question, and return the panel that its trace opens in."""
    page.get_by_role("link").filter(has_text=f'"{question}"').first.click()
    panel = page.get_by_role("dialog")
    expect(panel.get_by_text("Inputs / Outputs", exact=True)).to_be_visible()
    return panel


def open_span(panel: Locator, name: str) -> None:
    """Click a span in the tree of a trace, and wait for its page."""
    panel.get_by_text(name, exact=True).first.click()
    # Once in the tree, and once as the head of its page.
    expect(panel.get_by_text(name, exact=True)).to_have_count(2)


def open_feedback(panel: Locator, name: str) -> None:
    """Open the list of the feedback beside the root of a trace, and one entry of it."""
    panel.get_by_role("button", name="Assess").first.click()
    expect(panel.get_by_text("Add feedback")).to_be_visible()
    opens = panel.page.locator("[data-component-id$='toggle-assessment-expanded']")
    # Neither name nor button is within the other: both are in the innermost of these.
    entry = panel.locator("div", has=panel.page.get_by_text(name, exact=True)).filter(has=opens)
    entry.last.locator(opens).first.click()


def _rows(page: Page) -> Locator:
    # The row of the heads has no cells.
    return page.get_by_role("row").filter(has=page.get_by_role("cell"))
