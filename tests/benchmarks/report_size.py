"""How a report grows: python tests/benchmarks/report_size.py [RECORDS] [--browser].

Prints the time to render, the size of the page and, with --browser, the seconds that Chromium needs
to open, search, sort and filter it and the elements that it then holds, for 100 records and for
10,000. Each has 4 chunks of some 500 characters, 6 claims and 16 scores.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from playwright.sync_api import Page, expect

from claimspan.report import render_report

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from browser import open_page
from many_entries import many_entries

FEW = 100


def main(n_records: int, *, browser: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        few = measured(FEW, Path(folder), browser=browser)
        many = measured(n_records, Path(folder), browser=browser)
    print(f"{'':24}{FEW:>12,}{n_records:>12,}{'ratio':>9}")
    for name, value in few.items():
        print(f"{name:24}{value:>12,.2f}{many[name]:>12,.2f}{many[name] / value:>9.1f}")


def measured(n_records: int, folder: Path, *, browser: bool) -> dict[str, float]:
    entries = many_entries(n_records)
    started = time.perf_counter()
    page = render_report(entries)
    found = {"render, seconds": time.perf_counter() - started, "page, MB": len(page) / 1e6}
    if browser:
        path = folder / f"{n_records}.html"
        path.write_text(page, encoding="utf-8")
        found |= in_browser(path, n_records)
    return found


def in_browser(path: Path, n_records: int) -> dict[str, float]:
    def search(page: Page) -> None:
        page.get_by_label("Search").fill(f"question {(n_records - 1) * 7}?")
        shows(page, "1")

    def search_again(page: Page) -> None:
        page.get_by_label("Search").fill("")
        shows(page, str(n_records))

    def sort(page: Page) -> None:
        page.get_by_label("Order").select_option("newest")
        first = page.locator("#list summary .query").first
        expect(first).to_contain_text(f"Question {n_records - 1}:")

    def slice_(page: Page) -> None:
        page.get_by_role("button", name="medium").click()
        shows(page, str(len(range(1, n_records, 3))))

    def shows(page: Page, n: str) -> None:
        expect(page.locator("#shown")).to_have_text(f"{n} of {n_records} records")

    with open_page(1360, 1000) as page:

        def opened() -> None:
            page.goto(path.as_uri())
            shows(page, str(n_records))

        found = {"open, seconds": timed(opened)}
        for name, act in (
            ("first search, seconds", search),
            ("next search, seconds", search_again),
            ("sort, seconds", sort),
            ("slice, seconds", slice_),
        ):
            found[name] = timed(partial(act, page))
        found["elements"] = float(page.evaluate("document.querySelectorAll('*').length"))
    return found


def timed(act: Callable[[], None]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:] if argument.isdigit()]
    main(numbers[0] if numbers else 10_000, browser="--browser" in sys.argv)
