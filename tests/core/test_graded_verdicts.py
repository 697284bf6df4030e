"""Graded verdicts from log probabilities, and context coverage from graded verdicts."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Final

import pytest
from pydantic import JsonValue

from claimspan import Claim, Label, Verdict, VerdictMatrix
from claimspan.errors import ConfigError
from claimspan.evaluation.evaluate import aevaluate
from claimspan.judges import OpenAIJudge
from claimspan.judges.llm.checking import Token, graded_verdict, graded_verdicts
from claimspan.judges.verdict_cache import VerdictCache
from claimspan.metrics.coverage import coverage, coverage_of_set

from judge_server import Exchange, JudgeServer, completion, judge_server, reply_to
from judged import RECORD, make_judge


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with judge_server() as server:
        yield server


def token(text: str, probabilities: Mapping[str, float]) -> Token:
    logs = {each: math.log(p) for each, p in probabilities.items()}
    return Token(text, logs.get(text, -9.0), logs)


RARE: Final = dict.fromkeys("MP", 1e-9)
"""The two labels between the others, where they hardly weigh anything."""


def test_a_labels_alternatives_are_renormalised_over_the_labels() -> None:
    verdict = graded_verdict(token("E", {"E": 0.6, "N": 0.2, "C": 0.1, "the": 0.1, **RARE}), "E")

    assert verdict.label is Label.ENTAILED
    assert (verdict.entailed, verdict.neutral, verdict.contradicted) == pytest.approx(
        (6 / 9, 2 / 9, 1 / 9)
    )


def test_every_spelling_of_a_label_counts_for_it() -> None:
    found = {":E": 0.3, "E": 0.1, " E": 0.1, "ent": 0.05, "Entailed": 0.05, ":N": 0.2, '12:C"': 0.2}
    verdict = graded_verdict(token(":E", {**found, **RARE}), "E")

    assert verdict.entailed == pytest.approx(0.6)
    assert verdict.neutral == pytest.approx(0.2)
    assert verdict.contradicted == pytest.approx(0.2)


def test_labels_between_the_others_weigh_for_both_sides() -> None:
    found = {"E": 0.5, "M": 0.2, "P": 0.1, "N": 0.1, "C": 0.1}
    verdict = graded_verdict(token("E", found), "E")

    assert verdict.label is Label.ENTAILED
    assert (verdict.entailed, verdict.neutral, verdict.contradicted) == pytest.approx(
        (0.5 + 0.75 * 0.2 + 0.4 * 0.1, 0.1 + 0.25 * 0.2 + 0.6 * 0.1, 0.1)
    )


@pytest.mark.parametrize(
    ("letter", "label", "weights"),
    [("M", Label.ENTAILED, (0.75, 0.25, 0.0)), ("P", Label.NEUTRAL, (0.4, 0.6, 0.0))],
)
def test_a_label_between_the_others_has_probabilities_even_alone(
    letter: str, label: Label, weights: tuple[float, float, float]
) -> None:
    verdict = graded_verdict(Token(letter, math.nan, {}), letter)

    assert verdict.label is label
    assert (verdict.entailed, verdict.neutral, verdict.contradicted) == weights


@pytest.mark.parametrize("other", ["Ed", "not", "Even", "Can", "e12x", "1", "", "Con", "x"])
def test_other_words_count_for_no_label(other: str) -> None:
    verdict = graded_verdict(token("E", {"E": 0.5, "N": 0.2, "C": 0.1, other: 0.2, **RARE}), "E")

    if other == "Con":  # of "contradicted"
        assert verdict.contradicted == pytest.approx(0.3)
    else:
        assert verdict.entailed == pytest.approx(5 / 8)


def test_a_label_that_is_not_ahead_is_left_without_probabilities() -> None:
    assert graded_verdict(token("E", {"N": 0.6, "E": 0.3, "C": 0.1}), "E") == Verdict(
        label=Label.ENTAILED
    )


def test_a_label_that_is_not_listed_may_not_weigh_much() -> None:
    likely = {"E": 0.98, "N": 0.015, "e.": 0.001}  # C is below a thousandth
    unlikely = {"To": 0.5, "The": 0.3, "E": 0.1, "N": 0.05}  # C may be as likely as N

    assert graded_verdict(token("E", likely), "E").contradicted == 0.0
    assert graded_verdict(token("E", unlikely), "E").entailed is None


def test_a_label_without_listed_alternatives_is_as_sure_as_its_own_token() -> None:
    assert graded_verdict(Token("E", math.log(0.99), {}), "E").entailed == 1.0
    assert graded_verdict(Token("E", math.log(0.6), {}), "E") == Verdict(label=Label.ENTAILED)


@pytest.mark.parametrize("logprob", [math.nan, -math.inf])
def test_a_log_probability_that_says_nothing_leaves_the_label_alone(logprob: float) -> None:
    for listed in ({}, {"E": logprob}, {"E": logprob, "N": -1.0, "C": -1.0}):
        assert graded_verdict(Token("E", logprob, listed), "E") == Verdict(label=Label.ENTAILED)


def test_a_log_probability_above_zero_is_certainty() -> None:
    verdict = graded_verdict(Token("E", 800.0, {"E": 800.0, "N": -9.0, "C": -9.0}), "E")

    assert verdict.entailed == pytest.approx(1.0, abs=0.001)


def test_an_unlikely_label_is_graded_where_its_rivals_are_listed() -> None:
    """A grammar changes the token that is chosen, not the probabilities that are reported."""
    found = {"To": 0.9, "C": 0.003, "E": 0.002, "N": 0.001, **RARE}
    verdict = graded_verdict(token("C", found), "C")

    assert verdict.contradicted == pytest.approx(1 / 2)


def test_every_label_finds_its_own_token() -> None:
    content = '{"labels":["12:E","57:N"]}'
    first = {":E": 0.7, ":N": 0.2, ":C": 0.1, **RARE}
    second = {"N": 0.5, "E": 0.3, "C": 0.2, **RARE}
    tokens = [
        token(text, found)
        for text, found in (
            ('{"labels":["', {}),
            ("12", {}),
            (":E", first),
            ('","57:', {}),
            ("N", second),
            ('"]}', {}),
        )
    ]

    verdicts = graded_verdicts(content, tokens)

    assert verdicts is not None
    assert [v.label for v in verdicts] == [Label.ENTAILED, Label.NEUTRAL]
    assert [v.entailed for v in verdicts] == pytest.approx([0.7, 0.3])
    assert graded_verdicts(f" {content}\n", tokens) == verdicts  # trimmed by some servers


def test_tokens_of_another_text_say_nothing() -> None:
    tokens = [token('{"labels":["12:', {}), token("E", {"E": 1.0}), token('"]}', {})]

    assert graded_verdicts('{"labels":["12:N"]}', tokens) is None
    assert graded_verdicts('{"labels":["12:N"]}', []) is None


def with_logprobs(content: str) -> JsonValue:
    """One token per character; a label has 70 %, the other two 20 % and 10 %."""
    tokens: list[JsonValue] = []
    for i, character in enumerate(content):
        found = {character: 0.999}
        if character in "ENC" and content[i - 1] == ":":
            others = [each for each in "ENC" if each != character]
            found = {character: 0.7, others[0]: 0.2, others[1]: 0.1, **RARE}
        top: list[JsonValue] = [{"token": t, "logprob": math.log(p)} for t, p in found.items()]
        own: JsonValue = {
            "token": character,
            "logprob": math.log(found[character]),
            "top_logprobs": top,
        }
        tokens.append(own)
    return {"content": tokens}


async def test_an_endpoint_with_logprobs_grades_every_verdict(server: JudgeServer) -> None:
    async def behave(exchange: Exchange) -> None:
        content = reply_to(exchange.asked)
        await exchange.send_json(completion(content, logprobs=with_logprobs(content)))

    server.behave = behave
    evaluation = await aevaluate(RECORD, judge=make_judge(server.url))

    assert evaluation.score_mode == "graded"
    assert evaluation.response_vs_chunks is not None
    entailed = evaluation.response_vs_chunks[0][0]
    assert entailed is not None
    assert entailed.label is Label.ENTAILED
    assert entailed.entailed == pytest.approx(0.7)
    assert evaluation.context_coverage is not None
    assert evaluation.context_coverage.score_mode == "graded"


async def test_an_endpoint_without_logprobs_gives_labels_and_says_so(server: JudgeServer) -> None:
    evaluation = await aevaluate(RECORD, judge=make_judge(server.url))

    assert evaluation.score_mode == "label"
    assert evaluation.response_vs_chunks is not None
    assert {v.entailed for v in evaluation.response_vs_chunks.verdicts() if v} == {None}


async def test_logprobs_are_asked_for_only_where_they_are_wanted(server: JudgeServer) -> None:
    claims = [Claim(text="The river is long.")]
    await make_judge(server.url).check(claims, ["The river is long."])
    await make_judge(server.url, logprobs=False).check(claims, ["The river is long."])

    assert [e.request.get("logprobs") for e in server.exchanges] == [True, None]
    assert server.exchanges[0].request["temperature"] == 0
    assert server.exchanges[0].request["stream"] is False


@pytest.mark.parametrize("logprob", [math.nan, math.inf, -math.inf, 800.0])
async def test_no_log_probability_of_an_endpoint_breaks_a_check(
    server: JudgeServer, logprob: float
) -> None:
    async def behave(exchange: Exchange) -> None:
        content = reply_to(exchange.asked)
        tokens: list[JsonValue] = [
            {"token": each, "logprob": logprob, "top_logprobs": []} for each in content
        ]
        await exchange.send_json(completion(content, logprobs={"content": tokens}))

    server.behave = behave
    matrix = await make_judge(server.url).check(
        [Claim(text="The river is long.")], ["The river is long."]
    )

    assert matrix.labels == [[Label.ENTAILED]]


async def test_verdicts_of_other_alternatives_are_not_taken_from_the_cache(
    server: JudgeServer,
) -> None:
    cache = VerdictCache()
    claims = [Claim(text="The river is long.")]
    for top_logprobs in (10, 20):
        judge = OpenAIJudge("stub", base_url=server.url, cache=cache, top_logprobs=top_logprobs)
        await judge.check(claims, ["The river is long."])

    assert [e.request["top_logprobs"] for e in server.exchanges] == [10, 20]


# --- context coverage ---


def matrix_of(rows: list[list[float | None]]) -> VerdictMatrix:
    return VerdictMatrix.of(
        [[None if p is None else probable(p) for p in row] for row in rows],
        n_references=len(rows[0]) if rows else 0,
    )


def probable(p: float) -> Verdict:
    label = Label.ENTAILED if p >= 0.5 else Label.NEUTRAL
    return Verdict(label=label, entailed=p, neutral=1 - p, contradicted=0.0)


def test_eleven_of_fourteen_facts_are_a_coverage_of_0_7857() -> None:
    """The worked example of the retrieval-accuracy method."""
    found = [0, 1, 0, 2, 1, 0, 2, 3, 0, 1, 3]  # the context that holds each of eleven facts
    labels = [[j == held for j in range(7)] for held in found] + [[False] * 7] * 3
    rows = [
        [Verdict(label=(Label.NEUTRAL, Label.ENTAILED)[is_held]) for is_held in row]
        for row in labels
    ]
    matrix = VerdictMatrix.of(rows)

    together = coverage(matrix)

    assert together.combined_or == pytest.approx(0.7857, abs=5e-5)
    assert together.combined_max == pytest.approx(11 / 14)
    assert together.per_chunk == pytest.approx((4 / 14, 3 / 14, 2 / 14, 2 / 14, 0, 0, 0))
    assert together.score_mode == "label"


def test_probabilities_combine_fact_by_fact() -> None:
    matrix = matrix_of([[0.5, 0.5, 0.0], [0.8, 0.1, 0.0]])

    assert coverage_of_set(matrix, [0]) == pytest.approx(0.65)
    assert coverage_of_set(matrix, [0, 1]) == pytest.approx((0.75 + 0.82) / 2)
    assert coverage_of_set(matrix, [0, 1], combine="max") == pytest.approx((0.5 + 0.8) / 2)
    assert coverage(matrix).score_mode == "graded"


def test_what_is_undecided_has_no_coverage_where_it_matters() -> None:
    matrix = matrix_of([[1.0, None], [1.0, 0.0]])

    assert coverage(matrix).per_chunk == (1.0, None)
    assert coverage(matrix).combined_or is None
    assert coverage_of_set(matrix, [0]) == 1.0


def test_without_facts_or_chunks_there_is_no_coverage() -> None:
    assert coverage(matrix_of([])).combined_or is None
    assert coverage_of_set(matrix_of([[1.0]]), []) is None


def test_an_unknown_combination_is_refused() -> None:
    with pytest.raises(ConfigError, match="give 'or' or 'max'"):
        coverage_of_set(matrix_of([[1.0]]), [0], combine=json.loads('"mean"'))
