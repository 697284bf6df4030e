"""RAGChecker's results are written as its own tools write them, and gone on with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from claimspan import Claim, VerdictMatrix
from claimspan.cli import evaluate_command
from claimspan.comparison.systems import read_system
from claimspan.errors import ConfigError, FileError
from claimspan.judges import LexicalJudge
from claimspan.results import rag_results

from command_line import invoke, run

DATA = Path(__file__).parents[3] / "shared" / "data" / "ragchecker"
FIELDS = [
    *("query_id", "query", "gt_answer", "response", "retrieved_context", "response_claims"),
    *("gt_answer_claims", "answer2response", "response2answer", "retrieved2response"),
    *("retrieved2answer", "metrics"),
]
RAW: dict[str, object] = {
    "query_id": "7",
    "query": "Where is the tower?",
    "gt_answer": "The tower is in Paris.",
    "response": "The tower is in Paris. It is blue.",
    "retrieved_context": [{"doc_id": "d", "text": "The tower is in Paris."}],
}
CHECKED: dict[str, object] = {
    **RAW,
    "response_claims": [["The tower", "is in", "Paris"], ["It", "is", "blue"]],
    "gt_answer_claims": [["The tower", "is in", "Paris"]],
    "answer2response": ["Neutral", "Contradiction"],
    "response2answer": ["Entailment"],
    "retrieved2response": [["Entailment"], ["Neutral"]],
    "retrieved2answer": [["Neutral"]],
}


class CountingJudge(LexicalJudge):
    """Counts what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.shapes: list[tuple[int, int]] = []

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        self.texts.append(text)
        return await super().extract_claims(text, question=question)

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        self.shapes.append((len(claims), len(references)))
        return await super().check(claims, references, question=question)


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> CountingJudge:
    counting = CountingJudge()

    def named(_: str | None, __: object) -> CountingJudge:
        return counting

    monkeypatch.setattr(evaluate_command, "judge_from", named)
    return counting


def results_of(path: Path, *rows: Mapping[str, object]) -> Path:
    path.write_text(json.dumps({"results": rows}), encoding="utf-8")
    return path


def shared(name: str) -> Path:
    if not (DATA / name).exists():
        pytest.skip(f"{name} stands in the shared data, which is absent here")
    return DATA / name


def test_a_raw_file_gets_every_field_and_the_three_groups_of_means(
    tmp_path: Path, judge: CountingJudge
) -> None:
    records, output = results_of(tmp_path / "in.json", RAW), tmp_path / "out.json"

    run("evaluate", str(records), "-o", str(output))

    written = json.loads(output.read_text(encoding="utf-8"))
    (result,) = written["results"]
    assert list(result) == FIELDS
    assert {name: result[name] for name in RAW} == RAW
    # ragchecker's joint check reads the first three texts of each claim.
    assert result["response_claims"][0] == ["The tower is in Paris.", "", ""]
    assert result["answer2response"][0] == "Entailment"
    assert len(result["retrieved2response"]) == len(result["response_claims"])
    assert [len(group) for group in written["metrics"].values()] == [3, 2, 6]
    assert written["metrics"]["overall_metrics"]["recall"] == 100.0
    assert {path.name for path in tmp_path.iterdir()} == {"in.json", "out.json"}


def test_a_checked_file_is_not_checked_again_and_comes_out_as_it_was(
    tmp_path: Path, judge: CountingJudge
) -> None:
    checked = {**CHECKED, "metrics": {"precision": 0.25}}
    records, output = results_of(tmp_path / "in.json", checked), tmp_path / "out.json"

    found = json.loads(run("evaluate", str(records), "-o", str(output), "--json"))

    (result,) = json.loads(output.read_text(encoding="utf-8"))["results"]
    assert judge.texts == []
    assert {name: result[name] for name in CHECKED} == CHECKED
    assert result["metrics"]["precision"] == 0.25  # a metric that is there stays
    assert result["metrics"]["recall"] == 1.0
    assert found["metrics"]["precision"]["mean"] == 0.0  # what the labels give


@pytest.mark.parametrize(
    ("missing", "texts", "shapes"),
    [
        (["retrieved2answer"], [], [(1, 1)]),
        (["answer2response", "response2answer"], [], [(2, 1), (1, 1)]),
        (
            ["gt_answer_claims", "response2answer", "retrieved2answer"],
            [RAW["gt_answer"]],
            [(1, 1), (1, 1)],
        ),
        (
            ["response_claims", "answer2response", "retrieved2response"],
            [RAW["response"]],
            [(2, 1), (2, 1)],
        ),
    ],
)
def test_of_a_half_checked_record_only_the_rest_is_asked_for(
    tmp_path: Path,
    judge: CountingJudge,
    missing: list[str],
    texts: list[str],
    shapes: list[tuple[int, int]],
) -> None:
    half = {**CHECKED, **dict.fromkeys(missing)}
    records, output = results_of(tmp_path / "in.json", half), tmp_path / "out.json"

    run("evaluate", str(records), "-o", str(output))

    (result,) = json.loads(output.read_text(encoding="utf-8"))["results"]
    assert (judge.texts, sorted(judge.shapes)) == (texts, sorted(shapes))
    assert all(result[name] is not None for name in FIELDS)
    for name in CHECKED.keys() - set(missing):
        assert result[name] == CHECKED[name]


def test_what_the_output_has_already_is_gone_on_with(tmp_path: Path, judge: CountingJudge) -> None:
    other = {**RAW, "query_id": "8", "query": "And the bridge?"}
    records = results_of(tmp_path / "in.json", RAW, other)
    output = results_of(tmp_path / "out.json", CHECKED)

    run("evaluate", str(records), "-o", str(output))
    run("evaluate", str(records), "-o", str(output))

    first, second = json.loads(output.read_text(encoding="utf-8"))["results"]
    assert judge.texts == [RAW["response"], RAW["gt_answer"]]  # of the second record, once
    assert first["answer2response"] == CHECKED["answer2response"]
    assert second["query_id"] == "8"
    assert second["answer2response"]


def test_a_file_may_be_input_and_output_unless_that_would_lose_rows(
    tmp_path: Path, judge: CountingJudge
) -> None:
    path = results_of(tmp_path / "both.json", RAW)
    run("evaluate", str(path), "-o", str(path))
    whole = json.loads(path.read_text(encoding="utf-8"))
    broken = results_of(tmp_path / "broken.json", RAW, {"query": "q"})

    result = invoke("evaluate", str(broken), "-o", str(broken))

    assert whole["results"][0]["answer2response"]
    assert isinstance(result.exception, ConfigError)
    assert len(json.loads(broken.read_text(encoding="utf-8"))["results"]) == 2


@pytest.mark.parametrize(
    "content", ["my notes", '{"results": [{"query": "q"}]}', json.dumps({**RAW, "query": "other"})]
)
def test_a_file_with_something_else_is_left_alone(
    tmp_path: Path, judge: CountingJudge, content: str
) -> None:
    records, output = results_of(tmp_path / "in.json", RAW), tmp_path / "out.json"
    output.write_text(content, encoding="utf-8")

    result = invoke("evaluate", str(records), "-o", str(output))

    assert isinstance(result.exception, ConfigError)
    assert "give another path with -o" in str(result.exception)
    assert output.read_text(encoding="utf-8") == content


@pytest.mark.parametrize("blank", ["response", "gt_answer"])
def test_recorded_claims_of_a_blank_text_stay_as_they_are(
    tmp_path: Path, judge: CountingJudge, blank: str
) -> None:
    path, output = tmp_path / "in.json", tmp_path / "out.json"
    half = {**CHECKED, blank: "", "retrieved2response": None, "retrieved2answer": None}
    path.write_text(json.dumps([half, RAW]), encoding="utf-8")

    run("evaluate", str(path), "-o", str(output))

    first, second = json.loads(output.read_text(encoding="utf-8"))["results"]
    kept = CHECKED.keys() - {"retrieved2response", "retrieved2answer"}
    assert {name: first[name] for name in kept} == {name: half[name] for name in kept}
    assert second["answer2response"] is not None


@pytest.mark.parametrize(
    ("value", "lost"),
    [
        ([{**RAW, "metadata": {"tenant": "x"}}], "metadata"),
        ([{**RAW, "grade": 0}], "grade"),
        ([{**RAW, "retrieved_context": [{"text": "t", "score": 0.5}]}], "retrieved_context.score"),
        ({"results": [RAW], "settings": {"k": 1}}, "settings"),
    ],
)
def test_a_file_is_not_replaced_by_one_that_holds_less(
    tmp_path: Path, judge: CountingJudge, value: object, lost: str
) -> None:
    path = tmp_path / "in.json"
    path.write_text(json.dumps(value), encoding="utf-8")

    result = invoke("evaluate", str(path), "-o", str(path))

    assert isinstance(result.exception, ConfigError)
    assert f"no place for ({lost})" in str(result.exception)
    assert (json.loads(path.read_text(encoding="utf-8")), judge.texts) == (value, [])


def test_results_of_other_records_are_not_gone_on_with(
    tmp_path: Path, judge: CountingJudge
) -> None:
    records = results_of(tmp_path / "in.json", RAW)
    output = results_of(tmp_path / "out.json", {**CHECKED, "response": "Another answer."})

    result = invoke("evaluate", str(records), "-o", str(output))

    assert isinstance(result.exception, ConfigError)
    assert "the input has changed" in str(result.exception)


def test_a_record_without_ground_truth_has_its_one_matrix(
    tmp_path: Path, judge: CountingJudge
) -> None:
    records = results_of(tmp_path / "in.json", {**RAW, "gt_answer": None})
    output = tmp_path / "out.json"

    for _ in range(2):
        run("evaluate", str(records), "-o", str(output))

    written = json.loads(output.read_text(encoding="utf-8"))
    (result,) = written["results"]
    assert judge.texts == [RAW["response"]]
    assert result["gt_answer"] == ""
    assert result["gt_answer_claims"] is result["answer2response"] is None
    assert written["metrics"] == {
        "overall_metrics": {},
        "retriever_metrics": {},
        "generator_metrics": {"faithfulness": 50.0},
    }


def test_without_claims_the_values_are_zero_as_in_ragchecker(
    tmp_path: Path, judge: CountingJudge
) -> None:
    empty: dict[str, object] = {
        **CHECKED,
        **{"response_claims": [], "answer2response": [], "retrieved2response": []},
    }
    records, output = results_of(tmp_path / "in.json", empty), tmp_path / "out.json"

    omitted = json.loads(run("evaluate", str(records), "-o", str(output), "--json"))
    zeroed = json.loads(run("evaluate", str(records), "--undefined", "zero", "--json"))

    (result,) = json.loads(output.read_text(encoding="utf-8"))["results"]
    assert "precision" not in omitted["metrics"]
    assert zeroed["metrics"]["precision"] == {"mean": 0.0, "n": 1}
    assert result["metrics"]["precision"] == 0.0


def test_ragcheckers_own_output_comes_out_as_it_went_in(
    tmp_path: Path, judge: CountingJudge
) -> None:
    published = shared("checking_outputs.json")
    output = tmp_path / "out.json"

    run("evaluate", str(published), "-o", str(output))

    before, after = (json.loads(p.read_text(encoding="utf-8")) for p in (published, output))
    assert after["results"] == before["results"]
    assert list(after["metrics"].values()) == list(before["metrics"].values())
    assert judge.texts == []


def test_its_scores_are_read_for_comparisons(tmp_path: Path, judge: CountingJudge) -> None:
    records, output = results_of(tmp_path / "in.json", RAW), tmp_path / "system.json"
    run("evaluate", str(records), "-o", str(output))

    system = read_system(output)

    assert system.name == "system"
    assert [row.key for row in system.rows] == ["7"]
    assert [row.scores["recall"] for row in system.rows] == [1.0]
    with pytest.raises(FileError, match="record 2: response is missing"):
        read_system(results_of(tmp_path / "broken.json", RAW, {"query": "q"}))


class WatchingJudge(CountingJudge):
    """Notes how many records of a file are evaluated whenever it is asked for claims."""

    def __init__(self, output: Path) -> None:
        super().__init__()
        self.output = output
        self.seen: list[int | None] = []

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        seen = None
        if self.output.exists():
            results = json.loads(self.output.read_bytes())["results"]
            seen = sum(each["answer2response"] is not None for each in results)
        self.seen.append(seen)
        return await super().extract_claims(text, question=question)


def test_what_is_done_is_in_the_file_while_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = results_of(tmp_path / "in.json", *({**RAW, "query_id": str(i)} for i in range(3)))
    output = tmp_path / "out.json"
    watching = WatchingJudge(output)
    monkeypatch.setattr(rag_results, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(rag_results, "SHARE", 0)

    def named(_: str | None, __: object) -> CountingJudge:
        return watching

    monkeypatch.setattr(evaluate_command, "judge_from", named)
    run("evaluate", str(records), "-o", str(output), "--concurrency", "1")

    # Two texts a record: nothing is written before the first record is done.
    assert watching.seen == [None, None, 1, 1, 2, 2]


def test_a_results_file_that_was_cut_off_is_said_to_be(
    tmp_path: Path, judge: CountingJudge
) -> None:
    path = tmp_path / "in.json"
    path.write_text(json.dumps({"results": [RAW, RAW]}, indent=2)[:-100], encoding="utf-8")

    result = invoke("evaluate", str(path))

    assert isinstance(result.exception, ConfigError)
    assert "is not JSON as a whole, as if it were cut off" in str(result.exception)


def test_the_format_may_be_given_whatever_the_name_ends_in(
    tmp_path: Path, judge: CountingJudge
) -> None:
    records, output = results_of(tmp_path / "in.json", RAW), tmp_path / "out.txt"
    lines = tmp_path / "lines.json"

    run("evaluate", str(records), "-o", str(output), "--format", "ragchecker")
    run("evaluate", str(records), "-o", str(lines), "--format", "jsonl")

    assert list(json.loads(output.read_text(encoding="utf-8"))) == ["results", "metrics"]
    assert json.loads(lines.read_text(encoding="utf-8"))["index"] == 0
