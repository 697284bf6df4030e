"""Values as people write them in answers and documents, judged among the words beside them."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Final

import pytest

from claimspan.judges import LexicalJudge, LocalJudge
from claimspan.judges.protocol import AnswerText
from claimspan.quantities import read_values
from claimspan.verdicts import Claim, Label

JUDGES: Final = pytest.mark.parametrize(
    "judge", [LexicalJudge(sure_from=0.5), LocalJudge(sure_from=0.5)], ids=["lexical", "local"]
)

SAME: Final = (
    ("The company has 2000 employees.", "The company has 2,000 employees."),
    ("The company has 1,500 employees.", "The company has 1500 employees."),
    ("Das Geschäft hat 2000 Mitarbeiter.", "Das Geschäft hat 2.000 Mitarbeiter."),
    ("Podjetje ima 2000 zaposlenih.", "Podjetje ima 2.000 zaposlenih."),
    ("The trip takes 2 h 30 min.", "The trip takes 150 minutes."),
    ("The tank holds 50 liters of fuel.", "The tank holds 50 litres of fuel."),
    ("The file has a size of 5 megabytes.", "The file has a size of 5 MB."),
    ("The dog weighs about 50 lbs at birth.", "The dog weighs about 50 pounds at birth."),
    ("Water boils at 100 degrees Celsius.", "Water boils at 100 °C."),
    ("The lake was 5 °C below zero.", "The lake was -5 °C."),
    ("The oven is heated to 392 °F before baking.", "The oven is heated to 200 °C before baking."),
    ("The museum opened on May 6.", "The museum opened on 5/6/2023."),
    ("The museum opened on 6 May 2023.", "The museum opened on 5/6/2023."),
    ("The ticket costs $5-7.", "The ticket costs $5 to $7."),
    ("The ticket costs $5–7 million.", "The ticket costs between $5 million and $7 million."),
    ("The ticket costs $5 - $7.", "The ticket costs between $5 and $7."),
    ("The delivery takes 5 - 7 days.", "The delivery takes 5 to 7 days."),
    ("The war lasted from 2019 to 2021.", "The war lasted 2019 - 2021."),
    ("The company was founded in 2019.", "Milestones:\n- 2019: The company was founded."),
    ("The train reaches 120 km/h.", "The train reaches 120 kilometers per hour."),
    ("The car does 60 miles an hour.", "The car does 60 mph."),
    ("Der Zug fährt 120 km/h.", "Der Zug fährt 120 Kilometer pro Stunde."),
    ("The app has 10k users.", "The app has 10,000 users."),
    ("Add 1 1/2 cups of flour.", "Add 1.5 cups of flour."),
    ("Add 2¾ cups of flour.", "Add 2.75 cups of flour."),
    ("The deal closed on 12/31/23.", "The deal closed on December 31, 2023."),
    ("She was born on 31/12/85.", "She was born on 31 December 1985."),
    ("It was built in the twenty-first century.", "It was built in the 21st century."),
    ("The alarm is tested two times a month.", "The alarm is tested twice a month."),
    ("The choir won the cup thrice.", "The choir won the cup three times."),
)

OTHER: Final = (
    ("The maximum loan is $5.", "The maximum loan is $5 million."),
    ("The maximum loan is $5.", "The maximum loan is $500."),
    ("5 days are allowed.", "15 days are allowed."),
    ("The temperature in January was 5 °C.", "The temperature in January was -5 °C."),
    ("The population of the town is 84,210.", "The population of the town is 84,513."),
    ("The company has 2000 employees.", "The company has 3,000 employees."),
    ("The museum opened on May 7.", "The museum opened on 5/6/2023."),
    ("The delivery takes 5 - 7 days.", "The delivery takes 5 to 9 days."),
    ("Shipping is free for orders under $50.", "Shipping is free for orders over $50."),
    ("The train reaches 120 km.", "The train reaches 120 km/h."),
    ("The train reaches 121 km/h.", "The train reaches 120 kilometers per hour."),
    ("The app has 12k users.", "The app has 10,000 users."),
    ("Add 1 1/4 cups of flour.", "Add 1.5 cups of flour."),
    ("The deal closed on 12/30/23.", "The deal closed on December 31, 2023."),
    ("Students under 18 pay nothing.", "Students over 18 pay nothing."),
    ("The alarm is tested three times a month.", "The alarm is tested twice a month."),
    ("Die Tonne wird dreimal im Monat geleert.", "Die Tonne wird zweimal im Monat geleert."),
)


def _label(judge: LexicalJudge | LocalJudge, claim: str, reference: str) -> Label:
    verdict = asyncio.run(judge.check([Claim(text=claim)], [reference]))[0][0]
    assert verdict is not None
    return verdict.label


@JUDGES
@pytest.mark.parametrize(("claim", "reference"), SAME)
def test_one_value_in_two_everyday_forms_is_entailed(
    judge: LexicalJudge | LocalJudge, claim: str, reference: str
) -> None:
    assert _label(judge, claim, reference) is Label.ENTAILED


@JUDGES
@pytest.mark.parametrize(("claim", "reference"), OTHER)
def test_another_value_that_is_written_alike_is_not_entailed(
    judge: LexicalJudge | LocalJudge, claim: str, reference: str
) -> None:
    assert _label(judge, claim, reference) is not Label.ENTAILED


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("5 - 7 days", [(5, 7)]),
        ("5 – 7%", [(5, 7)]),
        ("$5 million - $7 million", [(5, 7)]),
        ("€5-7", [(5, 7)]),
        ("He gave $5 to 7 people.", [(5, None), (7, None)]),
        ("2019 - 2021", [(2019, None), (2021, None)]),
        ("Milestones:\n- 2019: founded\n  - 7 offices", [(2019, None), (7, None)]),
        ("1,577 -370", [(1577, None), (-370, None)]),
        ("It fell by - $5.", [(-5, None)]),
    ],
)
def test_a_dash_between_numbers_or_before_a_list_item_is_no_minus(
    text: str, values: list[tuple[int, int | None]]
) -> None:
    found = read_values(text).amounts

    assert [(each.value, each.until) for each in found] == [
        (Decimal(low), None if high is None else Decimal(high)) for low, high in values
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10k users", 10_000),
        ("250K people", 250_000),
        ("a 401k plans nothing", None),
        ("a 10K run", None),
        ("the 10-K forms", None),
        ("about 1 1/2 cups", Decimal("1.5")),
        ("1 1/2024", 1),
        ("1 5/4", 1),
    ],
)
def test_a_k_is_a_thousand_and_parts_belong_to_their_number_only_where_they_count(
    text: str, value: Decimal | int | None
) -> None:
    found = [each.value * (each.scale or 1) for each in read_values(text).amounts]

    assert next(iter(found), None) == value


@JUDGES
def test_an_answer_need_not_repeat_the_year_of_its_question(
    judge: LexicalJudge | LocalJudge,
) -> None:
    question = "Who won the race in 2019?"
    answer = AnswerText("Ana Kolman won it by two seconds ahead of her sister.")
    claims = [Claim(text=f"In {year} Ana Kolman won the race.") for year in (2019, 2018)]

    found = asyncio.run(judge.check(claims, [answer], question=question)).labels

    assert [row[0] for row in found] == [Label.ENTAILED, Label.NEUTRAL]
