"""What Phoenix has stored of the three frameworks' pipelines, read back by its interfaces."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime

import pytest

from claimspan_demo.phoenix_server import Phoenix
from claimspan_phoenix import PhoenixWriter
from claimspan_tracing import Finished

from backend_queries import PASSAGES, QUERIES, Query, ask_all, monitor_on, provider_to
from lc_driver import LangChainDriver
from phoenix_api import Annotation, PhoenixApi, StoredSpan, eventually
from support import ScriptedJudge

BAD = {query.text for query in QUERIES if query.is_bad}
FAITHFULNESS = {query.text: query.faithfulness for query in QUERIES}
FAILED = {query.text for query in QUERIES if query.fails}
NOT_GROUNDED = {text for text, score in FAITHFULNESS.items() if score is not None and score < 1}
# The ground truth leaves out a claim of one answer, which the chunks support: that is good.
LOW = NOT_GROUNDED
JUDGED = [query for query in QUERIES if query.faithfulness is not None]


def questions(spans: list[StoredSpan]) -> set[str]:
    return {str(span.attributes["input.value"]) for span in spans}


def root_of(api: PhoenixApi, query: Query) -> StoredSpan:
    (root,) = [span for span in api.roots() if span.attributes["input.value"] == query.text]
    return root


def children_of(api: PhoenixApi, root: StoredSpan) -> dict[str, StoredSpan]:
    """The spans below a root, by kind; there is one of each."""
    below = [span for span in api.spans() if span.parent_id == root.id]
    assert len({span.span_kind for span in below}) == len(below)
    return {span.span_kind: span for span in below}


def milliseconds_of(span: StoredSpan) -> float:
    lasted = datetime.fromisoformat(span.end_time) - datetime.fromisoformat(span.start_time)
    return lasted.total_seconds() * 1000


def test_every_query_is_one_trace_with_its_question_and_its_answer(project: PhoenixApi) -> None:
    roots = project.roots()

    assert Counter(span.attributes["input.value"] for span in roots) == Counter(FAITHFULNESS.keys())
    for query in JUDGED:
        root = root_of(project, query)
        assert root.attributes["output.value"].strip() == query.answer
        assert root.span_kind == "CHAIN"


def test_the_tree_has_a_retriever_a_model_and_the_evaluation(project: PhoenixApi) -> None:
    for query in JUDGED:
        below = children_of(project, root_of(project, query))

        assert below.keys() == {"RETRIEVER", "LLM", "EVALUATOR"}
        assert below["RETRIEVER"].name.startswith("retrieval")
        assert below["LLM"].name.startswith(("chat", "text_completion"))
        assert below["EVALUATOR"].name.startswith("claimspan.evaluate")


def test_roots_are_named_by_their_pipeline_and_not_all_alike(project: PhoenixApi) -> None:
    (name,) = {span.name for span in project.roots()}

    assert name.startswith("invoke_workflow ")


def test_the_status_says_which_query_failed(project: PhoenixApi) -> None:
    statuses = {span.attributes["input.value"]: span.status_code for span in project.roots()}

    assert statuses == {query.text: "ERROR" if query.fails else "OK" for query in QUERIES}


def test_the_retriever_shows_its_documents(project: PhoenixApi) -> None:
    for query in QUERIES:
        retriever = children_of(project, root_of(project, query))["RETRIEVER"]

        for index, passage in enumerate(PASSAGES):
            prefix = f"retrieval.documents.{index}.document"
            assert retriever.attributes[f"{prefix}.content"] == passage.text
            assert retriever.attributes[f"{prefix}.id"] == passage.id
            assert retriever.attributes[f"{prefix}.score"] == pytest.approx(passage.score)


def test_the_model_shows_the_roles_of_its_messages(project: PhoenixApi) -> None:
    model = children_of(project, root_of(project, JUDGED[0]))["LLM"]

    roles = {v for k, v in model.attributes.items() if k.endswith("message.role")}
    # The model of LlamaIndex's pipeline completes a text, and has no messages.
    assert roles == (set() if "llama_index" in project.project else {"user", "assistant"})


def test_the_scores_are_on_the_root(project: PhoenixApi) -> None:
    found = {
        span.attributes["input.value"]: span.attributes.get("claimspan.score.faithfulness")
        for span in project.roots()
    }

    assert found == pytest.approx(FAITHFULNESS)


def test_the_evaluation_says_which_claims_are_in_no_chunk(project: PhoenixApi) -> None:
    (query,) = [query for query in QUERIES if query.faithfulness == 0.5]
    evaluation = children_of(project, root_of(project, query))["EVALUATOR"].attributes

    assert evaluation["claimspan.claim.1.text"] == "Tea is roasted in pans"
    assert evaluation["claimspan.claim.1.label"] == "neutral"
    assert evaluation["claimspan.claim.0.supported_by"] == json.dumps(["hills"])


def test_a_filter_on_a_score_finds_exactly_the_bad_ones(project: PhoenixApi) -> None:
    roots = {span.id: span for span in project.roots()}

    found = project.filtered("claimspan.score.faithfulness < 0.5 and parent_id is None")

    assert questions([roots[each] for each in found]) == BAD
    assert len(found) == len(BAD)


def test_a_filter_on_a_score_over_all_spans_finds_nothing_of_a_good_trace(
    project: PhoenixApi,
) -> None:
    spans = {span.id: span for span in project.spans()}
    bad = {span.context.trace_id for span in project.roots() if questions([span]) <= BAD}

    found = project.filtered("claimspan.score.faithfulness < 0.5")

    assert {spans[each].context.trace_id for each in found} == bad


def test_a_filter_on_an_annotation_finds_exactly_the_bad_ones(project: PhoenixApi) -> None:
    roots = {span.id: span for span in project.roots()}

    found = project.filtered("annotations['faithfulness'].score < 0.5")

    assert questions([roots[each] for each in found]) == BAD
    assert len(found) == len(BAD)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("claimspan.evaluation.label == 'low' and parent_id is None", LOW),
        ("'in no chunk' in claimspan.evaluation.summary", NOT_GROUNDED),
        ("claimspan.evaluation.status == 'app_error'", FAILED),
        ("claimspan.score.faithfulness < 0.5 and span_kind == 'CHAIN'", BAD),
    ],
)
def test_the_filters_of_the_page_about_backends_find_what_they_say(
    project: PhoenixApi, condition: str, expected: set[str]
) -> None:
    roots = {span.id: span for span in project.roots()}

    found = project.filtered(condition)

    assert questions([roots[each] for each in found]) == expected
    assert len(found) == len(expected)


def test_every_score_is_one_annotation_and_a_low_one_says_why(project: PhoenixApi) -> None:
    roots = {span.id: span for span in project.roots()}
    found = [each for each in project.annotations() if each.name == "faithfulness"]

    scores = {roots[each.span_id].attributes["input.value"]: each.result.score for each in found}
    assert scores == pytest.approx({query.text: query.faithfulness for query in JUDGED})
    assert len(found) == len(JUDGED)
    for each in found:
        (query,) = [q for q in QUERIES if q.text == roots[each.span_id].attributes["input.value"]]
        assert each.result.label == ("good" if query.faithfulness == 1.0 else "low")
        assert bool(each.result.explanation) == (query.faithfulness != 1.0)


def test_documents_are_annotated_with_their_relevance(project: PhoenixApi) -> None:
    (query,) = [query for query in QUERIES if query.ground_truth]
    retriever = children_of(project, root_of(project, query))["RETRIEVER"]

    found = project.document_annotations()

    assert {(each["spanId"], each["documentPosition"], each["label"]) for each in found} == {
        (retriever.id, 0, "relevant"),
        (retriever.id, 1, "irrelevant"),
    }


def test_a_trace_lasts_as_long_as_its_query(project: PhoenixApi) -> None:
    shown = project.trace_milliseconds()

    for root in project.roots():
        assert shown[root.context.trace_id] == pytest.approx(milliseconds_of(root), abs=0.01)


def test_the_turns_of_a_session_are_together(project: PhoenixApi) -> None:
    (session,) = project.sessions()

    turns = [root_of(project, query) for query in QUERIES if query.in_session]
    assert session["session_id"] == f"a talk: {project.project}"
    assert {trace["trace_id"] for trace in session["traces"]} == {
        turn.context.trace_id for turn in turns
    }


def test_scores_that_come_late_stretch_no_trace(phoenix: Phoenix) -> None:
    provider = provider_to(f"{phoenix.url}/v1/traces", openinference__project__name="late")
    judge = ScriptedJudge(delay=2.0)
    monitor = monitor_on(
        # Time enough for the judge to begin, also on a busy machine, and too little to end.
        provider,
        judge=judge,
        hold_seconds=1.0,
        sinks=[PhoenixWriter(phoenix.url)],
    )
    ask_all(LangChainDriver(), monitor, "a late talk")
    assert monitor.stats.late == len(JUDGED)
    monitor.shutdown(timeout=60)
    provider.shutdown()
    api = PhoenixApi(phoenix.url, "late")

    roots = eventually(api.roots, lambda found: len(found) == len(QUERIES))
    carriers = eventually(
        lambda: [span for span in api.spans(span_kind="EVALUATOR") if _has_scores(span)],
        lambda found: len(found) == len(JUDGED),
    )

    assert {span.attributes["input.value"] for span in roots} == FAITHFULNESS.keys()
    assert len(carriers) == len(JUDGED)
    assert not any(_has_scores(span) for span in roots)
    shown = api.trace_milliseconds()
    for root in roots:
        assert shown[root.context.trace_id] == pytest.approx(milliseconds_of(root), abs=0.01)
    annotated = eventually(api.annotated, lambda spans: len(spans) == len(JUDGED))
    assert len(annotated) == len(JUDGED)


def _has_scores(span: StoredSpan) -> bool:
    return "claimspan.score.faithfulness" in span.attributes


class _Kept:
    """A sink that keeps what it gets."""

    def __init__(self) -> None:
        self.finished: list[Finished] = []

    def write(self, finished: Finished) -> None:
        self.finished.append(finished)


def test_what_is_written_a_second_time_is_there_once(phoenix: Phoenix) -> None:
    provider = provider_to(f"{phoenix.url}/v1/traces", openinference__project__name="twice")
    kept, writer = _Kept(), PhoenixWriter(phoenix.url)
    monitor = monitor_on(provider, sinks=[writer, kept])
    ask_all(LangChainDriver(), monitor, "a talk that is written twice")
    assert monitor.shutdown(timeout=60)
    provider.shutdown()
    api = PhoenixApi(phoenix.url, "twice")
    eventually(api.annotated, lambda spans: len(spans) == len(JUDGED))
    first = _counted(api.annotations())
    assert len(first) >= len(JUDGED)

    again = PhoenixWriter(phoenix.url)
    again.start()
    for finished in kept.finished:
        again.write(finished)
    assert again.flush(60)

    assert again.lost == 0
    assert _counted(api.annotations()) == first
    assert set(first.values()) == {1}


def _counted(annotations: list[Annotation]) -> Counter[tuple[str, str]]:
    return Counter((each.span_id, each.name) for each in annotations)
