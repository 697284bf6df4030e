"""Turns a sentence of a text into its twin: nearly the same words, and not the same statement.

Unlike ``falsehoods``, which takes the first change that applies to any sentence, every kind of
change here looks for the sentences that it applies to, so that rare ones are as many as the others.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Final, NamedTuple

from train_local_judge.lexicon import Lexicon

__all__ = ["Sentences", "Twin", "TwinMaker"]


class Twin(NamedTuple):
    """A changed sentence with its label against the original, and the original's against it."""

    text: str
    label: str
    back: str


TwinMaker = Callable[[str, Random], Twin | None]
"""Changes a sentence, or returns None where it does not apply."""

_IRREGULAR: Final = (
    "written built made won led sung held given known taken chosen run seen driven drawn shown "
    "bought sold caught brought sent told found fought hit kept left lost met paid put read set "
    "shot spoken struck taught thrown understood worn beaten begun broken eaten forgotten hidden "
    "stolen sworn torn woken cut felt heard laid meant sought spent spread swept succeeded borne"
)
_DONE: Final = rf"(?:\w+ed|{'|'.join(_IRREGULAR.split())})"
_END: Final = (
    r"(?=[,.;)]| (?:in|on|at|for|during|after|before|from|to|and|as|with|who|which|when)\b)"
)
_PASSIVE: Final = re.compile(
    rf"^(?P<a>[^,;:()]{{3,60}}?) (?P<do>(?:was|were|is|are|has been|have been|had been) (?:\w+ly )?"
    rf"{_DONE} by) (?P<b>(?:the |a |an )?[^,.;:()]{{2,45}}?){_END}"
)
_NAME: Final = re.compile(
    r"(?:[A-Z][\w'’-]+|[A-Z]\.)(?: (?:of |the |de |von )?(?:[A-Z][\w'’-]+|[A-Z]\.)){0,3}"
)
_NOT_A_NAME: Final = frozenset(
    "The A An In On At It He She They This That These Those There His Her Its Their After Before "
    "When While Although As For From With By If But And Or Since During However Also Most Many "
    "Some All No One Two Three First You We I To Not Each Both Other Such What Where Who Why How "
    "January February March April May June July August September October November December".split()
)
_VAGUE: Final = frozenset(
    "it he she they this that which there who and but not where what i you".split()
)
_LISTED: Final = re.compile(r"^(?:,| and| or| &|,? (?:as well as|and then))? ?$")
_COMPARED: Final = re.compile(
    r"^(?P<a>[^,;:()]{3,60}?) (?P<do>(?:is|was|are|were|has|have|had|can be|costs?|takes?) "
    r"(?:\w+ ){0,3}?(?:more|less|fewer|\w+er)(?: [\w-]+){0,3}? than) "
    r"(?P<b>(?:the |a |an |that of )?[^,.;:()]{2,45}?)(?=[,.;)])"
)
_PLACED: Final = re.compile(
    r"^(?P<a>[^,;:()]{3,60}?) (?P<do>(?:is|was|are|were) (?:\w+ )?(?:north|south|east|west|part|"
    r"member|capital|subset|son|daughter|father|mother|author|successor|descendant|"
    r"brother|child|subclass|predecessor|head|owner|founder|instance) of) "
    r"(?P<b>(?:the |a |an )?[^,.;:()]{2,45}?)(?=[,.;)])"
)
_ACTIVE: Final = re.compile(
    r"^(?P<a>(?:The |An? )?(?:[A-Z][\w'’-]*|(?<=The )\w+)(?: [\w'’-]+){0,3}?) "
    r"(?P<do>(?:\w+ly )?(?:\w+ed|wrote|built|made|won|"
    r"led|sang|held|gave|took|chose|ran|saw|drove|drew|bought|sold|sent|told|found|fought|met|"
    r"taught|beat|began|broke|replaces|contains|requires|includes|provides|supports|precedes|"
    r"follows|causes|produces|represents|controls|calls|returns|uses|becomes|became)) "
    rf"(?P<b>(?:(?:the|a|an|his|her|its|their) |(?=[A-Z]))[^,.;:()]{{2,45}}?){_END}"
)
_CAUSE: Final = re.compile(
    r"^(?P<a>[^,;:()]{12,120}?),? (?P<do>because|since|so that|after|before|until|if|unless) "
    r"(?P<b>(?!of\b)[^,.;:()]{12,120}?)\.$"
)
_LED_TO: Final = re.compile(
    r"^(?P<a>[^,;:()]{3,60}?) (?P<do>(?:(?:has|have|had|can|may|will|could|also|would) )*"
    r"(?:led to|leads? to|caused?|causes|triggers?|triggered|enables?|affects?|affected|prevents?|"
    r"prevented|reduces?|reduced|increases?|increased|improves?|improved|requires?|required|"
    r"produces?|produced|generates?|contains?|includes?|included|offers?|replaces?|influenced|"
    r"resulted? in|results in|depends? on|comes? from|derives? from|evolved from|grew out of)) "
    r"(?P<b>[^,.;:()]{3,60}?)(?=[,.;)])"
)
_FEW_FOR_ALL: Final = tuple(
    (re.compile(rf"\b{weak}\b", re.IGNORECASE), strong)
    for weak, strong in (
        ("some of the", "all of the"), ("most of the", "all of the"), ("many of the", "all the"),
        ("one of the", "all of the"), ("several of the", "all of the"), ("some", "all"),
        ("most", "all"), ("many", "all"), ("several", "all"), ("a few", "all"),
        ("a number of", "all"), ("a majority of", "all"), ("part of the", "the whole"),
        ("sometimes", "always"), ("often", "always"), ("usually", "always"),
        ("frequently", "always"), ("generally", "always"), ("typically", "always"),
        ("can be", "must be"), ("may be", "is always"), ("may", "must"), ("could", "did"),
        ("partly", "entirely"), ("partially", "completely"), ("almost", "exactly"),
        ("at least one", "every"), ("certain", "all"), ("various", "all"), ("mostly", "only"),
        ("mainly", "only"), ("primarily", "only"), ("largely", "only"), ("rarely", "never"),
    )
)  # fmt: skip
_ALL_FOR_NONE: Final = tuple(
    (re.compile(rf"\b{one}\b", re.IGNORECASE), other)
    for one, other in (
        ("all of the", "none of the"), ("all", "no"), ("every", "no"), ("each of the", "none of "
        "the"), ("both", "neither of the"), ("always", "never"), ("most", "few"), ("many", "few"),
        ("often", "rarely"), ("usually", "rarely"), ("frequently", "seldom"), ("only", "not only"),
        ("must", "need not"), ("any", "no"), ("at least", "at most"), ("more than", "less than"),
        ("up to", "more than"), ("no longer", "still"), ("the majority of", "a minority of"),
        ("over", "less than"), ("nearly all", "hardly any"), ("entirely", "not at all"),
    )
)  # fmt: skip
_UNITS: Final = (
    "km miles metres meters feet inches cm mm yards",
    "kilometres kilometers miles metres",
    "kg g mg pounds tonnes tons grams kilograms",
    "hours minutes seconds days weeks months years",
    "hour minute day week month year",
    "million billion thousand",
    "percent times",
    "MB GB KB TB",
    "mph knots",
    "dollars euros pounds yen",
    "acres hectares",
    "litres gallons",
    "January February March April May June July August September October November December",
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "century decade",
    "daily weekly monthly yearly",
    "first second third fourth fifth",
    "am pm",
    "AD BC",
    "north south east west",
    "double triple",
    "once twice",
    "half quarter third",
    "two three four five six seven eight nine ten",
)
_UNIT: Final = {unit: [other for other in group.split() if other != unit]
                for group in _UNITS for unit in group.split()}  # fmt: skip
_MEASURE: Final = re.compile(r"\b(?:" + "|".join(sorted(_UNIT, key=len, reverse=True)) + r")\b")
_AUXILIARY: Final = re.compile(
    r"\b(?:is|was|are|were|can|could|will|would|should|must|may|has|have|had|does|do|did)\b(?! not)"
)
_SIMPLE: Final = re.compile(
    r"\b(require|include|support|contain|return|provide|allow|use|need|offer|cover|accept|work|store"
    r"|send|live|play|start|end|open|make|take|give|keep|call|read|write|run|help|produce|remain"
    r"|represent|appear|belong|lead|come|become|show|mean|affect|cause|create|define|apply)s\b"
)
_DENIAL: Final = re.compile(r"(?<=\w) (?:not|never)\b|n't\b")
# Of every pair either word, also with the endings that _inflected makes.
_OPPOSITES: Final = (
    "accept reject", "agree disagree", "allow prohibit", "appear disappear", "approve reject",
    "arrive depart", "ascend descend", "attract repel", "begin end", "borrow lend", "build destroy",
    "connect disconnect", "continue stop", "create destroy", "decline rise", "defend attack",
    "deny confirm", "discourage encourage", "employ dismiss", "enable disable", "encourage "
    "discourage", "expand shrink", "fail succeed", "gain lose", "grant refuse", "hide reveal",
    "import export", "improve worsen", "include exclude", "increase decrease", "join leave",
    "love hate", "maximize minimize", "open close", "oppose support", "permit forbid",
    "praise criticise", "preserve destroy", "prevent cause", "raise lower", "remember forget",
    "remove add", "require forbid", "separate unite", "start finish", "strengthen weaken",
    "approved rejected", "won lost", "rose fell", "bought sold", "found lost", "gave took",
)  # fmt: skip
_OPPOSITE_WORDS: Final = (
    "able unable", "absent present", "active inactive", "ancient modern", "artificial natural",
    "available unavailable", "beautiful ugly", "big small", "black white", "bright dark",
    "certain uncertain", "cheap expensive", "clean dirty", "clear unclear", "cold hot",
    "common rare", "complete incomplete", "complex simple", "correct incorrect", "dangerous safe",
    "dead alive", "deep shallow", "different identical", "difficult easy", "direct indirect",
    "domestic foreign", "dry wet", "early late", "eastern western", "empty full", "equal unequal",
    "external internal", "familiar unfamiliar", "famous unknown", "fast slow", "favourable "
    "unfavourable", "female male", "fresh stale", "friendly hostile", "frequent rare",
    "guilty innocent", "happy unhappy", "hard soft", "healthy ill", "heavy light", "high low",
    "higher lower", "important unimportant", "independent dependent", "inner outer", "known "
    "unknown", "large small", "larger smaller", "legal illegal", "likely unlikely", "local global",
    "long short", "longer shorter", "loud quiet", "lucky unlucky", "major minor", "mandatory "
    "optional", "maximum minimum", "narrow wide", "necessary unnecessary", "negative positive",
    "new old", "normal abnormal", "northern southern", "official unofficial", "open closed",
    "permanent temporary", "poor rich", "popular unpopular", "positive negative", "possible "
    "impossible", "powerful weak", "private public", "professional amateur", "public private",
    "quick slow", "rare common", "regular irregular", "reliable unreliable", "required optional",
    "rural urban", "safe unsafe", "same different", "similar different", "strong weak",
    "successful unsuccessful", "sufficient insufficient", "sweet bitter", "tall short", "thick "
    "thin", "tight loose", "true false", "upper lower", "useful useless", "valid invalid",
    "vertical horizontal", "visible invisible", "voluntary compulsory", "warm cool", "wealthy poor",
    "wide narrow", "wild tame", "wrong right", "young old", "younger older", "earlier later",
    "before after", "above below", "inside outside", "increase decrease", "rise fall", "victory "
    "defeat", "success failure", "profit loss", "beginning end", "birth death", "friend enemy",
    "majority minority", "arrival departure", "entrance exit", "first last", "north south",
    "east west", "winner loser", "always never", "quickly slowly", "rarely often", "increasing "
    "decreasing", "highest lowest", "largest smallest", "best worst", "oldest youngest",
    "more less", "most least", "success failure", "strength weakness",
    "advantage disadvantage", "with without",
    "positive negative", "top bottom", "left right", "free paid", "automatic manual", "mutable "
    "immutable", "enabled disabled", "supported unsupported", "signed unsigned", "greater smaller",
    "finite infinite", "identical different", "sooner later", "winter summer", "day night",
)  # fmt: skip


def turned(pattern: re.Pattern[str], label: str) -> TwinMaker:
    """Exchange the two sides of a pattern: its groups ``a`` and ``b``."""

    def exchange(sentence: str, _: Random) -> Twin | None:
        found = pattern.search(sentence)
        if not found or _starts_vaguely(found["a"]) or _starts_vaguely(found["b"]):
            return None
        first, second = _capital(found["b"]), _lowered(found["a"])
        text = f"{first} {found['do']} {second}"
        return Twin(sentence[: found.start()] + text + sentence[found.end("b") :], label, label)

    return exchange


def names_exchanged(sentence: str, chance: Random) -> Twin | None:
    """Exchange two names that do not stand in one list."""
    names = _names(sentence)
    ways = [
        (a, b) for at, a in enumerate(names) for b in names[at + 1 :]
        if not _LISTED.match(sentence[a.end() : b.start()]) and a.group() not in b.group()
        and b.group() not in a.group() and "and" not in sentence[a.end() : b.start()].split()
    ]  # fmt: skip
    if not ways:
        return None
    a, b = chance.choice(ways)
    text = sentence[: a.start()] + b.group() + sentence[a.end() : b.start()] + a.group()
    return Twin(text + sentence[b.end() :], "NE", "NE")


def strengthened(sentence: str, chance: Random) -> Twin | None:
    """Say of all, or of always, what is said of some; the other way round it follows."""
    twin = _first_of(_FEW_FOR_ALL, sentence, chance)
    return Twin(twin, "NE", "") if twin else None


def denied_amount(sentence: str, chance: Random) -> Twin | None:
    """Exchange a quantifier for the opposite one."""
    twin = _first_of(_ALL_FOR_NONE, sentence, chance)
    return Twin(twin, "C", "C") if twin else None


def denied(sentence: str, chance: Random) -> Twin | None:
    """Put in a negation, or take one out."""
    if _DENIAL.search(sentence):
        return Twin(_DENIAL.sub("", sentence, count=1), "C", "C")
    verbs = list(_AUXILIARY.finditer(sentence))
    if not verbs or chance.random() < 0.3:
        text = _SIMPLE.sub(r"does not \1", sentence, count=1)
        return Twin(text, "C", "C") if text != sentence else None
    verb = verbs[0]
    word = chance.choice((" not", " not", " never"))
    return Twin(sentence[: verb.end()] + word + sentence[verb.end() :], "C", "C")


def other_unit(sentence: str, chance: Random) -> Twin | None:
    """Replace a unit, month, day or small number by another of its kind."""
    found = list(_MEASURE.finditer(sentence))
    if not found:
        return None
    unit = chance.choice(found)
    text = sentence[: unit.start()] + chance.choice(_UNIT[unit.group()]) + sentence[unit.end() :]
    return Twin(text, "C", "C")


def other_number(sentence: str, chance: Random) -> Twin | None:
    """Replace a number by one near it."""
    found = list(re.finditer(r"(?<![\w.,-])\d{1,4}(?![\w,-]|\.\d)", sentence))
    if not found:
        return None
    number = chance.choice(found)
    value = int(number.group())
    other = max(value + chance.choice((-20, -10, -5, -3, -2, -1, 1, 2, 3, 5, 10, 20)), 0)
    other = chance.choice((other, other, other, value * 2, value * 10))
    if other == value:
        return None
    return Twin(sentence[: number.start()] + str(other) + sentence[number.end() :], "C", "C")


class Sentences:
    """Sentences of texts, and what is needed of all of them to change one."""

    def __init__(self, sentences: Iterable[str], lexicon: Lexicon) -> None:
        """Collect names and usual words from the sentences, and opposites from the lexicon."""
        self.all = sorted({each for each in sentences if 5 <= len(each.split()) <= 45})
        usual = Counter(word for each in self.all for word in re.findall(r"\b[a-z]{3,}\b", each))
        self._opposites = _opposites(usual, lexicon)
        self.names = sorted({name.group() for each in self.all for name in _names(each)})
        self._by_length = {n: [x for x in self.names if len(x.split()) == n] for n in range(1, 5)}

    def makers(self) -> dict[str, TwinMaker]:
        """Return every kind of change by name."""
        return {
            "passive": turned(_PASSIVE, "C"),
            "active": turned(_ACTIVE, "NE"),
            "compared": turned(_COMPARED, "C"),
            "placed": turned(_PLACED, "NE"),
            "cause": turned(_CAUSE, "NE"),
            "led to": turned(_LED_TO, "NE"),
            "names": names_exchanged,
            "other name": self.other_name,
            "first name": self.other_first_name,
            "opposite": self.opposite,
            "strong": strengthened,
            "amount": denied_amount,
            "denied": denied,
            "unit": other_unit,
            "number": other_number,
        }

    def other_name(self, sentence: str, chance: Random) -> Twin | None:
        """Replace any name, also the first of the sentence."""
        names = _names(sentence)
        return self._renamed(sentence, chance.choice(names), chance) if names else None

    def other_first_name(self, sentence: str, chance: Random) -> Twin | None:
        """Replace the name with which the sentence begins."""
        names = _names(sentence)
        if not names or names[0].start():
            return None
        return self._renamed(sentence, names[0], chance)

    def _renamed(self, sentence: str, name: re.Match[str], chance: Random) -> Twin | None:
        other = chance.choice(self._by_length[min(len(name.group().split()), 4)])
        if chance.random() < 0.4 and " " in name.group():  # another person of the family
            first, _, last = name.group().partition(" ")
            new = chance.choice(self._by_length[1])
            other = f"{new} {last}" if chance.random() < 0.5 else f"{first} {new}"
        if set(other.split()) & (set(sentence.split()) - set(name.group().split())):
            return None
        if other == name.group():
            return None
        text = sentence[: name.start()] + other + sentence[name.end() :]
        return Twin(text, "NE", "NE")

    def opposite(self, sentence: str, chance: Random) -> Twin | None:
        """Replace one word by its opposite."""
        words = [m for m in re.finditer(r"(?<![\w'-])[a-z]{3,}(?![\w'-])", sentence)
                 if m.group() in self._opposites]  # fmt: skip
        if not words:
            return None
        found = chance.choice(words)
        other = chance.choice(self._opposites[found.group()])
        text = sentence[: found.start()] + other + sentence[found.end() :]
        return Twin(re.sub(r"\b([Aa])n? (?=" + other + ")", _article(other), text), "C", "C")


def _article(word: str) -> str:
    return r"\1n " if word[0] in "aeiou" else r"\1 "


def _opposites(usual: Counter[str], lexicon: Lexicon) -> dict[str, list[str]]:
    found: dict[str, set[str]] = {}
    listed = [tuple(pair.split()) for pair in (*_OPPOSITES, *_OPPOSITE_WORDS)]
    verbs = [tuple(pair.split()) for pair in _OPPOSITES]
    endings = [(_inflected(a, e), _inflected(b, e)) for a, b in verbs for e in ("s", "ed", "ing")]
    known = [(word, other) for word in usual if usual[word] > 3
             for other in lexicon[word].opposite if usual[other] > 3]  # fmt: skip
    for one, other in (*listed, *endings, *known):
        found.setdefault(one, set()).add(other)
        found.setdefault(other, set()).add(one)
    return {word: sorted(others) for word, others in found.items()}


def _inflected(verb: str, ending: str) -> str:
    if ending == "s":
        return verb + ("es" if verb.endswith(("s", "sh", "ch", "x")) else "s")
    if verb.endswith("y") and ending == "ed":
        return verb[:-1] + "ied"
    return verb.removesuffix("e") + ending


def _names(sentence: str) -> list[re.Match[str]]:
    return [each for each in _NAME.finditer(sentence)
            if not _NOT_A_NAME & set(each.group().split()) and len(each.group()) > 3]  # fmt: skip


def _first_of(
    ways: Sequence[tuple[re.Pattern[str], str]], sentence: str, chance: Random
) -> str | None:
    fitting = [way for way in ways if way[0].search(sentence)]
    if not fitting:
        return None
    pattern, other = chance.choice(fitting)
    return _capital(pattern.sub(other, sentence, count=1))


def _starts_vaguely(part: str) -> bool:
    return part.split()[0].lower() in _VAGUE


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lowered(text: str) -> str:
    first = text.split()[0]
    return text[:1].lower() + text[1:] if first in _NOT_A_NAME and first != "I" else text
