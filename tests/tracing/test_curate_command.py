"""`claimspan curate` picks records worth labelling, as a file of ground truths to fill in."""

from __future__ import annotations

import asyncio
import csv
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from claimspan import Chunk, GroundTruth, Label, RagRecord, Verdict, VerdictMatrix
from claimspan.evaluation.result import Evaluation
from claimspan.results import ResultRow
from claimspan.verdicts import Claim, VerdictMatrices
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor
from claimspan_tracing.commands.curate import NEAR, Candidate, pick
from claimspan_tracing.trace_file.writing import OtlpFileExporter

from command_line import invoke, run
from lc_pipelines import rag_chain
from support import ScriptedJudge

WORDS: Final = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda omega".split()


def result(number: int, query: str, *, entailed: float, truth: str | None = None) -> ResultRow:
    """A row with one claim, supported with a probability, which is its faithfulness as well."""
    verdict = Verdict(
        label=Label.ENTAILED if entailed >= 0.5 else Label.NEUTRAL,
        entailed=entailed,
        neutral=1.0 - entailed,
        contradicted=0.0,
    )
    record = RagRecord(
        query=query,
        response=f"Said {number}.",
        chunks=(Chunk(id="c", text=f"First line {number}\nsecond line"),),
        ground_truth=truth,
        id=f"r{number}",
    )
    evaluation = Evaluation(
        metrics={"faithfulness": entailed},
        response_claims=(Claim(text="Said."),),
        matrices=VerdictMatrices(response_vs_chunks=VerdictMatrix.of([[verdict]])),
    )
    return ResultRow.of(number, record, evaluation)


def write(path: Path, rows: Sequence[ResultRow]) -> Path:
    path.write_text("".join(f"{row.model_dump_json()}\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Twelve queries: one of which the judge is in doubt, one that is low, ten that are fine."""
    shares = {0: 0.52, 1: 0.01}
    return write(
        tmp_path / "results.jsonl",
        [
            result(n, f"{word} in town {n}?", entailed=shares.get(n, 1.0))
            for n, word in enumerate(WORDS)
        ],
    )


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def curate(source: Path, output: Path, *options: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        run("curate", str(source), "-o", str(output), "--json", *options)
    )
    return found


# --- what is picked ---


def test_the_doubtful_come_first_for_uncertain_and_the_low_for_low(
    results: Path, tmp_path: Path
) -> None:
    output = tmp_path / "golden.jsonl"

    curate(results, output, "-n", "2", "--by", "uncertain,low")

    picked = {line["picked_for"]: line["id"] for line in lines(output)}
    assert picked == {"uncertain": "r0", "low": "r1"}


def test_a_line_has_all_that_is_needed_to_label_it(results: Path, tmp_path: Path) -> None:
    output = tmp_path / "golden.jsonl"

    curate(results, output, "-n", "1", "--by", "low")

    assert lines(output) == [
        {
            "id": "r1",
            "query": "beta in town 1?",
            "ground_truth": "",
            "response": "Said 1.",
            "chunks": ["First line 1"],
            "picked_for": "low",
            "weight": None,
            "sample_weight": None,
            "trace_id": None,
        }
    ]


def test_a_random_share_knows_how_many_records_it_stands_for(results: Path, tmp_path: Path) -> None:
    output = tmp_path / "golden.jsonl"

    curate(results, output, "-n", "8", "--by", "low,random")

    drawn = [line for line in lines(output) if line["picked_for"] == "random"]
    assert len(drawn) == 4
    assert sum(line["weight"] for line in drawn) == len(WORDS)


def test_the_random_share_is_drawn_from_all_records_evenly() -> None:
    candidates = [
        Candidate(query=f"{word} {n}", lowest=n / 12, doubt=1 - n / 12)
        for n, word in enumerate(WORDS)
    ]
    counts: Counter[str] = Counter()
    for seed in range(600):
        picks = pick(candidates, 8, ["uncertain", "low", "random"], seed=seed)
        counts.update(each.candidate.query for each in picks if each.reason == "random")

    # Two of twelve, 600 times: 100 each, with a standard deviation of 9.
    assert set(counts) == {each.query for each in candidates}
    assert all(55 < count < 145 for count in counts.values())


def test_the_same_seed_picks_the_same(results: Path, tmp_path: Path) -> None:
    outputs = [tmp_path / f"{n}.jsonl" for n in range(3)]
    for output, seed in zip(outputs, ("1", "1", "2"), strict=True):
        curate(results, output, "-n", "3", "--by", "random", "--seed", seed)

    assert lines(outputs[0]) == lines(outputs[1]) != lines(outputs[2])


def test_no_two_picks_are_near_duplicates() -> None:
    template = "capital expenditure company branches europe including leased vehicles buildings {}"
    candidates = [Candidate(query=template.format(n), doubt=0.9, lowest=0.1) for n in range(50)]
    candidates += [Candidate(query=word) for word in WORDS]

    picks = pick(candidates, 20, ["uncertain", "low", "diverse"])

    asked = [each.candidate for each in picks]
    assert sum("capital" in each.query for each in asked) == 1
    assert {each.query for each in asked} >= set(WORDS)


def test_diverse_covers_every_topic_before_it_takes_a_second_of_one() -> None:
    candidates = [
        Candidate(query=f"{topic} {topic}s side number {word}")
        for topic in ("money", "weather", "cooking", "football")
        for word in WORDS
    ]

    picks = pick(candidates, 4, ["diverse"])

    assert {each.candidate.query.split()[0] for each in picks} == {
        *("money", "weather", "cooking", "football")
    }


def test_ten_thousand_records_are_curated_in_seconds() -> None:
    candidates = [
        Candidate(query=f"{WORDS[n % 12]} {n} {WORDS[n // 12 % 12]}", doubt=n / 10_000)
        for n in range(10_000)
    ]

    picks = pick(candidates, 50, ["uncertain", "diverse", "random"])

    assert len(picks) == 50
    assert NEAR < 1


# --- the file ---


def test_what_is_filled_in_stays_and_nothing_is_doubled(results: Path, tmp_path: Path) -> None:
    output = tmp_path / "golden.jsonl"
    first = curate(results, output, "-n", "5")
    kept = lines(output)
    kept[0]["ground_truth"] = "By hand."
    kept[0]["note"] = "mine"
    output.write_text("".join(f"{json.dumps(line)}\n" for line in kept), encoding="utf-8")

    second = curate(results, output, "-n", "50")
    third = curate(results, output, "-n", "50")

    assert (first["lines"], first["unfilled"]) == (5, 5)
    assert (second["lines"], second["unfilled"]) == (12, 11)
    assert third["lines"] == 12
    assert sum(third["picked"].values()) == 0
    assert lines(output)[:5] == kept
    assert len({line["query"] for line in lines(output)}) == 12


def test_a_csv_file_can_be_filled_in_as_well(results: Path, tmp_path: Path) -> None:
    output = tmp_path / "golden.csv"
    curate(results, output, "-n", "3", "--by", "low,random")
    with output.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    rows[0]["ground_truth"] = "By, hand.\nTwo lines."
    with output.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)

    again = curate(results, output, "-n", "50")

    assert (again["lines"], again["unfilled"]) == (12, 11)
    match = asyncio.run(GroundTruth(output).find(rows[0]["query"]))
    assert match is not None
    assert match.text == "By, hand.\nTwo lines."


def test_no_query_becomes_a_formula_of_a_spreadsheet(tmp_path: Path) -> None:
    query = '=HYPERLINK("http://evil.example", "click") now'
    output = tmp_path / "golden.csv"
    curate(write(tmp_path / "results.jsonl", [result(0, query, entailed=0.5)]), output)
    with output.open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["query"] == f"'{query}"

    output.write_text(output.read_text("utf-8").replace(",,Said", ",-5.,Said"), encoding="utf-8")

    match = GroundTruth(output).find_known(query)
    assert match is not None
    assert match.text == "-5."


def test_lines_that_wait_are_no_ground_truths_yet(results: Path, tmp_path: Path) -> None:
    output = tmp_path / "golden.jsonl"
    curate(results, output, "-n", "12", "--by", "random")
    assert len(GroundTruth(output)) == 0

    filled: list[Mapping[str, Any]] = [
        {**line, "ground_truth": "By hand." if line["id"] == "r3" else ""} for line in lines(output)
    ]
    output.write_text("".join(f"{json.dumps(line)}\n" for line in filled), encoding="utf-8")

    truths = GroundTruth(output)
    assert len(truths) == 1
    assert truths.find_known("?", {"query_id": "r3"}) is not None
    assert truths.find_known("alpha in town 0?") is None


def test_a_record_with_a_ground_truth_is_not_picked(tmp_path: Path) -> None:
    rows = [
        result(0, "alpha?", entailed=0.5, truth="Known."),
        result(1, "beta?", entailed=0.5),
    ]

    picked = curate(write(tmp_path / "results.jsonl", rows), tmp_path / "golden.jsonl")

    assert picked["candidates"] == 1


# --- traces ---


def test_where_every_record_has_a_ground_truth_that_is_said_and_no_file_is_written(
    tmp_path: Path,
) -> None:
    file = write(tmp_path / "r.jsonl", [result(1, "q", entailed=0.5, truth="known")])
    told = run("curate", str(file), "-o", str(tmp_path / "golden.jsonl"))

    assert "every record of the files has a ground truth already" in told
    assert not (tmp_path / "golden.jsonl").exists()


def test_traces_of_a_pipeline_are_curated_and_their_labels_found_again(tmp_path: Path) -> None:
    traces, golden = tmp_path / "traces.jsonl", tmp_path / "golden.jsonl"
    ask(traces, ["alpha", "beta", "alpha"])

    picked = curate(traces, golden, "-n", "10")
    golden.write_text(golden.read_text("utf-8").replace('truth": ""', 'truth": "Answer to it."'))
    ask(traces, ["Alpha?"], ground_truth=golden)

    assert picked["candidates"] == 2
    assert all(line["trace_id"] and line["sample_weight"] == 1.0 for line in lines(golden))
    assert '"normalised_query"' in traces.read_text(encoding="utf-8")


def ask(traces: Path, queries: Sequence[str], ground_truth: Path | None = None) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(OtlpFileExporter(traces)))
    monitor = Monitor(
        ScriptedJudge(), sample=1.0, tracer_provider=provider, ground_truth=ground_truth
    )
    for query in queries:
        rag_chain().invoke(query, {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    assert monitor.shutdown(30.0)
    provider.shutdown()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--by", "boring"], "--by 'boring' is unknown"),
        (["--by", ","], "give one or more of uncertain"),
    ],
)
def test_a_reason_that_is_none_is_refused(options: list[str], said: str, results: Path) -> None:
    ended = invoke("curate", str(results), "-o", str(results.with_name("golden")), *options)

    assert said in str(ended.exception)
    assert not results.with_name("golden").exists()


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text('{"query": "swordfish"}\n', encoding="utf-8")

    ended = invoke("curate", str(other), "-o", str(tmp_path / "golden"))

    assert "records that are not evaluated yet are for" in str(ended.exception)
    assert "swordfish" not in str(ended.exception)
