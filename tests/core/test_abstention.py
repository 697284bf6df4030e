"""Which responses decline to answer, and what that does to verdicts."""

from __future__ import annotations

import pytest

from claimspan.judges import LexicalJudge
from claimspan.judges.references import AnswerText
from claimspan.text.abstention import abstains, abstention_strength
from claimspan.verdicts import Claim, Label


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("I don't know.", True),
        ("I’m sorry.", True),
        ("The context does not say when it was built. I hope this helps!", True),
        ("The context does not say when it was built. It is 330 m tall.", False),
        ("It is 330 m tall.", False),
        ("Is it tall?", False),
        ("", False),
    ],
)
def test_a_response_abstains_where_it_declines_and_asserts_nothing_else(
    response: str, expected: bool
) -> None:
    assert abstains(response) is expected


@pytest.mark.parametrize(
    "response",
    [
        "I am **not** able to say.",
        "I'm unable to answer that.",
        "As an AI, I have no opinion.",
        "There is no information about it.",
        "Insufficient information.",
        "The documents don't mention it.",
        "It is not in the textbook.",
        "I'm afraid.",
        "Das weiß ich nicht.",
        "Ich habe dazu keine Informationen.",
        "Je ne sais pas.",
        "Je n'ai pas trouvé.",
        "No lo sé.",
        "No tengo información.",
        "El contexto no menciona nada.",
        "Non lo so.",
        "Dat weet ik niet.",
        "De tekst bevat geen antwoord.",
        "Žal o tem nimam podatkov.",
        "Tega ne vem.",
        "V dokumentih o tem ni podatkov.",
    ],
)
def test_an_abstention_is_known_in_each_language_and_form(response: str) -> None:
    assert abstains(response)


@pytest.mark.parametrize(
    "response",
    [
        "I'm sorry, but I cannot determine the margin. Please refer to the annual report.",
        "The provided context does not mention the margin. More information is needed.",
        "Unfortunately, it is not given. The margin cannot be calculated from the text.",
    ],
)
def test_declining_first_and_last_counts_whole(response: str) -> None:
    assert abstention_strength(response) == 1.0


def test_declining_at_one_end_counts_half() -> None:
    assert (
        abstention_strength("The filing does not state the margin. It can be taken to be 4 %.")
        == 0.5
    )


@pytest.mark.parametrize(
    "text",
    [
        "The margin was 4.2 %. It rose by a point.",
        "It is advisable to consult a doctor before taking it.",
        "Unfortunately, the bridge fell in 1999. It was rebuilt.",
        "This function does not return a value. See the next section.",
        "",
    ],
)
def test_advice_news_and_manuals_do_not_decline(text: str) -> None:
    assert abstention_strength(text) == 0.0


def test_only_the_ends_of_a_long_text_are_read() -> None:
    middle = "I cannot answer that. " * 3
    filling = "The river runs through the town. " * 100
    assert abstention_strength(filling + middle + filling) == 0.0


async def test_a_response_that_declines_entails_nothing_though_it_repeats_the_question() -> None:
    claim = Claim(text="The operating margin of the company in 2022 was high")
    told = "The operating margin of the company in 2022 was high."
    declined = f"I cannot find the figures. {told} Please refer to the annual report."
    matrix = await LexicalJudge().check([claim], [told, AnswerText(declined)])
    assert matrix.labels[0] == [Label.ENTAILED, Label.NEUTRAL]
    entailed = [verdict.entailed or 0.0 for verdict in matrix.verdicts() if verdict]
    assert entailed[1] < 0.1 * entailed[0]
