"""Changes one detail of a sentence, so that the original no longer entails it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from random import Random
from typing import Final, NamedTuple

from train_local_judge.lexicon import Lexicon
from train_local_judge.rewrites import MONTHS, replace_words

__all__ = ["Falsehood", "Falsifier", "names_in"]

_NUMBER: Final = re.compile(r"(?<![\w.-])\$?(\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)(?![\w-]|\.\d)")
_MONTH: Final = re.compile(r"\b(?:" + "|".join(MONTHS) + r")\b")
_NAME: Final = re.compile(
    r"(?<=[a-z,;] )(?:[A-Z][\w'’-]+)(?: (?:of |the |de |von )?[A-Z][\w'’-]+){0,3}"
)
_COUNT_WORDS: Final = "two three four five six seven eight nine ten twelve twenty".split()
_SCALES: Final = (
    "million billion", "hundred thousand", "days weeks months years", "hours minutes seconds",
    "meters kilometers miles feet", "metres kilometres", "kg g mg", "km mi m", "inches feet",
    "percent times", "weekly daily monthly yearly annually",
)  # fmt: skip
_FLIPS: Final = (
    "more less", "before after", "first last second third", "north south east west",
    "northern southern eastern western", "increase decrease", "increased decreased",
    "increases decreases", "higher lower", "larger smaller", "longer shorter", "older younger",
    "always never", "early late", "best worst", "major minor", "male female", "his her", "he she",
    "man woman", "men women", "father mother", "son daughter", "brother sister", "husband wife",
    "king queen", "actor actress", "won lost", "win lose", "began ended", "opened closed",
    "accepted rejected", "include exclude", "includes excludes", "with without", "from to",
    "above below", "over under", "highest lowest", "largest smallest", "oldest newest",
    "most least", "morning evening", "summer winter", "spring autumn", "left right", "day night",
    "positive negative", "success failure", "successful unsuccessful", "possible impossible",
    "allow forbid", "allows forbids", "rise fall", "rose fell", "hot cold", "buy sell",
    "bought sold", "teacher student", "red blue green yellow", "white black", "true false",
    "enabled disabled", "public private", "rich poor", "married divorced", "alive dead",
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday", "January March June October",
    "American British French German Italian Canadian Australian Indian Chinese Japanese Spanish",
    "singer actor writer politician painter footballer", "film book song album play novel",
    "river lake mountain", "city village state county country", "company university school",
    "director producer writer composer", "single double triple", "input output", "read write",
)  # fmt: skip
_SWAPS: Final = {
    word: tuple(other for other in group.split() if other != word)
    for group in (*_SCALES, *_FLIPS)
    for word in group.split()
}
_QUANTIFIERS: Final = {
    "some": "all", "many": "all", "most": "all", "several": "all", "may": "must", "might": "will",
    "can": "must", "often": "always", "sometimes": "always", "usually": "always", "could": "will",
    "one of the": "the", "mainly": "only", "generally": "always", "at least": "exactly",
    "typically": "always", "approximately": "exactly", "largely": "entirely", "about": "exactly",
    "part of": "all of", "partly": "entirely", "among": "only",
}  # fmt: skip
_VERB: Final = re.compile(r"\b(is|was|are|were|has|had|can|could|will|would|should|may|must)\b")
_DENIED: Final = re.compile(r"\b(?:not|never)\b ?|n't\b")
_PAST: Final = re.compile(r"(?<=\w )(\w{3,}ed)(?= (?:the|a|an|his|her|its|in|at|for|to|from)\b)")
_BY: Final = re.compile(r"^(?P<a>[^,;:]{3,60}?) (?P<verb>(?:was|were|is|are) \w+ed by) (?P<b>[^,.;:]{2,45}?)(?=[,.;]| (?:in|on|at|for)\b)")  # fmt: skip  # noqa: E501 - one pattern
_THAN: Final = re.compile(r"(?P<a>[A-Z][\w ]{1,30}?) (?P<verb>(?:is|was|are|were) \w+ (?:\w+ )?than) (?P<b>(?:the )?[A-Z][\w ]{1,30}?)(?=[,.;])")  # fmt: skip  # noqa: E501 - one pattern


class Falsehood(NamedTuple):
    """A changed sentence with its label against the original."""

    text: str
    label: str
    """``C``: contradicted; ``N``: neutral, it says more; ``NE``: one of the two."""


class Falsifier:
    """Changes one detail of a sentence."""

    def __init__(self, lexicon: Lexicon, documents: Iterable[list[str]]) -> None:
        """Use words from the lexicon, and names from all documents as replacements."""
        self._lexicon = lexicon
        pool: dict[tuple[str, int], list[str]] = defaultdict(list)
        for document in documents:
            for sentence in document:
                for match in _NAME.finditer(sentence):
                    pool[_slot(sentence, match)].append(match.group())
        self._names = dict(pool)

    def __call__(self, sentence: str, near: list[str], chance: Random) -> Falsehood | None:
        """Change one detail; returns None where no detail can be changed.

        Args:
            sentence: What is true.
            near: Sentences of the same text, whose names and numbers are the likeliest errors.
            chance: Source of chance.
        """
        ways = [
            self._number, self._number, self._month, self._name, self._name, self._name,
            self._swapped_word, self._swapped_word, self._negation, self._roles, self._roles,
            self._opposite, self._beside, self._quantifier,
        ]  # fmt: skip
        chance.shuffle(ways)
        for way in ways:
            found = way(sentence, near, chance)
            if found and found.text != sentence:
                return found
        return None

    def _number(self, sentence: str, near: list[str], chance: Random) -> Falsehood | None:
        found = list(_NUMBER.finditer(sentence))
        if not found:
            return self._count_word(sentence, chance)
        match = chance.choice(found)
        elsewhere = [n for each in near for n in _NUMBER.findall(each) if len(n) == len(match[1])]
        if elsewhere and chance.random() < 0.4:
            other = chance.choice(elsewhere)
        else:
            other = _other_number(match[1], chance)
        return Falsehood(sentence[: match.start(1)] + other + sentence[match.end(1) :], "C")

    def _count_word(self, sentence: str, chance: Random) -> Falsehood | None:
        found = list(re.finditer(r"\b(?:" + "|".join(_COUNT_WORDS) + r")\b", sentence))
        if not found:
            return None
        match = chance.choice(found)
        other = chance.choice(_COUNT_WORDS)
        return Falsehood(sentence[: match.start()] + other + sentence[match.end() :], "C")

    def _month(self, sentence: str, near: list[str], chance: Random) -> Falsehood | None:
        del near
        return _put(sentence, _MONTH, chance.choice(MONTHS), "C")

    def _name(self, sentence: str, near: list[str], chance: Random) -> Falsehood | None:
        found = list(_NAME.finditer(sentence))
        if not found:
            return None
        match = chance.choice(found)
        nearby = [name for each in near for name in names_in(each) if name not in sentence]
        if nearby and chance.random() < 0.5:
            other = chance.choice(nearby)
        else:
            other = chance.choice(self._names.get(_slot(sentence, match), ["Springfield"]))
        if other in match.group() or match.group() in other:
            return None
        return Falsehood(sentence[: match.start()] + other + sentence[match.end() :], "NE")

    def _swapped_word(self, sentence: str, near: list[str], chance: Random) -> Falsehood | None:
        del near
        found = [m for m in re.finditer(r"\b[A-Za-z]+\b", sentence) if m.group() in _SWAPS]
        if not found:
            return None
        match = chance.choice(found)
        other = chance.choice(_SWAPS[match.group()])
        return Falsehood(sentence[: match.start()] + other + sentence[match.end() :], "C")

    def _negation(self, sentence: str, near: list[str], chance: Random) -> Falsehood | None:
        del near
        if _DENIED.search(sentence):
            return Falsehood(_DENIED.sub("", sentence, count=1), "C")
        if match := _VERB.search(sentence):
            word = chance.choice((" not", " not", " never"))
            return Falsehood(sentence[: match.end()] + word + sentence[match.end() :], "C")
        return _put(sentence, _PAST, r"never \1", "C")

    def _roles(self, sentence: str, near: list[str], chance: Random) -> Falsehood | None:
        del near, chance
        for pattern in (_BY, _THAN):
            if match := pattern.search(sentence):
                swapped = f"{match['b']} {match['verb']} {match['a']}"
                return Falsehood(sentence[: match.start()] + swapped + sentence[match.end() :], "C")
        names = list(_NAME.finditer(sentence))
        if len(names) < 2 or re.search(r"\b(?:and|or|with)\b", sentence[names[0].end() :][:40]):
            return None
        first, second = names[:2]
        return Falsehood(
            sentence[: first.start()] + second.group()
            + sentence[first.end() : second.start()] + first.group() + sentence[second.end() :],
            "NE",
        )  # fmt: skip

    def _opposite(self, sentence: str, near: list[str], chance: Random) -> Falsehood | None:
        del near
        text = replace_words(sentence, chance, lambda word: self._lexicon[word].opposite, most=1)
        return Falsehood(text, "C") if text else None

    def _beside(self, sentence: str, near: list[str], chance: Random) -> Falsehood | None:
        del near
        text = replace_words(sentence, chance, lambda word: self._lexicon[word].beside, most=1)
        return Falsehood(text, "NE") if text else None

    def _quantifier(self, sentence: str, near: list[str], chance: Random) -> Falsehood | None:
        del near, chance
        for weak, strong in _QUANTIFIERS.items():
            if re.search(rf"\b{weak}\b", sentence):
                return _put(sentence, re.compile(rf"\b{weak}\b"), strong, "N")
        return None


def names_in(sentence: str) -> list[str]:
    """Find the capitalised names of a sentence, without its first word."""
    return _NAME.findall(sentence)


def _slot(sentence: str, match: re.Match[str]) -> tuple[str, int]:
    before = sentence[: match.start()].split()
    return (before[-1] if before else "", min(len(match.group().split()), 2))


def _put(sentence: str, pattern: re.Pattern[str], other: str, label: str) -> Falsehood | None:
    changed = pattern.sub(other, sentence, count=1)
    return Falsehood(changed, label) if changed != sentence else None


def _other_number(written: str, chance: Random) -> str:
    digits = written.replace(",", "")
    if "." in digits:
        return (
            f"{float(digits) * chance.choice((0.5, 0.8, 1.3, 2, 10)):.{len(digits.split('.')[1])}f}"
        )
    value = int(digits)
    if 1000 <= value <= 2100 and "," not in written:  # a year
        return str(value + chance.choice((-40, -12, -10, -5, -3, -2, -1, 1, 2, 3, 5, 10, 12, 40)))
    near = [value + step for step in (1, 2, 7)] + [max(value - 1, 0)]
    far = [value * 2, value * 10, int(value * 0.7), int(value * 1.4) + 1]
    other = chance.choice(near + far)
    return f"{other:,}" if "," in written else str(other)
