"""Detects other names and nationalities in the same place of a phrase."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final

from claimspan.judges.lexical.coverage import Support, Wording
from claimspan.quantities import MONTHS
from claimspan.text.words import PREPOSITIONS, Token

__all__ = [
    "agent_conflict",
    "is_nationality",
    "missing_name",
    "name_conflict",
    "nationality_conflict",
]

_NATIONALITIES: Final = frozenset(
    "american british english scottish welsh irish french german italian spanish portuguese dutch "
    "belgian swiss austrian polish czech slovak hungarian romanian bulgarian greek turkish russian "
    "ukrainian swedish norwegian danish finnish icelandic croatian serbian slovenian slovene "
    "bosnian chinese japanese korean indian pakistani bangladeshi thai vietnamese indonesian "
    "filipino malaysian australian canadian mexican brazilian argentine chilean colombian cuban "
    "egyptian nigerian kenyan ethiopian iranian iraqi israeli syrian saudi european african "
    "asian".split()
)
# A name is looked for up to three words after its preposition: "by the young architect Ana".
_MAX_PHRASE_WORDS: Final = 3
# A German noun has a capital letter as a name has.
_PREPOSITIONS: Final = {
    language: words for language, words in PREPOSITIONS.items() if language != "de"
}

# "Mr", "Is" and "II" are no names by themselves; "NASA" is often spelt out in the reference.
_MIN_NAME_LETTERS: Final = 3

# As many tokens after "by" may be names: "by Ana Kolman, Ben Dorvin and the Royal Society".
_MAX_AGENT_TOKENS: Final = 10


def nationality_conflict(claim: Wording, support: Support) -> str | None:
    """Detects another nationality: ``a French series`` against ``an American series``."""
    claimed = claim.read(nationalities)
    if not claimed:
        return None
    found = {t.folded for t in support.sentence} & _NATIONALITIES
    missing = set(claimed.values()) - support.reference.stems
    return min(missing) if missing and found - claimed.keys() else None


def name_conflict(claim: Wording, support: Support) -> str | None:
    """Detects another name after the same words: ``in Montana`` against ``in New Mexico``."""
    for phrase, names in claim.read(names_by_phrase).items():
        if not support.reference.stems.isdisjoint([name.stem for name in names]):
            continue
        found = support.sentence.read(names_by_phrase)
        others = [name for name in found.get(phrase, ()) if name.stem not in claim.stems]
        is_spelt_out = any(
            _abbreviates(names[0], each, support.sentence) or _abbreviates(each, names[0], claim)
            for each in others
        )
        if others and not is_spelt_out:
            return names[0].stem
    return None


def agent_conflict(claim: Wording, support: Support) -> str | None:
    """Detects another name of who did something: ``directed by Ana`` for ``directed by Ben``.

    Unlike ``name_conflict`` it counts a name that the reference has elsewhere.
    """
    claimed = claim.read(agents)
    found = support.window.read(agents) if claimed else {}
    for verb, names in claimed.items():
        others = found.get(verb)
        if others and not set(names) & set(others):
            return names[0]
    return None


def is_nationality(token: Token) -> bool:
    """Tells whether a word says what country or continent somebody or something is from."""
    return token.folded in _NATIONALITIES


def missing_name(claim: Wording, support: Support) -> str | None:
    """Detects a name that the reference has nowhere: ``built by Plečnik``, ``built by Vurnik``.

    A name of which the reference has a part is none: ``David Spade`` where it says ``David``.

    Returns:
        The stem of the first such name; None where there is none, or in German, whose nouns all
        have a capital letter.
    """
    if not claim or claim[0].language == "de":
        return None
    reference = support.reference
    for stem, run in claim.read(full_names):
        if not any(t.stem in reference.stems or reference.has_letters(word) for t, word in run):
            return stem
    return None


def full_names(claim: Wording) -> list[tuple[str, list[tuple[Token, str]]]]:
    """Returns the names of a claim: the stem to report, and the words, each in lower case too."""
    if not _has_name(claim):
        return []
    # The first word of a sentence has a capital letter anyway.
    return [
        (claim[max(start, 1)].stem, [(token, token.folded) for token in claim[start:end]])
        for start, end in _capitalised_runs(claim)
        if end > 1
    ]


def nationalities(words: Wording) -> dict[str, str]:
    """Returns the nationalities of a claim with their stems."""
    if _NATIONALITIES.isdisjoint(words.folded):
        return {}
    folded = zip(words.folded, words, strict=True)
    return {word: token.stem for word, token in folded if word in _NATIONALITIES}


def _capitalised_runs(claim: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Yields the places of neighbouring words that are names by their letters."""
    start = None
    for i, token in enumerate((*claim, None)):
        is_part = token is not None and _is_name(token) and len(token.text) >= _MIN_NAME_LETTERS
        if is_part and not (token is not None and token.text.isupper()):
            start = i if start is None else start
        elif start is not None:
            yield start, i
            start = None


def _abbreviates(short: Token, name: Token, among: Sequence[Token]) -> bool:
    """Tells whether one name is made of the initials of another: ``WWII``, ``World War II``.

    Args:
        short: The name that may be the initials.
        name: A word of the other.
        among: The tokens that it stands in.
    """
    at = among.index(name)
    before = list(takewhile(_has_capital, reversed(among[:at])))
    run = [*reversed(before), *takewhile(_has_capital, among[at:])]
    initials = "".join(each.text if each.text.isupper() else each.text[:1] for each in run)
    # The first word of a sentence may stand before the name, with a capital letter too.
    return len(run) > 1 and short.text.isupper() and short.text in initials


def _has_capital(token: Token) -> bool:
    return token.text[:1].isupper()


def names_by_phrase(tokens: Sequence[Token]) -> dict[str, list[Token]]:
    """Returns the first words of names, by the phrase from a preposition to them."""
    names: dict[str, list[Token]] = {}
    if not _has_name(tokens):
        return names
    phrase: list[str] = []
    for token in tokens:
        word = token.folded
        if word in _PREPOSITIONS.get(token.language, ()):
            phrase = [word]
        elif phrase and _is_name(token):
            names.setdefault(" ".join(phrase), []).append(token)
            phrase = []
        elif phrase and token.is_content and word not in _NATIONALITIES:
            phrase = [*phrase, token.stem] if len(phrase) < _MAX_PHRASE_WORDS else []
    return names


def agents(tokens: Sequence[Token]) -> dict[str, list[str]]:
    """Returns the stems of the names that follow ``by``, by the stem of the participle before."""
    names: dict[str, list[str]] = {}
    if "by" not in [token.text for token in tokens] or not _has_name(tokens):
        return names
    for i, token in enumerate(tokens[1:], 1):
        verb = tokens[i - 1]
        if token.text == "by" and verb.text.endswith(("ed", "en")):
            after = tokens[i + 1 : i + 1 + _MAX_AGENT_TOKENS]
            end = next((n for n, t in enumerate(after) if _ends_names(t)), len(after))
            if found := [other.stem for other in after[:end] if _is_name(other)]:
                names.setdefault(verb.stem, []).extend(found)
    return names


def _ends_names(token: Token) -> bool:
    return token.is_content and not token.text[:1].isupper()


def _has_name(tokens: Sequence[Token]) -> bool:
    """Tells whether any word but the first may be a name."""
    return any([token.text[:1].isupper() for token in tokens[1:]])


def _is_name(token: Token) -> bool:
    word = token.folded
    return token.text[:1].isupper() and word not in MONTHS and word not in _NATIONALITIES
