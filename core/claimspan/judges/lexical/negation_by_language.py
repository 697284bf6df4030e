"""Detects negations in other languages than English, by their words of negation.

A negation may stand before what it denies (``ne vsebuje alkohola``), behind it (``funktioniert
nicht``) or around it (``ne contient pas``), and a language may have two for one (``nikoli ne``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from claimspan.judges.lexical.wording import Wording
from claimspan.text.words import Token

__all__ = ["denied_by_claim", "denied_by_sentence"]

# "Nicht nur" and "ne samo" deny nothing.
_AFFIRMING: Final = frozenset(
    "nur zuletzt alleen enkel kun bare bara seulement que solo sólo solamente soltanto só apenas "
    "samo le jen len tylko vain csak".split()
)
# As in English: the scope is the next two content words within five tokens.
_SCOPE_TOKENS: Final = 5
_SCOPE_WORDS: Final = 2
# In a sentence that says much else, what is denied has to be all in the claim.
_LONG_SCOPE_WORDS: Final = 3
_MAX_DENIAL_TOKENS: Final = 20
_MIN_SHARED_WORDS: Final = 0.6


def denied_by_claim(claim: Wording, sentence: Wording) -> str | None:
    """Returns the stem of what a claim denies and the sentence affirms; None where nothing is.

    Args:
        claim: The tokens of the claim.
        sentence: The tokens of the sentence, read by the rules of the same language.
    """
    scopes = claim.read(_short_scopes)
    if not scopes:
        return None
    denied = {stem for scope in sentence.read(_long_scopes) for stem in scope}
    stems = sentence.stems
    for scope in scopes:
        if scope and stems.issuperset(scope) and not denied.issuperset(scope):
            return scope[0]
    return None


def denied_by_sentence(claim: Wording, sentence: Wording) -> str | None:
    """Returns the stem of what a sentence denies and the claim affirms; None where nothing is.

    Args:
        claim: The tokens of the claim.
        sentence: The tokens of the sentence, read by the rules of the same language.
    """
    stems = claim.stems
    if not sentence.read(_negates) or claim.read(_negates):
        return None
    content = {token.stem for token in sentence if _is_content(token)}
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
        if not (after and after[0].folded in _AFFIRMING):
            denied = [each.stem for each in after if _is_content(each)][:size]
            scopes.append(denied or _content_stems(tokens[:i])[-1:])
    return scopes


def _content_stems(tokens: Sequence[Token]) -> list[str]:
    return [token.stem for token in tokens if _is_content(token)]


def _is_content(token: Token) -> bool:
    return token.is_content
