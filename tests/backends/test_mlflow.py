"""What a real MLflow has stored of the queries of each framework, read back over its REST API."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from backend_queries import QUERIES, Query
from mlflow_api import Experiment

ANSWERED = [query for query in QUERIES if not query.fails]
BAD = {query.text for query in QUERIES if query.is_bad}
FAILED = {query.text for query in QUERIES if query.fails}


def test_each_query_is_one_trace_with_its_question_as_request(asked: Experiment) -> None:
    requests = Counter(trace.request for trace in asked.traces())

    assert requests == Counter(query.text for query in QUERIES)


def test_the_answer_stands_under_response_also_where_it_was_streamed(asked: Experiment) -> None:
    for query in ANSWERED:
        assert asked.trace(query.text).response.strip() == query.answer


def test_a_query_that_failed_has_the_state_error_and_all_others_ok(asked: Experiment) -> None:
    states = {trace.request: trace.state for trace in asked.traces()}

    assert states == {query.text: "ERROR" if query.fails else "OK" for query in QUERIES}


def test_chain_retriever_model_and_evaluator_have_their_types_below_one_root(
    asked: Experiment,
) -> None:
    for query in ANSWERED:
        spans = asked.spans(asked.trace(query.text))
        (root,) = [span for span in spans if not span.parent]
        below = Counter(span.type for span in spans if span.parent == root.id)

        assert root.type == "CHAIN"
        assert below == Counter({"RETRIEVER": 1, "LLM": 1, "EVALUATOR": 1})


def test_every_score_is_feedback_on_its_trace_and_an_attribute_of_the_root(
    asked: Experiment,
) -> None:
    for query in ANSWERED:
        trace = asked.trace(query.text)
        root = asked.span(trace, "CHAIN")
        scores = {name: root.attributes[f"claimspan.score.{name}"] for name in trace.scores}

        assert scores["faithfulness"] == pytest.approx(query.faithfulness)
        assert trace.scores == pytest.approx(scores)
        assert f"claimspan.score.{len(scores)}" not in root.attributes
        assert len(trace.scores) == len([n for n in root.attributes if n.startswith(SCORE)])


SCORE = "claimspan.score."
