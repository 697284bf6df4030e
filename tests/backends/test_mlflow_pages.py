"""What a person sees of our traces and scores in a real MLflow, in a real browser."""

from __future__ import annotations

import pytest
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableConfig
from playwright.sync_api import expect

from claimspan.report import ReportEntry, TraceLinks
from claimspan_langchain import ClaimspanCallbackHandler

from backend_queries import PASSAGES, QUERIES
from browser import open_page, picture
from documented_links import documented_link
from lc_pipelines import Echo
from mlflow_api import Experiment
from mlflow_pages import (
    filter_feedback,
    open_feedback,
    open_span,
    open_table,
    open_trace,
    rows,
    welcome,
)
from mlflow_queries import SESSION, monitor_to

QUERY = next(query for query in QUERIES if query.is_bad and not query.streamed)
WIDE = 2400
"""Pixels that show all columns in a picture."""


def test_the_table_shows_question_answer_session_state_and_scores_in_columns(
    asked: Experiment, request: pytest.FixtureRequest
) -> None:
    with open_page(WIDE) as page:
        open_table(page, asked, len(QUERIES))
        shown = rows(page)
        picture(page, f"mlflow-table-{request.node.callspec.id}")

    assert shown.keys() == {query.text for query in QUERIES}
    for query in QUERIES:
        row = shown[query.text]
        assert row["Output"].strip() == (query.answer or "-")
        assert row["Session"] == (SESSION if query.in_session else "-")
        assert row["State"] == ("Error" if query.fails else "OK")
        if query.faithfulness is None:
            assert row["faithfulness"] == ""
        else:
            assert float(row["faithfulness"]) == pytest.approx(query.faithfulness, abs=0.005)


def test_the_link_of_a_report_opens_the_trace(
    asked: Experiment, request: pytest.FixtureRequest
) -> None:
    template = documented_link("MLflow", asked.url)
    links = TraceLinks(template.replace("/experiments/0/", f"/experiments/{asked.id}/"))
    trace_id = asked.trace(QUERY.text).id.removeprefix("tr-")
    entry = ReportEntry(query=QUERY.text, response="", status="evaluated", trace_id=trace_id)
    with open_page() as page:
        welcome(page)
        page.goto(str(links.url(entry)))

        panel = page.get_by_role("dialog")
        expect(panel.get_by_text("Inputs / Outputs", exact=True)).to_be_visible()
        expect(panel.get_by_text(QUERY.text, exact=True)).to_be_visible()
        picture(page, f"mlflow-link-{request.node.callspec.id}")


def test_the_filter_of_the_table_takes_a_score(asked: Experiment) -> None:
    with open_page() as page:
        open_table(page, asked, len(QUERIES))
        filter_feedback(page, "faithfulness", "0.5", 1)

        assert rows(page).keys() == {"Is tea roasted?"}


def test_the_filter_of_the_table_finds_every_answer_with_a_low_score(asked: Experiment) -> None:
    low = asked.asked("feedback.claimspan = 'low'")
    assert 0 < len(low) < len(QUERIES)
    with open_page() as page:
        open_table(page, asked, len(QUERIES))
        filter_feedback(page, "claimspan", "low", len(low))

        assert rows(page).keys() == low


def test_a_trace_shows_question_answer_documents_and_why_scores_are_low(
    asked: Experiment, request: pytest.FixtureRequest
) -> None:
    framework = request.node.callspec.id
    with open_page() as page:
        open_table(page, asked, len(QUERIES))
        panel = open_trace(page, QUERY.text)
        open_feedback(panel, "faithfulness")
        expect(panel.get_by_text(QUERY.text, exact=True)).to_be_visible()
        expect(panel.get_by_text(QUERY.answer, exact=True)).to_be_visible()
        expect(panel.get_by_text("2 of 3 claims are in no chunk")).to_be_visible()
        picture(page, f"mlflow-trace-{framework}")

        open_span(panel, "retrieval")
        for passage in PASSAGES:
            expect(panel.get_by_text(passage.text, exact=True)).to_be_visible()
        picture(page, f"mlflow-documents-{framework}")

        open_span(panel, "claimspan.evaluate")
        expect(panel.get_by_text("2 of 3 claims are in no chunk").first).to_be_visible()
        picture(page, f"mlflow-evaluation-{framework}")


def test_a_model_shows_its_messages_with_their_roles(mlflow: str) -> None:
    experiment = Experiment(mlflow)
    prompt = ChatPromptTemplate([("system", "You are a librarian."), ("human", "{question}")])
    with monitor_to(experiment) as monitor:
        config: RunnableConfig = {"callbacks": [ClaimspanCallbackHandler(monitor)]}
        (prompt | Echo()).invoke({"question": "Who speaks?"}, config)

    with open_page() as page:
        open_table(page, experiment, 1)
        panel = open_trace(page, "Who speaks?")
        open_span(panel, "chat")
        for role in ("System", "User", "Assistant"):
            expect(panel.get_by_text(role, exact=True)).to_be_visible()
        expect(panel.get_by_text("You are a librarian.", exact=True)).to_be_visible()
        picture(page, "mlflow-messages")
