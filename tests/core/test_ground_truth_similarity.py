"""A live query finds the ground truth of a query that asks the same, and of no other one."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimspan import GroundTruth
from claimspan.errors import ConfigError, GroundTruthError
from claimspan.files.ground_truth import GroundTruthMatch

DATA: Final = Path(__file__).parents[3] / "shared" / "data"
KNOWN: Final = "What was the capital expenditure of 3M in 2022?"
OTHER: Final = "Which employee of the committee signed the agreement with Adobe?"
TRUTHS: Final = {KNOWN: "1,749 million.", OTHER: "Nobody did."}

pytest.importorskip("rapidfuzz")


def find(truths: GroundTruth, query: str) -> GroundTruthMatch | None:
    return asyncio.run(truths.find(query))


@pytest.mark.parametrize(
    ("known", "query"),
    [
        (KNOWN, "Please, what was the capital expenditure of 3M in 2022?"),
        (KNOWN, "What was capital expenditures of 3M in 2022"),
        (OTHER, "Which employees of the committee signed the agreement with Adobe?"),
        ("Who won the cup of nations in 2022?", "In 2022, who won the cup of nations?"),
        ("What is the FY2022 revenue?", "what's the FY 2022 revenue, please"),
    ],
)
def test_a_query_matches_whatever_it_says_beside_its_words_of_content(
    known: str, query: str
) -> None:
    match = find(GroundTruth({**TRUTHS, known: "right"}, similarity=0.7), query)

    assert match is not None
    assert (match.text, match.matched_by) == ("right", "similarity")
    assert match.score is not None
    assert 0.7 <= match.score <= 1.0


@pytest.mark.parametrize(
    "query",
    [
        "What was the capital expenditure of 3M in 2023?",
        "What was the capital expenditure of 3N in 2022?",
        "What was the capital expenditure of 4M in 2022?",
        "What is the capital expenditure of 3M in 2022?",
        "What was not the capital expenditure of 3M in 2022?",
        "What was the capital expenditure of AES in 2022?",
        "What was 2022 the capital expenditure of M in 3?",
        "What wasn't the capital expenditure of 3M in 2022?",
        "What was the capital expenditure of 3M before 2022?",
        "Which employer of the committee signed the agreement with Adobe?",
        "Which employee of the committee signed the agreement without Adobe?",
        "Which employee of the committee signed no agreement with Adobe?",
    ],
)
def test_a_query_that_asks_something_else_matches_nothing_however_alike(query: str) -> None:
    assert find(GroundTruth(TRUTHS, similarity=0.5), query) is None


@pytest.mark.parametrize(
    ("known", "query"),
    [
        ("flights from Paris to London", "flights from London to Paris"),
        ("Did Adobe acquire Figma?", "Did Figma acquire Adobe?"),
        ("What is a casual relation?", "What is a causal relation?"),
        ("What is the boiling point at -5 bar?", "What is the boiling point at 5 bar?"),
        ("Is vitamin A a hormone?", "Is vitamin D a hormone?"),
        ("What is C++ good for?", "What is C# good for?"),
        ("Koliko prebivalcev ima Maribor?", "Koliko prebivalcev nima Maribor?"),
        ("公司2022年的收入是多少", "公司2023年的收入是多少"),
        ("What is 1/2 of the sum?", "What is 1.2 of the sum?"),
        ("What is 1,000 times the dose?", "What is 1.000 times the dose?"),
        ("Who taught Josef Hofmann?", "Who taught Josef Hoffmann?"),
        ("Was wurde aus Philips verkauft?", "was wurde aus phillips verkauft?"),
        ("Which films did Stevens direct?", "Which films did Steven direct?"),
        ("Who signed the complaint form?", "Who signed the compliant form?"),
        ("What are the customs of Japan?", "What are the custom of Japan?"),
        ("Gibt es einen Anspruch?", "Gibt es keinen Anspruch?"),
        ("Ali je zdravilo varno?", "Ali ni zdravilo varno?"),
        ("Kdo je oče otroka?", "Kdo je oče otrok?"),
    ],
)
def test_one_word_or_sign_that_matters_keeps_two_queries_apart(known: str, query: str) -> None:
    assert find(GroundTruth({known: "right"}, similarity=0.5), query) is None


def test_similarity_is_off_by_default_and_equal_queries_come_first() -> None:
    query = f"Please, {KNOWN}"

    assert find(GroundTruth(TRUTHS), query) is None
    exact = find(GroundTruth(TRUTHS, similarity=0.5), KNOWN)
    assert exact == GroundTruthMatch(text=TRUTHS[KNOWN], matched_by="query")


def test_a_query_below_the_threshold_matches_nothing() -> None:
    query = "Please could you tell me: do you know what was capital expenditure of 3M in 2022"

    assert find(GroundTruth(TRUTHS, similarity=0.95), query) is None


@given(st.integers(1900, 2099), st.integers(1900, 2099))
def test_no_two_different_years_match(one: int, other: int) -> None:
    truths = GroundTruth({f"What was the net income of FY{one}?": "right"}, similarity=0.5)

    match = find(truths, f"Please, what was the net income of FY{other}?")

    assert (match is not None) == (one == other)


@given(st.permutations(["alpha", "beta", "gamma", "delta"]))
def test_words_in_another_order_do_not_match(words: list[str]) -> None:
    known = "Does alpha beat beta or gamma beat delta?"
    query = "Please: does {} beat {} or {} beat {}?".format(*words)

    match = find(GroundTruth({known: "right"}, similarity=0.5), query)

    assert (match is not None) == (words == ["alpha", "beta", "gamma", "delta"])


# --- questions of people ---


def questions() -> list[str]:
    """Questions of FinanceBench, and of the web searches of RefChecker, in the shared data."""
    files = [DATA / "financebench" / "financebench_open_source.jsonl"]
    files += sorted((DATA / "entailment" / "dev").glob("*.jsonl"))
    if not files[0].is_file():
        pytest.skip("the shared data are not here")
    rows = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    return list(dict.fromkeys(row["question"] for row in rows if row.get("question")))


def test_no_question_of_people_matches_another_one() -> None:
    asked = questions()
    wrong: list[tuple[str, str]] = []
    for question in asked:
        others = GroundTruth({other: other for other in asked if other != question}, similarity=0.8)
        match = find(others, question)
        if match is not None and match.matched_by == "similarity":
            wrong.append((question, match.text))

    assert len(asked) > 100
    assert wrong == []


def test_no_question_matches_itself_about_another_year() -> None:
    asked = [question for question in questions() if re.search(r"20\d\d", question)]
    truths = GroundTruth({question: "right" for question in asked}, similarity=0.8)

    def later(question: str) -> str:
        return re.sub(r"20\d\d", lambda year: str(int(year[0]) + 37), question)

    assert len(asked) > 40
    assert [question for question in asked if find(truths, later(question))] == []


def test_questions_of_people_match_themselves_where_they_are_put_politely() -> None:
    asked = questions()
    truths = GroundTruth({question: question for question in asked}, similarity=0.8)

    polite = [find(truths, f"Please, {question[0].lower()}{question[1:]}") for question in asked]

    found = [
        match is not None and match.text == question
        for match, question in zip(polite, asked, strict=True)
    ]
    assert sum(found) / len(asked) > 0.95


def test_a_question_is_found_among_ten_thousand() -> None:
    known = {
        f"What was the capital expenditure of company {n} in 2022?": "x" for n in range(10_000)
    }
    truths = GroundTruth(known, similarity=0.9)
    query = "Please, what was the capital expenditure of company 5000 in 2022?"

    assert find(truths, query) is not None


# --- embeddings ---


def embed(texts: Sequence[str]) -> list[list[float]]:
    """One axis a topic: queries about money are alike, and all others are."""
    return [[1.0, 0.0] if "spend" in text or "capital" in text else [0.0, 1.0] for text in texts]


def test_embeddings_find_a_query_in_quite_other_words() -> None:
    truths = GroundTruth(TRUTHS, similarity=0.9, embed=embed)

    match = find(truths, "How much did 3M spend on plants in 2022?")

    assert truths.is_blocking
    assert match == GroundTruthMatch(text=TRUTHS[KNOWN], matched_by="similarity", score=1.0)


@pytest.mark.parametrize(
    "query",
    [
        "How much did 3M spend on plants in 2021?",
        "How much did 3M not spend on plants in 2022?",
        "How much did Adobe spend in 2022 beside 3M?",
    ],
)
def test_embeddings_do_not_outvote_numbers_negations_and_names(query: str) -> None:
    assert find(GroundTruth(TRUTHS, similarity=0.9, embed=embed), query) is None


@pytest.mark.parametrize(
    ("known", "query"),
    [
        ("Did profits rise from 3 to 5?", "Did profits rise from 5 to 3?"),
        ("How much is 2.5 of it?", "How much is 2/5 of it?"),
        ("Can I take two pills?", "Can I take ten pills?"),
        ("Kaj stane pet jabolk?", "Kaj stane šest jabolk?"),
        ("Who won, Trump or Biden?", "Who won, Biden or Trump?"),
        ("did Adobe acquire Figma?", "did figma acquire adobe?"),
        ("What is the price in €?", "What is the price in $?"),
        ("Is it legal to smoke?", "Is it illegal to smoke?"),
        ("What can't be refunded?", "What can be refunded?"),
        ("What does paragraph 5a say?", "What does paragraph 5b say?"),
        ("Who is John Roberts?", "who is john robert"),
        ("Ist der Vertrag gültig?", "Ist der Vertrag ungültig?"),
        ("Gibt es einen Anspruch?", "Gibt es keinen Anspruch?"),
        ("Darf man hier parken?", "Darf man hier nie parken?"),
        ("Kaj pomeni vstop z masko?", "Kaj pomeni vstop brez maske?"),
        ("Ali je zdravilo varno?", "Ali ni zdravilo varno?"),
    ],
)
def test_embeddings_that_see_no_difference_do_not_make_two_queries_one(
    known: str, query: str
) -> None:
    truths = GroundTruth({known: "right"}, similarity=0.9, embed=lambda texts: [[1.0]] * len(texts))

    assert find(truths, query) is None


@pytest.mark.parametrize(
    "vectors", [[], [[1.0]], ["text", "text"], [[1.0], [1.0, 2.0]], [1.0, 2.0]]
)
def test_what_is_no_embedding_is_an_error_at_set_up(vectors: object) -> None:
    with pytest.raises(GroundTruthError, match="embed returned"):
        GroundTruth(TRUTHS, similarity=0.9, embed=lambda texts: vectors)  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType] - the promise is about such callables


@pytest.mark.parametrize("similarity", [0, -1, 1.5, True, "0.9"])
def test_a_threshold_that_is_none_is_refused(similarity: float) -> None:
    with pytest.raises(ConfigError, match="above 0 up to 1"):
        GroundTruth(TRUTHS, similarity=similarity)


def test_options_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(ConfigError, match="cannot go with a callable"):
        GroundTruth(lambda query, metadata: None, similarity=0.9)
    with pytest.raises(ConfigError, match="without similarity"):
        GroundTruth(TRUTHS, embed=embed)


def test_an_alike_query_is_found_among_many_of_one_template() -> None:
    known = [f"What was the revenue of branch {n} in 2022?" for n in range(300)]
    truths = GroundTruth({query: query for query in known}, similarity=0.8)

    for before, query in pairwise(known):
        match = find(truths, f"Please, {query}")
        assert match is not None
        assert match.text == query != before
