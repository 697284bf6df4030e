"""What a real MLflow has stored of the queries of each framework, read back over its REST API."""

from __future__ import annotations

from collections import Counter

import pytest

from backend_queries import QUERIES
from mlflow_api import Experiment, StoredSpan
from mlflow_queries import SESSION

SCORE = "claimspan.score."
ANSWERED = [query for query in QUERIES if not query.fails]
BAD = {query.text for query in QUERIES if query.is_bad}
FAILED = {query.text for query in QUERIES if query.fails}


def test_each_query_is_one_trace_with_its_question_as_request(asked: Experiment) -> None:
    requests = Counter(trace.request for trace in asked.traces())

    assert requests == Counter(query.text for query in QUERIES)


def test_the_answer_stands_under_response_also_where_it_was_streamed(asked: Experiment) -> None:
    for query in ANSWERED:
        assert asked.trace(query.text).response.strip() == query.answer


def test_the_turns_of_a_talk_are_traces_of_one_session(asked: Experiment) -> None:
    turns = {query.text for query in QUERIES if query.in_session}

    assert asked.asked(f"metadata.`mlflow.trace.session` = '{SESSION}'") == turns


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


def test_every_score_on_the_root_is_feedback_on_it_once(asked: Experiment) -> None:
    for query in ANSWERED:
        trace = asked.trace(query.text)
        root = asked.span(trace, "CHAIN")
        feedback = {name: each.value for name, each in trace.feedback(root).items()}
        word = feedback.pop("claimspan")

        assert word == root.attributes["claimspan.evaluation.label"]
        assert feedback["faithfulness"] == pytest.approx(query.faithfulness)
        assert feedback == pytest.approx(scores_on(root))


def test_feedback_names_its_judge_and_says_in_words_why_a_score_is_low(asked: Experiment) -> None:
    for query in ANSWERED:
        trace = asked.trace(query.text)
        faithfulness = trace.feedback(asked.span(trace, "CHAIN"))["faithfulness"]

        assert faithfulness.source.source_id == "scripted@1"
        assert ("in no chunk" in faithfulness.rationale) == (query.faithfulness != 1.0)


def test_a_query_that_failed_has_its_state_and_no_feedback(asked: Experiment) -> None:
    for query in FAILED:
        trace = asked.trace(query)
        root = asked.span(trace, "CHAIN")

        assert root.attributes["claimspan.evaluation.status"] == "app_error"
        assert trace.assessments == []


def test_a_filter_on_feedback_finds_exactly_the_bad_answers(asked: Experiment) -> None:
    assert asked.asked("feedback.faithfulness < 0.5") == BAD
    assert asked.asked("feedback.faithfulness < 0.5 AND trace.status = 'OK'") == BAD
    assert asked.asked("feedback.faithfulness IS NULL") == FAILED


def test_a_filter_on_one_word_finds_every_answer_with_a_low_score(asked: Experiment) -> None:
    low = {
        trace.request
        for trace in asked.traces()
        if "claimspan.evaluation.summary" in asked.span(trace, "CHAIN").attributes
    }

    assert low >= BAD
    assert asked.asked("feedback.claimspan = 'low'") == low
    assert asked.asked("feedback.claimspan = 'good'") == {q.text for q in ANSWERED} - low


def test_each_document_is_relevant_or_not_where_there_is_a_ground_truth(asked: Experiment) -> None:
    for query in ANSWERED:
        trace = asked.trace(query.text)
        retriever = asked.span(trace, "RETRIEVER")
        said = {
            each.metadata["chunk_index"]: each.value
            for each in trace.assessments
            if each.name == "chunk_relevance" and each.span_id == retriever.id
        }

        # The first passage says what the ground truth does, the second does not.
        assert said == ({"0": "yes", "1": "no"} if query.ground_truth else {})


def test_a_filter_on_an_attribute_finds_the_records_of_a_state(asked: Experiment) -> None:
    condition = "span.attributes.claimspan.evaluation.status LIKE '%app_error%'"

    assert asked.asked(condition) == FAILED


def test_a_filter_on_the_summary_finds_the_answers_that_chunks_do_not_hold(
    asked: Experiment,
) -> None:
    condition = "span.attributes.claimspan.evaluation.summary LIKE '%in no chunk%'"

    expected = {q.text for q in ANSWERED if q.faithfulness is not None and q.faithfulness < 1}
    assert asked.asked(condition) == expected


def test_the_evaluation_stretches_no_duration(asked: Experiment) -> None:
    for trace in asked.traces():
        spans = asked.spans(trace)
        (root,) = [span for span in spans if not span.parent]

        assert min(span.started for span in spans) == root.started
        assert max(span.ended for span in spans) == root.ended
        # MLflow cuts start and end to milliseconds before it subtracts them.
        assert abs(trace.milliseconds - (root.ended - root.started) / 1e6) <= 1


def scores_on(root: StoredSpan) -> dict[str, object]:
    """The scores among the attributes of a span."""
    return {
        name.removeprefix(SCORE): value
        for name, value in root.attributes.items()
        if name.startswith(SCORE)
    }
