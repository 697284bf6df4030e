"""The page on which people label claims, in a real browser: keys, undo, what is kept, the file."""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from browser import open_page, picture
from command_line import run
from labelled_traffic import EVIL, write_traffic

N = 40


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return write_traffic(tmp_path / "results.jsonl", N)


@contextmanager
def shown(results: Path) -> Generator[Page]:
    """The page of all claims; it must ask for nothing, and say nothing on the console."""
    path = results.with_name("label.html")
    run("label", str(results), "-o", str(path))
    asked: list[str] = []
    said: list[str] = []
    with open_page(1000, 900) as page:
        page.on(
            "request",
            lambda r: None if r.url.startswith(("file:", "blob:")) else asked.append(r.url),
        )
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(path.as_uri())
        yield page
        assert (asked, said) == ([], [])


def progress(page: Page, n: int) -> None:
    expect(page.locator("#progress")).to_have_text(f"{n} of {N} labelled")


def label_all(page: Page) -> None:
    """Press the key that a person would, by what the claim says."""
    for n in range(N):
        progress(page, n)
        right = "right" in page.locator("#claim").inner_text()
        page.keyboard.press("e" if right else "n")
    progress(page, N)


def test_labels_of_a_person_become_a_threshold_that_a_judge_takes(results: Path) -> None:
    labels, calibration = results.with_name("labels.csv"), results.with_name("calibration.json")
    with shown(results) as page:
        label_all(page)
        expect(page.locator("#done")).to_be_visible()
        with page.expect_download() as download:
            page.get_by_role("button", name="Download").click()
        download.value.save_as(labels)
        assert download.value.suggested_filename == "labels.csv"

    told = json.loads(run("calibrate", str(results), str(labels), "-o", str(calibration), "--json"))

    assert told["labels"] == N
    assert told["calibration"]["threshold"] == pytest.approx(0.3, abs=0.03)
    assert told["as_it_is"]["accuracy"]["value"] == pytest.approx(0.8)
    assert told["cross_fitted"]["accuracy"]["value"] > 0.9
    record = {"query": "Who?", "response": "It is Ana.", "chunks": ["It is Ana."], "id": "1"}
    records = results.with_name("records.jsonl")
    records.write_text(json.dumps(record) + "\n", encoding="utf-8")
    judged = results.with_name("judged.jsonl")
    run("evaluate", str(records), "--judge", f"lexical@{calibration}", "-o", str(judged))
    evaluation = json.loads(judged.read_text("utf-8"))["evaluation"]
    assert evaluation["judge_name"] == "calibrated(lexical)"


def test_keys_label_move_and_undo_and_the_browser_keeps_the_labels(results: Path) -> None:
    with shown(results) as page:
        place, current = page.locator("#place"), page.locator("[data-label][aria-pressed=true]")
        for key in "ENCU":
            page.keyboard.press(key)
        progress(page, 4)
        expect(place).to_have_text(f"Claim 5 of {N}")
        page.keyboard.press("ArrowLeft")
        expect(current).to_contain_text("Unsure")
        page.keyboard.press("Control+e")
        page.keyboard.press("z")
        progress(page, 3)
        expect(place).to_have_text(f"Claim 4 of {N}")
        page.reload()
        progress(page, 3)
        expect(place).to_have_text(f"Claim 4 of {N}")
        page.keyboard.press("ArrowLeft")
        expect(current).to_contain_text("Contradicted")


def test_markup_is_text_and_the_closest_sentence_is_marked_behind_it(results: Path) -> None:
    with shown(results) as page:
        expect(page.locator("#chunks p")).to_contain_text(EVIL)
        expect(page.locator("#chunks p")).to_contain_text("🐝. More follows.")
        expect(page.locator("#chunks mark")).to_have_text(re.compile(r"^Answer \d+ is known\.$"))
        expect(page.locator("#closest li")).to_contain_text("is known. (chunk 1)")
        expect(page).to_have_title(re.compile("^Label claims"))
        assert page.locator("img").count() == 0


def test_the_page_is_read_by_a_screen_reader_and_in_the_dark(results: Path) -> None:
    with shown(results) as page:
        expect(page.locator("#claim")).to_be_focused()
        expect(page.get_by_role("group", name="Label").get_by_role("button")).to_have_count(4)
        expect(page.get_by_role("progressbar", name="Claims labelled")).to_be_visible()
        picture(page, "label-page")
        page.emulate_media(color_scheme="dark")
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert background == "rgb(15, 18, 22)"
        picture(page, "label-page-dark")
        page.set_viewport_size({"width": 400, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
