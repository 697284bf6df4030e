"""`claimspan stats`: unbiased means with honest intervals, and what was lost of the sample.

Every run draws the same numbers: the generators are seeded, and so are the ids of the spans.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest
from langchain_core.runnables import RunnableConfig, RunnableLambda
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import Link, Tracer
from pydantic import BaseModel

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor, Rule, RuleSampler, attribute, semconv
from claimspan_tracing.estimates import Estimate, Observation, estimate_mean
from claimspan_tracing.trace_file.writing import OtlpFileExporter

from command_line import invoke, run
from lc_pipelines import Shelf
from support import ScriptedJudge

T_3: Final = 3.1824
"""97.5 % of Student's t with three degrees of freedom, from a printed table."""


class Status(BaseModel):
    records: int
    share: float | None


class Group(BaseModel):
    name: str
    records: int
    evaluated: int
    stand_for: float
    metrics: dict[str, dict[str, float | None]]
    statuses: dict[str, Status]

    def mean(self, metric: str = "faithfulness") -> float:
        found = self.metrics[metric]["mean"]
        assert found is not None
        return found


def stats(path: Path, *options: str) -> list[Group]:
    parsed = json.loads(run("stats", str(path), "--json", *options))
    return [Group.model_validate(group) for group in parsed["groups"]]


class SeededIds(IdGenerator):
    """The same ids in every run."""

    def __init__(self, seed: int) -> None:
        self._numbers = random.Random(seed)

    def generate_span_id(self) -> int:
        return self._numbers.getrandbits(64) or 1

    def generate_trace_id(self) -> int:
        return self._numbers.getrandbits(128) or 1


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    return tmp_path / "traces.jsonl"


@pytest.fixture
def tracer(trace_file: Path) -> Iterator[Tracer]:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(OtlpFileExporter(trace_file)))
    yield provider.get_tracer("claimspan")
    provider.shutdown()


def write_root(
    tracer: Tracer,
    status: str,
    *,
    rate: float | None = 1.0,
    score: float | None = None,
    reason: str = "rate",
    more: Mapping[str, str] | None = None,
    carrier: Mapping[str, float | str] | None = None,
) -> None:
    """Write a root span as a monitor does, and a carrier where there are late scores."""
    with tracer.start_as_current_span(semconv.SPAN_ROOT) as root:
        root.set_attribute(semconv.EVALUATION_STATUS, status)
        root.set_attributes(dict(more or {}))
        if rate is not None:
            root.set_attribute(semconv.SAMPLE_RATE, rate)
            root.set_attribute(semconv.SAMPLE_WEIGHT, 0.0 if status == "not_sampled" else 1 / rate)
            root.set_attribute(semconv.SAMPLE_REASON, reason)
        if score is not None:
            root.set_attribute(semconv.score("faithfulness"), score)
    if carrier is not None:
        links = [Link(root.get_span_context())]
        tracer.start_span(semconv.SPAN_EVALUATE, links=links, attributes=dict(carrier)).end()


# --- real traffic through a real monitor ---


def test_means_are_unbiased_where_rules_sample_at_unequal_rates(trace_file: Path) -> None:
    provider = TracerProvider(id_generator=SeededIds(5), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OtlpFileExporter(trace_file)))
    sampler = RuleSampler([Rule(attribute("tenant", "bad"), 1.0)], default=0.1)
    monitor = Monitor(judge=ScriptedJudge(), sample=sampler, tracer_provider=provider)
    handler = ClaimspanCallbackHandler(monitor)

    def ask(question: str, config: RunnableConfig) -> str:
        found = Shelf().invoke(question, config)
        is_bad = config.get("metadata", {}).get("tenant") == "bad"
        return "Invented." if is_bad else found[0].page_content

    chain = RunnableLambda(ask)
    for i in range(800):
        tenant = "bad" if i % 4 == 0 else "good"
        chain.invoke(f"q{i}", {"callbacks": [handler], "metadata": {"tenant": tenant}})
        if i % 200 == 199:
            assert monitor.flush(30)
    monitor.shutdown()
    provider.shutdown()

    (group,) = stats(trace_file)
    taken = group.evaluated - 200  # of 600 good ones, one in ten
    assert group.records == 800
    assert 30 < taken < 90
    # The truth is 600 of 800. Without weights the mean would be below a third.
    assert taken / group.evaluated < 0.33
    assert group.mean() == pytest.approx(10 * taken / (200 + 10 * taken))
    low, high = group.metrics["faithfulness"]["low"], group.metrics["faithfulness"]["high"]
    assert low is not None
    assert high is not None
    assert low < 0.75 < high
    assert group.statuses["not_sampled"] == Status(records=600 - taken, share=None)


# --- the interval ---


def covered(draw: Callable[[random.Random], list[Observation]], truth: float) -> float:
    """The share of 1,000 samples whose interval holds the truth."""
    numbers = random.Random(20)
    found = [estimate_mean(draw(numbers)) for _ in range(1_000)]
    return sum(_holds(each, truth) for each in found) / len(found)


def _holds(found: Estimate, truth: float) -> bool:
    assert found.low is not None
    assert found.high is not None
    return found.low <= truth <= found.high


def test_the_interval_holds_the_truth_in_ninety_five_of_a_hundred_samples_at_unequal_rates() -> (
    None
):
    def draw(numbers: random.Random) -> list[Observation]:
        sample: list[Observation] = []
        for i in range(600):
            # A third of the traffic is sampled at 0.9 and scores badly, the rest at 0.2 and well.
            rate, centre = (0.9, 0.3) if i % 3 == 0 else (0.2, 0.8)
            value = min(max(numbers.gauss(centre, 0.15), 0.0), 1.0)
            if numbers.random() < rate:
                sample.append(Observation(str(i), 1 / rate, value))
        return sample

    # Clipped values have no simple mean, so the truth is that of a draw 500 times as large.
    big = random.Random(3)
    values = [min(max(big.gauss((0.3, 0.8, 0.8)[i % 3], 0.15), 0.0), 1.0) for i in range(300_000)]
    truth = sum(values) / len(values)

    assert 0.925 <= covered(draw, truth) <= 0.975


def test_records_of_one_trace_count_as_one_where_they_are_alike() -> None:
    def draw(numbers: random.Random, *, clustered: bool) -> list[Observation]:
        sample: list[Observation] = []
        for trace in range(60):
            value = float(numbers.random() < 0.6)
            for i in range(5):
                sample.append(Observation(str(trace if clustered else (trace, i)), 2.0, value))
        return sample

    assert 0.92 <= covered(lambda numbers: draw(numbers, clustered=True), 0.6) <= 0.98
    assert covered(lambda numbers: draw(numbers, clustered=False), 0.6) < 0.75


def test_the_interval_of_few_scores_uses_students_t() -> None:
    found = estimate_mean([Observation(str(i), 3.0, v) for i, v in enumerate((0.4, 0.5, 0.5, 0.6))])

    # Variance of the mean: 0.02 / 3 / 4.
    half = T_3 * (0.02 / 12) ** 0.5
    assert found.mean == pytest.approx(0.5)
    assert found.low == pytest.approx(0.5 - half, abs=0.002)
    assert found.high == pytest.approx(0.5 + half, abs=0.002)


def test_ten_equal_scores_prove_nothing_about_all_others() -> None:
    ones = estimate_mean([Observation(str(i), 7.0, 1.0) for i in range(10)])
    zeros = estimate_mean([Observation(str(i), 7.0, 0.0) for i in range(10)])

    # Clopper and Pearson for 10 of 10: 0.6915 to 1.
    assert [ones.low, ones.high] == pytest.approx([0.6915, 1.0], abs=1e-4)
    assert [zeros.low, zeros.high] == pytest.approx([0.0, 0.3085], abs=1e-4)


def test_three_traces_are_too_few_for_an_interval() -> None:
    found = estimate_mean([Observation(str(i % 3), 1.0, i / 10) for i in range(9)])

    assert (found.n, found.low, found.high) == (9, None, None)


# --- the label ---


def test_the_share_of_low_records_is_a_mean_like_any_other(
    trace_file: Path, tracer: Tracer
) -> None:
    label = semconv.EVALUATION_LABEL
    for _ in range(2):
        write_root(tracer, "evaluated", rate=0.1, score=0.4, more={label: "low"})
    for _ in range(5):
        write_root(tracer, "evaluated", score=0.9, more={label: "good"})
    write_root(tracer, "evaluated", score=0.9, more={label: "unknown"})
    write_root(tracer, "timeout", carrier={semconv.score("zeal"): 0.5, label: "good"})
    write_root(tracer, "timeout", more={label: "low"})  # a label alone evaluates nothing

    (group,) = stats(trace_file)

    assert list(group.metrics) == ["faithfulness", "zeal", "low"]
    assert group.mean("low") == pytest.approx(20 / 26)
    assert group.metrics["low"]["n"] == 8
    assert group.evaluated == 9


# --- what was lost ---


def test_what_was_lost_of_the_sample_is_shown_by_its_weight(
    trace_file: Path, tracer: Tracer
) -> None:
    for _ in range(6):
        write_root(tracer, "evaluated", rate=0.1, score=1.0)
    write_root(tracer, "timeout", rate=0.05)
    write_root(tracer, "throttled", rate=0.1)
    write_root(tracer, "queue_full", rate=None)
    write_root(tracer, "not_sampled", rate=0.1)
    write_root(tracer, "app_error", rate=0.1)

    (group,) = stats(trace_file)

    assert [group.records, group.evaluated, group.stand_for] == pytest.approx([11, 6, 60])
    shares = {status: count.share for status, count in group.statuses.items()}
    assert shares == {
        "app_error": None,
        "not_sampled": None,
        "queue_full": pytest.approx(1 / 91),
        "throttled": pytest.approx(10 / 91),
        "timeout": pytest.approx(20 / 91),
    }


def test_reweighting_lets_evaluated_records_stand_for_the_lost_ones_of_their_rule(
    trace_file: Path, tracer: Tracer
) -> None:
    for _ in range(4):
        write_root(tracer, "evaluated", score=1.0, reason="rule:fast")
    for _ in range(2):
        write_root(tracer, "evaluated", score=0.0, reason="rule:slow")
        write_root(tracer, "timeout", reason="rule:slow")

    (plain,), (reweighted,) = stats(trace_file), stats(trace_file, "--reweight")

    assert plain.mean() == pytest.approx(4 / 6)
    assert [reweighted.mean(), reweighted.stand_for] == pytest.approx([4 / 8, 8])


# --- carriers ---


def test_scores_that_came_late_count_with_their_records(trace_file: Path, tracer: Tracer) -> None:
    late = {semconv.score("faithfulness"): 0.0}
    write_root(tracer, "evaluated", rate=0.5, score=1.0)
    write_root(tracer, "timeout", rate=0.5, carrier=late)

    (group,) = stats(trace_file)

    assert (group.evaluated, group.mean(), group.statuses) == (2, 0.5, {})


def test_what_workers_have_not_scored_is_lost_and_what_they_have_counts(
    trace_file: Path, tracer: Tracer
) -> None:
    carrier = {semconv.score("faithfulness"): 0.5, semconv.SAMPLE_WEIGHT: 2.0}
    write_root(tracer, "dispatched", rate=0.5, carrier=carrier)
    write_root(tracer, "dispatched", rate=0.5)

    (group,) = stats(trace_file)

    assert (group.records, group.evaluated, group.mean()) == (2, 1, 0.5)
    assert group.statuses["dispatched"].share == 0.5


def test_what_is_skipped_of_a_damaged_file_is_in_the_json(trace_file: Path, tracer: Tracer) -> None:
    write_root(tracer, "evaluated", score=1.0)
    with trace_file.open("a") as file:
        file.write("no json\n")

    # The last line: the warning about the file stands before it.
    parsed = json.loads(run("stats", str(trace_file), "--json").splitlines()[-1])

    assert parsed["skipped"] == {"line_not_json": 1}


def test_an_evaluation_span_with_claims_alone_changes_nothing(
    trace_file: Path, tracer: Tracer
) -> None:
    write_root(tracer, "evaluated", rate=0.5, score=1.0, carrier={})

    (group,) = stats(trace_file)

    assert (group.evaluated, group.stand_for) == (1, 2.0)


def test_scores_without_a_root_of_ours_count_with_the_weight_of_their_carrier(
    trace_file: Path, tracer: Tracer
) -> None:
    for score, weight in ((1.0, 30.0), (0.0, 10.0)):
        with tracer.start_as_current_span("somebody else's") as root:
            root.set_attribute("tenant", f"t{weight:g}")
        attributes = {
            semconv.score("faithfulness"): score,
            semconv.SAMPLE_RATE: 1 / weight,
            semconv.SAMPLE_WEIGHT: weight,
        }
        links = [Link(root.get_span_context())]
        tracer.start_span(semconv.SPAN_EVALUATE, links=links, attributes=attributes).end()

    (group,) = stats(trace_file)

    assert (group.records, group.mean()) == (2, 0.75)
    assert [each.name for each in stats(trace_file, "--by", "tenant")] == ["t10", "t30"]


def test_what_was_evaluated_because_of_feedback_is_no_part_of_the_means(
    trace_file: Path, tracer: Tracer
) -> None:
    afterwards = {semconv.score("faithfulness"): 0.0, semconv.SAMPLE_WEIGHT: 0.0}
    write_root(tracer, "evaluated", rate=0.5, score=1.0)
    write_root(tracer, "not_sampled", rate=0.5, carrier=afterwards)

    (group,) = stats(trace_file)

    assert (group.evaluated, group.mean()) == (1, 1.0)


# --- the command ---


def test_records_are_grouped_by_route_and_by_any_attribute(
    trace_file: Path, tracer: Tracer
) -> None:
    for name, score in (("qa", 1.0), ("chat", 0.0), ("chat", 0.5)):
        more = {semconv.GEN_AI_WORKFLOW_NAME: name, semconv.JUDGE_NAME: "lexical"}
        write_root(tracer, "evaluated", score=score, more=more)
    write_root(tracer, "shutdown", rate=None)

    by_route, by_judge = (
        stats(trace_file, "--by", "route"),
        stats(trace_file, "--by", semconv.JUDGE_NAME),
    )

    assert {group.name: group.records for group in by_route} == {"": 1, "chat": 2, "qa": 1}
    assert by_route[1].mean() == 0.25
    assert {group.name: group.evaluated for group in by_judge} == {"": 0, "lexical": 3}


def test_the_table_names_metric_mean_interval_and_what_was_lost(
    trace_file: Path, tracer: Tracer
) -> None:
    for i in range(8):
        write_root(tracer, "evaluated", rate=0.5, score=(i % 2) * 1.0)
    write_root(tracer, "judge_error", rate=0.5, more={semconv.GEN_AI_WORKFLOW_NAME: "[b]x[/b]"})

    text = run("stats", str(trace_file), "--by", "route")

    assert "8 of 8 records evaluated; they stand for 16" in text
    assert "route = [b]x[/b]" in text
    (row,) = [line.split() for line in text.splitlines() if line.startswith("faithfulness")]
    assert row[:3] == ["faithfulness", "8", "0.500"]
    assert "to" in row
    assert any(line.split() == ["judge_error", "1", "100.0%"] for line in text.splitlines())


def test_a_terminal_is_not_shown_what_it_would_obey(trace_file: Path, tracer: Tracer) -> None:
    more = {semconv.GEN_AI_WORKFLOW_NAME: "a\x1b[2Jb\u202ec"}
    write_root(tracer, "\x9bevil", score=1.0, more=more)
    write_root(tracer, "\x9bevil", more=more)

    text = run("stats", str(trace_file), "--by", "route")

    assert "route = a<U+001B>[2Jb<U+202E>c" in text
    assert {each for each in text if not each.isprintable()} == {"\n"}


def test_a_file_without_a_record_is_an_error_that_says_what_to_give(
    trace_file: Path, tracer: Tracer
) -> None:
    tracer.start_span("somebody else's").end()

    result = invoke("stats", str(trace_file))

    assert "has no span that claimspan evaluated" in str(result.exception)
    assert "`claimspan report` reads results" in str(result.exception)


def test_a_carrier_without_a_score_does_not_hide_one_with_scores(
    tracer: Tracer, trace_file: Path
) -> None:
    score = {semconv.score("faithfulness"): 0.5, semconv.SAMPLE_RATE: 0.5}
    with tracer.start_as_current_span(semconv.SPAN_ROOT) as root:
        root.set_attribute(semconv.EVALUATION_STATUS, "timeout")
    # Evaluated twice after a crash: the second time the judge could decide nothing.
    for attributes in (score | {semconv.SAMPLE_WEIGHT: 2.0}, {}):
        links = [Link(root.get_span_context())]
        tracer.start_span(semconv.SPAN_EVALUATE, links=links, attributes=attributes).end()

    (group,) = stats(trace_file)

    assert (group.evaluated, group.stand_for, group.mean()) == (1, 2.0, 0.5)
