"""Takes off openers that assert nothing: courtesies, attributions to a source, summaries.

``Sure, based on the context, the fee is 3 %.`` asserts that the fee is 3 %, and nothing else. A
judge that compares words would look for "sure" and "context" in the chunks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final, cast

from claimspan.text.tables import read_table

__all__ = ["SOURCES", "alternatives", "by_language", "is_courtesy", "without_attribution"]


# --- beside answers -------------------------------------------------------------------------------

# The table is ``beside_answers.toml``; its head says what each of its lists holds.

_Lists = Mapping[str, Sequence[str]]


@cache
def by_language() -> Mapping[str, _Lists]:
    """Returns the lists of each language, by their names."""
    return cast("Mapping[str, _Lists]", read_table("text", "beside_answers.toml"))


def alternatives(name: str) -> str:
    """Returns a pattern that matches what one of the lists of that name has, in any language.

    Args:
        name: Name of the list, such as ``hedges``.
    """
    found = (each for lists in by_language().values() for each in lists.get(name, ()))
    return f"(?:{'|'.join(found)})"


# --- openers --------------------------------------------------------------------------------------

SOURCES: Final = (
    r"(?:contexts?|texts?|documents?|documentation|passages?|sources?|articles?|chunks?|excerpts?|"
    r"snippets?|materials?|information|data|files?|results?|references?|records?|search results)"
)
"""Words by which language models name their context."""

_NAMED_SOURCES: Final = (
    r"(?:(?:the|this|your|our) (?:[\w-]+ ){0,3}(?:leaflet|handbook|guide|guidelines?|manual|policy|"
    r"faqs?|brochure|website|page|report|contract|agreement|terms|notes?|instructions|label|"
    r"specifications?|schedule))"
)
"""Documents that an answer names if it has something from them."""

_GIVEN: Final = r"(?:provided|given|retrieved|supplied|available|above|attached|following)"
_THE_SOURCE: Final = (
    rf"(?:(?:the|this|these|your|our|all|any|an?) )?(?:{_GIVEN} )?(?:\w+ )?{SOURCES}"
    rf"(?: (?:#|no\. )?\d+| [A-D]\b)?"
    rf"(?: {_GIVEN}| you (?:provided|gave|shared)| I (?:have|was given))?"
)
_SAYS: Final = (
    r"(?:says?|states?|stated|mentions?|notes?|indicates?|explains?|specif(?:y|ies)|confirms?|"
    r"shows?|"
    r"suggests?|reports?|describes?)"
)
_COURTESY: Final = (
    r"(?:sure(?: thing)?|of course|certainly|absolutely|definitely|indeed|okay|ok|great|"
    r"(?:good|great) question|thanks(?: for asking)?|thank you(?: for [^.!,]{1,40})?|hello|"
    r"hi(?: there)?|"
    r"dear (?:\w+\.? ?){1,4}|"
    r"yes|yep|no|nope|correct|exactly|right|"
    r"ja|nein|natürlich|gerne|selbstverständlich|oui|non|bien sûr|sí|claro(?: que sí)?|"
    r"por supuesto|"
    r"da|ne|seveda|nee|natuurlijk|jazeker|sì|certo|nej|jo)"
)
_FOREIGN: Final = (
    r"(?:laut|gemäß|nach|basierend auf|selon|d'après|según|volgens|op basis van|glede na|po|"
    r"secondo|in base a|ifølge|prema)"
)
_FOREIGN_SOURCES: Final = (
    r"(?:kontext\w*|dokument\w*|texte?|quellen?|unterlagen|contextes?|documents?|contextos?|"
    r"documentos?|textos?|besedil\w*|kontekst\w*|podatk\w*|vir\w*|bronnen|contesto|documento)"
)

_OPENERS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_COURTESY}\s*(?:[,!.;:…]+|\s[-–—])\s+(?=\S)",
        # Without a comma only "of course" opens a clause; "no fees apply" denies something.
        r"of course (?=(?:it|they|you|the|this|that|there|we|he|she|your)\b)",
        rf"(?:based (?:up)?on|according to|as per|per|from|going by|in|looking at|given) "
        rf"{_THE_SOURCE}\s*(?:,|:)\s*",
        rf"(?:based (?:up)?on|according to|as per) {_NAMED_SOURCES},\s*",
        rf"{_FOREIGN} (?:\w+ ){{0,3}}?{_FOREIGN_SOURCES}\b(?: \d+)?,?\s+(?=\S)",
        rf"as (?:is )?(?:stated|mentioned|described|noted|explained|indicated|shown|outlined) "
        rf"(?:in|by) {_THE_SOURCE},\s*",
        rf"{_THE_SOURCE} (?:also |clearly |explicitly )?{_SAYS} that (?=\S)",
        rf"{_THE_SOURCE} (?:also )?(?:says|states|notes|mentions),? "
        r"(?=(?:the|a|an|that|this|it)\b)",
        r"(?:(?:from|based on|going by) what I (?:can (?:see|tell|find)|(?:have )?(?:found|read|"
        r"know))|"
        rf"as far as (?:I|{_THE_SOURCE}) (?:can )?(?:see|tells?|know|says?|goes|shows?)|"
        r"to (?:the best of )?my knowledge),?\s+",
        r"(?:it (?:appears|seems|looks like|is likely)|I (?:found|see|understand|can confirm|"
        r"(?:would )?"
        r"(?:think|believe|assume|say|guess))) that (?=\S)",
        alternatives("hedges"),  # what follows is asserted all the same
        r"(?:in (?:summary|short|brief|conclusion|other words)|to (?:summari[sz]e|sum up|conclude)|"
        r"overall|to answer your question|therefore|thus|so|long story short)\s*[,:]\s*",
        r"(?:(?:the )?(?:final |short |direct |long )?answer|response|a|tl;dr|antwort|réponse|"
        r"respuesta|antwoord|odgovor)\s*[:：]\s*(?=\S)",
        r"(?:step|schritt|korak) \d{1,2}\s*[:.)]\s+(?=\S)",
        # "Not covered: It does not cover floods." denies once.
        r"(?:not|no) [\w -]{1,30}:\s+(?=[^.]*\b(?:not|no|never|cannot|\w+n't)\b)",
        r"(?:the )?(?:final |short )?answer (?:to your question )?is that (?=\S)",
        r"(?:here(?:'s| is| are)|below (?:is|are)|let me) [^:.!?]{1,60}[:：]\s*(?=\S)",
        # What follows a refusal in the same sentence is still said.
        rf"(?:although|though|while|even though) {_THE_SOURCE} (?:does not|doesn't|do not|don't) "
        r"[^,]{1,120},\s*",
    )
)
# One look tells that a sentence begins with none of them, as nearly all do.
_ANY_OPENER: Final = re.compile("|".join(f"(?:{each.pattern})" for each in _OPENERS), re.IGNORECASE)
_ONLY_COURTESY: Final = re.compile(
    rf"{_COURTESY}[!.…]*|you(?:'re| are) (?:very |most )?welcome[^;]*|my pleasure[.!]*|"
    r"(?:have|enjoy) (?:a|an|your) (?:\w+ )?(?:day|evening|weekend|trip|stay|one)[^;]*|"
    r"(?:good|best of) luck[^;]*|(?:lepo|prosim|ni za kaj)[.!]*",
    re.IGNORECASE,
)
_CLOSERS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf",? (?:according to|based on|as per|per) {_THE_SOURCE}(?=[.!]?$)",
        rf",? as (?:stated|mentioned|described|noted|explained|indicated|shown|outlined) "
        rf"(?:in|by) {_THE_SOURCE}(?=[.!]?$)",
    )
)
# What each match of them has, in lower case.
_CLOSING: Final = ("according to", "based on", " per ", " as ")
_MAX_OPENERS: Final = 6
"""More of them before one assertion than people or models write; bounds the work."""


def is_courtesy(sentence: str) -> bool:
    """Tells whether a sentence is a courtesy and nothing else: ``You're welcome!``, ``Seveda!``."""
    return bool(_ONLY_COURTESY.fullmatch(sentence.strip().replace("’", "'")))


def without_attribution(sentence: str) -> str:
    """Returns the assertion of a sentence, without courtesies and without its source.

    ``According to Marie Curie, X`` stays: there the source is part of what is asserted.

    Returns:
        The sentence from its first word that asserts something, with a capital letter if it had
        one; the sentence itself if nothing else would be left.
    """
    rest = sentence.replace("’", "'")
    for _ in range(_MAX_OPENERS):
        if not _ANY_OPENER.match(rest):
            break
        shorter = next((cut for each in _OPENERS if (cut := _without(each, rest))), rest)
        if shorter == rest:
            break
        rest = shorter
    if _may_close(rest):
        for closer in _CLOSERS:
            rest = closer.sub("", rest)
    if rest == sentence.replace("’", "'"):
        return sentence
    return rest[:1].upper() + rest[1:] if sentence[:1].isupper() else rest


def _may_close(sentence: str) -> bool:
    # Of some letters outside of ASCII a pattern takes what is no lower case of its own.
    lowered = sentence.lower()
    return not sentence.isascii() or any(each in lowered for each in _CLOSING)


def _without(opener: re.Pattern[str], sentence: str) -> str:
    """The sentence behind an opener; empty if it does not begin with it, or is nothing else."""
    match = opener.match(sentence)
    rest = sentence[match.end() :] if match else ""
    return rest if any(character.isalnum() for character in rest) else ""
