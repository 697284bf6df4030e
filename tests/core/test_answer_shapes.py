"""Answers that are no sentences: JSON, labels and values, true and false, code, unspaced text."""

from __future__ import annotations

import asyncio
import json
from typing import Final

import pytest

from claimspan import Chunk, RagRecord, evaluate
from claimspan.judges import Judge, LexicalJudge, LocalJudge
from claimspan.text.structured import answer_text

FERRY: Final = (
    "The ferry to Cres takes 25 minutes and costs 8 euros per car. It leaves from Brestova. "
    "The ferry was built by Ivo Marin in 2004."
)
JUDGES: Final = (LexicalJudge(sure_from=0.5), LocalJudge(sure_from=0.5))
both_judges = pytest.mark.parametrize("judge", JUDGES, ids=lambda judge: judge.name)


def faithfulness(judge: Judge, question: str, answer: str, chunk: str = FERRY) -> float | None:
    record = RagRecord(query=question, chunks=(Chunk(id="c", text=chunk),), response=answer)
    return evaluate(record, judge=judge).metrics.get("faithfulness")


def claims(answer: str, question: str) -> list[str]:
    found = asyncio.run(LexicalJudge().extract_claims(answer, question=question))
    return [claim.text for claim in found]


# --- structures ---


@pytest.mark.parametrize(
    ("response", "said"),
    [
        ({"answer": "25 minutes", "sources": ["a.md"]}, "25 minutes"),
        ({"final_answer": 25, "confidence": 0.9}, "25"),
        ({"answer": True}, "Yes"),
        ({"answer": None, "sources": []}, ""),
        ({"duration": "25 minutes", "departurePort": "Brestova"},
         "Duration: 25 minutes\nDeparture port: Brestova"),
        ({"duration_minutes": 25, "score": 0.8}, "Duration: 25 minutes"),
        ({"note": "It leaves from the port of Brestova."}, "It leaves from the port of Brestova."),
        (["Cres", "Krk"], "Cres\nKrk"),
        ([{"port": "Brestova", "cars": 30}, {"port": "Porozina", "cars": 40}],
         "Port: Brestova; Cars: 30\nPort: Porozina; Cars: 40"),
    ],
)  # fmt: skip
def test_a_structure_says_its_answer_or_its_fields_by_name(response: object, said: str) -> None:
    written = json.dumps(response)

    assert answer_text(written) == said
    assert answer_text(f"```json\n{written}\n```") == said
    assert answer_text(f"So:\n```json\n{written}\n```\nThat is it.") == f"So:\n{said}\nThat is it."


@pytest.mark.parametrize(
    "text",
    ["It takes 25 minutes.", "{so it is}", "[1] says so.", "```sh\nls\n```", '{"cut": "'],
)
def test_a_response_that_is_no_json_stays_as_it_is(text: str) -> None:
    assert answer_text(text) == text


@both_judges
def test_a_structured_response_is_judged_by_what_it_says(judge: Judge) -> None:
    asked = "How long does the ferry take and where does it leave?"
    right = '{"duration": "25 minutes", "place": "Brestova"}'

    assert faithfulness(judge, asked, right) == 1.0
    assert faithfulness(judge, asked, right.replace("25", "45")) == 0.5
    assert faithfulness(judge, "How long does the ferry take?", '{"answer": "25 minutes"}') == 1.0


def test_a_structured_response_supports_a_ground_truth_by_what_it_says() -> None:
    found = evaluate(
        RagRecord(
            query="Where does the ferry leave?",
            chunks=(Chunk(id="c", text=FERRY),),
            response='{"answer": "From Brestova", "sources": ["Porozina"]}',
            ground_truth="The ferry leaves from Brestova.",
        ),
        judge=LexicalJudge(),
    )

    assert found.metrics["recall"] == found.metrics["precision"] == 1.0


# --- labels ---


@both_judges
@pytest.mark.parametrize(
    ("question", "answer", "value"),
    [
        ("How long does the ferry take?", "**Duration:** {}", "25 minutes"),
        ("How long does the ferry take?", "Final answer: {}", "25 minutes"),
        ("What does a car cost on the ferry?", "Price = {}", "8 euros"),
        ("Who built the ferry?", "Builder - {}", "Ivo Marin"),
        ("When was the ferry built?", "Year: {}", "2004"),
        ("Where does the ferry leave from?", "**Place**: {}", "Brestova"),
    ],
)
def test_a_label_of_what_is_asked_is_no_part_of_the_answer(
    judge: Judge, question: str, answer: str, value: str
) -> None:
    assert faithfulness(judge, question, answer.format(value)) == 1.0
    assert faithfulness(judge, question, answer.format("Zadar 77")) == 0.0


def test_a_label_that_names_a_thing_stays_in_the_claim() -> None:
    asked = "How many cars fit on the ferries?"

    assert claims("Brestova: 30\nPorozina: 40", asked) == ["Brestova: 30", "Porozina: 40"]


def test_labels_beside_one_another_go_with_the_question() -> None:
    asked = "What about the ferry to Cres?"
    found = claims("- **Duration:** 25 minutes\n- Vessel: Marina", asked)

    assert found == [
        "What about the ferry to Cres: 25 minutes.",
        "What about the ferry to Cres: Vessel: Marina.",
    ]


def test_each_line_with_a_label_of_its_own_is_a_line() -> None:
    assert claims("duration: 25 minutes\nvessel: Marina", "") == [
        "duration: 25 minutes",
        "vessel: Marina",
    ]


# --- true and false ---

TRUE: Final = "The ferry takes 25 minutes."
FALSE: Final = "The ferry takes 45 minutes."


@both_judges
@pytest.mark.parametrize(
    "asked",
    [
        "True or false: {}",
        "{} True or false?",
        "True/False - {}",
        "Is the following statement true? {}",
        "Is it correct that {}",
    ],
)
def test_true_affirms_a_statement_and_false_is_supported_by_what_contradicts_it(
    judge: Judge, asked: str
) -> None:
    for statement, right, wrong in ((TRUE, "True", "False"), (FALSE, "**False.**", "**True.**")):
        question = asked.format(statement)
        assert faithfulness(judge, question, right, TRUE) == 1.0
        assert faithfulness(judge, question, wrong, TRUE) == 0.0
        assert faithfulness(judge, question, f"{right.strip('*.')}. {TRUE}", TRUE) == 1.0


@pytest.mark.parametrize(
    ("question", "chunk", "true", "false"),
    [
        ("Wahr oder falsch: Die Fähre fährt nach Cres.", "Die Fähre fährt nach Cres.",
         "Wahr", "Falsch"),
        ("Stimmt es, dass die Fähre nach Cres fährt?", "Die Fähre fährt nach Cres.",
         "Richtig.", "Nein."),
        ("Vrai ou faux : le bac va à Cres.", "Le bac va à Cres.", "Vrai", "Faux"),
        ("¿Verdadero o falso? El barco va a Cres.", "El barco va a Cres.", "Verdadero", "Falso"),
        ("Drži ali ne drži: trajekt vozi na Cres.", "Trajekt vozi na Cres.", "Drži", "Ne drži"),
    ],
)  # fmt: skip
def test_true_and_false_are_read_in_other_languages(
    question: str, chunk: str, true: str, false: str
) -> None:
    judge = LexicalJudge()

    assert faithfulness(judge, question, true, chunk) == 1.0
    assert faithfulness(judge, question, f"{true.strip('.')}. {chunk}", chunk) == 1.0
    assert faithfulness(judge, question, false, chunk) == 0.0


def test_false_is_not_supported_by_a_text_about_something_else() -> None:
    other = "The bakery opens at six."

    assert faithfulness(LexicalJudge(), f"True or false: {TRUE}", "False", other) == 0.0


# --- code ---

PROGRAM: Final = "for car in ferry:\n    car.board()\n    log(car)"


@both_judges
def test_code_is_judged_where_it_is_the_whole_answer(judge: Judge) -> None:
    chunk = f"Board them so:\n```python\n{PROGRAM}\n```"
    other = "import os\nos.remove('ferry.db')\nprint(os.getcwd())"
    asked = "How do cars board?"

    assert (
        faithfulness(judge, asked, f"```python\n{PROGRAM.replace('    ', '  ')}\n```", chunk) == 1.0
    )
    assert faithfulness(judge, asked, f"Run this:\n```python\n{other}\n```", chunk) == 0.0


def test_code_beside_prose_makes_no_claim_of_its_own_and_inline_code_stays() -> None:
    answer = f"Call `car.board()` for each car.\n```python\n{PROGRAM}\n```"

    assert claims(answer, "How do cars board?") == ["Call car.board() for each car."]


# --- text without blanks ---


def test_sentences_without_blanks_between_them_are_claims_of_their_own() -> None:
    chunk = "渡轮开往茨雷斯岛。航程为二十五分钟。渡轮由马林建造。它每天开六次。"
    wrong = chunk.replace("马林建造", "科斯蒂奇设计")

    assert claims(chunk, "介绍一下渡轮") == [f"{each}。" for each in chunk.split("。") if each]
    assert faithfulness(LexicalJudge(), "介绍一下渡轮", chunk, chunk) == 1.0
    assert faithfulness(JUDGES[0], "介绍一下渡轮", wrong, chunk) == 0.75


def test_a_short_answer_without_blanks_goes_with_its_question() -> None:
    assert claims("茨雷斯岛", "渡轮开往哪里？") == ["渡轮开往哪里: 茨雷斯岛."]


@pytest.mark.parametrize(
    ("given", "claimed"),
    [
        ("首都は東京です。人口も多いです。", "首都は大阪です。"),
        ("这条河最后流入多瑙河。", "这条河最后流入地中海。"),
        ("她出生在法国南部的小镇。", "她出生在德国南部的小镇。"),
    ],
)
def test_another_word_in_the_same_place_of_unspaced_text_is_not_supported(
    given: str, claimed: str
) -> None:
    assert faithfulness(LexicalJudge(sure_from=0.5), "说了什么？", claimed, given) == 0.0
    assert faithfulness(LexicalJudge(), "说了什么？", claimed, given) in (0.0, None)
