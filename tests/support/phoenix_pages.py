"""The pages of a Phoenix, as somebody uses them: the list of spans, its filter, and a trace."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlencode

from playwright.sync_api import Locator, Page, expect

__all__ = [
    "choose_columns",
    "filter_spans",
    "milliseconds",
    "open_spans",
    "open_trace",
    "rows",
    "tree",
]

_UNITS: Final = {"ms": 1.0, "s": 1_000.0, "m": 60_000.0}


def open_spans(page: Page, url: str, expected: int) -> None:
    """Open the list of a project's spans, and wait until it has a number of rows."""
    page.goto(url)
    expect(_table(page)).to_have_count(expected)


def filter_spans(page: Page, condition: str, expected: int) -> None:
    """Put a condition into the filter box, and wait until a number of rows is left."""
    page.get_by_role("textbox", name="Filter spans").click()
    page.keyboard.press("ControlOrMeta+A")
    # As from the clipboard: typed letter by letter, completions would change it.
    page.keyboard.insert_text(condition)
    expect(page).to_have_url(re.compile(re.escape(urlencode({"spanFilterCondition": condition}))))
    page.keyboard.press("Escape")  # closes the list of completions
    expect(_table(page)).to_have_count(expected)


def choose_columns(page: Page, *, show: Sequence[str] = (), hide: Sequence[str] = ()) -> None:
    """Tick columns in the menu of columns, and untick others."""
    page.get_by_role("button", name="Columns").click()
    menu = page.get_by_role("dialog")
    for name in (*show, *hide):
        handle = page.get_by_role("button", name=f"Reorder {name} column", exact=True)
        menu.locator("li", has=handle).locator("label").set_checked(name in show)
    page.keyboard.press("Escape")


def rows(page: Page) -> list[dict[str, str]]:
    """The rows of the table that the page shows, from head of the column to text of the cell."""
    heads = _heads(page)
    return [
        dict(zip(heads, (cell.inner_text().strip() for cell in _cells(row)), strict=False))
        for row in _table(page).all()
    ]


def open_trace(page: Page, question: str) -> Locator:
    """Click the row of a question, and return the panel that its trace opens in."""
    row = _table(page).filter(has=page.get_by_text(question, exact=True))
    row.get_by_role("link").first.click()
    panel = page.get_by_role("dialog")
    expect(panel.get_by_role("tab", name="Attributes")).to_be_visible()
    return panel


def tree(panel: Locator) -> list[tuple[str, str]]:
    """Kind and name of each span in the tree of a trace, from top to bottom."""
    # An icon's title is the kind; the name is the first text beside it.
    icons = panel.locator("[style*='--span-kind-icon-color']").filter(visible=True)
    in_tree = [icon for icon in icons.all() if icon.get_attribute("title")]
    beside = "icon => icon.parentElement.nextElementSibling.querySelector('span').textContent"
    return [(str(icon.get_attribute("title")), str(icon.evaluate(beside))) for icon in in_tree]


def milliseconds(text: str) -> float:
    """Read a duration as Phoenix writes it, such as ``4ms`` or ``2.5s``."""
    match = re.fullmatch(r"([\d.,]+)\s*(ms|s|m)", text.strip())
    assert match is not None, text
    return float(match[1].replace(",", "")) * _UNITS[match[2]]


def _table(page: Page) -> Locator:
    return page.locator("tbody tr")


def _heads(page: Page) -> list[str]:
    return [head.inner_text().strip() for head in page.locator("thead th").all()]


def _cells(row: Locator) -> Sequence[Locator]:
    cells: list[Locator] = row.locator("td").all()
    return cells
