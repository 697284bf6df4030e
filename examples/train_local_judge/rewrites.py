"""Rewrites a sentence so that the original still entails it: omitted parts and synonyms.

Each takes a sentence and a source of chance, and returns the rewritten sentence, or None where it
does not apply.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Final

from train_local_judge.lexicon import Lexicon

__all__ = ["MONTHS", "Rewrite", "faithful", "replace_words", "sentence_case", "telegraphic"]

Rewrite = Callable[[str, Random], str | None]
"""Maps a sentence to its rewrite, or to None where the rewrite does not apply."""

MONTHS: Final = (
    "January February March April May June July August September October November December".split()
)
_MONTH: Final = "(?:" + "|".join(MONTHS) + ")"
_WORDS: Final = "one two three four five six seven eight nine ten eleven twelve".split()
_IN_BRACKETS: Final = re.compile(r"\s*\([^()]*\)")
_OPENING: Final = re.compile(
    r"^(?:In|On|At|After|Before|During|By|From|As of|Until|Since|Today|However|Also|Later|"
    r"Additionally|Furthermore|Then|Finally|Currently|Originally)\b[^,]{0,60}, (?=\w)"
)
_RELATIVE: Final = re.compile(r", (?:which|who|whose|where|when|such as|including)\b[^,]+(?=[,.])")
_ASIDE: Final = re.compile(r"(?<=\w), [^,]{3,60},(?= (?:is|was|are|were|has|had|have|will|can)\b)")
_TAIL: Final = re.compile(
    r",? (?:while|although|because|with|after|before|where|which|including|such as|making|using|"
    r"as well as|but|and then|; )[^.]{8,}(?=\.)"
)
_PASSIVE: Final = re.compile(
    r"^(?P<what>[^,;:]{3,60}?) (?:was|were|is|are) (?:\w+ly )?(?P<verb>\w+ed) by "
    r"(?P<who>(?:the |a |an )?[^,.;:]{2,45}?)(?=[,.;]| (?:in|on|at|for|to|from|who|and)\b)"
)
_FULL_DATE: Final = re.compile(rf"(?:{_MONTH} \d{{1,2}}, |\d{{1,2}} {_MONTH} |{_MONTH} )(\d{{4}})")
_BIG: Final = re.compile(r"(?<![\d.,$£€])(\d{1,3}),(\d)(\d\d),\d{3}(?![\d,])")
_SMALL: Final = re.compile(r"(?<![\w.,-])([2-9]|1[0-2])(?= [a-z]{3,})(?![.,]\d)")
_POSSESSIVE: Final = re.compile(r"\b([A-Z]\w+)'s ((?:[a-z]+ )?[a-z]{4,})\b(?! [a-z]+ing)")
_PHRASES: Final = {
    "for example": "for instance", "because": "since", "due to": "because of", "also": "as well",
    "approximately": "about", "such as": "like", "however": "nevertheless", "in order to": "to",
    "located in": "situated in", "known as": "called", "is called": "is known as",
    "consists of": "is made up of", "began": "started", "is able to": "can", "can be": "may be",
    "many": "a lot of", "several": "a number of", "obtained": "got", "purchased": "bought",
    "received": "got", "died": "passed away", "allows": "lets", "requires": "needs",
    "released": "put out", "children": "kids", "movie": "film", "film": "movie", "large": "big",
    "begins": "starts", "begin": "start", "ended": "finished", "created": "made",
    "often": "frequently",
    "commonly": "usually", "former": "previous", "used to": "employed to", "shows": "indicates",
    "prior to": "before", "during": "in the course of", "founded": "established",
    "use": "make use of",
    "located": "found", "does not": "doesn't", "is not": "isn't", "cannot": "can't", "won": "took",
    "born in": "a native of", "per cent": "percent", "%": " percent", "United States": "US",
    "United Kingdom": "UK", "first": "initial", "main": "principal",
    "lived in": "was a resident of",
}  # fmt: skip
_ARTICLES: Final = re.compile(r"\b(?:the|a|an|its|their|his|her) ", re.IGNORECASE)
_COPULAS: Final = re.compile(r"\b(?:is|was|are|were|has been|have been|had been) (?=\w+(?:ed|en) )")


def faithful(lexicon: Lexicon) -> tuple[Rewrite, ...]:
    """Collect all rewrites."""

    def other_words(sentence: str, chance: Random) -> str | None:
        return replace_words(sentence, chance, lambda word: lexicon[word].same, most=3)

    def wider_word(sentence: str, chance: Random) -> str | None:
        if re.search(r"\b(?:not|no|never|all|every|only|n't)\b", sentence):
            return None  # "no dog" does not mean "no animal"
        return replace_words(sentence, chance, lambda word: lexicon[word].wider, most=1)

    return (
        _dropping(_IN_BRACKETS),
        _dropping(_OPENING),
        _dropping(_RELATIVE),
        _dropping(_ASIDE),
        _dropping(_TAIL),
        _passive_to_active,
        _year_of_date,
        _rounded,
        _spelled_out,
        _possession,
        _other_phrases,
        _other_phrases,
        other_words,
        other_words,
        wider_word,
    )


def replace_words(
    sentence: str, chance: Random, options: Callable[[str], tuple[str, ...]], most: int
) -> str | None:
    """Replace up to ``most`` of the lower-case words that have options."""
    words = list(re.finditer(r"(?<![\w'-])[a-z]{4,}(?![\w'-])", sentence))
    replaceable = [(match, choices) for match in words if (choices := options(match.group()))]
    if not replaceable:
        return None
    picked = chance.sample(replaceable, min(len(replaceable), chance.randint(1, most)))
    for match, choices in sorted(picked, key=lambda pick: -pick[0].start()):
        sentence = sentence[: match.start()] + chance.choice(choices) + sentence[match.end() :]
    return sentence


def sentence_case(text: str) -> str:
    """Return the text with a capital first letter."""
    return text[:1].upper() + text[1:]


def telegraphic(sentence: str, chance: Random) -> str:
    """Write a claim like a triplet: without articles, full stop and some auxiliaries."""
    text = _ARTICLES.sub("", sentence).rstrip(".")
    if chance.random() < 0.5:
        text = _COPULAS.sub("", text)
    if chance.random() < 0.3:
        text = text.lower()
    return text


def _dropping(pattern: re.Pattern[str]) -> Rewrite:
    def drop(sentence: str, _: Random) -> str | None:
        shorter = pattern.sub("", sentence, count=1)
        return sentence_case(shorter) if len(shorter.split()) >= 4 else None

    return drop


def _passive_to_active(sentence: str, _: Random) -> str | None:
    if not (match := _PASSIVE.match(sentence)):
        return None
    what = match["what"]
    what = what[:1].lower() + what[1:] if what.startswith(("The ", "A ", "An ")) else what
    return sentence_case(f"{match['who']} {match['verb']} {what}.")


def _year_of_date(sentence: str, _: Random) -> str | None:
    return re.sub(r"\bon (?=(?:in )?\d{4})", "in ", _FULL_DATE.sub(r"\1", sentence))


def _rounded(sentence: str, chance: Random) -> str | None:
    about = chance.choice(("about ", "around ", "roughly ", ""))
    return _BIG.sub(lambda match: f"{about}{match[1]}.{match[2]} million", sentence)


def _spelled_out(sentence: str, _: Random) -> str | None:
    return _SMALL.sub(lambda match: _WORDS[int(match[1]) - 1], sentence)


def _possession(sentence: str, _: Random) -> str | None:
    return sentence_case(_POSSESSIVE.sub(r"the \2 of \1", sentence, count=1))


def _other_phrases(sentence: str, chance: Random) -> str | None:
    present = [phrase for phrase in _PHRASES if re.search(rf"(?<!\w){phrase}(?!\w)", sentence)]
    if not present:
        return None
    phrase = chance.choice(present)
    return re.sub(rf"(?<!\w){phrase}(?!\w)", _PHRASES[phrase], sentence, count=1)
