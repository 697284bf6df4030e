"""Two judges in a row, thresholds between them, and how far judges agree with people."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from claimspan import Claim, Label, Verdict, VerdictMatrix
from claimspan.agreement import auroc, measure_agreement
from claimspan.calibration import calibrate, halves
from claimspan.cli import build_app
from claimspan.errors import ConfigError, GroundTruthError, JudgeError
from claimspan.evaluation import aevaluate
from claimspan.judges import (
    CascadeJudge,
    Judge,
    LexicalJudge,
    OpenAIJudge,
    SparseJudge,
    default_judge,
)
from claimspan.judges.cascade import Thresholds
from claimspan.judges.protocol import Cell
from claimspan.labelled import HumanLabel, Judged, LabelledClaim, judge_labelled, read_labelled

from judged import RECORD

E, N, C = Label.ENTAILED, Label.NEUTRAL, Label.CONTRADICTED


class FixedJudge:
    """Gives each claim the p(entailed) that stands in its text."""

    name = "fixed"
    version = "1"

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], list[str]]] = []

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        return [Claim(text=part) for part in text.split()]

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        self.asked.append(([c.text for c in claims], list(references)))
        return VerdictMatrix.of([[probable(float(c.text)) for _ in references] for c in claims])


def probable(p: float) -> Verdict:
    return Verdict(label=E if p >= 0.5 else N, entailed=p, neutral=1 - p, contradicted=0.0)


class SparseStrongJudge(FixedJudge):
    """Contradicts whatever it is asked about."""

    name = "strong"

    def __init__(self) -> None:
        super().__init__()
        self.cells: set[Cell] = set()

    async def check_cells(
        self,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        *,
        question: str | None = None,
    ) -> VerdictMatrix:
        self.cells |= set(cells)
        wrong = Verdict(label=C)
        rows = [
            [wrong if (i, j) in cells else None for j in range(len(references))]
            for i in range(len(claims))
        ]
        return VerdictMatrix.of(rows, len(references))


def claims_of(*texts: str) -> list[Claim]:
    return [Claim(text=text) for text in texts]


THRESHOLDS = Thresholds(low=0.2, high=0.8)


async def test_the_strong_judge_is_asked_only_where_the_cheap_one_is_unsure() -> None:
    strong = SparseStrongJudge()
    cascade = CascadeJudge(FixedJudge(), strong, thresholds=THRESHOLDS)

    matrix = await cascade.check(claims_of("0.1", "0.2", "0.5", "0.79", "0.8"), ["a", "b"])

    assert strong.cells == {(2, 0), (2, 1), (3, 0), (3, 1)}
    assert [row[0] for row in matrix.labels] == [N, N, C, C, E]


async def test_a_judge_of_whole_matrices_is_asked_for_the_smallest_one() -> None:
    strong = FixedJudge()
    cascade = CascadeJudge(FixedJudge(), strong, thresholds=THRESHOLDS)

    await cascade.check_cells(claims_of("0.1", "0.5"), ["a", "b", "c"], {(0, 0), (1, 1)})

    assert strong.asked == [(["0.5"], ["b"])]


async def test_a_cheap_judge_without_probabilities_is_never_sure() -> None:
    class LabelJudge(FixedJudge):
        async def check(
            self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
        ) -> VerdictMatrix:
            return VerdictMatrix.of([[Verdict(label=E) for _ in references] for _ in claims])

    matrix = await CascadeJudge(LabelJudge(), SparseStrongJudge()).check(claims_of("1"), ["a"])

    assert matrix.labels == [[C]]


async def test_a_cascade_that_is_sure_costs_nothing_more() -> None:
    strong = SparseStrongJudge()
    cascade = CascadeJudge(FixedJudge(), strong, thresholds=THRESHOLDS)

    await cascade.check(claims_of("0.1", "0.9"), ["a"])

    assert strong.cells == set()


async def test_a_cascade_evaluates_a_record() -> None:
    cascade = CascadeJudge(LexicalJudge(), LexicalJudge())

    evaluation = await aevaluate(RECORD, judge=cascade)

    assert isinstance(cascade, SparseJudge)
    assert evaluation.judge_name == "cascade(lexical,lexical)"
    assert evaluation.metrics == (await aevaluate(RECORD, judge=LexicalJudge())).metrics


def test_thresholds_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="low is above high"):
        Thresholds(low=0.8, high=0.2)


# --- calibration ---


def judged(label: HumanLabel, p: float) -> Judged:
    return Judged(label, E if p >= 0.5 else N, p)


# Right at both ends, half wrong in the middle.
MIXED = [
    *(judged("E", 0.9 + i / 1000) for i in range(40)),
    *(judged("N", 0.1 - i / 1000) for i in range(40)),
    *(judged("EN"[i % 2], (0.45, 0.55)[i // 10]) for i in range(20)),  # type: ignore[arg-type] # letters
]


def test_thresholds_save_what_they_can_without_a_loss() -> None:
    found = calibrate(MIXED, MIXED, max_loss=0.0)

    assert found.saved == pytest.approx(0.8)
    assert found.lost == 0.0
    assert 0.1 <= found.thresholds.low < 0.45
    assert 0.55 < found.thresholds.high <= 0.9


def test_an_allowed_loss_saves_more() -> None:
    found = calibrate(MIXED, MIXED, max_loss=0.05)

    assert found.saved == pytest.approx(0.9)
    assert found.lost == pytest.approx(0.05)


def test_what_the_strong_judge_would_get_wrong_is_not_lost() -> None:
    found = calibrate(MIXED, MIXED, max_loss=0.05, strong_accuracy=0.98)

    assert found.agreement_lost == pytest.approx(0.05 - 0.9 * 0.02)


def test_expectations_come_from_claims_that_did_not_choose_the_thresholds() -> None:
    reversed_labels: list[Judged] = [each._replace(label="C") for each in MIXED[:40]]

    found = calibrate(MIXED, reversed_labels, max_loss=0.0)

    assert found.n == 40
    assert found.lost == pytest.approx(found.saved)
    assert found.saved > 0.9


def test_halves_are_the_same_every_time_and_keep_premises_together() -> None:
    claims = [
        LabelledClaim(id=str(i), premises=(f"premise {i // 2}",), claim="It is so.", label="E")
        for i in range(100)
    ]
    marks = [Judged("E", E, i / 100) for i in range(100)]

    first, second = halves(claims, marks)

    assert halves(claims, marks) == (first, second)
    assert 20 < len(first) < 80
    assert {int((m.entailed or 0) * 100 + 0.5) // 2 for m in first}.isdisjoint(
        int((m.entailed or 0) * 100 + 0.5) // 2 for m in second
    )


@pytest.mark.parametrize("options", [{"max_loss": -0.1}, {"strong_accuracy": 1.1}])
def test_a_share_outside_of_0_and_1_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="between 0 and 1"):
        calibrate(MIXED, MIXED, **options)


# --- agreement ---

TABLE: list[tuple[HumanLabel, Label, float, int]] = [
    ("E", E, 0.9, 40),
    ("E", N, 0.4, 10),
    ("N", N, 0.2, 20),
    ("N", E, 0.6, 10),
    ("C", C, 0.1, 15),
    ("C", N, 0.3, 5),
]
ANSWERS = [Judged(label, said, p) for label, said, p, n in TABLE for _ in range(n)]


def test_agreement_is_what_the_table_says() -> None:
    found = measure_agreement([*ANSWERS, Judged("E", None, None)])

    assert (found.n, found.undecided) == (100, 1)
    assert found.accuracy == pytest.approx(0.75)
    assert found.balanced_accuracy == pytest.approx((40 / 50 + 20 / 30 + 15 / 20) / 3)
    chance = (50 * 50 + 30 * 35 + 20 * 15) / 100**2
    assert found.kappa == pytest.approx((0.75 - chance) / (1 - chance))
    assert found.confusion["N"] == {"E": 10, "N": 20, "C": 0}
    assert found.classes["E"].precision == pytest.approx(40 / 50)
    assert found.classes["N"].recall == pytest.approx(20 / 30)
    # 0.9 beats all; 0.4 loses to the ten at 0.6.
    assert found.auroc == pytest.approx((40 * 50 + 10 * 40) / (50 * 50))


def test_intervals_hold_the_figure_and_are_the_same_every_time() -> None:
    found = measure_agreement(ANSWERS)

    assert measure_agreement(ANSWERS).intervals == found.intervals
    assert set(found.intervals) == {"accuracy", "balanced_accuracy", "auroc", "kappa"}
    low, high = found.intervals["accuracy"]
    assert 0.64 < low < 0.70  # 1.96 standard errors of .043 below
    assert 0.80 < high < 0.86


def test_neutral_and_contradicted_are_one_where_people_did_not_tell_them_apart() -> None:
    found = measure_agreement([Judged("NE", C, 0.1), Judged("NE", N, 0.1), Judged("E", E, 0.9)])

    assert found.accuracy == 1.0
    assert set(found.classes) == {"E", "NE"}


def test_figures_without_a_meaning_are_left_out() -> None:
    found = measure_agreement([Judged("E", E, 0.9)] * 3)

    assert found.auroc is None
    assert found.kappa is None
    assert found.classes["C"].precision is None
    with pytest.raises(ConfigError, match="decided no claim"):
        measure_agreement([Judged("E", None, None)])


def test_ties_count_one_half() -> None:
    assert auroc([0.5, 0.5], [True, False]) == 0.5
    assert auroc([0.1, 0.9], [True, True]) is None


# --- labelled files ---


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rows = [
        {
            "id": "1",
            "premises": ["The library is open.", "Bread."],
            "claim": "The library is open.",
            "label": "E",
        },
        {"id": "2", "premises": ["Bread is baked."], "claim": "The library is open.", "label": "N"},
        {
            "id": "3",
            "premises": ["There are 5 doors."],
            "claim": "There are 7 doors.",
            "label": "C",
        },
    ]
    path = tmp_path / "labelled.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    return path


async def test_premises_are_merged_as_chunks_are(file: Path) -> None:
    answers = await judge_labelled(LexicalJudge(), read_labelled(file))

    assert [each.label for each in answers] == ["E", "N", "C"]
    assert [each.said for each in answers] == [E, N, C]


async def test_a_claim_on_which_the_judge_fails_is_undecided(file: Path) -> None:
    class FailingJudge(FixedJudge):
        async def check(
            self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
        ) -> VerdictMatrix:
            raise JudgeError("no reply")

    answers = await judge_labelled(FailingJudge(), read_labelled(file))

    assert {each.said for each in answers} == {None}


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"id": "1", "premises": ["a"], "claim": "b", "label": "X"}']
)
def test_a_line_that_is_not_labelled_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "labelled.jsonl"
    path.write_text(f"\n{line}\n")

    with pytest.raises(GroundTruthError, match="line 2 needs"):
        read_labelled(path)


def test_a_file_that_is_absent_or_empty_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n")

    with pytest.raises(GroundTruthError, match="cannot read"):
        read_labelled(tmp_path / "absent.jsonl")
    with pytest.raises(GroundTruthError, match="no labelled claims"):
        read_labelled(tmp_path / "empty.jsonl")


# --- the command line ---


def run(*arguments: str) -> str:
    result = CliRunner().invoke(build_app(), arguments)
    assert result.exit_code == 0, result.output
    return result.output


def test_judge_agreement_is_printed_and_given_as_json(file: Path) -> None:
    shown = run("judge-agreement", "--judge", "lexical", str(file))
    found = json.loads(run("judge-agreement", str(file), "--json"))

    assert "accuracy          1.000" in shown
    assert "precision 1.000, recall 1.000" in shown
    assert found["confusion"]["C"] == {"E": 0, "N": 0, "C": 1}
    assert json.loads(run("judge-agreement", str(file), "--json", "--limit", "2"))["n"] == 2


def test_judges_and_files_are_compared_line_by_line(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text(file.read_text())
    arguments = ("judge-agreement", str(file), str(other), "--judge", "lexical", "--judge", "local")

    shown = run(*arguments).splitlines()
    found = json.loads(run(*arguments, "--json"))

    assert shown[0].split()[:4] == ["file", "judge", "claims", "undecided"]
    assert [line.split()[:2] for line in shown[1:]] == [
        [path.name, judge] for path in (file, other) for judge in ("lexical", "local")
    ]
    assert [(row["file"], row["judge"]) for row in found] == [
        (str(path), judge) for path in (file, other) for judge in ("lexical", "local")
    ]
    assert f"{found[0]['auroc']:.3f} [" in shown[1]


def test_calibrate_prints_what_to_expect(tmp_path: Path) -> None:
    path = tmp_path / "labelled.jsonl"
    rows = [
        {
            "id": str(i),
            "premises": [f"Door {i} is open."],
            "claim": f"Door {i} is {word}.",
            "label": label,
        }
        for i in range(40)
        for word, label in (("open", "E"), ("made of glass and steel", "N"))
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows))

    shown = run("calibrate", str(path))
    found = json.loads(run("calibrate", str(path), "--json", "--max-loss", "0"))

    assert "verdicts saved     100.0%" in shown
    assert "agreement lost     0.0%" in shown
    assert found["saved"] == 1.0
    assert 0 <= found["thresholds"]["low"] <= found["thresholds"]["high"] <= 1


def test_estimate_prints_calls_tokens_and_money(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(RECORD.model_dump_json() + "\n" + RECORD.model_dump_json() + "\n")

    shown = run("estimate", str(path), "--model", "gpt-4o-mini")
    found = json.loads(run("estimate", str(path), "--json"))
    dearer = json.loads(
        run("estimate", str(path), "--json", "--input-price", "100", "--output-price", "100")
    )
    careful = json.loads(run("estimate", str(path), "--json", "--chunks-per-call", "1"))

    assert "2 records, gpt-4o-mini" in shown
    assert "cost                    $0.00" in shown
    assert found["records"] == 2
    assert careful["calls"] > found["calls"] > 0
    assert dearer["cost_usd"] > 10 * found["cost_usd"] > 0


def test_estimate_reads_ragcheckers_files(tmp_path: Path) -> None:
    row = {
        "query_id": "7",
        "query": "Where?",
        "gt_answer": "By the river.",
        "response": "It is by the river.",
        "retrieved_context": [
            {"doc_id": None, "text": "By the river."},
            {"doc_id": "b", "text": "x"},
        ],
    }
    path = tmp_path / "inputs.json"
    path.write_text(json.dumps({"results": [row]}))

    assert json.loads(run("estimate", str(path), "--json"))["calls"] == 3


@pytest.mark.parametrize("text", ["{", '[{"query": "Where?"}]', "7"])
def test_a_file_that_holds_no_records_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text(text)

    result = CliRunner().invoke(build_app(), ["estimate", str(path)])

    assert isinstance(result.exception, GroundTruthError)


# --- the default judge ---


@pytest.fixture
def no_choice(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("CLAIMSPAN_JUDGE", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_a_key_of_the_application_is_not_spent_unasked(no_choice: pytest.MonkeyPatch) -> None:
    no_choice.setenv("OPENAI_API_KEY", "sk-of-the-application")

    assert default_judge().name == "lexical"


def test_the_environment_opts_in(no_choice: pytest.MonkeyPatch) -> None:
    no_choice.setenv("OPENAI_API_KEY", "sk-of-the-application")
    no_choice.setenv("CLAIMSPAN_JUDGE", "openai:gpt-4o-mini")

    judge = default_judge()

    assert isinstance(judge, OpenAIJudge)
    assert isinstance(judge, Judge)
    assert judge.version.startswith("gpt-4o-mini/")


def test_an_explicit_choice_comes_before_the_environment(no_choice: pytest.MonkeyPatch) -> None:
    no_choice.setenv("CLAIMSPAN_JUDGE", "openai:gpt-4o-mini")

    assert default_judge("lexical").name == "lexical"


@pytest.mark.parametrize("choice", ["openai", "gpt-4o-mini", "lexical:x", ":"])
def test_a_choice_that_names_no_judge_is_refused(
    no_choice: pytest.MonkeyPatch, choice: str
) -> None:
    no_choice.setenv("CLAIMSPAN_JUDGE", choice)

    with pytest.raises(ConfigError, match=r"CLAIMSPAN_JUDGE=.* names no judge"):
        default_judge()


def test_opting_in_without_a_key_says_so(no_choice: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="OpenAI needs a key"):
        default_judge("openai:gpt-4o-mini")


def test_opting_in_takes_the_address_too(no_choice: pytest.MonkeyPatch) -> None:
    no_choice.setenv("OPENAI_BASE_URL", "http://127.0.0.1:11434/v1")

    assert default_judge("openai:llama3.2").name == "openai"
