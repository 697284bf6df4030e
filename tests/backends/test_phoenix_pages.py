"""What a person sees in Phoenix, in a real browser; the pictures are kept."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from claimspan.report import ReportEntry, TraceLinks

from backend_queries import DRIVERS, PASSAGES, QUERIES
from browser import open_page, picture
from documented_links import documented_link
from phoenix_api import PhoenixApi
from phoenix_pages import (
    choose_columns,
    filter_spans,
    milliseconds,
    open_spans,
    open_trace,
    rows,
    tree,
)

BAD = {query.text for query in QUERIES if query.is_bad}
one_framework = pytest.mark.parametrize("project", DRIVERS[:1], indirect=True, ids=["langchain"])
"""Opening a page takes seconds, and these pages do not depend on who made the spans."""

LOW = next(query for query in QUERIES if query.faithfulness == 0.5)


@pytest.fixture
def page() -> Iterator[Page]:
    with open_page(width=2000) as page:
        yield page


@pytest.fixture
def spans_page(page: Page, project: PhoenixApi) -> Page:
    """The list of the project's spans, which shows the roots at first."""
    open_spans(page, f"{project.url}/projects/{project.id}/spans", len(QUERIES))
    return page


def shown(project: PhoenixApi, name: str) -> str:
    return f"phoenix-{project.project.replace(' ', '-')}-{name}"


def test_the_list_shows_question_answer_status_and_real_latency(
    spans_page: Page, project: PhoenixApi
) -> None:
    picture(spans_page, shown(project, "spans"))
    real = project.trace_milliseconds()
    latencies = {
        span.attributes["input.value"]: real[span.context.trace_id] for span in project.roots()
    }

    found = {row["input"]: row for row in rows(spans_page)}

    assert found.keys() == {query.text for query in QUERIES}
    for query in QUERIES:
        row = found[query.text]
        assert row["kind"] == "chain"
        assert row["name"].startswith("invoke_workflow ")
        # A long answer is cut where the column ends.
        assert query.fails or query.answer.startswith(row["output"].removesuffix("..."))
        assert milliseconds(row["latency"]) == pytest.approx(latencies[query.text], rel=0.1, abs=1)


@one_framework
def test_scores_are_columns_of_the_list(spans_page: Page, project: PhoenixApi) -> None:
    choose_columns(spans_page, show=["faithfulness"], hide=["user", "error", "annotations"])
    for query in QUERIES:
        if query.faithfulness is not None:
            expect(spans_page.get_by_text(f"{query.faithfulness:.2f}").first).to_be_visible()
    picture(spans_page, shown(project, "columns"))

    found = {row["input"]: row["faithfulness"] for row in rows(spans_page)}

    for query in QUERIES:
        score = "" if query.faithfulness is None else f"{query.faithfulness:.2f}"
        assert score in found[query.text]


@one_framework
@pytest.mark.parametrize(
    "condition",
    [
        "claimspan.score.faithfulness < 0.5 and parent_id is None",
        "annotations['faithfulness'].score < 0.5",
    ],
)
def test_the_filter_box_leaves_exactly_the_bad_ones(
    spans_page: Page, project: PhoenixApi, condition: str
) -> None:
    filter_spans(spans_page, condition, len(BAD))
    picture(spans_page, shown(project, f"filter-{condition.partition('.')[0].split('[')[0]}"))

    assert {row["input"] for row in rows(spans_page)} == BAD


@one_framework
def test_the_link_of_a_report_opens_the_trace(page: Page, project: PhoenixApi) -> None:
    links = TraceLinks(documented_link("Phoenix", project.url))
    (root,) = [each for each in project.roots() if each.attributes["input.value"] == LOW.text]
    entry = ReportEntry(
        query=LOW.text, response="", status="evaluated", trace_id=root.context.trace_id
    )

    page.goto(str(links.url(entry)))

    expect(page.get_by_text("claimspan.evaluate").first).to_be_visible()
    expect(page.get_by_text(LOW.text).first).to_be_visible()
    picture(page, shown(project, "link"))


def test_a_trace_shows_its_tree_with_documents_and_scores(
    spans_page: Page, project: PhoenixApi
) -> None:
    panel = open_trace(spans_page, LOW.text)

    expect(panel.get_by_text("claimspan.evaluate").first).to_be_visible()
    picture(spans_page, shown(project, "trace"))
    assert [kind for kind, _ in tree(panel)] == ["chain", "retriever", "llm", "evaluator"]
    expect(panel.get_by_text("faithfulness").first).to_be_visible()
    panel.get_by_text("retrieval", exact=False).first.click()
    for passage in PASSAGES:
        expect(panel.get_by_text(passage.text).first).to_be_visible()
    picture(spans_page, shown(project, "documents"))


@one_framework
def test_the_evaluation_is_shown_in_words(spans_page: Page, project: PhoenixApi) -> None:
    panel = open_trace(spans_page, LOW.text)

    panel.get_by_text("claimspan.evaluate").first.click()

    expect(panel.get_by_text("evaluator", exact=True)).to_be_visible()
    expect(panel.get_by_text("Tea is roasted in pans").first).to_be_visible()
    picture(spans_page, shown(project, "evaluation"))


@one_framework
def test_the_sessions_page_shows_the_turns(page: Page, project: PhoenixApi) -> None:
    page.goto(f"{project.url}/projects/{project.id}/sessions")

    page.get_by_text(f"a talk: {project.project}").first.click()

    for query in QUERIES:
        if query.in_session:
            expect(page.get_by_text(query.text).first).to_be_visible()
    picture(page, shown(project, "session"))
