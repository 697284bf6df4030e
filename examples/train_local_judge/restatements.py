"""Words a sentence differently without leaving anything out, so that each entails the other.

Each takes a sentence and a source of chance, as the rewrites of ``rewrites`` do, which may leave
parts out as well.
"""

from __future__ import annotations

import re
from random import Random
from typing import Final

from train_local_judge.rewrites import MONTHS, Rewrite, sentence_case

__all__ = ["RESTATEMENTS", "restated"]

_MONTH: Final = "(?:" + "|".join(MONTHS) + ")"
_PAST: Final = {
    done: past
    for done, _, past in (
        pair.partition(":")
        for pair in (
            "written:wrote built:built made:made won:won led:led sung:sang held:held "
            "given:gave taken:took chosen:chose seen:saw driven:drove drawn:drew "
            "shown:showed bought:bought sold:sold caught:caught sent:sent told:told "
            "found:found fought:fought kept:kept met:met paid:paid taught:taught "
            "thrown:threw beaten:beat broken:broke"
        ).split()
    )
}
_NOUNS: Final = r"(?:the |a |an )?[^,.;:()]{2,40}?"
_PASSIVE: Final = re.compile(
    rf"^(?P<a>[^,;:()]{{3,60}}?) (?:was|were) (?P<done>\w+ed|{'|'.join(_PAST)}) by (?P<b>{_NOUNS})"
    r"(?P<rest>(?: (?:in|on|during|after|before|from) [^,;:]{2,60})?\.)$"
)
_ACTIVE: Final = re.compile(
    rf"^(?P<a>(?:The |An? )?(?:[A-Z][\w'’-]*|(?<=The )\w+)(?: [\w'’-]+){{0,3}}?) "
    rf"(?P<did>\w+ed|{'|'.join(_PAST.values())}) "
    rf"(?P<b>(?:(?:the|a|an|his|her|its|their) |(?=[A-Z]))[^,.;:()]{{2,40}}?)"
    r"(?P<rest>(?: (?:in|on|during|after|before|from) [^,;:]{2,60})?\.)$"
)
_DONE: Final = {past: done for done, past in _PAST.items()}
_PRONOUNS: Final = frozenset("He She It They I We You This There These Those Who".split())
_NO_SUBJECT: Final = re.compile(
    r"^(?:If|When|Following|After|As|While)\b|\b(?:was|were|is|are|had|has|have|just|once|never|to|"
    r"\w+ly)$"
)
_SHORT: Final = {
    "is not": "isn't", "are not": "aren't", "was not": "wasn't", "were not": "weren't",
    "do not": "don't", "does not": "doesn't", "did not": "didn't", "cannot": "can't",
    "could not": "couldn't", "will not": "won't", "would not": "wouldn't", "has not": "hasn't",
    "have not": "haven't", "had not": "hadn't", "should not": "shouldn't", "it is": "it's",
    "It is": "It's", "they are": "they're", "There is": "There's", "you are": "you're",
    "You are": "You're", "we are": "we're", "I am": "I'm", "he is": "he's", "She is": "She's",
}  # fmt: skip
_LIST: Final = re.compile(
    r"(?<=, )([\w'-]+(?: [\w'-]+){0,2}),? (and|or) ([\w'-]+(?: [\w'-]+){0,2})(?=\.)"
)
_ONE_NAME: Final = r"([A-Z][\w'-]+(?: [A-Z][\w'-]+)?)"
_NAMES: Final = re.compile(rf"\b{_ONE_NAME} and {_ONE_NAME}(?=[,.;]| [a-z])")
_FRONT: Final = re.compile(
    rf"^(?P<when>(?:In|On|During|Since|By|Until) (?:(?:{_MONTH} )?\d[\w ]*|the [\w ]{{3,25}}|"
    rf"{_MONTH}(?: \d{{4}})?)),? "
    rf"(?P<rest>(?:the|a|an|he|she|it|they|his|her|[A-Z])[^;:]{{10,160}})\.$"
)
_BACK: Final = re.compile(
    rf"^(?P<rest>[^,;:]{{10,160}}) (?P<when>(?:in|on|during|since) (?:(?:{_MONTH} )?\d{{4}}|"
    rf"{_MONTH}(?: \d+)?(?:, \d{{4}}| \d{{4}})?))\.$"
)
_ASIDE: Final = re.compile(
    r"^(?P<who>[A-Z][\w'-]+(?: [A-Z][\w.'-]+){0,3}), (?P<what>(?:the|a|an) [^,.;:]{5,60}), [a-z]"
)
_DATE: Final = re.compile(rf"\b({_MONTH}) (\d{{1,2}}), (\d{{4}})\b")
_DAY: Final = re.compile(rf"\b(\d{{1,2}}) ({_MONTH}) (\d{{4}})\b")
_BECAUSE: Final = re.compile(r"^(?P<a>[^,;:]{12,120}?),? (?P<do>because|although|when|after|before|if) (?P<b>(?!of\b)[^.;:]{10,120})\.$")  # fmt: skip  # noqa: E501 - one pattern
_LOWER: Final = frozenset(
    "The A An He She It They His Her Its This These There Their You We Some Most Many".split()
)


def restated(sentence: str, chance: Random) -> str:
    """Word a sentence differently by up to two of the rules that apply to it."""
    for rule in chance.sample(RESTATEMENTS, len(RESTATEMENTS)):
        if (other := rule(sentence, chance)) and other != sentence:
            return other
    return sentence


def _to_active(sentence: str, _: Random) -> str | None:
    if not (found := _PASSIVE.match(sentence)):
        return None
    if found["a"].split()[0] in _PRONOUNS or " was " in found["a"]:
        return None
    past = _PAST.get(found["done"], found["done"])
    return sentence_case(f"{found['b']} {past} {_lowered(found['a'])}{found['rest']}")


def _to_passive(sentence: str, _: Random) -> str | None:
    found = _ACTIVE.match(sentence)
    if not found or _NO_SUBJECT.search(found["a"]):
        return None
    if found["b"].split()[0] in {
        "to",
        "by",
        "in",
        "on",
        "at",
        "from",
        "as",
        "with",
        "that",
        "into",
    }:
        return None
    if found["a"].split()[0] in _PRONOUNS:
        return None
    done = _DONE.get(found["did"], found["did"])
    verb = "were" if found["b"].endswith("s") and " and " not in found["b"] else "was"
    return sentence_case(f"{found['b']} {verb} {done} by {_lowered(found['a'])}{found['rest']}")


def _contracted(sentence: str, chance: Random) -> str | None:
    pairs = [*_SHORT.items(), *((short, long) for long, short in _SHORT.items() if "n't" in short)]
    fitting = [(a, b) for a, b in pairs if re.search(rf"(?<!\w){a}(?!\w)", sentence)]
    if not fitting:
        return None
    one, other = chance.choice(fitting)
    return re.sub(rf"(?<!\w){one}(?!\w)", other, sentence)


def _reordered(sentence: str, _: Random) -> str | None:
    return _LIST.sub(r"\3 \2 \1", sentence, count=1)


def _names_reordered(sentence: str, _: Random) -> str | None:
    if re.search(r"\b(?:between|from|respectively|both)\b", sentence):
        return None
    return _NAMES.sub(r"\2 and \1", sentence, count=1)


def _front_to_back(sentence: str, _: Random) -> str | None:
    if not (found := _FRONT.match(sentence)):
        return None
    return f"{sentence_case(found['rest'])} {_lowered(found['when'])}."


def _back_to_front(sentence: str, _: Random) -> str | None:
    if not (found := _BACK.match(sentence)):
        return None
    return f"{sentence_case(found['when'])}, {_lowered(found['rest'])}."


def _aside_alone(sentence: str, _: Random) -> str | None:
    found = _ASIDE.match(sentence)
    return found and f"{found['who']} is {found['what']}."


def _other_date(sentence: str, _: Random) -> str | None:
    if _DATE.search(sentence):
        return _DATE.sub(r"\2 \1 \3", sentence)
    return _DAY.sub(r"\2 \1, \3", sentence)


def _clauses_turned(sentence: str, _: Random) -> str | None:
    if not (found := _BECAUSE.match(sentence)):
        return None
    return f"{found['do'].capitalize()} {found['b']}, {_lowered(found['a'])}."


def _lowered(text: str) -> str:
    starts = text.split()[0] in _LOWER | {"In", "On", "During", "Since", "By", "Until"}
    return text[:1].lower() + text[1:] if starts else text


RESTATEMENTS: Final[tuple[Rewrite, ...]] = (
    _to_active, _to_passive, _contracted, _reordered, _names_reordered, _front_to_back,
    _back_to_front, _aside_alone, _other_date, _clauses_turned,
)  # fmt: skip
"""Every rule."""
