"""Detects negations: one side denies what the other one affirms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from claimspan.judges.lexical.coverage import Support, Wording
from claimspan.text.words import Token

__all__ = [
    "claim_negates",
    "has_negation",
    "negation_scopes",
    "reference_negates",
]


# --- in English -----------------------------------------------------------------------------------

# "Not only" and "no doubt" deny nothing, nor does "no longer than a week".
_AFFIRMING: Final = frozenset("only just merely doubt wonder matter longer less more later".split())
# "No longer" and "no more" deny what follows, where they compare nothing.
_ENDED: Final = frozenset({"longer", "more"})
# The scope of a negator is the next two content words within five tokens: a short phrase.
_SCOPE_TOKENS: Final = 5
_SCOPE_WORDS: Final = 2
# A negation in a longer sentence, or in one with less in common with the claim, mostly denies
# something that the claim does not speak of.
_MAX_DENIAL_TOKENS: Final = 20
_MIN_SHARED_WORDS: Final = 0.6
# Of more sentences, looking at each takes longer than finding the one that supports a claim best.
_FEW: Final = 16


def claim_negates(claim: Wording, support: Support) -> str | None:
    """Detects a claim that denies what the sentence affirms: ``is not a film``, ``is a film``."""
    if claim and claim[0].language != "en":
        return _denied_by_claim(claim, support.sentence)
    # What the whole reference lacks is in none of its sentences.
    if not has_negation(claim) or _denied_stem(claim, support.reference.tokens) is None:
        return None
    if has_negation(support.sentence):
        return None
    denied = _denied_stem(claim, support.sentence)
    # A claim of two sentences may have its negation from the other one.
    elsewhere = support.window.read(negation_scopes) if denied else ()
    return None if any(denied in scope for scope in elsewhere) else denied


def reference_negates(claim: Wording, support: Support) -> str | None:
    """Detects a sentence that denies what the claim affirms: ``is a film``, ``is not a film``."""
    # Where none of a few sentences denies it, the one that supports it best is not looked for.
    denials = support.reference.denials
    if not denials:
        return None
    if len(denials) <= _FEW and all(_denied_by(each, claim) is None for each in denials):
        return None
    return _denied_by(support.sentence, claim)


def _denied_by(sentence: Wording, claim: Wording) -> str | None:
    if sentence and sentence[0].language != "en":
        return _denied_by_sentence(claim, sentence)
    if len(sentence) > _MAX_DENIAL_TOKENS or not has_negation(sentence) or has_negation(claim):
        return None
    is_about = _shared_words(sentence, claim) >= _MIN_SHARED_WORDS
    return _denied_stem(sentence, claim) if is_about else None


def has_negation(words: Wording) -> bool:
    """Tells whether a claim or a sentence denies anything."""
    return bool(words.read(negation_scopes))


def _shared_words(sentence: Wording, claim: Wording) -> float:
    """Returns the share of the sentence's content words that the claim has, 0 to 1."""
    content = sentence.read(_content_stems)
    return len(content & claim.stems) / max(len(content), 1)


def _content_stems(words: Wording) -> frozenset[str]:
    return frozenset([token.stem for token in words if token.is_content])


def _denied_stem(denying: Wording, affirming: Wording) -> str | None:
    """Returns the first stem of a negation scope whose words ``affirming`` has all."""
    scopes = denying.read(negation_scopes)
    stems = affirming.stems
    return next((scope[0] for scope in scopes if scope and stems.issuperset(scope)), None)


def negation_scopes(tokens: Sequence[Token]) -> list[list[str]]:
    """Returns for every negator the stems of the content words that it denies."""
    scopes: list[list[str]] = []
    for i, token in enumerate(tokens):
        if not token.is_negation:
            continue
        after = _denied(token, tokens[i + 1 : i + 2 + _SCOPE_TOKENS])
        if after is not None:
            scopes.append([t.stem for t in after if t.is_content][:_SCOPE_WORDS])
    return scopes


def _denied(negator: Token, after: Sequence[Token]) -> Sequence[Token] | None:
    """Returns the words that a negator may deny; None where it denies nothing.

    Args:
        negator: The negator.
        after: The words behind it, one more than its scope has.
    """
    if not after or after[0].folded not in _AFFIRMING:
        return after[:_SCOPE_TOKENS]
    compares = any(token.folded == "than" for token in after)
    has_ended = negator.folded == "no" and after[0].folded in _ENDED and not compares
    return after[1:] if has_ended else None


# --- in other languages ---------------------------------------------------------------------------

# A negation may stand before what it denies (``ne vsebuje alkohola``), behind it (``funktioniert
# nicht``) or around it (``ne contient pas``), and a language may have two for one (``nikoli ne``).

# "Nicht nur" and "ne samo" deny nothing.
_AFFIRMING_ABROAD: Final = frozenset(
    "nur zuletzt alleen enkel kun bare bara seulement que solo sólo solamente soltanto só apenas "
    "samo le jen len tylko vain csak".split()
)
# In a sentence that says much else, what is denied has to be all in the claim.
_LONG_SCOPE_WORDS: Final = 3


def _denied_by_claim(claim: Wording, sentence: Wording) -> str | None:
    """Returns the stem of what a claim denies and the sentence affirms; None where nothing is."""
    scopes = claim.read(_short_scopes)
    if not scopes:
        return None
    denied = {stem for scope in sentence.read(_long_scopes) for stem in scope}
    stems = sentence.stems
    for scope in scopes:
        if scope and stems.issuperset(scope) and not denied.issuperset(scope):
            return scope[0]
    return None


def _denied_by_sentence(claim: Wording, sentence: Wording) -> str | None:
    """Returns the stem of what a sentence denies and the claim affirms; None where nothing is."""
    stems = claim.stems
    if not sentence.read(_negates) or claim.read(_negates):
        return None
    content = sentence.read(_content_stems)
    is_short = len(sentence) <= _MAX_DENIAL_TOKENS
    is_about = is_short and len(content & stems) >= _MIN_SHARED_WORDS * len(content)
    for scope in sentence.read(_short_scopes if is_about else _long_scopes):
        if stems.issuperset(scope) and (is_about or len(scope) == _LONG_SCOPE_WORDS):
            return scope[0] if scope else None
    return None


def _negates(words: Wording) -> bool:
    return any([token.is_negation for token in words])


def _short_scopes(words: Wording) -> list[list[str]]:
    return _scopes(words, _SCOPE_WORDS)


def _long_scopes(words: Wording) -> list[list[str]]:
    return _scopes(words, _LONG_SCOPE_WORDS)


def _scopes(tokens: Sequence[Token], size: int) -> list[list[str]]:
    """Returns for every negation the stems of the content words that it denies."""
    scopes: list[list[str]] = []
    for i, token in enumerate(tokens):
        if not token.is_negation:
            continue
        after = tokens[i + 1 : i + 1 + _SCOPE_TOKENS]
        if not (after and after[0].folded in _AFFIRMING_ABROAD):
            denied = [each.stem for each in after if each.is_content][:size]
            scopes.append(denied or [each.stem for each in tokens[:i] if each.is_content][-1:])
    return scopes
