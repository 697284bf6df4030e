"""The agreement of judges with human labels: figures, labelled files, and the command."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from claimspan import Claim, Label, Verdict, VerdictMatrix
from claimspan.errors import ConfigError, FileError, JudgeError
from claimspan.judges import LexicalJudge
from claimspan.meta_evaluation.agreement import (
    HumanLabel,
    JudgedClaim,
    auroc,
    judge_labelled,
    measure_agreement,
    read_labelled,
)

from command_line import invoke, run
from judge_server import Exchange, judge_server

E, N, C = Label.ENTAILED, Label.NEUTRAL, Label.CONTRADICTED

TABLE: list[tuple[HumanLabel, Label, float, int]] = [
    ("E", E, 0.9, 40),
    ("E", N, 0.4, 10),
    ("N", N, 0.2, 20),
    ("N", E, 0.6, 10),
    ("C", C, 0.1, 15),
    ("C", N, 0.3, 5),
]
ANSWERS = [JudgedClaim(label, said, p) for label, said, p, n in TABLE for _ in range(n)]


def test_agreement_is_what_the_table_says() -> None:
    found = measure_agreement([*ANSWERS, JudgedClaim("E", None, None)])

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
    found = measure_agreement(
        [JudgedClaim("NE", C, 0.1), JudgedClaim("NE", N, 0.1), JudgedClaim("E", E, 0.9)]
    )

    assert found.accuracy == 1.0
    assert set(found.classes) == {"E", "NE"}


def test_figures_without_a_meaning_are_left_out() -> None:
    found = measure_agreement([JudgedClaim("E", E, 0.9)] * 3)

    assert found.auroc is None
    assert found.kappa is None
    assert found.classes["C"].precision is None
    with pytest.raises(ConfigError, match="decided no claim"):
        measure_agreement([JudgedClaim("E", None, None)])


def test_ties_count_one_half() -> None:
    assert auroc([0.5, 0.5], [True, False]) == 0.5
    assert auroc([0.1, 0.9], [True, True]) is None


# --- labelled files ---


class FailingJudge(LexicalJudge):
    """Fails on every claim with one of some words in it."""

    def __init__(self, *words: str) -> None:
        super().__init__(sure_from=0.5)
        self.words = words

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        for word in self.words:
            if word in claims[0].text:
                raise JudgeError(f"no reply about {word!r}")
        return await super().check(claims, references, question=question)


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
    answers = await judge_labelled(LexicalJudge(sure_from=0.5), read_labelled(file))

    assert [each.human_label for each in answers] == ["E", "N", "C"]
    assert [each.judge_label for each in answers] == [E, N, C]


async def test_an_answer_says_whether_it_came_with_probabilities(file: Path) -> None:
    class LabelJudge(LexicalJudge):
        async def check(
            self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
        ) -> VerdictMatrix:
            return VerdictMatrix.of([[Verdict(label=E) for _ in references] for _ in claims])

    graded = await judge_labelled(LexicalJudge(sure_from=0.5), read_labelled(file))
    bare = await judge_labelled(LabelJudge(), read_labelled(file))

    assert [each.has_probabilities for each in graded] == [True] * 3
    assert [(each.entailed, each.has_probabilities) for each in bare] == [(1.0, False)] * 3


async def test_a_claim_on_which_the_judge_fails_is_undecided(file: Path) -> None:
    answers = await judge_labelled(FailingJudge("7"), read_labelled(file))

    assert [each.judge_label for each in answers] == [E, N, None]


async def test_a_judge_that_fails_on_every_claim_says_why(file: Path) -> None:
    with pytest.raises(JudgeError, match="failed on every claim: no reply about 'library'"):
        await judge_labelled(FailingJudge("library", "7"), read_labelled(file))


async def test_claims_are_judged_by_at_least_one_at_once(file: Path) -> None:
    with pytest.raises(ConfigError, match="concurrency is 0"):
        await judge_labelled(LexicalJudge(), read_labelled(file), concurrency=0)


@pytest.mark.parametrize(
    "line",
    [
        "{}",
        '{"id": "1", "premises": ["a"], "claim": "b", "label": "X"}',
        '{"id": "1", "premises": [], "claim": "b", "label": "E"}',
        '{"id": "1", "premises": ["a"], "claim": "", "label": "E"}',
    ],
)
def test_a_line_that_is_not_labelled_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "labelled.jsonl"
    path.write_text(f"\n{line}\n")

    with pytest.raises(FileError, match="line 2 needs id, premises"):
        read_labelled(path)


@pytest.mark.parametrize(
    ("line", "message"), [("{", "line 2 is not JSON:"), ("[]", "line 2 is not a JSON object:")]
)
def test_a_line_that_is_no_object_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "labelled.jsonl"
    path.write_text(f"\n{line}\n")

    with pytest.raises(FileError, match=f"{message} write one labelled claim a line"):
        read_labelled(path)


def test_a_file_that_is_absent_or_empty_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("\n")

    with pytest.raises(FileError, match="cannot read"):
        read_labelled(tmp_path / "absent.jsonl")
    with pytest.raises(FileError, match="no labelled claims"):
        read_labelled(tmp_path / "empty.jsonl")


# --- the command line ---


def test_judge_agreement_is_printed_and_given_as_json(file: Path) -> None:
    shown = run("judge-agreement", "--judge", "lexical", str(file))
    found = json.loads(run("judge-agreement", str(file), "--json"))

    rows = [line.split() for line in shown.splitlines()]
    assert ["accuracy", "1.000"] in [row[:2] for row in rows]
    assert {(row[0], *row[-2:]) for row in rows} >= {("E", "1.000", "1.000")}
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


def test_a_judge_that_fails_leaves_the_results_of_the_others(file: Path) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.send(b"{}", status=404)

    with judge_server() as server, pytest.MonkeyPatch.context() as environment:
        server.behave = behave
        environment.setenv("OPENAI_BASE_URL", server.url)
        judges = ("--judge", "openai:stub", "--judge", "lexical")
        result = invoke("judge-agreement", str(file), *judges, "--json")

    assert [row["judge"] for row in json.loads(result.stdout)] == ["lexical"]
    assert isinstance(result.exception, JudgeError)
    assert "openai:stub on" in str(result.exception)
    assert "HTTP 404: check base_url and the model's name" in str(result.exception)
