"""Which responses decline to answer, and what that does to verdicts."""

from __future__ import annotations

from typing import Final

import pytest

from claimspan.judges import LexicalJudge
from claimspan.text.abstention import abstains


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
        "Empty Response",  # LlamaIndex, where nothing was retrieved
        "Hmm, I'm not sure.",  # the prompt of LangChain's documentation
        "Sorry, the model cannot answer this question.",  # guardrails of Amazon Bedrock
        "Sorry, I am unable to assist you with this request.",  # its knowledge bases
        "The requested information is not available in the retrieved data. "
        "Please try another query or topic.",  # Azure OpenAI on your data
        "I'm sorry, I can't respond to that.",  # guardrails of NeMo
        "unanswerable",
        "N/A",
        "NOT_FOUND",
        "insufficient_information",
        "No relevant documents were found.",
        "No answer found.",
    ],
)
def test_what_frameworks_and_services_say_where_they_have_no_answer_is_an_abstention(
    response: str,
) -> None:
    assert abstains(response)


REFUSALS: Final = [
    "Sorry, but I can't assist with that.",
    "I can’t help with that.",
    "I'm sorry, but I cannot fulfill this request.",
    "I apologize, but I'm not able to provide that.",
    "I won't discuss that.",
    "I must respectfully decline.",
    "I'm not programmed to assist with that.",
    "I can only answer questions about our products.",
    "This question is outside the scope of what I can help with.",
    "That's not something I can talk about.",
    "I don't feel comfortable discussing that.",
    "The question cannot be answered based on the context.",
    "The answer cannot be determined from the provided documents.",
    "Opening hours are not mentioned in the documents.",
    "That information isn't available.",
    "There is no mention of that in the documents.",
    "Nothing in the documents mentions this.",
    "The documents don't cover that topic.",
    "My knowledge base does not contain this.",
    "The document makes no mention of it.",
    "I lack the information to answer.",
    "I have no information about that.",
    "I wasn't able to find that.",
    "We couldn't find an answer.",
    "As of my last update, I do not have access to that.",
    "The text does not give the sales in the US and abroad.",
    "Es tut mir leid, dabei kann ich nicht helfen.",
    "Diese Frage kann ich leider nicht beantworten.",
    "Je suis désolé, mais je ne peux pas répondre à cette question.",
    "Lo siento, pero no puedo responder a esa pregunta.",
    "Mi dispiace, non posso aiutarti con questo.",
    "Sorry, daar kan ik je niet mee helpen.",
    "Žal mi je, pri tem ne morem pomagati.",
]


@pytest.mark.parametrize("response", REFUSALS)
@pytest.mark.parametrize("form", ["{}", "**{}** [1]", "- {}", "<b>{}</b>"])
def test_a_refusal_abstains_however_it_is_marked_up(response: str, form: str) -> None:
    assert abstains(form.format(response))


@pytest.mark.parametrize(
    "response",
    [
        "I can't help but admire that it is 330 m tall.",
        "I cannot recommend the hotel highly enough.",
        "I declined the offer in 1999.",
        "I was not able to sleep.",
        "We cannot offer refunds after 14 days.",
        "We don't know the origin of life.",
        "You cannot help customers after 5 pm.",
        "Only members can answer questions.",
        "No answer is needed: the fee is 3 %.",
        "No documents are needed at the border.",
        "No results are published before May.",
        "No evidence was found that it works.",
        "None of the rooms has a bath.",
        "There is no mention of Boswell in the memoirs.",
        "It is outside the scope of the guarantee.",
        "The data is not provided to third parties.",
        "The policy does not cover flood damage.",
        "Unknown soldiers lie in the tomb.",
        "As an assistant manager, you earn 3 % more.",
        "Flood damage is not covered by the policy document.",
        "I can only provide three examples: tin, zinc and lead.",
        "You haven't provided a receipt, so the claim is void.",
        "The answer is from 10 to 20 days.",
        "Let me be clear: the fee is 3 %.",
    ],
)
def test_an_answer_that_denies_something_abstains_from_nothing(response: str) -> None:
    assert not abstains(response)


@pytest.mark.parametrize(
    "referral",
    [
        "Please refer to the annual report.",
        "Please contact our support.",
        "I recommend checking the website.",
        "For more details, you can visit the website.",
        "If you can provide the report, I would be happy to look into it.",
        "To answer the question, I would need the balance sheet.",
        "More information is needed.",
    ],
)
async def test_a_sentence_that_refers_elsewhere_is_a_claim_but_after_an_abstention(
    referral: str,
) -> None:
    judge = LexicalJudge()
    for declining in ("I can't help with that.", "The context does not give the margin."):
        assert abstains(f"{declining} {referral}")
        assert await judge.extract_claims(f"{declining} {referral}") == []
    assert not abstains(referral)
    assert not abstains(f"I'm sorry. {referral}")


def test_an_answer_after_an_abstention_and_a_referral_is_no_abstention() -> None:
    assert not abstains("I can't say. Please check the label. The dose is 5 mg.")
