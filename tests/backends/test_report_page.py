"""The report in a real browser: what a person sees, finds and clicks; the pictures are kept."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Page, Request, expect

from claimspan import Chunk, Label
from claimspan.report import (
    ReportClaim,
    ReportEntry,
    ReportSystem,
    TraceLinks,
    compare_entries,
    render_comparison,
    render_report,
)
from claimspan.report.page import PAGE_SIZE

from browser import open_page, picture
from many_entries import many_entries

MANY: Final = 1_230
"""Several blocks, the last of them not full."""

MOST_NODES: Final = 20_000
"""Elements in the document with 50 records of 4 chunks and 6 claims: 11,200 at the time of writing.
All records at once would be more than ten times as many."""

EVIL: Final = (
    "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "<svg onload=\"document.title='owned'\"><a href=\"javascript:document.title='owned'\">x</a>"
)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of many records, the last of which is made of markup."""
    entries = [*many_entries(MANY - 1), evil_entry()]
    return written(tmp_path_factory.mktemp("many"), render_report(entries, title="Nightly run"))


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of three systems."""
    names = {"plain": 0, "reranked": 2, "tuned": 5}
    systems = [ReportSystem(n, tuple(many_entries(60, skill=s))) for n, s in names.items()]
    page = render_comparison(systems, compare_entries(systems, progress=False), title="Compared")
    return written(tmp_path_factory.mktemp("compared"), page)


def evil_entry() -> ReportEntry:
    claim = ReportClaim(text=EVIL, label=Label.ENTAILED, supported_by=("k",))
    return ReportEntry(
        query=EVIL,
        response=EVIL,
        chunks=(Chunk(id="k", text=EVIL, metadata={EVIL: EVIL}),),
        response_claims=(claim,),
        metadata={"topic": EVIL},
        status="evaluated",
    )


def written(folder: Path, page: str) -> Path:
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8")
    return path


@contextmanager
def shown(
    path: Path, *, width: int = 1360, height: int = 1000, anchor: str = ""
) -> Generator[Page]:
    """A report in a browser; it must ask for nothing, and say nothing on the console."""
    asked: list[str] = []
    said: list[str] = []

    def note(request: Request) -> None:
        if not request.url.startswith("file:"):
            asked.append(request.url)

    with open_page(width, height) as page:
        page.on("request", note)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(f"{path.as_uri()}{anchor}")
        expect(page.locator("#shown")).to_have_text(re.compile("records$"))
        yield page
        assert (asked, said) == ([], [])


def nodes(page: Page) -> int:
    return int(page.evaluate("document.querySelectorAll('*').length"))


def rows(page: Page) -> int:
    return page.locator("#list > li").count()


def overflow(page: Page) -> int:
    """Pixels by which the page is wider than the window."""
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


def queries(page: Page) -> list[str]:
    # A browser lays out no row that is off the screen, and one that is not laid out has no inner
    # text; what the row holds is there all the same.
    return page.locator("summary .query").all_text_contents()


def test_many_records_are_one_page_of_elements_at_a_time(many: Path) -> None:
    with shown(many) as page:
        picture(page, "report-many")
        assert rows(page) == PAGE_SIZE
        assert nodes(page) < MOST_NODES
        first = queries(page)

        page.get_by_role("button", name="next").click()
        expect(page.locator("#page")).to_have_text("page 2 of 25")
        assert not set(first) & set(queries(page))
        page.get_by_role("button", name="Last page").click()
        expect(page.locator("#page")).to_have_text("page 25 of 25")
        assert rows(page) == MANY % PAGE_SIZE
        expect(page.get_by_role("button", name="next")).to_be_disabled()
        page.get_by_role("button", name="previous").click()
        expect(page.locator("#page")).to_have_text("page 24 of 25")
        assert nodes(page) < MOST_NODES


def test_the_search_finds_a_record_that_is_not_in_the_document(many: Path) -> None:
    with shown(many) as page:
        assert "Question 777:" not in " ".join(queries(page))

        page.get_by_label("Search").fill("promise 5439?")

        expect(page.locator("#shown")).to_have_text(f"1 of {MANY} records")
        assert queries(page)[0].startswith("Question 777:")
        page.get_by_label("Search").fill("nothing like it")
        expect(page.locator("#nothing")).to_be_visible()


def test_a_column_sorts_all_records_and_not_those_of_the_page(many: Path) -> None:
    with shown(many) as page:
        page.get_by_label("Order").select_option("newest")

        expect(page.locator("#list summary .query").first).to_contain_text(f"Question {MANY - 2}:")
        page.locator("[data-order=contradicted_by_chunks]").click()
        shown_first = page.locator("#list summary [data-name='contradicted by chunks']")
        # The rows in their new order come a moment after the click.
        expect(shown_first.first).to_have_text("1.00")
        values = shown_first.all_inner_texts()
        assert values == sorted(values, reverse=True)


def test_a_click_on_a_slice_shows_its_records(many: Path) -> None:
    with shown(many) as page:
        page.get_by_role("button", name="medium").click()

        expect(page.locator("#shown")).to_have_text(f"410 of {MANY} records")
        page.locator("#list summary").first.click()
        expect(page.locator("#list .body").first).to_contain_text("level: medium")
        picture(page, "report-slice")
        page.get_by_role("button", name="medium").click()
        expect(page.locator("#shown")).to_have_text(f"{MANY} of {MANY} records")


def test_a_click_on_a_part_shows_the_answers_that_it_is_responsible_for(many: Path) -> None:
    with shown(many) as page:
        button = page.locator("[data-part=generator]")
        number = button.locator("b").inner_text()

        button.click()

        expect(page.locator("#shown")).to_have_text(f"{number} of {MANY} records")
        page.locator("#list summary").first.click()
        expect(page.locator("#list .diagnosis b").first).to_have_text("Generator")


def test_a_claim_lights_its_chunk_and_the_closest_sentence(many: Path) -> None:
    with shown(many) as page:
        page.get_by_label("Search").fill("question 5439?")
        expect(page.locator("#shown")).to_have_text(f"1 of {MANY} records")
        page.locator("#list summary").first.click()
        claim = page.locator("#list li[data-links*=k]").first

        claim.click()

        mark = page.locator("mark.closest.lit").first
        expect(mark).to_be_in_viewport()
        assert mark.inner_text() in claim.inner_text()
        assert page.locator(".chunk.lit").count() >= 1
        picture(page, "report-claim")


def test_a_trace_opens_in_a_new_tab_that_cannot_reach_the_report(tmp_path: Path) -> None:
    entry = many_entries(3)[2]
    target = tmp_path / f"{entry.trace_id}.html"
    target.write_text("<title>the trace</title>", encoding="utf-8")
    page_of = render_report([entry], links=TraceLinks("http://backend.test/{trace_id}.html"))

    with shown(written(tmp_path, page_of)) as page:
        # No backend runs here: the browser is answered from the file, in this tab or in another.
        page.context.route("http://backend.test/*", lambda route: route.fulfill(path=target))
        page.locator("#list summary").first.click()
        with page.expect_popup() as opened:
            page.get_by_title("Opens the trace in a new tab").click()

        expect(opened.value).to_have_title("the trace")
        assert opened.value.url == f"http://backend.test/{entry.trace_id}.html"
        assert opened.value.evaluate("window.opener") is None
        picture(page, "report-trace-link")


def test_an_anchor_opens_a_record_of_any_page(many: Path) -> None:
    with shown(many, anchor="#e999-r1") as page:
        expect(page.locator("#e999")).to_have_attribute("open", "")
        expect(page.locator("#e999-r1")).to_be_in_viewport()


def test_markup_of_a_record_never_runs_wherever_it_is_shown(many: Path, tmp_path: Path) -> None:
    with shown(many) as page:
        page.get_by_label("Search").fill("onerror")
        expect(page.locator("#shown")).to_have_text(f"1 of {MANY} records")
        page.locator("#list summary").first.click()
        expect(page.locator("#list .text").first).to_contain_text("<img src=x onerror=")
        assert page.locator("#list img, #list script, #list svg").count() == 0
        assert page.locator("a[href^='javascript']").count() == 0
        assert page.title() == "Nightly run · claimspan"
    with shown(written(tmp_path, render_report([evil_entry()], title=EVIL))) as page:
        assert page.title() == f"{EVIL} · claimspan"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1360, 390])
def test_no_page_is_wider_than_the_window(
    many: Path, compared: Path, width: int, scheme: str
) -> None:
    for name, path in (("many", many), ("compared", compared)):
        with shown(path, width=width, height=1600) as page:
            page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
            assert overflow(page) <= 0
            page.locator("#list summary").first.click()
            for inner in page.locator("#list details[open] .inner summary").all():
                inner.click()
            assert overflow(page) <= 0
            picture(page, f"report-{name}-{width}-{scheme}")


def test_texts_without_a_space_and_long_lists_fit_a_phone(tmp_path: Path) -> None:
    word = "w" * 500
    entry = ReportEntry(
        query=word,
        response=word,
        chunks=(Chunk(id=word, text=word, metadata={f"k{i}": word for i in range(1_000)}),),
        metadata={word: word},
        scores={"faithfulness": 0.5, word: 0.5},
        status=word,
        reason=word,
        judge=word,
    )
    with shown(written(tmp_path, render_report([entry], title=word)), width=390) as page:
        assert overflow(page) <= 0
        page.locator("#list summary").first.click()
        assert overflow(page) <= 0
        assert page.locator(".chunk .metadata span:visible").count() == 8
        page.get_by_text("992 more values").click()
        assert page.locator(".chunk .metadata span:visible").count() == 1_000


def test_text_that_runs_from_right_to_left_is_shown_so(tmp_path: Path) -> None:
    hebrew = "מהי בירת צרפת?"
    entries = [ReportEntry(query=q, response=q, status="evaluated") for q in (hebrew, "q?")]
    with shown(written(tmp_path, render_report(entries))) as page:
        for place, direction in enumerate(("rtl", "ltr")):
            page.locator("#list summary").nth(place).click()
            expect(page.locator("#list .text").nth(place)).to_have_css("direction", direction)


def test_systems_stand_side_by_side_where_they_differ_most(compared: Path) -> None:
    with shown(compared) as page:
        expect(page.locator(".metrics .tile")).to_have_count(8)
        page.locator("#list summary.row").first.click()
        answers = page.locator("#list details[open] .answer")
        expect(answers).to_have_count(3)
        tops = {round(answer["y"]) for each in answers.all() if (answer := each.bounding_box())}
        assert len(tops) == 1
        picture(page, "report-systems")
        page.get_by_label("Search").fill("question 119?")
        expect(page.locator("#shown")).to_have_text("1 of 60 records")


def test_without_a_script_the_first_records_can_be_read(many: Path) -> None:
    with open_page() as page:
        browser = page.context.browser
        assert browser is not None
        plain = browser.new_context(java_script_enabled=False).new_page()
        plain.goto(many.as_uri())
        assert plain.locator("#list > li").count() == PAGE_SIZE
        plain.locator("#list summary").first.click()
        assert plain.locator("#list .chunk").first.is_visible()
        assert plain.get_by_text(f"the first {PAGE_SIZE} of").is_visible()
        assert not plain.locator(".tools").is_visible()
