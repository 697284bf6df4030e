"""How an evaluation is displayed: in one line, and in a notebook."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Final

import pytest

from claimspan import (
    Chunk,
    Claim,
    Evaluation,
    Evaluations,
    Label,
    RagRecord,
    Verdict,
    VerdictMatrix,
)
from claimspan.evaluation.display import evidence_of, told_claims
from claimspan.verdicts import VerdictMatrices

from linear_time import grows_linearly

EVIL: Final = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&\u202e"

"""For 50 claims in chunks of 64 kB, which take 0.5 s; time that grew with the square would be
minutes."""


def matrix(*rows: str) -> VerdictMatrix:
    """Verdicts by their first letters; ``-`` is undecided."""
    labels = {"e": Label.ENTAILED, "n": Label.NEUTRAL, "c": Label.CONTRADICTED}
    cells = [[Verdict(label=labels[c]) if c in labels else None for c in row] for row in rows]
    return VerdictMatrix.of(cells, len(rows[0]))


def judged(*rows: str, truth: str = "", **fields: object) -> Evaluation:
    """An evaluation with a claim for each row of verdicts by the chunks."""
    claims = [{"text": f"Claim {n} of {EVIL}"} for n, _ in enumerate(rows, start=1)]
    matrices = VerdictMatrices(
        response_vs_chunks=matrix(*rows),
        response_vs_ground_truth=matrix(*truth) if truth else None,
    )
    known = {"metrics": {"faithfulness": 0.5}, "response_claims": claims, "matrices": matrices}
    return Evaluation.model_validate(known | fields)


class Html(HTMLParser):
    """The elements and the texts of a piece of HTML, as a browser would find them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def html_of(value: Evaluation | Evaluations) -> str:
    return value._repr_html_()  # pyright: ignore[reportPrivateUsage] - Jupyter's name for it


# --- one line ---


@pytest.mark.parametrize(
    ("evaluation", "line"),
    [
        (judged("en", "nn"), "<Evaluation low: faithfulness 0.50>"),
        (Evaluation(metrics={"recall": 1.0, "f1": 0.9}), "<Evaluation good: recall 1.00, f1 0.90>"),
        (Evaluation(), "<Evaluation unknown: no scores>"),
        (Evaluation(error="the judge\nis away"), "<Evaluation failed: the judge is away>"),
    ],
)
def test_an_evaluation_is_told_in_one_line(evaluation: Evaluation, line: str) -> None:
    assert repr(evaluation) == str(evaluation) == line


# --- claims in words ---


@pytest.mark.parametrize(
    ("row", "truth", "verdict"),
    [
        ("ne", "", "in chunk 2"),
        ("ee", "", "in chunks 1, 2"),
        ("nn", "", "in no chunk"),
        ("cn", "", "contradicted by chunk 1"),
        ("ec", "", "in chunk 1, contradicted by chunk 2"),
        ("--", "", "undecided"),
        ("eeeeee", "", "in chunks 1, 2, 3 and 3 more"),
        ("en", "c", "in chunk 1, contradicted by the ground truth"),
    ],
)
def test_a_claim_is_told_with_the_chunks_that_decide_it(row: str, truth: str, verdict: str) -> None:
    (told,) = told_claims(judged(row, truth=truth))

    assert told.verdict == verdict


def test_a_claim_that_was_judged_by_the_ground_truth_alone_is_told_by_it() -> None:
    against = VerdictMatrices(response_vs_ground_truth=matrix("n"))
    (told,) = told_claims(Evaluation(response_claims=(Claim(text="c"),), matrices=against))

    assert told.verdict == "not in the ground truth"


def test_the_evidence_is_the_closest_sentence_of_the_first_chunk_that_decides() -> None:
    claims = (Claim(text="The Drava is 725 km long"), Claim(text="It is deep"))
    found = judged("ne", "nn").model_copy(update={"response_claims": claims})
    texts = ["About nothing.", "Rivers are wet. The Drava is  725 km long. It flows."]

    assert evidence_of(told_claims(found), texts, 100) == ["The Drava is 725 km long.", ""]
    assert evidence_of(told_claims(found), texts, 9)[0] == "The Drav\N{HORIZONTAL ELLIPSIS}"


def test_the_evidence_of_many_claims_in_long_chunks_takes_no_time_to_speak_of() -> None:
    found = judged(*["e"] * 50)

    def evidence(text: str) -> None:
        assert len(evidence_of(told_claims(found), [text], 100)) == 50

    assert grows_linearly(evidence, "claim and nothing, ", 64_000)


# --- in a notebook ---


def test_a_notebook_shows_label_reason_part_scores_and_claims_of_an_evaluation() -> None:
    shown = Html(html_of(judged("en", "nn", truth="ec")))

    assert shown.text.startswith("low faithfulness 0.50: 1 of 2 claims is in no chunk")
    assert "generator: 1 claim stands in no chunk" in shown.text
    assert "faithfulness 0.50" in shown.text
    assert "(in chunk 1)" in shown.text
    assert "(in no chunk, contradicted by the ground truth)" in shown.text


def test_a_notebook_shows_no_text_of_a_record_as_markup_and_runs_nothing() -> None:
    record = RagRecord(query=EVIL, response=EVIL, chunks=(Chunk(id=EVIL, text=EVIL),))
    evaluation = judged("e", metrics={"faithfulness": 0.5, "own": 0.0}, explanations={"own": EVIL})
    failed = Evaluation(error=EVIL)

    for value in (evaluation, failed, Evaluations([record, record], [evaluation, failed])):
        shown = Html(html_of(value))
        assert {*shown.tags} <= {*"div b br i small span table thead tbody tr th td code".split()}
        assert shown.attributes <= {"style", "title", "dir"}
        assert "<script>" in shown.text
        assert "\u202e" not in html_of(value)


def test_a_table_of_evaluations_has_twenty_rows_and_says_how_many_more_there_are() -> None:
    record = RagRecord(query="Why?", response="Because.\n\nSo.", chunks=())
    many = Evaluations([record] * 23, [judged("n", metrics={"faithfulness": 0.0})] * 23)

    shown = Html(html_of(many))
    assert shown.tags.count("tr") == 21
    assert "and 3 more: to_pandas() has all of them" in shown.text
    assert "Why?Because. So.faithfulness 0.00: 1 of 1 claim is in no chunk" in shown.text
    assert "more" not in Html(html_of(many[:20])).text


def test_a_table_has_the_default_scores_and_the_users_own_alone() -> None:
    scores = {"faithfulness": 1.0, "hallucination": 0.0, "polite": 1.0}
    many = Evaluations(
        [RagRecord(query="q", response="r", chunks=())], [Evaluation(metrics=scores)]
    )

    text = Html(html_of(many)).text
    assert text.startswith("labelquestion, answer, reasonfaithfulnesspolite0")
