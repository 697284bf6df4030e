"""Which claims a text makes: what it asserts, without what it says about itself."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimspan.judges import LexicalJudge
from claimspan.text.abstention import abstains
from claimspan.text.citations import masked
from claimspan.text.markdown import content_sentences, every_sentence

FEE: Final = "The fee is 3 %."


def claims(text: str) -> list[str]:
    return [claim.text for claim in asyncio.run(LexicalJudge().extract_claims(text))]


@pytest.mark.parametrize(
    ("text", "asserted"),
    [
        ("Sure, Paris is the capital.", "Paris is the capital."),
        ("Sure! Paris is the capital.", "Paris is the capital."),
        ("Of course it is legal.", "It is legal."),
        ("Absolutely, the warranty covers batteries.", "The warranty covers batteries."),
        ("Thank you for your question. Refunds take 5 days.", "Refunds take 5 days."),
        ("No information is stored on your device.", "No information is stored on your device."),
        ("No fees apply.", "No fees apply."),
        ("Let me be clear: the fee is 3 %.", "The fee is 3 %."),
        ("The answer is from 10 to 20 days.", "The answer is from 10 to 20 days."),
        ("The response was based on trade.", "The response was based on trade."),
        ("We cannot offer refunds after 14 days.", "We cannot offer refunds after 14 days."),
        ("Yes, you can return it within 14 days.", "You can return it within 14 days."),
        ("No, it does not include batteries.", "It does not include batteries."),
        ("Restart the router.", "Restart the router."),
        ("According to Marie Curie, radium glows.", "According to Marie Curie, radium glows."),
    ],
)
def test_a_courtesy_is_no_part_of_the_claim(text: str, asserted: str) -> None:
    assert claims(text) == [asserted]


@pytest.mark.parametrize(
    "text",
    [
        "Hi Anna,\n\nThe fee is 3 %.\n\nBest regards,\nSupport Team",
        "Dear Dr. Novak, the fee is 3 %. Kind regards",
        "The fee is 3 %.\n\nMit freundlichen Grüßen\nIhr Team\nAbteilung Gebühren",
        "The fee is 3 %.\n\nLep pozdrav,\nAna",
        "Let me explain. The fee is 3 %.",
        "The fee is 3 %. Happy to assist further.",
        "The fee is 3 %. I'm an AI assistant and can make mistakes.",
        "The fee is 3 %. Disclaimer: This is not legal advice.",
        "The fee is 3 %. Note: The information above is based on the provided documents.",
        "The fee is 3 %. This answer is taken from the price list.",
        "The fee is 3 %. This is general information and no legal advice.",
        "The fee is 3 %. Please consult a lawyer before making any decision.",
        "The fee is 3 %. I am an AI and can make mistakes.",
        "The fee is 3 %. Fees may change; check the website.",
        "The fee is 3 %. See the full price list here.",
        "The fee is 3 %. Read more: [Fees](https://example.com/fees)",
        "The fee is 3 %. For more see https://example.com/fees",
    ],
)
def test_a_letter_and_a_disclaimer_around_an_answer_are_no_claims(text: str) -> None:
    assert [claim.casefold() for claim in claims(text)] == [FEE.casefold()]


@pytest.mark.parametrize(
    "beside",
    [
        "Alle Angaben ohne Gewähr.",
        "Dies ist keine Rechtsberatung.",
        "Weitere Informationen finden Sie unter https://example.com",
        "Ceci ne constitue pas un avis juridique.",
        "Pour en savoir plus, consultez notre site.",
        "Los precios pueden cambiar sin previo aviso.",
        "Consulte a su médico.",
        "Queste informazioni non costituiscono consulenza legale.",
        "Consulte um médico.",
        "Dit is geen juridisch advies.",
        "Cene se lahko spremenijo.",
        "Ceny mogą ulec zmianie.",
        "Это не является юридической консультацией.",
        "以上内容仅供参考。",
        "医師にご相談ください。",
        "자세한 내용은 홈페이지를 참고하세요.",
    ],
)
def test_a_disclaimer_or_a_pointer_is_no_claim_in_its_language(beside: str) -> None:
    assert claims(beside) == []


@pytest.mark.parametrize(
    "text",
    [
        "The portal is at https://example.com/portal.",
        "Consult a doctor if the fever lasts for three days.",
        "The lawyer is not an advisor.",
        "Prices rose by 3 % in May.",
        "Mehr Informationen braucht das Amt nicht.",
        "Les prix ont baissé de 3 %.",
        "Read the meter every January.",
    ],
)
def test_what_resembles_a_disclaimer_or_a_pointer_is_claimed(text: str) -> None:
    assert claims(text) == [text]


@pytest.mark.parametrize(
    ("hedged", "asserted"),
    [
        ("As far as the context tells, the fee is 3 %.", FEE),
        ("Based on what I found, I believe the fee is 3 %.", FEE),
        ("Probably, the fee is 3 %.", FEE),
        ("I think that the fee is 3 %.", FEE),
        ("Es scheint, dass die Gebühr 3 % beträgt.", "Die Gebühr 3 % beträgt."),
        ("Il semble que les frais sont de 3 %.", "Les frais sont de 3 %."),
        ("Parece que la comisión es del 3 %.", "La comisión es del 3 %."),
        ("I believe in God.", "I believe in God."),
        ("Generally, cats sleep.", "Generally, cats sleep."),
    ],
)
def test_a_hedge_is_no_part_of_the_claim(hedged: str, asserted: str) -> None:
    assert claims(hedged) == [asserted]


def test_a_sign_off_within_a_text_ends_nothing() -> None:
    text = "Best regards are sent by 3 % of users. The fee is 3 %."
    assert claims(text) == ["Best regards are sent by 3 % of users.", FEE]


async def test_an_imperative_is_not_put_in_the_place_of_a_noun() -> None:
    extracted = await LexicalJudge().extract_claims(
        "Keep the receipt.", question="How long is the warranty?"
    )
    assert [each.text for each in extracted] == ["How long is the warranty: Keep the receipt."]


TWO: Final = ["The fee is 3 %.", "It is due in May."]


@pytest.mark.parametrize(
    ("text", "asserted"),
    [
        ("**The fee is 3 %.**", [FEE]),
        ("**The fee is 3 %**", ["The fee is 3 %"]),
        ("# The fee is 3 %.", [FEE]),
        ("**The fee is 3 %.** [1]", [FEE]),
        ("***The fee is 3 %.***", [FEE]),
        ("**The fee is 3 %. It is due in May.**", TWO),
        ("*The fee is 3 %.* It is due in May.", TWO),
        ("__The fee is 3 %.__ _It is due in May._", TWO),
        ("## Summary\n\n**The fee is 3 %.**\n\nIt is due in May.", TWO),
        ("**Fees**\nThe fee is 3 %.", [FEE]),
        ("**Step 1: Keep the receipt.** **Step 2: Call us.**", ["Keep the receipt.", "Call us."]),
        ("The fee is 3 % \\[1\\].", [FEE]),
        ("The term is $24$ months.", ["The term is 24 months."]),
        ("It costs $24 or $36.", ["It costs $24 or $36."]),
        ("It applies here<sup>1</sup>.", ["It applies here."]),
        ("The name is __init__ here.", ["The name is __init__ here."]),
        (
            "- **Covered:** It covers fire.\n- **Not covered:** It does not cover floods.",
            ["Covered: It covers fire.", "It does not cover floods."],
        ),
        ("- **Not covered:** floods and storms.", ["Not covered: floods and storms."]),
    ],
)
def test_what_models_mark_up_is_claimed_without_the_marks(text: str, asserted: list[str]) -> None:
    assert claims(text) == asserted


@pytest.mark.parametrize(
    "opener",
    [
        "Based on the context, the fee is 3 %.",
        "Based on the provided context, the fee is 3 %.",
        "Based on the information provided, the fee is 3 %.",
        "According to the document, the fee is 3 %.",
        "According to the retrieved passages, the fee is 3 %.",
        "As stated in the policy document, the fee is 3 %.",
        "The passage says that the fee is 3 %.",
        "The text states the fee is 3 %.",
        "In passage 3, the fee is 3 %.",
        "Passage 2 states that the fee is 3 %.",
        "From what I can see, the fee is 3 %.",
        "It appears that the fee is 3 %.",
        "In summary, the fee is 3 %.",
        "To answer your question, the fee is 3 %.",
        "Answer: the fee is 3 %.",
        "**Answer:** The fee is 3 %.",
        "Final answer: The fee is 3 %.",
        "The answer is that the fee is 3 %.",
        "Here's what I found: the fee is 3 %.",
        "Certainly! Based on the context, the fee is 3 %.",
        "Although the context does not mention discounts, the fee is 3 %.",
        "The fee is 3 %, according to the provided document.",
        "The fee is 3 % as stated in the document.",
    ],
)
def test_naming_the_source_is_no_part_of_the_claim(opener: str) -> None:
    assert claims(opener) == [FEE]


@pytest.mark.parametrize(
    "text",
    [
        "The fee is 3 % (Source: guide.pdf, p. 3).",
        "The fee is 3 % (source: Employee Handbook).",
        "The fee is 3 % (guide.pdf).",
        "The fee is 3 % (see section 4.2).",
        "The fee is 3 % (p. 12).",
        "The fee is 3 % (https://example.com/fees).",
        "The fee is 3 % [1][2].",
        "The fee is 3 %.[1, 2]",
        "The fee is 3 % [Source 2].",
        "The fee is 3 % [Doc 1, page 4].",
        "The fee is 3 % [guide.pdf].",
        "The fee is 3 % 【4†source】.",
        "The fee is 3 %[^1].\n\n[^1]: guide.pdf",
        "The fee is 3 %.\n\nSources:\n- guide.pdf\n- faq.html",
        "The fee is 3 %.\n\n**Sources:**\n1. guide.pdf, p. 3\n2. https://example.com/faq",
        "The fee is 3 %.\n\n## References\n\n[1] Employee Handbook\n[2] guide.pdf",
        "The fee is 3 %.\nSource: https://example.com/a",
        "The fee is 3 %.\n\nSource: Employee Handbook, section 4",
        "The fee is 3 %.\n\nConfidence: 95%",
        "The fee is 3 %. Confidence: high",
        "The fee is 3 %.\n\nConfidence score: 0.92",
        "The fee is 3 %.\n\nLast updated: 3 May 2024",
        "The fee is 3 %. For more information, see the handbook.",
        "The fee is 3 %. See [the guide](https://example.com/g) for details.",
        "The fee is 3 %. I hope this helps! Let me know if you have any other questions.",
        "The fee is 3 %. Would you like to know how it is charged?",
        "The [fee](https://example.com/fee) is 3 %.",
        "![chart](chart.png)\n\nThe fee is 3 %.",
        "<answer>The fee is 3 %.</answer>",
        "<p>The <b>fee</b> is <em>3 %</em>.</p>",
        "The fee is 3 %.<br>",
        "<think>The user asks for the fee. It could be 5 %.</think>\n\nThe fee is 3 %.",
        "<!-- the fee was 5 % -->The fee is 3 %.",
        "✅ The fee is 3 %.",
        "> The fee is 3 %.",
        "---\n\nThe fee is 3 %.\n\n---",
    ],
)
def test_citations_footers_and_markup_are_no_part_of_the_claim(text: str) -> None:
    assert claims(text) == [FEE]


@pytest.mark.parametrize(
    "text",
    [
        "Of course.",
        "Sure!",
        "Great question!",
        "Hello! How can I help you today?",
        "I hope this helps!",
        "Hope that helps!",
        "Let me know if you need anything else about the policy, its terms or anything like it.",
        "Feel free to ask.",
        "Certainly, here are the details:",
        "Here is what I found:",
        "As an AI language model, I cannot give legal advice.",
        "Sources:\n- guide.pdf",
        "Confidence: 95%",
        "https://example.com/guide",
        "guide.pdf, p. 3",
        "<think>Let me see. The fee is 3 %.</think>",
        "<think>Cut off in the middle: the fee is 3 %.",
    ],
)
def test_a_text_that_asserts_nothing_makes_no_claim(text: str) -> None:
    assert claims(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "I don't know.",
        "I could not find the fee in the context.",
        "The context does not mention the fee.",
        "The provided documents do not contain any information about the fee.",
        "No information about the fee is available.",
        "There is no information on that.",
        "Das weiß ich leider nicht.",
        "Ich habe dazu keine Informationen.",
        "Der Kontext enthält keine Angaben zur Gebühr.",
        "Je ne sais pas.",
        "Le contexte ne mentionne pas le tarif.",
        "No lo sé.",
        "El contexto no menciona la tarifa.",
        "Ik weet het niet.",
        "De context bevat geen informatie over de kosten.",
        "Ne vem.",
        "Žal nimam podatka o tem.",
        "Besedilo ne omenja pristojbine.",
        "V besedilu ni podatka o pristojbini.",
        "Non lo so.",
    ],
)
def test_declining_in_any_of_the_languages_is_an_abstention(text: str) -> None:
    assert claims(text) == []
    assert abstains(text)


def test_what_follows_a_refusal_in_the_same_sentence_is_still_asserted() -> None:
    text = "The context does not mention the price, but delivery takes 3 days."

    assert claims(text) == ["delivery takes 3 days."]


def test_a_claim_quotes_its_sentence_as_it_is_written() -> None:
    text = "<p>Sure, the <b>fee</b> is [3 %](https://example.com) [1].</p> It is due <i>now</i>."

    sentences = [each.written for each in content_sentences(text, "en")]

    assert sentences == ["Sure, the <b>fee</b> is [3 %](https://example.com) [1].",
                         "It is due <i>now</i>."]  # fmt: skip


@pytest.mark.parametrize(
    "code",
    [
        "```python\nx: list[T] = a[1] # <b>\n```",
        "Use `List<b>` there.",
        "The value is (3 % of revenue).",
        "The price [per item] is 5 euros.",
        "Plan B (the cheaper one) has a limit (see below: 5 GB).",
    ],
)
def test_brackets_that_hold_content_stay(code: str) -> None:
    assert masked(code) == code
    kept = " ".join(claims(code))
    for bracket in ("3 % of revenue", "per item", "the cheaper one"):
        assert (bracket in kept) == (bracket in code)


def test_a_reference_loses_no_word() -> None:
    text = "## Sources\n\n- guide.pdf\n\n<b>The fee</b> is 3 % [1].\n\nConfidence: 95%"

    assert "".join("".join(every_sentence(text, "en")).split()) == "".join(text.split())


WRAPPERS: Final = (
    "{}",
    "Sure! {}",
    "Based on the context, {}",
    "**Answer:** {}",
    "<answer>{}</answer>",
    "<think>It may be 5 %.</think>\n{}",
    "{}\n\nSources:\n- guide.pdf",
    "{} Let me know if you need anything else.",
    "{}\n\nConfidence: 95%",
)


@given(wrappers=st.lists(st.sampled_from(WRAPPERS), max_size=4, unique=True))
def test_wrapping_an_assertion_in_any_of_these_changes_no_claim(wrappers: list[str]) -> None:
    text = FEE
    for wrapper in sorted(wrappers, key=WRAPPERS.index):
        text = wrapper.format(text)

    assert [each.casefold() for each in claims(text)] == [FEE.casefold()]


@given(text=st.text(alphabet="abc. ,<>[]()/!`*#\n0123:-", max_size=200))
def test_masking_keeps_every_position(text: str) -> None:
    hidden = masked(text)

    assert len(hidden) == len(text)
    assert all(now in (then, " ", "\n") for then, now in zip(text, hidden, strict=True))
