"""Which values are one, which differ and which do not compare: units, formats and languages."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimspan.quantities import check_value
from claimspan.verdicts import Label

EQUAL: Final = (
    ("3 pm", "15:00", "15h", "15 Uhr", "3 p.m.", "ob 15. uri", "à 15 heures", "at 3 PM", "15h00"),
    ("24 months", "two years", "2 leti", "dve leti", "zwei Jahre", "deux ans", "24 mesecev"),
    ("12.5 thousand", "12,500", "12.500", "12 500", "12\u202f500", "12,5 tisoč", "12,5 Tausend"),
    ("€1.299,00", "1,299 euros", "1299 EUR", "1 299 €", "1.299 evrov"),
    ("0.5 g", "500 mg", "half a gram", "0,5 Gramm"),
    ("1.5 h", "90 minutes", "1 hour 30 minutes", "one and a half hours", "anderthalb Stunden"),
    ("a quarter", "25 %", "1/4", "one in four", "ein Viertel", "četrtina", "un quart", "0.25"),
    ("half", "50 %", "1/2", "die Hälfte", "polovica", "la moitié", "50 odstotkov", "50 Prozent"),
    ("three quarters", "75 %", "3/4", "3 in 4", "tri četrtine", "trois quarts", "drei Viertel"),
    ("2/3", "0.67", "66.7 %", "two thirds", "zwei Drittel", "dve tretjini", "deux tiers"),
    ("a dozen", "12", "twelve", "zwölf", "dvanajst", "douze", "ein Dutzend"),
    (
        "2023-06-12", "12 June 2023", "June 12, 2023", "12. 6. 2023", "12. junij 2023",
        "12. Juni 2023", "12 juin 2023", "12.06.2023", "12th of June 2023", "12. junija 2023",
    ),
    ("third quarter of 2023", "Q3 2023", "drittes Quartal 2023", "tretje četrtletje 2023",
     "troisième trimestre 2023"),
    ("first", "1st"),
    ("£3bn", "3,000,000,000 pounds", "£3 billion", "GBP 3 billion"),
    ("3 milliards d'euros", "3 Mrd. Euro", "3 milijarde evrov", "€3bn", "3 Milliarden Euro"),
    ("20 °C", "68 °F", "20 degrees Celsius", "68 degrees Fahrenheit", "20 stopinj Celzija",
     "20 Grad Celsius"),
    ("about 5 miles", "8 km", "8 kilometrov"),
    ("5 to 7 days", "5-7 days", "between 5 and 7 days", "5 bis 7 Tage", "5 do 7 dni",
     "5 à 7 jours"),
    ("over 50", "more than 50", "mehr als 50", "več kot 50", "plus de 50"),
    ("up to 14 days", "at most 14 days", "bis zu 14 Tage", "največ 14 dni", "jusqu'à 14 jours"),
    ("at least 18", "18 or more", "mindestens 18", "vsaj 18", "au moins 18"),
    ("twenty-five", "25", "fünfundzwanzig", "petindvajset", "vingt-cinq"),
    ("two hundred and fifty", "250", "zweihundertfünfzig", "dvesto petdeset",
     "deux cent cinquante"),
    ("2 million", "2,000,000", "zwei Millionen", "dva milijona", "deux millions", "2 Mio."),
    ("half a million", "500,000", "0.5 million"),
    ("noon", "12:00", "12 pm", "midi"),
    ("half an hour", "30 minutes", "eine halbe Stunde", "pol ure", "une demi-heure"),
)  # fmt: skip

DIFFERENT: Final = (
    ("2023-06-12", "12 May 2023"),
    ("2023-06-12", "June 13, 2023"),
    ("June 2023", "July 2023"),
    ("Q3 2023", "Q2 2023"),
    ("3 pm", "3 am"),
    ("15:00", "15:30"),
    ("24 months", "24 days"),
    ("two years", "three years"),
    ("90 minutes", "2 hours"),
    ("5 miles", "5 km"),
    ("20 °C", "20 °F"),
    ("a quarter", "a third"),
    ("2/3", "50 %"),
    ("€1.299,00", "€12.99"),
    ("5 to 7 days", "5 to 10 days"),
    ("over 50", "over 60"),
    ("at least 18", "17"),
    ("up to 14 days", "30 days"),
    ("8 days", "5 to 7 days"),
    ("5 kg", "5 pounds"),
    ("under 18", "over 18"),
    ("over 60", "up to 50"),
    ("1999", "20 March 2001"),
    ("10 GB", "10 MB"),
    ("deux ans", "trois ans"),
    ("3 milijone", "3 milijarde"),
)

APART: Final = (
    ("2", "It was founded in 1997."),
    ("2019", "It was opened on 20 March."),
    ("5 %", "They have 5 offices."),
    ("42", "It opens at 6 am."),
    ("6", "It opens at 6 am."),
    ("2023-06-12", "It was in June 2023."),
    ("2023-06-12", "It was in 2023."),
    ("6 days", "It takes 5 to 7 days."),
    ("5 to 7 days", "It takes 6 days."),
    ("over 50", "There are 60 of them."),
    ("60", "There are over 50 of them."),
    ("10 days", "It may take up to 14 days."),
    ("at least 18", "You may be at most 18."),
    ("under 60", "There are over 50 of them."),
    ("1995", "It was in the 1990s."),
    ("3 pm", "There are 3 of them."),
    ("12 June", "It was in the summer of 2023."),
    ("Q2 2023", "It was on 3 May 2023."),
)


def label(claim: str, text: str) -> Label | None:
    verdict = check_value(claim, text)
    return None if verdict is None else verdict.label


@pytest.mark.parametrize("forms", EQUAL, ids=lambda forms: forms[0])
def test_one_value_in_two_forms_is_entailed(forms: tuple[str, ...]) -> None:
    differing = [
        (one, other) for one in forms for other in forms if label(one, other) is not Label.ENTAILED
    ]
    assert not differing


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_two_values_of_one_kind_contradict_each_other(one: str, other: str) -> None:
    assert label(one, other) is Label.CONTRADICTED


@pytest.mark.parametrize(("claim", "text"), APART)
def test_values_that_do_not_compare_are_left_open(claim: str, text: str) -> None:
    assert label(claim, text) is None


def test_the_more_precise_value_gives_the_less_precise_one_and_not_the_other_way_round() -> None:
    assert label("June 2023", "It was on 12 June 2023.") is Label.ENTAILED
    assert label("2023", "It was on 12 June 2023.") is Label.ENTAILED
    assert label("12 June 2023", "It was in June 2023.") is None


def test_a_bound_includes_its_own_number_only_where_it_says_so() -> None:
    assert label("18", "You have to be at least 18.") is Label.ENTAILED
    assert label("50", "There are more than 50 of them.") is None


# --- whatever the value is ---

MONTHS: Final = (
    ("January", "Januar", "januar", "janvier"), ("February", "Februar", "februar", "février"),
    ("March", "März", "marec", "mars"), ("April", "April", "april", "avril"),
    ("May", "Mai", "maj", "mai"), ("June", "Juni", "junij", "juin"),
    ("July", "Juli", "julij", "juillet"), ("August", "August", "avgust", "août"),
    ("September", "September", "september", "septembre"),
    ("October", "Oktober", "oktober", "octobre"),
    ("November", "November", "november", "novembre"),
    ("December", "Dezember", "december", "décembre"),
)  # fmt: skip
DATES: Final = st.dates(datetime.date(1200, 1, 1), datetime.date(2099, 12, 31))


def written(date: datetime.date) -> list[str]:
    english, german, slovenian, french = MONTHS[date.month - 1]
    return [
        date.isoformat(),
        f"{date.day} {english} {date.year}",
        f"{english} {date.day}, {date.year}",
        f"{english[:3]} {date.day}, {date.year}",
        f"{date.day}. {german} {date.year}",
        f"{date.day}. {slovenian} {date.year}",
        f"{date.day} {french} {date.year}",
        f"{date.day}. {date.month}. {date.year}",
        f"{date.day:02}.{date.month:02}.{date.year}",
    ]


@given(DATES, DATES, st.data())
def test_any_date_equals_itself_in_every_form_and_no_other_date(
    one: datetime.date, other: datetime.date, data: st.DataObject
) -> None:
    claim, text = (data.draw(st.sampled_from(written(date))) for date in (one, other))
    same = data.draw(st.sampled_from(written(one)))

    assert label(claim, same) is Label.ENTAILED
    assert label(claim, text) is (Label.ENTAILED if one == other else Label.CONTRADICTED)


@given(st.integers(0, 23), st.integers(0, 59))
def test_any_time_of_day_equals_itself_in_every_form(hour: int, minute: int) -> None:
    half = f"{hour % 12 or 12}:{minute:02} {'a.m.' if hour < 12 else 'pm'}"
    forms = [half, f"{hour:02}:{minute:02}", f"{hour:02}h{minute:02}", f"{hour:02}:{minute:02} Uhr"]

    assert all(label(one, other) is Label.ENTAILED for one in forms for other in forms)
    later = f"{hour:02}:{(minute + 1) % 60:02}"
    assert label(half, later) is Label.CONTRADICTED


@given(st.integers(1_000, 999_999_999), st.integers(0, 99))
def test_any_sum_of_money_is_one_in_every_convention(whole: int, cents: int) -> None:
    english = f"{whole:,}.{cents:02}"
    continental = english.translate(str.maketrans(",.", ".,"))
    spaced = english.replace(",", "\u202f").replace(".", ",")
    forms = [f"€{english}", f"{continental} €", f"{continental} evrov", f"EUR {english}",
             f"{spaced} euros"]  # fmt: skip

    assert all(label(one, other) is Label.ENTAILED for one in forms for other in forms)
    assert label(forms[0], f"€{whole + 2:,}.{cents:02}") is Label.CONTRADICTED
    assert label(forms[0], f"${english}") is Label.CONTRADICTED


@given(
    st.integers(1, 9_999),
    st.sampled_from(
        [("km", "m", 1000), ("kg", "grams", 1000), ("hours", "minutes", 60), ("days", "hours", 24),
         ("years", "months", 12), ("let", "mesecev", 12), ("Stunden", "Minuten", 60),
         ("heures", "minutes", 60), ("l", "ml", 1000), ("m", "cm", 100), ("GB", "MB", 1000)]
    ),
)  # fmt: skip
def test_any_measure_equals_itself_in_a_smaller_unit_and_never_with_the_same_number(
    count: int, units: tuple[str, str, int]
) -> None:
    large, small, factor = units

    assert label(f"{count} {large}", f"{count * factor} {small}") is Label.ENTAILED
    assert label(f"{count * factor} {small}", f"{count} {large}") is Label.ENTAILED
    assert label(f"{count} {large}", f"{count} {small}") is Label.CONTRADICTED


@given(st.integers(-40, 500))
def test_any_temperature_equals_itself_on_the_other_scale(celsius: int) -> None:
    fahrenheit = f"{Decimal(celsius) * Decimal('1.8') + 32:f}"

    if celsius * (Decimal(fahrenheit)) > 0:
        assert label(f"{celsius} °C", f"{fahrenheit} °F") is Label.ENTAILED
    assert label(f"{celsius} °C", f"{celsius + 2} °C") is Label.CONTRADICTED


@given(st.integers(1, 99), st.integers(2, 100))
def test_any_range_equals_itself_and_no_other(low: int, width: int) -> None:
    high = low + width

    assert label(f"{low} to {high} days", f"{low}-{high} days") is Label.ENTAILED
    assert label(f"{low} to {high} days", f"{low} to {high + 2} days") is Label.CONTRADICTED
    assert label(f"{low + 1} days", f"{low} to {high} days") is None
    assert label(f"{high + 2} days", f"{low} to {high} days") is Label.CONTRADICTED


@pytest.mark.parametrize("part", ["5 to ", "1/", "half a ", "12. ", "June ", "two ", "12:30 ", "<"])
def test_a_long_run_of_values_takes_no_longer_than_any_text(part: str) -> None:
    assert label("77 km", part * 20_000) in (None, Label.CONTRADICTED, Label.ENTAILED)
