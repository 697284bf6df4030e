"""What a monitor measures, and that spans, events, reports, results and backends say the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from claimspan import Criterion, Evaluation, FunctionMetric, evaluate
from claimspan.cost import Usage
from claimspan.errors import ConfigError
from claimspan.judges import LexicalJudge
from claimspan.metrics import DEFAULT_METRICS
from claimspan.report.evaluated import entry_of_evaluation
from claimspan.results.rows import ResultRow
from claimspan.testing import ScriptedJudge
from claimspan.verdicts import Label
from claimspan_tracing import Monitor, semconv
from claimspan_tracing.run.entries import entry_of
from claimspan_tracing.testing import CapturedRecord, InMemoryMonitor
from claimspan_tracing.trace_file.records import read_trace_file
from claimspan_tracing.trace_file.writing import OtlpFileExporter

QUESTION: Final = "How long is the Drava?"
ANSWER: Final = "It is long. It is wide. It is old."
CHUNKS: Final = ("one", "two")
TRUTH: Final = "It is long. It is deep."


def record_in(monitor: Monitor) -> None:
    with monitor.record(QUESTION) as record:
        record.retrieved(CHUNKS)
        record.answered(ANSWER)


def root_of(monitor: InMemoryMonitor) -> ReadableSpan:
    (root,) = [s for s in monitor.spans() if semconv.EVALUATION_STATUS in (s.attributes or {})]
    return root


def attributes(monitor: InMemoryMonitor) -> Mapping[str, object]:
    return root_of(monitor).attributes or {}


# --- what a monitor measures ---


def test_a_monitor_measures_few_scores_and_says_label_and_blame() -> None:
    with InMemoryMonitor(ground_truth={QUESTION: TRUTH}) as monitor:
        record_in(monitor)
        found = monitor.only_record()
        on_root = attributes(monitor)

    # The judge of the kit reads each chunk alone.
    assert tuple(found.scores) == tuple(n for n in DEFAULT_METRICS if n != "groundedness")
    assert on_root[semconv.EVALUATION_LABEL] == "low"
    assert on_root[semconv.EVALUATION_BLAME] == "both"
    assert "hallucination" not in str(on_root)


def test_the_chosen_metrics_and_thresholds_hold_on_the_span() -> None:
    def script(claim: str, _: str) -> str:
        return "entailed" if "long" in claim else "neutral"

    low, good = (
        InMemoryMonitor(judge=ScriptedJudge(script), metrics=["faithfulness"], thresholds=limits)
        for limits in (None, {"faithfulness": 0.3})
    )
    for monitor in (low, good):
        with monitor:
            record_in(monitor)
            assert list(monitor.only_record().scores) == ["faithfulness"]

    assert attributes(low)[semconv.SCORES_LOW] == ("faithfulness",)
    assert semconv.SCORES_LOW not in attributes(good)
    assert attributes(good)[semconv.EVALUATION_LABEL] == "good"


def wordiness(evaluation: Evaluation) -> float:
    return min(1.0, len(evaluation.response_claims) / 4)


def test_a_function_is_measured_like_any_other_score_on_span_and_event() -> None:
    chatty = FunctionMetric(wordiness, threshold=0.5, lower_is_better=True)
    with InMemoryMonitor(metrics=["faithfulness", chatty]) as monitor:
        record_in(monitor)
        found = monitor.only_record()
        on_root = attributes(monitor)

    assert found.scores["wordiness"] == 0.75
    assert on_root[semconv.score("wordiness")] == 0.75
    assert on_root[semconv.SCORES_LOW] == ("faithfulness", "wordiness")
    assert on_root[semconv.SCORES_LOWER_IS_BETTER] == ("wordiness",)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the judging process needs POSIX")
def test_a_judging_process_measures_what_the_monitor_chose() -> None:
    found: list[CapturedRecord] = []
    for worker in ("thread", "process"):
        with InMemoryMonitor(
            judge=LexicalJudge(),
            worker=worker,
            metrics=["faithfulness", "recall", wordiness],
            thresholds={"recall": 0.3},
            ground_truth={QUESTION: TRUTH},
        ) as monitor:
            record_in(monitor)
            found += monitor.records(60.0)
    here, there = (each.outcome.evaluation for each in found)

    assert here is not None
    assert there is not None
    assert list(there.metrics) == ["faithfulness", "recall", "wordiness"]
    unmetered = {"usage": Usage()}
    assert here.model_copy(update=unmetered) == there.model_copy(update=unmetered)


def test_a_record_without_a_ground_truth_ends_so_if_every_chosen_metric_needs_one() -> None:
    with InMemoryMonitor(metrics=["recall", "claim_recall"]) as monitor:
        record_in(monitor)
        found = monitor.only_record()

    assert (found.status, found.outcome.reason) == (
        "no_ground_truth",
        "each of the chosen metrics needs a ground truth",
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": "faithfullness"}, "did you mean 'faithfulness'"),
        ({"thresholds": {"faithfulness": 9}}, "between 0.0 and 1.0"),
        ({"metrics": [Criterion("polite", "It is polite.")]}, "needs a language model"),
    ],
)
def test_what_cannot_be_measured_is_refused_when_the_monitor_is_made(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as told:
        Monitor("lexical", **options)

    assert message in str(told.value)


# --- no two places disagree ---

LABELS: Final = st.sampled_from(["entailed", "neutral", "contradicted"])


@st.composite
def scripts(draw: st.DrawFn) -> dict[tuple[str, str], str]:
    """Random labels of all claims against all texts."""
    claims = ("It is long", "It is wide", "It is old", "It is deep")
    return {(claim, text): draw(LABELS) for claim in claims for text in (*CHUNKS, ANSWER, TRUTH)}


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    scripts(),
    st.booleans(),
    st.sampled_from([None, "all", ["precision", "recall"], ["faithfulness"]]),
    st.sampled_from([None, 0.0, 0.5, 1.0]),
)
def test_no_two_places_judge_a_record_differently(
    tmp_path: Path,
    script: dict[tuple[str, str], str],
    has_truth: bool,
    metrics: Any,
    limit: float | None,
) -> None:
    judge = ScriptedJudge(script)
    thresholds = None
    if limit is not None and metrics != ["precision", "recall"]:
        thresholds = {"faithfulness": limit}
    truths = {QUESTION: TRUTH} if has_truth else None
    path = tmp_path / "traces.jsonl"
    path.unlink(missing_ok=True)
    with InMemoryMonitor(
        judge=judge,
        metrics=metrics,
        thresholds=thresholds,
        ground_truth=truths,
    ) as monitor:
        monitor.provider.add_span_processor(SimpleSpanProcessor(OtlpFileExporter(path)))
        record_in(monitor)
        captured = monitor.only_record()
        on_root = attributes(monitor)
    evaluation = captured.outcome.evaluation
    if evaluation is None or not evaluation.metrics:
        return
    said = evaluation.judgement
    (read,) = read_trace_file(path)
    live = entry_of(captured.job, captured.outcome)
    record = captured.record.model_copy(update={"ground_truth": TRUTH if has_truth else None})
    of_results = entry_of_evaluation(record, evaluation)
    row = json.loads(ResultRow.of(0, record, evaluation).model_dump_json())
    again = Evaluation.model_validate(row["evaluation"]).judgement
    alone = evaluate(
        record,
        judge=judge,
        metrics=metrics,
        thresholds=thresholds,
    )

    for other in (read.judgement, live.judgement, of_results.judgement, again, alone.judgement):
        assert (other.label, other.part, other.sentences) == (said.label, said.part, said.sentences)
        assert [(e.name, e.label) for e in other.scores] == [(e.name, e.label) for e in said.scores]
    assert on_root[semconv.EVALUATION_LABEL] == said.label
    assert on_root[semconv.EVALUATION_BLAME] == said.part.value
    assert on_root.get(semconv.EVALUATION_SUMMARY, "") == read.judgement.summary
    assert Label.CONTRADICTED not in {
        label
        for matrix in (evaluation.response_vs_ground_truth, evaluation.ground_truth_vs_response)
        for (label,) in (matrix.labels if matrix else ())
    } or (said.label == "low" or metrics == ["faithfulness"])
