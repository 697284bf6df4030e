"""Reads labels: ``Length: 725 km`` says of a short answer which attribute it is the value of."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from claimspan.text.inflections import base_form
from claimspan.text.words import FUNCTION_WORDS, stem

__all__ = ["Labelled", "label_of", "names_attribute", "names_what_is_asked"]

_LABELLED: Final = re.compile(
    r"(?P<label>[^\W\d_][^:：=;\n]{0,40}?)\s*(?:[:：=]|\s[-–—])\s*(?P<value>[^;]*[^;\s])"
)
_OF_ANSWERS: Final = frozenset(
    "a answer final short direct correct result response conclusion output value verdict my "
    "antwort ergebnis réponse résultat respuesta resultado odgovor rezultat antwoord".split()
)
"""Words of labels that fit any question."""

_ATTRIBUTES: Final = tuple(
    (re.compile(rf"\b(?:{asking})\b", re.IGNORECASE), frozenset(labels.split()))
    for asking, labels in (
        (
            r"how (?:long|far|high|tall|wide|deep|big|large|heavy|old|fast)|wie (?:lang|weit|hoch|"
            r"breit|tief|groß|schwer|alt|schnell)e?|kako (?:dolg|visok|širok|globok|velik)\w?",
            "length distance height altitude elevation width breadth depth size area weight mass "
            "age speed duration period term time total länge höhe breite tiefe größe gewicht alter "
            "dauer dolžina višina širina globina velikost teža starost trajanje",
        ),
        (
            r"how (?:many|much|often)|number|costs?|price|pay|charged?|fee|wie ?viele?|kostet|"
            r"combien|coûte|cuántos?|cuesta|koliko|stane",
            "number count quantity amount total sum population price cost costs fee rate charge "
            "salary frequency interval preis kosten anzahl betrag gebühr prix coût nombre montant "
            "precio costo número cena strošek število znesek",
        ),
        (
            r"who|whose|whom|wer|wem|wen|qui|quién|kdo|komu",
            "name person author writer founder founders owner inventor creator director manager "
            "head ceo president chair leader winner artist composer painter architect designer "
            "developer maker manufacturer contact autor autorin gründer auteur fondateur autora "
            "fundador avtor avtorica ustanovitelj",
        ),
        (
            r"when|what time|deadline|wann|quand|cuándo|kdaj",
            "date day month year time deadline period start beginning end opening founded born "
            "datum tag jahr zeit jour année heure fecha día año hora dan leto čas rok",
        ),
        (
            r"where|which (?:city|country|place)|wo|woher|wohin|où|dónde|kje|kam",
            "location place address city town country state region site origin source "
            "headquarters seat birthplace destination ort adresse stadt land lieu ville pays lugar "
            "ciudad país kraj mesto država naslov",
        ),
        (
            r"why|warum|pourquoi|por qué|zakaj",
            "reason cause grund ursache raison razón razlog vzrok",
        ),
        (
            r"what happen\w*|status|is|are|was|were|has|have|did|does|do",
            "status state stage phase outcome progress stand stanje",
        ),
        (
            r"what|which|was|welche\w*|quel\w*|cuál\w*|kaj|kater\w*|kako",
            "name title type kind category colour color language currency version capital "
            "hauptstadt capitale glavno mesto",
        ),
    )
)
"""How questions ask for what labels name: ``how long`` asks for a ``length``."""

_MIN_ROOT: Final = 4
_ALL: Final = _OF_ANSWERS.union(*(labels for _, labels in _ATTRIBUTES))


class Labelled(NamedTuple):
    """A value behind the name of what it is the value of."""

    label: str
    value: str


def label_of(line: str) -> Labelled | None:
    """Returns the label of a line and its value; None if it has none, or several.

    Args:
        line: A line without markup, such as ``Length: 725 km`` or ``Status - shipped``.
    """
    found = _LABELLED.fullmatch(line)
    return Labelled(found["label"], found["value"]) if found else None


def names_attribute(label: str, question: str) -> bool:
    """Tells whether a label names an attribute, and no thing that the question does not name.

    Args:
        label: The label; ``Graz`` in ``Graz: 300,000`` names a thing.
        question: The question.
    """
    return _own_words(label, question) <= _ALL


def names_what_is_asked(label: str, question: str) -> bool:
    """Tells whether a label names the attribute that a question asks for.

    Args:
        label: The label, which names an attribute.
        question: The question.
    """
    fitting = (labels for asking, labels in _ATTRIBUTES if asking.search(question))
    return _own_words(label, question) <= _OF_ANSWERS.union(*fitting)


def _own_words(label: str, question: str) -> set[str]:
    """Returns the words of a label in lower case that the question has in no form."""
    asked = {base_form(word) for word in re.findall(r"\w+", question.casefold())}
    given = asked | set(map(stem, asked))
    words = set(re.findall(r"\w+", label.casefold())) - FUNCTION_WORDS
    # The "builder" is who "built" it.
    roots = tuple(word for word in asked if len(word) >= _MIN_ROOT)
    return {word for word in words if stem(word) not in given and not word.startswith(roots)}
