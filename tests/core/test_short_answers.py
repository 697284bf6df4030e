"""How short answers are read: as the statements that they make, given their questions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimspan.text.answers import as_statement, is_short_answer, polarity

from linear_time import grows_linearly

# A question, its answer, and the statement that both make together.
STATEMENTS = """
    What is the capital of France? | Paris | The capital of France is Paris.
    What's the capital of France? | Paris. | The capital of France is Paris.
    what is the capital of france | paris | The capital of france is paris.
    Q: What is the capital of France? | Paris | The capital of France is Paris.
    Name the capital of France | Paris | Name the capital of France: Paris.
    Which city is the capital of France? | Paris | Which city is the capital of France: Paris.
    What did Apple acquire in 2014? | Beats | What did Apple acquire in 2014: Beats.
    Who wrote Hamlet? | William Shakespeare | William Shakespeare wrote Hamlet.
    Who is the CEO of Apple? | Tim Cook | Tim Cook is the CEO of Apple.
    Who was hired in 2020? | Ada Brown | Ada Brown was hired in 2020.
    Who did Prince Harry marry? | Meghan Markle | Who did Prince Harry marry: Meghan Markle.
    When was the Eiffel Tower completed? | 1889 | When was the Eiffel Tower completed: 1889.
    When did World War II end? | 1945 | When did World War II end: 1945.
    When does the store open? | 9 am | When does the store open: 9 am.
    When is the deadline? | 3 May 2024 | When is the deadline: 3 May 2024.
    When was Einstein born? | 14 March 1879 | When was Einstein born: 14 March 1879.
    Where is the Eiffel Tower? | Paris | Where is the Eiffel Tower: Paris.
    Where was Einstein born? | Ulm, Germany | Where was Einstein born: Ulm, Germany.
    Where is the firm headquartered? | in Seattle | Where is the firm headquartered: in Seattle.
    How many employees does Apple have? | 164,000 | How many employees does Apple have: 164,000.
    How many people live in Paris? | 2.1 million | How many people live in Paris: 2.1 million.
    How many moons are there in the system? | 290 | How many moons are there in the system: 290.
    How many vacation days do I get? | 25 | How many vacation days do I get: 25.
    How many seasons of Friends were made? | 10 | How many seasons of Friends were made: 10.
    How much does the plan cost? | $20 per month | How much does the plan cost: $20 per month.
    How much is the shipping fee? | €4.99 | How much is the shipping fee: €4.99.
    How long is the warranty? | two years | How long is the warranty: two years.
    How long does delivery take? | 3 to 5 days | How long does delivery take: 3 to 5 days.
    How long do I have to return an item? | 30 days | How long do I have to return an item: 30 days.
    How old is Barack Obama? | 62 | How old is Barack Obama: 62.
    How tall is the Eiffel Tower? | 330 m | How tall is the Eiffel Tower: 330 m.
    How often is the data backed up? | daily | How often is the data backed up: daily.
    How far is the airport? | 12 km | How far is the airport: 12 km.
    Do you ship by air or sea? | Sea | We ship Sea.
    Which rooms are new? | A and B | Which rooms are new: A and B.
    Who are the founders? | Ana and Ben | Ana and Ben are the founders.
    Why is the sky blue? | Rayleigh scattering | Why is the sky blue: Rayleigh scattering.
    Why was the flight cancelled? | because of snow | Why was the flight cancelled: because of snow.
    In which city was Mozart born? | Salzburg | In which city was Mozart born: Salzburg.
    At what temperature does water boil? | 100 °C | At what temperature does water boil: 100 °C.
    Is it legal to park here overnight? | Yes | It is legal to park here overnight.
    Is it legal to park here overnight? | No. | It is not legal to park here overnight.
    Is it legal to park here overnight? | Yes, it is | It is legal to park here overnight.
    Is the store open on Sundays? | No | The store is not open on Sundays.
    Are gift cards refundable? | No | Gift cards are not refundable.
    Does the app support export to CSV? | Yes | The app does support export to CSV.
    Can I return a used item? | No | You cannot return a used item.
    Can I return items? | yes, within 14 days | You can return items, within 14 days.
    May employees work remotely? | Yes | Employees may work remotely.
    Will the office be closed on Friday? | Yes | The office will be closed on Friday.
    Did Apple acquire Beats in 2014? | Correct | Apple did acquire Beats in 2014.
    Has the contract expired? | No | The contract has not expired.
    Was the bridge built in 1999? | Yes | The bridge was built in 1999.
    Is Paris the capital of France? | Yes | Paris is the capital of France.
    Isn't Paris the capital of France? | Yes | Paris is the capital of France.
    Is the Eiffel Tower in Paris? | Yes | The Eiffel Tower is in Paris.
    Are there any fees? | No | There are not any fees.
    Is the fee 3 %? | No | The fee is not 3 %.
    Is the service fee 3 percent per month? | Yes | The service fee is 3 percent per month.
    Is the deadline 5 May? | No | The deadline is not 5 May.
    Is the pool 25 m long? | Yes | The pool is 25 m long.
    Is revenue 5 million dollars? | Yes | Revenue is 5 million dollars.
    Is the 3 GB plan cheaper? | Yes | The 3 GB plan is cheaper.
    Is Windows 11 in stock? | No | Windows 11 is not in stock.
    Is the contract fixed-term or permanent? | Permanent | The contract is Permanent.
    Is it vegan or vegetarian? | vegan | It is vegan.
    The store is open on Sundays, right? | Yes | The store is open on Sundays.
    Ist Parken hier erlaubt? | Ja | Ist Parken hier erlaubt: Ja.
    Ali je parkiranje dovoljeno? | Ne | Ali je parkiranje dovoljeno: Ne.
    Est-ce que le parking est gratuit? | Oui | Est-ce que le parking est gratuit: Oui.
    Is parkeren hier toegestaan? | Nee | Is parkeren hier toegestaan: Nee.
    ¿Es legal aparcar aquí? | Sí | Es legal aparcar aquí: Sí.
    Was ist die Hauptstadt von Frankreich? | Paris | Was ist die Hauptstadt von Frankreich: Paris.
    Kaj je glavno mesto Francije? | Pariz | Kaj je glavno mesto Francije: Pariz.
    Quelle est la capitale de la France ? | Paris | Quelle est la capitale de la France: Paris.
    Kdaj je bil zgrajen Eifflov stolp? | 1889 | Kdaj je bil zgrajen Eifflov stolp: 1889.
    What colour is the sky? | Blue | What colour is the sky: Blue.
    What caused the fire? | a faulty heater | What caused the fire: a faulty heater.
    What is caffeine used for? | staying awake | What is caffeine used for: staying awake.
    What time does the museum close? | 6 pm | What time does the museum close: 6 pm.
    How much water should I drink? | 2 liters | How much water should I drink: 2 liters.
    Do I need a visa? | No | You do not need a visa.
    Am I allowed to bring guests? | No | You are not allowed to bring guests.
    What is the maximum size of an upload | 25 MB | The maximum size of an upload is 25 MB.
    Who owns Instagram? | Meta | Meta owns Instagram.
    Should I take it with food? | Yes | You should take it with food.
    What is the CEO's name? | Tim Cook | The CEO's name is Tim Cook.
    capital of France? | Paris | Capital of France: Paris.
    What is the refund period? | It depends. | It depends.
    What is the refund period? | The refund period is 30 days. | The refund period is 30 days.
    Do you ship to Canada? | Yes | We ship to Canada.
"""
ROWS = [tuple(part.strip() for part in row.split(" | ")) for row in STATEMENTS.strip().split("\n")]


@pytest.mark.parametrize(("question", "answer", "statement"), ROWS)
def test_a_short_answer_is_read_as_a_statement(question: str, answer: str, statement: str) -> None:
    assert as_statement(question, answer) == statement


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (None, "Paris"),
        ("", "Paris"),
        ("What is the capital of France?", ""),
        ("What is the capital of France?", "The capital of France is Paris."),
        ("What is the capital of France?", "I don't know."),
        ("What is the capital of France?", "What is the capital of France?"),
        ("Is it legal?", "Yes, the city allows parking there until 6 am on all days."),
        ("Who won?", "Team A\nTeam B"),
        ("How much does the B2 cost?", "The B2 costs $799."),
        ("How much does the Pro plan cost?", "Pro costs $20."),
        ("When does the shop open?", "The shop opened at 9."),
        ("What does the handbook say?", "退款是可以的。"),
        ("ร้านเปิดกี่โมง", "ร้านเปิดเวลา 9 โมงเช้า และปิดเวลา 6 โมงเย็น"),
    ],
)
def test_what_is_no_short_answer_stays(question: str | None, answer: str) -> None:
    assert as_statement(question, answer) == answer


@pytest.mark.parametrize(
    ("text", "affirms"),
    [
        ("Yes", True),
        ("yes, within 14 days", True),
        ("**Yes.**", True),
        ("Correct", True),
        ("Ja", True),
        ("Sí.", True),
        ("No", False),
        ("No, it is not.", False),
        ("Not at all", False),
        ("Nein", False),
        ("Ne.", False),
        ("No refunds are given.", None),
        ("No. 5", None),
        ("Correct answers get a point.", None),
        ("Paris", None),
    ],
)
def test_only_an_opening_yes_or_no_affirms_or_denies(text: str, affirms: bool | None) -> None:
    assert polarity(text) is affirms


@given(st.text(max_size=80), st.text(max_size=80))
def test_no_text_fails_and_no_word_of_an_answer_is_lost(question: str, answer: str) -> None:
    statement = as_statement(question, answer).casefold()
    if polarity(answer) is None:
        assert all(word.strip('*_`"“”.! ') in statement for word in answer.casefold().split())


WORDS = st.lists(
    st.sampled_from(
        "what which who when where why how many much is are was did does can in the a of year "
        "capital France Paris founded acquire company or , ( ) ? . yes no not I you 1889".split()
    ),
    min_size=1,
    max_size=12,
).map(" ".join)


@given(WORDS, st.sampled_from(["Paris", "1889", "two years", "John F. Smith", "in May 2020"]))
def test_any_order_of_question_words_keeps_the_answer(question: str, answer: str) -> None:
    assert answer.casefold() in as_statement(question, answer).casefold()


@pytest.mark.parametrize(
    "piece", ["what is ", "a ", "is it, ", "Yes. ", "? ", "Q: ", '"', "é", "and "]
)
def test_a_hundred_thousand_characters_are_read_at_once(piece: str) -> None:
    def read(text: str) -> None:
        as_statement(text, "Paris")
        as_statement("What is the capital of France?", text)
        is_short_answer(text)

    assert grows_linearly(read, piece, 100_000)
