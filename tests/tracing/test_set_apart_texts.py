"""A text that a prompt sets apart is evidence; code, examples and what the user says are not."""

import pytest

from claimspan_tracing.read.handwritten import written_evidence

from buildings import FACTS, TOWER

TEXT = f"{FACTS[0]}\n{FACTS[1]}"


def found(prompt: str, query: str = TOWER) -> list[str]:
    return written_evidence([prompt.format(TEXT, query)], query, is_all=True, system=[])


@pytest.mark.parametrize(
    "prompt",
    [
        "Answer the question by this text.\n```\n{0}\n```\n{1}",
        "Answer by the text that is delimited by triple backticks: ```{0}```\nQuestion: {1}",
        "```text\n{0}\n```\nQ: {1}",
        'Text: """{0}"""\n\nQuestion: {1}',
        "Read the text below.\n\nText: {0}\n\nQuestion: {1}\nAnswer:",
        "**Transcript:**\n{0}\n\n{1}",
        "### Text\n{0}\n\n### Question\n{1}",
        "Read what follows below.\n###\n{0}\n###\n{1}",
        "<transcript>{0}</transcript>\n\n{1}",
        "{1}\n\nText: {0}",
    ],
)
def test_a_text_that_is_set_apart_is_evidence(prompt: str) -> None:
    assert found(prompt) == [TEXT]


def test_a_quotation_is_evidence_without_its_signs() -> None:
    quotation = "\n".join(f"> {fact}" for fact in FACTS[:2])
    prompt = f"The page of the museum says, in this paragraph:\n\n{quotation}\n\n{TOWER}"
    assert written_evidence([prompt], TOWER, is_all=True, system=[]) == [TEXT]


def test_a_text_of_the_system_is_evidence_while_the_user_asks() -> None:
    system = f"You answer questions on this text.\n```\n{TEXT}\n```"
    assert written_evidence([system, TOWER], TOWER, is_all=True, system=[system]) == [TEXT]


CODE = (
    "def height(tower):\n    metres = tower.base + tower.tip\n    return metres\n\nheight(eiffel)"
)
FORM = '{"answer": "how high the tower is", "unit": "metres"}'
LOUD = "The food was great, and so was everything else in that place."
ORDERS = (
    "Answer in at most three sentences, and always be polite to customers.",
    "Never mention competitors of our company in any answer, or their names.",
)
TAGGED_ORDERS, TAGGED_EXAMPLES = (
    "\n".join(f"<text>{each}</text>" for each in texts) + "\n"
    for texts in (ORDERS, (LOUD, LOUD.replace("food", "wine")))
)


@pytest.mark.parametrize(
    "prompt",
    [
        f"Review this text.\n```\n{CODE}\n```\n{TOWER}",
        f"Review what is below.\n```python\n{CODE}\n```\n{TOWER}",
        f"Return data as below:\n```\n{FORM}\n```\n{{1}}",
        f"Answer in the format below:\n```\n{LOUD}\n```\n{{1}}",
        f"Be polite.\n```\n{LOUD}\n```\n{{1}}",
        f"Text: {LOUD}\nMood: good\n\nText: {LOUD}\nMood: good\n\n{{1}}",
        f"Here is an example:\nText: {LOUD}\nMood: good\n\n{{1}}",
        f"Human: a text:\n```\n{LOUD}\n```\nAI: Fine.\nHuman: {{1}}",
        f"AI: Send me the text.\nHuman: ```\n{LOUD}\n```\n{{1}}",
        f"{TAGGED_ORDERS}\n{{1}}",
        f"[1] {ORDERS[0]}\n[2] {ORDERS[1]}\n\n{{1}}",
        f"{TAGGED_EXAMPLES}\nThe texts above are examples of our style.\n\n{{1}}",
        f"Follow the examples in tone.\nBe brief.\nBe exact.\n{TAGGED_EXAMPLES}\n{{1}}",
        f'```\n["{ORDERS[0]}", "Do not mention prices"]\n```\n{{1}}',
        f'```\n[{{"role": "assistant", "content": "{LOUD}"}}]\n```\n{{1}}',
        "Text: {1}",
        "```{1}```",
        "Answer politely, and in at most three sentences, please.\n\n{1}",
    ],
)
def test_what_is_no_material_is_no_evidence(prompt: str) -> None:
    assert written_evidence([prompt.replace("{1}", TOWER)], TOWER, is_all=True, system=[]) == []


def test_what_the_user_pastes_into_the_question_is_no_evidence() -> None:
    question = f"What does this text say?\n```\n{TEXT}\n```"
    assert written_evidence([question], question, is_all=True, system=[]) == []
    assert written_evidence([f"Be brief.\n{question}"], question, is_all=True, system=[]) == []


def test_a_turn_before_is_no_evidence() -> None:
    before = f"Shorten this text:\n```\n{TEXT}\n```"
    assert written_evidence([before, TOWER], TOWER, is_all=True, system=[]) == []


def test_of_two_texts_none_is_taken() -> None:
    one, other = (f"The text:\n```\n{fact}\n```\n{TOWER}" for fact in FACTS[:2])
    assert written_evidence([one, other], TOWER, is_all=True, system=[]) == []
