"""Which language a text is in, also where it is one short sentence, a table or code."""

from __future__ import annotations

from typing import Final

import pytest

from claimspan.judges.local.judge import readable_cells
from claimspan.text.languages import detect_language, languages_of

SHORT: Final = {
    "nl": "De hoofdstad is Amsterdam. | Het zwembad is 's avonds gesloten. | De levering duurt "
    "drie dagen. | U kunt het boek niet terugbrengen.",
    "de": "Der Fluss ist lang. | Das Schwimmbad ist abends geschlossen. | Die Lieferung dauert "
    "drei Tage. | Sie können das Buch nicht zurückgeben.",
    "da": "Hovedstaden er en stor by. | Svømmehallen er lukket om aftenen. | Leveringen tager tre "
    "dage. | Du kan ikke returnere bogen.",
    "fr": "La capitale est Paris. | La piscine est fermée le soir. | La livraison prend trois "
    "jours. | Vous ne pouvez pas rendre le livre.",
    "es": "El río es largo. | La piscina está cerrada por la noche. | El envío tarda tres días. | "
    "No se puede devolver el libro.",
    "it": "La capitale è Roma. | La piscina è chiusa la sera. | La consegna richiede tre giorni. | "
    "Non si può restituire il libro.",
    "pt": "A capital é Lisboa. | A piscina está fechada à noite. | A entrega demora três dias. | "
    "Não é possível devolver o livro.",
    "hr": "Glavni grad je Zagreb. | Bazen je zatvoren nedjeljom. | Dostava traje tri dana. | "
    "Knjigu nije moguće vratiti.",
    "sl": "Glavno mesto je Ljubljana. | Bazen je zvečer zaprt. | Dostava traja tri dni. | Knjige "
    "ni mogoče vrniti. | Donava izvira v Nemčiji.",
    "sv": "Huvudstaden är Stockholm. | Simhallen är stängd på kvällen. | Leveransen tar tre dagar. "
    "| Du kan inte lämna tillbaka boken.",
    "pl": "Stolicą jest Warszawa. | Basen jest wieczorem zamknięty. | Dostawa trwa trzy dni. | "
    "Książki nie można zwrócić.",
    "fi": "Uimahalli on illalla suljettu. | Toimitus kestää kolme päivää. | Kirjaa ei voi "
    "palauttaa.",
    "cs": "Hlavní město je Praha. | Bazén je večer zavřený. | Doručení trvá tři dny. | Knihu nelze "
    "vrátit.",
    "hu": "A folyó nagyon hosszú. | Az uszoda este zárva van. | A könyvet nem lehet visszavinni.",
    "tr": "Yüzme havuzu akşamları kapalıdır. | Teslimat üç gün sürer ve ücretsizdir.",
    "ro": "Capitala este București. | Piscina este închisă seara. | Livrarea durează trei zile.",
}
PARAGRAPHS: Final = {
    "nl": "Vanaf januari geldt er een nieuwe regeling voor thuiswerken. Medewerkers mogen twee "
    "dagen per week thuis werken, mits hun leidinggevende daarmee instemt.",
    "de": "Ab Januar gilt eine neue Regelung für das Arbeiten zu Hause. Angestellte dürfen an zwei "
    "Tagen in der Woche von zu Hause arbeiten, wenn ihre Vorgesetzten zustimmen.",
    "da": "Fra januar gælder der en ny ordning for hjemmearbejde. Medarbejdere må arbejde hjemme "
    "to dage om ugen, hvis deres leder er enig i det.",
    "fr": "À partir de janvier, une nouvelle règle s'applique au télétravail. Les employés peuvent "
    "travailler chez eux deux jours par semaine si leur responsable est d'accord.",
    "hr": "Od siječnja vrijedi novi pravilnik o radu od kuće. Zaposlenici smiju dva dana u tjednu "
    "raditi od kuće ako se njihov voditelj s tim slaže.",
    "sl": "Od januarja velja nov pravilnik o delu od doma. Zaposleni smejo dva dni v tednu delati "
    "od doma, ce se njihov vodja s tem strinja.",
    "fi": "Tammikuusta alkaen etätyötä koskee uusi sääntö. Työntekijät saavat työskennellä kotona "
    "kaksi päivää viikossa, jos heidän esimiehensä suostuu siihen.",
}
ENGLISH: Final = (
    "The refund is paid within 14 days.",
    "Leonardo da Vinci painted the Mona Lisa.",
    "Charles de Gaulle visited Rio de Janeiro.",
    "Los Angeles and San Francisco are in California.",
    "La Paz lies higher than Ulan Bator.",
    "Bayern Munich plays Borussia Dortmund.",
    "Microsoft acquired GitHub.",
    "Vincent van Gogh",
    "Marie Curie",
    "Ljubljana, Maribor, Celje",
    "Der Spiegel",
    "Yes.",
    "1889",
    "vitamin D",
    "Angela Merkel met Emmanuel Macron in Berlin.",
    "Juventus beat Real Madrid.",
    "",
    "| Name | Price |\n|---|---|\n| Widget | 12 EUR |\n| Gadget | 15 EUR |",
    "Total revenue: $5M\nNet income: $1M",
    "Mon 9-17\nTue 9-17\nSat 10-14",
    "Ibuprofen 400 mg; Paracetamol 500 mg",
    "```python\ndef total(items):\n    return sum(item.price for item in items)\n```",
    "def add(a, b):\n    return a + b\nprint(add(1, 2))",
    "SELECT id, name FROM users WHERE age > 3;",
    "kubectl get pods -n kube-system",
    'const x = await fetch(url); let y = x.json(); console.log("fertig")',
    '{"id": 3, "name": null, "tags": ["a", "b"]}',
)
SCRIPTS: Final = {
    "ja": "東京は日本の首都です。",
    "zh": "北京是中国的首都。",
    "ru": "Дунай берёт начало в Шварцвальде.",
    "uk": "Київ є столицею України і лежить на Дніпрі.",
    "el": "Η Αθήνα είναι η πρωτεύουσα.",
    "ar": "القاهرة عاصمة مصر.",
}


@pytest.mark.parametrize("language", SHORT)
def test_a_short_sentence_tells_its_language(language: str) -> None:
    sentences = [sentence.strip() for sentence in SHORT[language].split("|")]
    found = {sentence: detect_language(sentence) for sentence in sentences}
    assert found == dict.fromkeys(sentences, language)


@pytest.mark.parametrize("language", PARAGRAPHS)
def test_a_paragraph_tells_its_language(language: str) -> None:
    assert detect_language(PARAGRAPHS[language]) == language


@pytest.mark.parametrize("text", ENGLISH)
def test_english_names_tables_and_code_are_no_other_language(text: str) -> None:
    assert detect_language(text) in ("en", None)


@pytest.mark.parametrize("language", SCRIPTS)
def test_a_script_tells_the_language(language: str) -> None:
    assert detect_language(SCRIPTS[language]) == language


def test_a_foreign_word_in_an_english_sentence_changes_nothing() -> None:
    text = (
        "The word 首都 means capital, and it is written with two characters in most of the texts."
    )
    assert detect_language(text) == "en"


def test_code_with_english_words_leaves_the_language_of_the_prose() -> None:
    fence = (
        "```\nfor item in the_list:\n    # this is the sum of all of them\n    total += item\n```"
    )
    assert detect_language(f"{fence}\nDie Schleife addiert alle Werte der Liste.") == "de"


def test_capital_letters_throughout_are_no_names() -> None:
    assert detect_language("DIE HAUPTSTADT VON ÖSTERREICH IST WIEN.") == "de"


@pytest.mark.parametrize("text", ["\ud800", "Der Fluss ist\udfff sehr lang.", "北\ud800京是中国的"])
def test_half_of_a_surrogate_pair_stops_no_detection(text: str) -> None:
    assert detect_language(text) in ("de", "zh", None)


def test_a_text_too_short_to_tell_has_the_language_of_the_others() -> None:
    assert languages_of(["Glavno mesto je Ljubljana.", "Maribor"]) == ["sl", "sl"]
    assert languages_of(["The capital is Ljubljana.", "Maribor"]) == ["en", "en"]
    assert languages_of(["Maribor", "1889"]) == ["en", "en"]
    assert languages_of(["Maribor"], ["Glavno mesto je Ljubljana."]) == ["sl"]
    assert languages_of(["The capital is Ljubljana."], ["Glavno mesto je Ljubljana."]) == ["en"]


def test_each_text_of_a_mixture_is_decided_on_its_own() -> None:
    claims = ["The river is very long.", "Reka je zelo dolga."]
    references = ["Reka Donava teče skozi deset držav.", "It flows through ten countries.", "| 1 |"]

    assert readable_cells(claims, references, None) == ([0], [1, 2])


def test_a_table_with_too_few_words_to_tell_has_the_language_of_its_question() -> None:
    claims = ["Plan: Basic; Price: 12 EUR", "Plan: Pro; Price: 5 EUR"]
    table = "| Plan | Price |\n|---|---|\n| Basic | 5 EUR |\n| Pro | 12 EUR |"

    assert readable_cells(claims, [table], None, "What do the plans cost?") == ([0, 1], [0])
    assert readable_cells(claims, [table], None, "Was kosten diese Tarife im Monat?") == ([], [])
