"""`claimspan bench alignment`: Pinecone's Evaluation API, its bodies in and its bodies out."""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from claimspan import Claim, RagRecord
from claimspan.errors import ConfigError, FileError, JudgeError
from claimspan.evaluation.result import Evaluation
from claimspan.judges import Judge, LexicalJudge
from claimspan.testing import ScriptedJudge
from claimspan.verdicts import Label, Verdict
from claimspan_bench.alignment import (
    AlignmentResponse,
    aevaluate_alignment,
    evaluation_of,
    read_requests,
    read_responses,
    response_of,
    summarise,
)

from command_line import invoke, run

PINECONE: Final = Path(__file__).parents[3] / "shared" / "data" / "pinecone"

REQUEST: Final = {
    "question": "What are the capital cities of France, England and Spain?",
    "answer": "Paris is the capital city of France and Barcelona of Spain",
    "ground_truth_answer": "Paris is the capital city of France, London of England and Madrid of "
    "Spain",
}
FACTS: Final = {
    "Paris is the capital city of France.": "entailed",
    "London is the capital city of England.": "neutral",
    "Madrid is the capital city of Spain.": "contradicted",
}
"""The example of Pinecone's documentation: its request, its facts and their entailments."""


class DocumentedJudge(ScriptedJudge):
    """Finds the facts and gives the entailments of the documentation."""

    def __init__(self) -> None:
        super().__init__({(fact, REQUEST["answer"]): label for fact, label in FACTS.items()})

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        await super().extract_claims(text, question=question)
        return [Claim(text=fact) for fact in FACTS]


def documented(judge: Judge, digits: int | None = None) -> AlignmentResponse:
    """The evaluation of the example."""
    example = record(
        query=REQUEST["question"],
        response=REQUEST["answer"],
        ground_truth=REQUEST["ground_truth_answer"],
    )
    return response_of(evaluated(example, judge), digits=digits)


def evaluated(each: RagRecord, judge: Judge) -> Evaluation:
    (found,) = asyncio.run(aevaluate_alignment([each], judge))
    return found


def response(labels: Sequence[str], metrics: Sequence[float]) -> dict[str, object]:
    names = ("correctness", "completeness", "alignment")
    facts = [{"fact": {"content": f"Fact {i}."}, "entailment": e} for i, e in enumerate(labels)]
    return {
        "metrics": dict(zip(names, metrics, strict=True)),
        "reasoning": {"evaluated_facts": facts},
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


def write(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


# --- the example of the documentation ---


def test_the_example_of_the_documentation_comes_out_exactly() -> None:
    found = documented(DocumentedJudge(), digits=4)

    assert found.metrics.model_dump() == {
        "correctness": 0.5,
        "completeness": 0.3333,
        "alignment": 0.4,
    }
    facts = [(each.fact.content, each.entailment) for each in found.reasoning.evaluated_facts]
    assert facts == list(FACTS.items())


def test_one_evaluation_asks_for_the_facts_once_and_for_their_verdicts_once() -> None:
    judge = DocumentedJudge()

    documented(judge)

    assert [each.text for each in judge.extractions] == [REQUEST["ground_truth_answer"]]
    assert [(each.claims, each.references) for each in judge.checks] == [
        (tuple(FACTS), (REQUEST["answer"],))
    ]


def test_the_recorded_example_of_the_documentation_gives_its_metrics(tmp_path: Path) -> None:
    if not PINECONE.exists():
        pytest.skip("shared data is absent")
    example = PINECONE / "docs_example.json"

    printed = run(
        *("bench.alignment", str(example), "--recorded", "--rounded"),
        *("-o", str(tmp_path / "out.jsonl"), "--json"),
    )

    means = {name: each["value"] for name, each in json.loads(printed)["means"].items()}
    assert means == {"correctness": 0.5, "completeness": 0.3333, "alignment": 0.4}
    recorded = json.loads(example.read_text("utf-8"))["response"]
    assert json.loads((tmp_path / "out.jsonl").read_text("utf-8")) == recorded


def test_bodies_are_those_of_every_published_description() -> None:
    if not PINECONE.exists():
        pytest.skip("shared data is absent")
    # By name: neither has types.
    load: Callable[[str], dict[str, object]] = importlib.import_module("yaml").safe_load
    validate: Callable[..., None] = importlib.import_module("jsonschema").validate
    found = documented(DocumentedJudge())
    nothing = response_of(evaluated(record(ground_truth=""), DocumentedJudge()))

    descriptions = sorted(PINECONE.glob("*.oas.yaml"))
    assert len(descriptions) == 4
    for description in descriptions:
        schemas = load(description.read_text("utf-8"))
        for body in (found, nothing):
            wanted = {**schemas, "$ref": "#/components/schemas/AlignmentResponse"}
            validate(body.model_dump(mode="json"), wanted)
        validate(REQUEST, {**schemas, "$ref": "#/components/schemas/AlignmentRequest"})
        validate({"message": "m"}, {**schemas, "$ref": "#/components/schemas/BasicErrorResponse"})


# --- metrics and averages ---


def test_an_answer_that_takes_up_nothing_has_an_alignment_of_0_that_counts() -> None:
    responses = [response(["entailed"], (1, 1, 1)), response(["neutral"], (0, 0, 0))]

    found = summarise(
        [evaluation_of(each) for each in map(AlignmentResponse.model_validate, responses)]
    )

    assert found.means["alignment"].value == 0.5
    assert (found.means["correctness"].value, found.means["correctness"].n) == (1.0, 1)
    assert found.undefined["correctness"] == 1
    assert found.undefined["alignment"] == 0


def test_averages_are_those_of_each_answer_and_not_of_the_averages() -> None:
    responses = [
        response(["entailed", "neutral", "neutral", "neutral"], (1, 0.25, 0.4)),
        response(["entailed", "contradicted"], (0.5, 0.5, 0.5)),
    ]

    found = summarise(
        [evaluation_of(each) for each in map(AlignmentResponse.model_validate, responses)]
    )

    assert found.means["alignment"].value == pytest.approx(0.45)
    # Means of 0.75 and 0.375: 2 * 0.75 * 0.375 / 1.125.
    assert found.harmonic_mean_of_means == pytest.approx(0.5)
    assert found.facts == {"entailed": 2, "neutral": 3, "contradicted": 1, "undecided": 0}


def test_a_ground_truth_without_facts_is_counted_and_0_in_the_body() -> None:
    found = evaluated(record(ground_truth=" "), ScriptedJudge())

    assert found.metrics == {}
    assert summarise([found]).undefined["alignment"] == 1
    assert response_of(found).metrics.alignment == 0.0
    assert response_of(found).reasoning.evaluated_facts == ()


def test_an_undecided_fact_is_counted_and_not_in_the_body() -> None:
    judge = ScriptedJudge(lambda claim, _: None if "Rome" in claim else "entailed")
    found = evaluated(record(), judge)

    assert [each.fact.content for each in response_of(found).reasoning.evaluated_facts] == [
        "Paris is in France"
    ]
    assert summarise([found]).facts["undecided"] == 1
    assert found.metrics["alignment"] == 1.0


def test_a_judge_with_probabilities_gives_a_soft_alignment() -> None:
    unsure = Verdict(label=Label.ENTAILED, entailed=0.6, neutral=0.4, contradicted=0.0)
    judge = ScriptedJudge(lambda claim, reference: unsure)
    found = evaluated(record(), judge)

    # 2E / (2E + 2C + N) of two facts: 2.4 / (2.4 + 0.8)
    assert found.metrics["soft_alignment"] == pytest.approx(0.75)
    assert found.metrics["alignment"] == 1.0


def record(**fields: object) -> RagRecord:
    values: dict[str, object] = {
        "query": "Where?",
        "response": "Paris is in France.",
        "ground_truth": "Paris is in France. Rome is in Italy.",
        "chunks": (),
    }
    return RagRecord.model_validate(values | fields)


# --- the library ---


def test_a_record_without_ground_truth_is_refused() -> None:
    with pytest.raises(ConfigError, match="record 1 has no ground truth"):
        asyncio.run(aevaluate_alignment([record(), record(ground_truth=None)], ScriptedJudge()))


def test_a_judge_that_fails_stops_nothing_else() -> None:
    judge = ScriptedJudge(error=JudgeError("the endpoint is down"))

    found = evaluated(record(), judge)

    assert found.error == "the endpoint is down"
    assert summarise([found]).failed == {"the endpoint is down": 1}


# --- files and the command ---


def test_the_request_of_a_logged_exchange_is_read_as_it_would_be_alone(tmp_path: Path) -> None:
    request = {"question": "q", "answer": "a", "ground_truth_answer": "g"}
    alone = write(tmp_path / "alone.jsonl", [request])
    logged = write(tmp_path / "logged.jsonl", [{"request": request, "response": {}}])

    assert read_requests(logged) == read_requests(alone)


def test_requests_and_records_of_all_names_are_read(tmp_path: Path) -> None:
    rows: list[Mapping[str, object]] = [
        REQUEST,
        {"query": "q", "response": "r", "ground_truth": "g", "chunks": [], "id": 7},
        {"query": "q", "response": "r", "gt_answer": "g", "query_id": "x"},
    ]
    (tmp_path / "list.json").write_text(json.dumps(rows), encoding="utf-8")
    (tmp_path / "results.json").write_text(json.dumps({"results": rows}), encoding="utf-8")

    lines = read_requests(write(tmp_path / "rows.jsonl", rows))

    assert [each.id for each in lines] == [None, "7", "x"]
    assert lines[0].ground_truth == REQUEST["ground_truth_answer"]
    assert read_requests(tmp_path / "list.json") == lines
    assert read_requests(tmp_path / "results.json") == lines


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"question": "q", "answer": "secret"}', "row 1: ground_truth_answer"),
        ('{"question": "q"}\n{"answer": "secret"}', "line 1: "),
        ("[1]", "row 1 is not a JSON object"),
        ("[]", "holds nothing"),
        ("", "holds nothing"),
        ("nonsense", "line 1 is not JSON"),
    ],
)
def test_a_row_that_is_no_request_is_named_without_its_content(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "rows.json").write_text(text, encoding="utf-8")

    with pytest.raises(FileError, match=message) as caught:
        read_requests(tmp_path / "rows.json")

    assert "secret" not in str(caught.value)


def test_a_row_that_is_no_response_is_named(tmp_path: Path) -> None:
    broken = response(["maybe"], (0, 0, 0))

    with pytest.raises(FileError, match=r"line 2: response\.reasoning"):
        read_responses(write(tmp_path / "r.jsonl", [response([], (0, 0, 0)), broken]))


def test_the_output_has_a_body_a_request_in_order_and_a_run_goes_on(tmp_path: Path) -> None:
    requests = [{**REQUEST, "answer": f"Paris is the capital of region {i}."} for i in range(12)]
    arguments = ("bench.alignment", str(write(tmp_path / "in.jsonl", requests)), "--results")
    kept, out = tmp_path / "kept.jsonl", tmp_path / "out.jsonl"
    options = ("--judge", "lexical", "--json", "-o", str(out))

    whole = json.loads(run(*arguments, str(kept), *options))
    first = out.read_text("utf-8")
    lines = kept.read_text("utf-8").splitlines(keepends=True)
    kept.write_text("".join(lines[:5]) + lines[5][:40], encoding="utf-8")
    again = json.loads(run(*arguments, str(kept), *options))

    assert out.read_text("utf-8") == first
    assert len(first.splitlines()) == whole["answers"] == 12
    assert again["means"] == whole["means"]
    assert len(kept.read_text("utf-8").splitlines()) == 12


def test_the_command_shows_both_averages_and_says_which_is_which(tmp_path: Path) -> None:
    path = write(tmp_path / "in.jsonl", [REQUEST])

    printed = run("bench.alignment", str(path), "--judge", "lexical")

    assert "1 of 1 answers evaluated" in printed
    assert "point-wise" in printed
    assert "soft_alignment" in printed


def test_recorded_metrics_that_their_facts_do_not_give_are_told(tmp_path: Path) -> None:
    rows = [response(["entailed", "neutral"], (1, 0.5, 0.6667)), response(["neutral"], (1, 0.5, 0))]

    result = invoke("bench.alignment", str(write(tmp_path / "r.jsonl", rows)), "--recorded")

    assert result.exit_code == 1
    assert "row 2: completeness is 0.5, but its facts give 0.0000" in result.output
    assert "row 1" not in result.output
    assert (
        "correctness is" not in result.output
    )  # it has no value, and nobody says what stands then


def test_what_failed_is_a_body_of_an_error_and_the_exit_code_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from claimspan_bench import alignment

    class Failing(LexicalJudge):
        async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
            if "Rome" in text:
                raise JudgeError("the judge cannot read this")
            return await super().extract_claims(text, question=question)

    def named(_: str | None, __: object) -> Failing:
        return Failing()

    monkeypatch.setattr(alignment, "judge_from", named)
    rows = [REQUEST, {**REQUEST, "ground_truth_answer": "Rome is in Italy."}]
    out = tmp_path / "out.jsonl"

    path = write(tmp_path / "in.jsonl", rows)
    result = invoke("bench.alignment", str(path), "-o", str(out))

    assert result.exit_code == 1
    assert "1 of 2 answers evaluated" in result.output
    assert json.loads(out.read_text("utf-8").splitlines()[1]) == {
        "message": "the judge cannot read this"
    }


def test_recorded_responses_take_no_judge(tmp_path: Path) -> None:
    result = invoke("bench.alignment", str(tmp_path), "--recorded", "--judge", "lexical")

    assert isinstance(result.exception, ConfigError)
